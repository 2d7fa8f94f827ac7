package enrol

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
)

// ErrNotEnrolled: the folder holds no identity yet; a token is needed.
var ErrNotEnrolled = errors.New("this machine is not enrolled: join it with a token")

const (
	fileKey  = "node.key"
	fileCert = "node.crt"
	fileHome = "swarm.json"
	// answerWithin bounds one try at one gateway; it includes the gateway's
	// own look for a duplicate.
	answerWithin = 10 * time.Second
)

// An Enrolment is a node's place in a swarm, kept in its data folder.
type Enrolment struct {
	dir         string
	credentials *identity.Credentials
	mu          struct {
		sync.Mutex
		gateways []string
	}
}

// home is the file that says where the swarm is.
type home struct {
	Version  int      `json:"version"`
	Name     string   `json:"name"`
	Gateways []string `json:"gateways"`
}

// Load opens the enrolment in a folder, or returns ErrNotEnrolled. An expired
// certificate is no error: Renew helps. extra are more addresses to try.
func Load(dir string, extra ...string) (*Enrolment, error) {
	data, err := os.ReadFile(filepath.Join(dir, fileHome))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotEnrolled)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the enrolment: %w", err)
	}
	var h home
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, fileHome), err)
	}
	key, err := identity.LoadOrMakeKey(filepath.Join(dir, fileKey))
	if err != nil {
		return nil, err
	}
	data, err = os.ReadFile(filepath.Join(dir, fileCert))
	if err != nil {
		return nil, fmt.Errorf("reading the enrolment: %w", err)
	}
	chain, err := identity.ParseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, fileCert), err)
	}
	credentials, err := identity.NewCredentials(key, chain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	e := &Enrolment{dir: dir, credentials: credentials}
	e.mu.gateways = merge(extra, h.Gateways)
	return e, nil
}

// Join enrols this machine under a name and keeps its identity in dir. A
// folder that is enrolled in the token's swarm already is simply loaded: a
// token is needed once. extra are more addresses to try, host:port.
func Join(ctx context.Context, dir string, token Token, name string, extra ...string) (*Enrolment, error) {
	e, err := Load(dir, extra...)
	if err == nil {
		if identity.Fingerprint(e.credentials.Authority()) != token.Fingerprint {
			return nil, fmt.Errorf("%s is enrolled in swarm %s, the token is of another: use another data folder", dir, e.credentials.ID().Swarm)
		}
		e.know(token.Addresses)
		return e, nil
	}
	if !errors.Is(err, ErrNotEnrolled) {
		return nil, err
	}
	if !time.Now().Before(token.Expires) {
		return nil, fmt.Errorf("%w on %s, says this machine's clock", ErrTokenExpired, token.Expires.Format(time.RFC3339))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the node's folder: %w", err)
	}
	key, err := identity.LoadOrMakeKey(filepath.Join(dir, fileKey))
	if err != nil {
		return nil, err
	}
	in, err := newRequest(name, key)
	if err != nil {
		return nil, err
	}
	in.Secret = token.Secret[:]
	gateways := slices.Concat(extra, token.Addresses)
	var out enrolReply
	if err := post(ctx, gateways, pathEnrol, identity.Pinned(token.Fingerprint), in, &out); err != nil {
		return nil, fmt.Errorf("joining the swarm as %q: %w", name, err)
	}
	return accept(dir, key, token.Fingerprint, merge(out.Gateways, gateways), out.Certificates)
}

func newRequest(name string, key crypto.Signer) (enrolRequest, error) {
	if err := control.ValidateNodeName(name); err != nil {
		return enrolRequest{}, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		return enrolRequest{}, fmt.Errorf("making a certificate request: %w", err)
	}
	return enrolRequest{Version: protocolVersion, Name: name, CSR: csr, Time: time.Now()}, nil
}

// accept checks what the gateway gave, and keeps it.
func accept(dir string, key crypto.Signer, pin [32]byte, gateways []string, certificates []byte) (*Enrolment, error) {
	chain, err := identity.ParseCertificates(certificates)
	if err != nil {
		return nil, fmt.Errorf("the gateway's answer: %w", err)
	}
	credentials, err := identity.NewCredentials(key, chain)
	if err != nil {
		return nil, fmt.Errorf("the gateway's answer: %w", err)
	}
	if identity.Fingerprint(credentials.Authority()) != pin {
		return nil, fmt.Errorf("the gateway's answer: %w", identity.ErrOtherSwarm)
	}
	e := &Enrolment{dir: dir, credentials: credentials}
	e.mu.gateways = gateways
	// The file that makes the folder an enrolled one comes last.
	if err := identity.WriteSecret(filepath.Join(dir, fileCert), certificates); err != nil {
		return nil, err
	}
	return e, e.save()
}

