package weights

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"hecate/internal/control"
)

// A Reference names a model in a registry: [namespace/]name[:tag].
type Reference struct{ Repository, Tag string }

var (
	component = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*$`)
	tag       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// ParseReference reads a reference. Without a namespace it is in "library", as
// registries of models have it; without a tag it is "latest".
func ParseReference(text string) (Reference, error) {
	name, t, given := strings.Cut(text, ":")
	if !given {
		t = "latest"
	}
	parts := strings.Split(name, "/")
	ok := tag.MatchString(t) && len(parts) <= 4 && len(name) <= 200
	for _, p := range parts {
		ok = ok && component.MatchString(p)
	}
	if !ok {
		return Reference{}, fmt.Errorf("%q names no model of a registry: want [namespace/]name[:tag] in small letters", text)
	}
	if len(parts) == 1 {
		name = "library/" + name
	}
	return Reference{name, t}, nil
}

// mediaModel marks the layer of a manifest that is a GGUF file.
const mediaModel = "application/vnd.ollama.image.model"

// imageManifest is what a registry says of a reference.
type imageManifest struct {
	Layers []struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"` // sha256:...
		Size      int64  `json:"size"`   // bytes
	} `json:"layers"`
}

// A Puller fetches models from a registry that speaks the distribution protocol of
// container images (manifests and blobs).
type Puller struct {
	Registry string // https://host, or http:// on this machine
	Client   *http.Client
	Dir      string // where a file that has not come whole waits to go on
	Progress func(done, total int64)
}

// Pull fetches a model's file and returns its path. It is verified, and the
// caller's to remove. A transfer that was cut goes on.
func (p *Puller) Pull(ctx context.Context, ref Reference) (string, error) {
	base, err := p.base()
	if err != nil {
		return "", err
	}
	hash, size, err := p.manifest(ctx, base+"/v2/"+ref.Repository+"/manifests/"+ref.Tag)
	if err != nil {
		return "", fmt.Errorf("ask %s for %s:%s: %w", p.Registry, ref.Repository, ref.Tag, err)
	}
	path := filepath.Join(p.Dir, "pull-"+hash)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("keep the model: %w", err)
	}
	err = p.blob(ctx, base+"/v2/"+ref.Repository+"/blobs/sha256:"+hash, f, hash, size)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("fetch %s:%s: %w", ref.Repository, ref.Tag, err)
	}
	return path, nil
}

// base checks the registry's address: what comes is only as good as the manifest,
// so that must not come over an open network unprotected.
func (p *Puller) base() (string, error) {
	u, err := url.Parse(p.Registry)
	if err != nil || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("%q is no address of a registry, want https://host", p.Registry)
	}
	ip := net.ParseIP(u.Hostname())
	if here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return "", fmt.Errorf("%s: https only, unless the registry is on this machine", p.Registry)
	}
	return strings.TrimRight(p.Registry, "/"), nil
}

func (p *Puller) manifest(ctx context.Context, address string) (hash string, size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json")
	resp, err := p.Client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", 0, refused(resp)
	}
	var m imageManifest
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&m); err != nil {
		return "", 0, fmt.Errorf("its manifest: %w", err)
	}
	for _, l := range m.Layers {
		if l.MediaType != mediaModel {
			continue
		}
		hash, _ := strings.CutPrefix(l.Digest, "sha256:")
		if l.Size <= 0 {
			return "", 0, fmt.Errorf("its manifest: a model of %d bytes", l.Size)
		}
		return hash, l.Size, control.ValidateHash(hash)
	}
	return "", 0, errors.New("its manifest names no GGUF model")
}

// blob takes what is missing of a file, and checks the whole.
func (p *Puller) blob(ctx context.Context, address string, f *os.File, hash string, size int64) error {
	span := Span{Name: "the file", Piece: "the model", Bytes: size, Sum: hash}
	part := &part{file: f, path: f.Name(), name: "the model", size: size, spans: []Span{span}, sum: sha256.New()}
	if err := part.recall(); err != nil {
		return err
	}
	for cuts := 0; !part.whole(); {
		before := part.held
		err := p.stream(ctx, address, part)
		var corrupt *CorruptError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.As(err, &corrupt), !part.transient(err):
			return err
		case part.held > before:
			cuts = 0
		default:
			if cuts++; cuts == maxCuts {
				return err
			}
			if err := sleep(ctx, askAgain); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Puller) stream(ctx context.Context, address string, part *part) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", part.held))
	resp, err := p.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK && part.held > 0: // it knows no ranges
		if err := part.rewind(errTooLong); err != nil {
			return &writeError{err}
		}
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent:
		return refused(resp)
	}
	j := &job{Fetcher: &Fetcher{}, state: Progress{Total: part.size}, progress: func(s Progress) {
		if p.Progress != nil {
			p.Progress(s.Done, s.Total)
		}
	}}
	return j.pour(ctx, resp.Body, part, Progress{}, func() {})
}
