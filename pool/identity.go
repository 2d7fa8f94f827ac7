package pool

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"hecate/pool/wire"
)

// commonName is the default identity of a certificate.
func commonName(state tls.ConnectionState) (string, error) {
	if len(state.PeerCertificates) == 0 {
		return "", errors.New("the peer showed no certificate")
	}
	name := state.PeerCertificates[0].Subject.CommonName
	if name == "" {
		return "", errors.New("the peer's certificate has no common name")
	}
	return name, nil
}

// clientTLS hardens a configuration for dialling.
func clientTLS(cfg *tls.Config) *tls.Config {
	c := cfg.Clone()
	c.MinVersion = tls.VersionTLS13
	c.DynamicRecordSizingDisabled = true // long-lived and batched: small records only cost
	if c.ServerName == "" && !c.InsecureSkipVerify {
		verifyByIdentity(c)
	}
	return c
}

// verifyByIdentity checks the chain but no host name: the hello's check
// compares the certificate's identity with the node that was wanted.
func verifyByIdentity(c *tls.Config) {
	roots, then := c.RootCAs, c.VerifyConnection
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the peer showed no certificate")
		}
		opts := x509.VerifyOptions{
			Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		if c.Time != nil {
			opts.CurrentTime = c.Time()
		}
		for _, cert := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		if _, err := state.PeerCertificates[0].Verify(opts); err != nil {
			return fmt.Errorf("verify the peer's certificate: %w", err)
		}
		if then != nil {
			return then(state)
		}
		return nil
	}
}

// serverTLS hardens a configuration for accepting.
func serverTLS(cfg *tls.Config) *tls.Config {
	c := cfg.Clone()
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.DynamicRecordSizingDisabled = true
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	if inner := c.GetConfigForClient; inner != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := inner(hello)
			if chosen == nil || err != nil {
				return nil, err
			}
			chosen = chosen.Clone()
			chosen.GetConfigForClient = nil
			return serverTLS(chosen), nil
		}
	}
	return c
}

// expectation is what a hello must say.
type expectation struct {
	node    string // "": any
	role    wire.Role
	reverse bool
	proved  string // identity in the certificate; "": plaintext
}

func (e expectation) check(h wire.Hello) error {
	switch {
	case h.Node == "":
		return &wire.Refusal{Reason: wire.RefuseIdentity, Text: "the hello names no node"}
	case e.proved != "" && h.Node != e.proved:
		return &wire.Refusal{Reason: wire.RefuseIdentity, Text: fmt.Sprintf("hello says %q, certificate %q", h.Node, e.proved)}
	case e.node != "" && h.Node != e.node:
		return &wire.Refusal{Reason: wire.RefuseIdentity, Text: fmt.Sprintf("wanted %q, met %q", e.node, h.Node)}
	case h.Role != e.role || h.Reverse != e.reverse:
		return &wire.Refusal{Reason: wire.RefuseRole, Text: fmt.Sprintf("a %v with reverse=%v has no business here", h.Role, h.Reverse)}
	}
	return nil
}