// Credentials are the node's.
func (e *Enrolment) Credentials() *identity.Credentials { return e.credentials }

// Name is the node's id.
func (e *Enrolment) Name() string { return e.credentials.ID().Name }

// Renew gets a new certificate, puts it into use, and returns it. It has the
// shape that identity.Credentials.KeepFresh wants.
func (e *Enrolment) Renew(ctx context.Context) ([]*x509.Certificate, error) {
	in, err := newRequest(e.Name(), e.credentials.Key())
	if err != nil {
		return nil, err
	}
	anonymous := e.credentials.Client(identity.RoleGateway, "")
	anonymous.GetClientCertificate = nil // ours may have expired; the request's signature counts
	var out enrolReply
	if err := post(ctx, e.gateways(), pathRenew, anonymous, in, &out); err != nil {
		return nil, err
	}
	chain, err := identity.ParseCertificates(out.Certificates)
	if err != nil {
		return nil, err
	}
	if err := e.credentials.Replace(chain); err != nil {
		return nil, err
	}
	e.know(out.Gateways)
	return chain, errors.Join(identity.WriteSecret(filepath.Join(e.dir, fileCert), out.Certificates), e.save())
}

// Attach tells the swarm that this node has started (or that its profile
// changed), and learns its incarnation and where the control plane is.
func (e *Enrolment) Attach(ctx context.Context, in AttachRequest) (Attached, error) {
	if e.credentials.Expired() {
		if _, err := e.Renew(ctx); err != nil {
			return Attached{}, fmt.Errorf("renewing the certificate of %s: %w", e.Name(), err)
		}
	}
	var out Attached
	if err := post(ctx, e.gateways(), pathAttach, e.credentials.Client(identity.RoleGateway, ""), in, &out); err != nil {
		return out, fmt.Errorf("attaching %s to its swarm: %w", e.Name(), err)
	}
	e.know(out.Gateways)
	return out, e.save()
}

func (e *Enrolment) gateways() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.mu.gateways)
}

// know puts addresses in front of those known before.
func (e *Enrolment) know(addresses []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.gateways = merge(addresses, e.mu.gateways)
}

// maxGateways bounds the addresses that a node remembers.
const maxGateways = 16

func merge(first, then []string) []string {
	var out []string
	for _, a := range slices.Concat(first, then) {
		if validAddress(a) == nil && !slices.Contains(out, a) && len(out) < maxGateways {
			out = append(out, a)
		}
	}
	return out
}

func (e *Enrolment) save() error {
	data, err := json.MarshalIndent(home{Version: protocolVersion, Name: e.Name(), Gateways: e.gateways()}, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the enrolment: %w", err)
	}
	return identity.WriteSecret(filepath.Join(e.dir, fileHome), append(data, '\n'))
}

// post asks the gateways in turn. What a gateway refuses, another will not
// grant; one that cannot be reached, or has trouble, is passed over.
func post(ctx context.Context, gateways []string, path string, conf *tls.Config, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("asking a gateway: %w", err)
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true},
		Timeout:   answerWithin,
	}
	var failures unreachable
	for _, address := range gateways {
		err := postOne(ctx, client, "https://"+address+path, body, out)
		if err == nil {
			return nil
		}
		var refused *refusedError
		if errors.As(err, &refused) && !errors.Is(err, ErrGateway) {
			return err
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the address is said below
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	return failures
}

// unreachable is why none of the gateways answered, in one line.
type unreachable []error

func (u unreachable) Error() string {
	if len(u) == 0 {
		return "no gateway's address is known"
	}
	parts := make([]string, len(u))
	for i, err := range u {
		parts[i] = err.Error()
	}
	return "no gateway could be asked (" + strings.Join(parts, "; ") + "): is it running, and is its address right?"
}

func (u unreachable) Unwrap() []error { return u }

func postOne(ctx context.Context, client *http.Client, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return decodeRefusal(resp.StatusCode, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%w: its answer is unreadable: %w", ErrGateway, err)
	}
	return nil
}
