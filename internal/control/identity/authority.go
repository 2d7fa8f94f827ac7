package identity

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	// CertificateLife is how long a member's certificate is good: short, so
	// that one that was stolen or removed is soon worth nothing.
	CertificateLife = 24 * time.Hour
	authorityLife   = 20 * 365 * 24 * time.Hour
	// clockSlack lets machines differ in time by this much.
	clockSlack = 10 * time.Minute
)

// An Authority is the swarm's certificate authority. Whoever has its key is
// the swarm.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// OpenAuthority loads the authority of a folder, and makes folder and
// authority when there is none.
func OpenAuthority(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the authority's folder: %w", err)
	}
	keyPath, certPath := filepath.Join(dir, "ca.key"), filepath.Join(dir, "ca.crt")
	key, err := LoadOrMakeKey(keyPath)
	if err != nil {
		return nil, fmt.Errorf("the authority's key: %w", err)
	}
	data, err := os.ReadFile(certPath)
	if errors.Is(err, fs.ErrNotExist) {
		cert, err := selfSigned(key)
		if err != nil {
			return nil, err
		}
		return &Authority{cert: cert, key: key}, WriteSecret(certPath, EncodeCertificates(cert))
	}
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	chain, err := ParseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certPath, err)
	}
	if !key.PublicKey.Equal(chain[0].PublicKey) {
		return nil, fmt.Errorf("%s and %s do not belong together: restore both from one backup", certPath, keyPath)
	}
	return &Authority{cert: chain[0], key: key}, nil
}

func selfSigned(key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "HECATE swarm authority"},
		NotBefore:             time.Now().Add(-clockSlack),
		NotAfter:              time.Now().Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	return sign(template, template, &key.PublicKey, key)
}

func sign(template, parent *x509.Certificate, public any, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return serial, nil
}

// Swarm is the swarm's id.
func (a *Authority) Swarm() string { return swarmOf(a.cert) }

// Certificate is the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Fingerprint is the SHA-256 of the authority's certificate (32 bytes): what a
// join token pins.
func (a *Authority) Fingerprint() [sha256.Size]byte { return Fingerprint(a.cert) }

// Fingerprint is the SHA-256 of a certificate.
func Fingerprint(cert *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(cert.Raw) }

// FingerprintText is a fingerprint as people compare it.
func FingerprintText(f [sha256.Size]byte) string { return hex.EncodeToString(f[:]) }

// Issue signs a certificate of the usual life for a member of this swarm and
// returns it with the authority's behind it.
func (a *Authority) Issue(role Role, name string, public any) ([]*x509.Certificate, error) {
	id := ID{Swarm: a.Swarm(), Role: role, Name: name}
	if err := id.validate(); err != nil {
		return nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	return a.issue(public, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{id.uri()},
		DNSNames:    []string{serverName(role)},
	})
}

// issue signs a certificate for a key with what all of them share filled in, and
// returns it with the authority's behind it.
func (a *Authority) issue(public any, template *x509.Certificate) ([]*x509.Certificate, error) {
	if _, ok := public.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("issuing a certificate: key of the kind %T, want ECDSA", public)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-clockSlack), now.Add(CertificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	leaf, err := sign(template, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{leaf, a.cert}, nil
}
