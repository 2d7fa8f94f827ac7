package identity

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Credentials are a member's key and its current certificate. Every TLS
// configuration made from them uses the newest certificate at each handshake.
type Credentials struct {
	id      ID
	key     crypto.Signer
	ca      *x509.Certificate
	roots   *x509.CertPool
	current atomic.Pointer[tls.Certificate]
}

// NewCredentials joins a key with its certificate chain, leaf first and the
// authority's last.
func NewCredentials(key crypto.Signer, chain []*x509.Certificate) (*Credentials, error) {
	if len(chain) < 2 {
		return nil, errors.New("credentials: the authority's certificate is missing from the chain")
	}
	ca := chain[len(chain)-1]
	id, err := OfCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	c := &Credentials{id: id, key: key, ca: ca, roots: x509.NewCertPool()}
	c.roots.AddCert(ca)
	return c, c.Replace(chain)
}

// Replace puts a renewed certificate into use. It must be of the same
// identity, key and authority.
func (c *Credentials) Replace(chain []*x509.Certificate) error {
	leaf := chain[0]
	id, err := OfCertificate(leaf)
	if err != nil {
		return fmt.Errorf("renewed certificate: %w", err)
	}
	if id != c.id {
		return fmt.Errorf("renewed certificate: it is for %s, not for %s", id, c.id)
	}
	if err := leaf.CheckSignatureFrom(c.ca); err != nil {
		return fmt.Errorf("renewed certificate of %s: %w", id, err)
	}
	if public, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(c.key.Public()) {
		return fmt.Errorf("renewed certificate of %s: it is for another key", id)
	}
	c.current.Store(&tls.Certificate{Certificate: [][]byte{leaf.Raw, c.ca.Raw}, PrivateKey: c.key, Leaf: leaf})
	return nil
}

// ID is whose credentials these are.
func (c *Credentials) ID() ID { return c.id }

// Leaf is the current certificate.
func (c *Credentials) Leaf() *x509.Certificate { return c.current.Load().Leaf }

// Authority is the certificate of the swarm's authority.
func (c *Credentials) Authority() *x509.Certificate { return c.ca }

// Key signs for the member.
func (c *Credentials) Key() crypto.Signer { return c.key }

// Expired reports whether the current certificate is of no use any more.
func (c *Credentials) Expired() bool { return !time.Now().Before(c.Leaf().NotAfter) }

const (
	renewRetryMin = 10 * time.Second
	renewRetryMax = 10 * time.Minute
	// renewLook is how often the time of the day is looked at. A timer would not do:
	// it stands still while the machine sleeps, and knows nothing of a clock that
	// was set.
	renewLook = 30 * time.Second
)

// KeepFresh renews the certificate until ctx ends: at two thirds of its life,
// spread over a twelfth of it so that a swarm does not renew at once, and soon when
// it is not good yet by this machine's clock. A renewal that fails is tried
// again, more and more slowly; failed (may be nil) is told why.
func (c *Credentials) KeepFresh(ctx context.Context, renew func(context.Context) ([]*x509.Certificate, error), failed func(error)) {
	leaf := c.Leaf()
	due, retry := renewAt(leaf), renewRetryMin
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(time.Until(due), renewLook)):
		}
		now := time.Now()
		if newer := c.Leaf(); newer != leaf { // it was renewed, here or elsewhere
			leaf, due, retry = newer, renewAt(newer), renewRetryMin
			if soonest := now.Add(renewRetryMin); due.Before(soonest) {
				due = soonest
			}
		}
		if now.Before(leaf.NotBefore) && due.Sub(now) > renewRetryMax {
			due = now.Add(renewRetryMin)
		}
		if now.Before(due) {
			continue
		}
		chain, err := renew(ctx)
		if err == nil {
			err = c.Replace(chain)
		}
		if err == nil {
			continue
		}
		if failed != nil && ctx.Err() == nil {
			failed(fmt.Errorf("renewing the certificate of %s, good until %s: %w",
				c.id, leaf.NotAfter.Format(time.RFC3339), err))
		}
		due, retry = time.Now().Add(retry), min(2*retry, renewRetryMax)
	}
}

func renewAt(leaf *x509.Certificate) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(life*2/3 + rand.N(life/12))
}
