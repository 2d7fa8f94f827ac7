package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// serverName is the DNS name in every certificate of a role. Clients ask for
// it whatever address they dial, so the standard library's verification checks
// chain and role; who exactly it is, the URI says.
func serverName(role Role) string { return string(role) + ".hecate.internal" }

// An Admit has the last word about a peer whose certificate is good: certificates
// outlive memberships. key is the fingerprint of the peer's key (see
// KeyFingerprint): a name may have been given to another machine since.
type Admit func(id ID, key string) error

// admitted asks admit (nil: everybody is) about a verified peer.
func admitted(state tls.ConnectionState, id ID, admit Admit) error {
	if admit == nil {
		return nil
	}
	key, err := KeyOfPeer(state)
	if err != nil {
		return err
	}
	return admit(id, key)
}

// Server is the TLS configuration of a listener that admits only members of
// this swarm with one of the roles, and of them those that admit (may be nil) lets in.
func (c *Credentials) Server(admit Admit, roles ...Role) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         c.serverCertificate,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              c.roots,
		SessionTicketsDisabled: true, // connections live long; each handshake is checked in full
		VerifyConnection: func(state tls.ConnectionState) error {
			id, err := OfPeer(state)
			if err != nil {
				return err
			}
			if id.Swarm != c.id.Swarm || !slices.Contains(roles, id.Role) {
				return fmt.Errorf("%w: %s may not connect here", ErrWrongPeer, id)
			}
			return admitted(state, id, admit)
		},
	}
}

// OpenServer is the TLS configuration of the enrolment endpoint: TLS 1.3, a
// member's certificate is verified when there is one, and none is needed.
func (c *Credentials) OpenServer() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         c.serverCertificate,
		ClientAuth:             tls.VerifyClientCertIfGiven,
		ClientCAs:              c.roots,
		SessionTicketsDisabled: true,
	}
}

// Client is the TLS configuration for dialling a member of this swarm with
// the given role; name "" accepts any name.
func (c *Credentials) Client(role Role, name string) *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		RootCAs:              c.roots,
		ServerName:           serverName(role),
		GetClientCertificate: c.clientCertificate,
		VerifyConnection: func(state tls.ConnectionState) error {
			id, err := OfPeer(state)
			if err != nil {
				return err
			}
			if id.Swarm != c.id.Swarm || id.Role != role || name != "" && id.Name != name {
				return fmt.Errorf("%w: %s answered, wanted %s", ErrWrongPeer, id, ID{c.id.Swarm, role, name})
			}
			return nil
		},
	}
}

// Both is Client, good for accepting connections of that role as well. admit (may be
// nil) is asked either way.
func (c *Credentials) Both(admit Admit, role Role) *tls.Config {
	cfg := c.Client(role, "")
	cfg.GetCertificate, cfg.ClientCAs = c.serverCertificate, c.roots
	verify := cfg.VerifyConnection
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verify(state); err != nil {
			return err
		}
		id, err := OfPeer(state)
		if err != nil {
			return err
		}
		return admitted(state, id, admit)
	}
	return cfg
}

func (c *Credentials) serverCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

func (c *Credentials) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

var (
	// ErrOtherSwarm: the server's authority is not the one that was pinned.
	ErrOtherSwarm = errors.New("the server there belongs to another swarm")
	// ErrClock: a certificate is not yet, or no longer, good by our clock.
	ErrClock = errors.New("the clocks differ")
)

// Pinned is the TLS configuration of a client that knows no more of the swarm
// than its authority's fingerprint: the server must be a gateway whose chain
// ends in the authority with it.
func Pinned(fingerprint [32]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: serverName(RoleGateway),
		// The pin below replaces the system's roots and the host's name: both
		// know nothing of swarms.
		InsecureSkipVerify: true, //nolint:gosec // verified in VerifyConnection
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyPinned(state.PeerCertificates, fingerprint)
		},
	}
}

func verifyPinned(chain []*x509.Certificate, fingerprint [32]byte) error {
	i := slices.IndexFunc(chain, func(c *x509.Certificate) bool { return Fingerprint(c) == fingerprint })
	if i < 1 {
		return fmt.Errorf("%w: its authority does not have the fingerprint in the token; get a token of that swarm", ErrOtherSwarm)
	}
	roots := x509.NewCertPool()
	roots.AddCert(chain[i])
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: serverName(RoleGateway), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if fault := ClockFault(err); fault != nil {
		return fault
	}
	if err != nil {
		return fmt.Errorf("the gateway's certificate: %w", err)
	}
	return nil
}

// ClockFault is an ErrClock with what to do, when a handshake with a gateway failed
// because its certificate is not good at this machine's time; else nil.
func ClockFault(err error) error {
	if errors.Is(err, ErrClock) {
		return err
	}
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return nil
	}
	return fmt.Errorf("%w: the gateway's certificate is good from %s to %s, this machine's clock says %s: set the clock that is wrong",
		ErrClock, invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
}
