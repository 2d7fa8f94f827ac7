package enrol

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	// A gateway that has trouble, as while its control plane elects a leader, is
	// asked again: after troublePause, doubled up to troublePauseMax, for troubleTime.
	troublePause    = 250 * time.Millisecond
	troublePauseMax = 4 * time.Second
	troubleTime     = time.Minute
	// answerWithin bounds one try at one gateway; it includes the gateway's
	// own look for a duplicate.
	answerWithin = 10 * time.Second
)

// An Enrolment is a node's place in a swarm, kept in its data folder.
type Enrolment struct {
	dir         string
	credentials *identity.Credentials
	find        Finder
	trouble     func(error)
	unkept      func(error)
	mu          struct {
		sync.Mutex
		gateways []string
		bus      []string
		token    string    // id of the one that let us in
		searched time.Time // when find was last called
	}
}

// A Finder looks for gateways of the swarm whose authority has the
// fingerprint, when none can be reached where one was known: host:port each.
// What it returns is only tried, never trusted.
type Finder func(ctx context.Context, authority [32]byte) []string

// Options say how to reach a swarm.
type Options struct {
	// Gateways are more addresses to try first, host:port.
	Gateways []string
	Find     Finder // nil: only known addresses are tried
	// Trouble (may be nil) is told why a gateway that is there could not let this
	// machine in yet; it is asked again.
	Trouble func(error)
	// Unkept (may be nil) is told why what a gateway said could not be written down.
	// The node works without: it asks again after a restart.
	Unkept func(error)
}

// home is the file that says where the swarm is.
type home struct {
	Version  int      `json:"version"`
	Name     string   `json:"name"`
	Gateways []string `json:"gateways"`
	Bus      []string `json:"bus,omitempty"`   // where the control plane was last
	Token    string   `json:"token,omitempty"` // id of the token that let it in
}

// Load opens the enrolment in a folder, or returns ErrNotEnrolled. An expired
// certificate is no error: Renew helps.
func Load(dir string, o Options) (*Enrolment, error) {
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
	e := &Enrolment{dir: dir, credentials: credentials, find: o.Find, unkept: o.Unkept}
	e.mu.gateways, e.mu.bus, e.mu.token = merge(o.Gateways, h.Gateways), h.Bus, h.Token
	return e, nil
}

