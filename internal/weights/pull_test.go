package weights

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// registry speaks the protocol, for one model; it breaks off each answer after
// some bytes.
func registry(t *testing.T, file, digest string, breakAfter int64) *httptest.Server {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/library/tiny/manifests/1b", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:00","size":1},
			{"mediaType":%q,"digest":"sha256:%s","size":%d}]}`, mediaModel, digest, len(data))
	})
	mux.HandleFunc("GET /v2/library/empty/manifests/latest", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"layers":[]}`)
	})
	mux.HandleFunc("GET /v2/library/tiny/blobs/sha256:"+digest, func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				panic(http.ErrAbortHandler)
			}
		}()
		http.ServeFile(&cutAfter{w, breakAfter, &atomic.Int64{}}, r, file)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestPulling(t *testing.T) {
	file := model(t, t.TempDir(), false)
	hash := sumOf(t, file)
	s := registry(t, file, hash, 60_000)
	p := &Puller{Registry: s.URL, Client: s.Client(), Dir: t.TempDir()}
	ref, err := ParseReference("tiny:1b")
	if err != nil {
		t.Fatal(err)
	}
	path, err := p.Pull(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if got := sumOf(t, path); got != hash {
		t.Errorf("the file has the hash %s, want %s", got, hash)
	}
}

func TestPullingBadThings(t *testing.T) {
	file := model(t, t.TempDir(), false)
	lie := strings.Repeat("0", 64)
	s := registry(t, file, lie, 1<<40)
	for name, c := range map[string]struct{ registry, ref, want string }{
		"a file with another hash": {s.URL, "tiny:1b", "corrupted"},
		"an unknown tag":           {s.URL, "tiny:2b", "404"},
		"no model in it":           {s.URL, "empty", "names no GGUF model"},
		"an open network":          {"http://registry.example", "tiny:1b", "https only"},
		"no address":               {"registry", "tiny:1b", "no address of a registry"},
	} {
		p := &Puller{Registry: c.registry, Client: s.Client(), Dir: t.TempDir()}
		ref, err := ParseReference(c.ref)
		if err == nil {
			_, err = p.Pull(t.Context(), ref)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, text := range []string{"", "../x", "a/../b", "Tiny", "tiny:", "tiny:../x", "a/b/c/d/e", "tiny@sha256:00"} {
		if ref, err := ParseReference(text); err == nil {
			t.Errorf("%q was taken for %v", text, ref)
		}
	}
	if ref, err := ParseReference("someone/tiny"); err != nil || ref != (Reference{"someone/tiny", "latest"}) {
		t.Error(ref, err)
	}
}
