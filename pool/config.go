package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"

	"hecate/pool/wire"
)

// DialFunc connects to addr; network is tcp4 or tcp6. It has the shape of
// net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Config is what a pool is made of. Only Settings can change later.
type Config struct {
	// NodeID and SwarmID are announced in the hello; NodeID must be what our
	// own certificate says. At most wire.MaxIdentity bytes each.
	NodeID, SwarmID string
	// TLS holds our certificate and the swarm's CA in RootCAs. TLS 1.3 is
	// enforced. With an empty ServerName the chain is verified without a host
	// name, because the peer is identified by its node id: the identity in its
	// certificate and in its hello must both be the name of the group. ServeReverse
	// uses ClientCAs, or RootCAs when that is nil.
	TLS *tls.Config
	// Plaintext allows TLS to be nil: for in-process tests only.
	Plaintext bool
	// Identify extracts the node id from the peer's verified certificate.
	// Nil: the leaf certificate's CommonName.
	Identify func(tls.ConnectionState) (string, error)
	// Dial connects; nil means net.Dialer. Tests put an in-memory network here.
	Dial DialFunc
	// Settings are the policies; the zero value means DefaultSettings.
	Settings Settings
	// Cores is what max_writers_per_core multiplies; 0 means
	// runtime.GOMAXPROCS(0).
	Cores int
	// Seed makes jitter and sampling repeatable; 0 means a random seed.
	Seed uint64
	// Observe receives events; nil discards them. It must not block and must
	// not call into the pool.
	Observe func(Event)
}

// validate reports every fault at once.
func (c *Config) validate() error {
	err := errors.Join(
		validateIdentity(c.NodeID, c.SwarmID),
		validateTLS(c.TLS, c.Plaintext),
	)
	if c.Cores < 0 {
		err = errors.Join(err, fmt.Errorf("cores = %d: allowed is 0 and above", c.Cores))
	}
	settings, serr := c.Settings.orDefault()
	if err = errors.Join(err, serr); err != nil {
		return fmt.Errorf("pool config: %w", err)
	}
	c.Settings = settings
	if c.Cores == 0 {
		c.Cores = runtime.GOMAXPROCS(0)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	if c.Identify == nil {
		c.Identify = commonName
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return nil
}

func validateIdentity(node, swarm string) error {
	if node == "" || len(node) > wire.MaxIdentity || len(swarm) > wire.MaxIdentity {
		return fmt.Errorf("node id %q, swarm id %q: need 1..%d and 0..%d bytes", node, swarm, wire.MaxIdentity, wire.MaxIdentity)
	}
	return nil
}

func validateTLS(cfg *tls.Config, plaintext bool) error {
	switch {
	case cfg == nil && !plaintext:
		return errors.New("TLS is nil: give a configuration with a certificate and the swarm's CA")
	case cfg != nil && plaintext:
		return errors.New("both TLS and Plaintext are set: choose one")
	case cfg != nil && cfg.InsecureSkipVerify && cfg.VerifyConnection == nil && cfg.VerifyPeerCertificate == nil:
		return errors.New("TLS skips verification without a check of its own: identities would be worthless")
	}
	return nil
}