// Join enrols this machine under a name and keeps its identity in dir. A
// folder that is enrolled in the token's swarm already is simply loaded: a
// token is needed once. Another token than the first lets a machine back in that
// was removed; the first one does not, or a removed node that is started with
// it would be back at once.
func Join(ctx context.Context, dir string, token Token, name string, o Options) (*Enrolment, error) {
	e, err := Load(dir, o)
	if err == nil {
		if identity.Fingerprint(e.credentials.Authority()) != token.Fingerprint {
			return nil, fmt.Errorf("%s is enrolled in swarm %s, the token is of another: use another data folder", dir, e.credentials.ID().Swarm)
		}
		e.know(token.Addresses)
		e.again(ctx, token)
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
	e = &Enrolment{dir: dir, find: o.Find, trouble: o.Trouble, unkept: o.Unkept}
	e.mu.gateways = merge(o.Gateways, token.Addresses)
	return e, e.enter(ctx, token, name, key)
}

// enter asks to be let in, and keeps what that brings.
func (e *Enrolment) enter(ctx context.Context, token Token, name string, key crypto.Signer) error {
	in, err := newRequest(name, key)
	if err != nil {
		return err
	}
	in.Secret = token.Secret[:]
	var out enrolReply
	err = e.persist(ctx, func() error {
		return e.ask(ctx, token.Fingerprint, pathEnrol, identity.Pinned(token.Fingerprint), in, &out)
	})
	if err != nil {
		return fmt.Errorf("joining the swarm as %q: %w", name, err)
	}
	e.know(out.Gateways)
	e.mu.Lock()
	e.mu.token = token.ID()
	e.mu.Unlock()
	return e.accept(key, token.Fingerprint, out.Certificates)
}

// persist repeats what a gateway is there for and could not do.
func (e *Enrolment) persist(ctx context.Context, try func() error) error {
	began, pause := time.Now(), troublePause
	for {
		err := try()
		if !errors.Is(err, ErrGateway) || time.Since(began) >= troubleTime {
			return err
		}
		if e.trouble != nil {
			e.trouble(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, troublePauseMax)
	}
}

// again asks with another token than the first. Who is in already spends nothing
// and loses nothing when that fails; who is not is told when it attaches.
func (e *Enrolment) again(ctx context.Context, token Token) {
	if token.ID() == e.token() || !time.Now().Before(token.Expires) {
		return
	}
	before := e.credentials
	key, err := identity.LoadOrMakeKey(filepath.Join(e.dir, fileKey))
	if err == nil {
		err = e.enter(ctx, token, e.Name(), key)
	}
	if err != nil {
		e.credentials = before
	}
}

func (e *Enrolment) token() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.token
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
func (e *Enrolment) accept(key crypto.Signer, pin [32]byte, certificates []byte) error {
	chain, err := identity.ParseCertificates(certificates)
	if err == nil {
		e.credentials, err = identity.NewCredentials(key, chain)
	}
	if err == nil && identity.Fingerprint(e.credentials.Authority()) != pin {
		err = identity.ErrOtherSwarm
	}
	if err != nil {
		return fmt.Errorf("the gateway's answer: %w", err)
	}
	// The file that makes the folder an enrolled one comes last.
	if err := identity.WriteSecret(filepath.Join(e.dir, fileCert), certificates); err != nil {
		return err
	}
	return e.save()
}

// Credentials are the node's.
func (e *Enrolment) Credentials() *identity.Credentials { return e.credentials }

// Name is the node's id.
func (e *Enrolment) Name() string { return e.credentials.ID().Name }

// Renew gets a new certificate, puts it into use, and returns it, also when it cannot
// be written down. It has the shape that identity.Credentials.KeepFresh wants.
func (e *Enrolment) Renew(ctx context.Context) ([]*x509.Certificate, error) {
	in, err := newRequest(e.Name(), e.credentials.Key())
	if err != nil {
		return nil, err
	}
	anonymous := e.credentials.Client(identity.RoleGateway, "")
	anonymous.GetClientCertificate = nil // ours may have expired; the request's signature counts
	var out enrolReply
	if err := e.ask(ctx, e.Pin(), pathRenew, anonymous, in, &out); err != nil {
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
	e.kept(errors.Join(identity.WriteSecret(filepath.Join(e.dir, fileCert), out.Certificates), e.save()))
	return chain, nil
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
	if err := e.ask(ctx, e.Pin(), pathAttach, e.credentials.Client(identity.RoleGateway, ""), in, &out); err != nil {
		return out, fmt.Errorf("attaching %s to its swarm: %w", e.Name(), err)
	}
	e.know(out.Gateways)
	e.mu.Lock()
	e.mu.bus = out.Bus
	e.mu.Unlock()
	e.kept(e.save())
	return out, nil
}

// kept takes whether what a gateway said was written down. A node whose disk is full,
// perhaps of weights, stays in its swarm.
func (e *Enrolment) kept(err error) {
	if err != nil && e.unkept != nil {
		e.unkept(err)
	}
}

// Pin is the fingerprint of the swarm's authority.
func (e *Enrolment) Pin() [32]byte { return identity.Fingerprint(e.credentials.Authority()) }

// Gateways are the enrolment endpoints that are known, host:port, the likeliest
// first.
func (e *Enrolment) Gateways() []string { return e.gateways() }

// Bus is where the control plane's servers were when the node last attached.
func (e *Enrolment) Bus() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.mu.bus)
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
	data, err := json.MarshalIndent(home{Version: protocolVersion, Name: e.Name(), Gateways: e.gateways(), Bus: e.Bus(), Token: e.token()}, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the enrolment: %w", err)
	}
	return identity.WriteSecret(filepath.Join(e.dir, fileHome), append(data, '\n'))
}
