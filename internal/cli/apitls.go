package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"hecate/internal/control/identity"
)

// tlsFlags say how the API is encrypted.
type tlsFlags struct {
	TLSCert    string `help:"PEM file with the API's certificate and its chain; read anew when it changes." name:"tls-cert" type:"path" placeholder:"FILE"`
	TLSKey     string `help:"PEM file with the key of --tls-cert." name:"tls-key" type:"path" placeholder:"FILE"`
	TLSSwarmCA bool   `help:"Serve the API with a certificate of the swarm's own authority, authority/ca.crt in the data folder; renewed by itself." name:"tls-swarm-ca"`
}

func (t *tlsFlags) check() error {
	switch {
	case (t.TLSCert == "") != (t.TLSKey == ""):
		return usage("--tls-cert and --tls-key belong together: give both, or neither")
	case t.TLSCert != "" && t.TLSSwarmCA:
		return usage("either --tls-cert with --tls-key, or --tls-swarm-ca, not both")
	}
	if t.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(t.TLSCert, t.TLSKey); err != nil {
			return usage("--tls-cert %s and --tls-key %s cannot be used: %w", t.TLSCert, t.TLSKey, err)
		}
	}
	return nil
}

// wanted says that the API is encrypted.
func (t *tlsFlags) wanted() bool { return t.TLSCert != "" || t.TLSSwarmCA }

// scheme is how URLs of the API begin.
func (t *tlsFlags) scheme() string {
	if t.wanted() {
		return "https://"
	}
	return "http://"
}

// encrypt puts TLS over a listener, if that is wanted.
func (t *tlsFlags) encrypt(l net.Listener, a *identity.Authority, hosts []string, log *slog.Logger) (net.Listener, error) {
	var keeper certificates
	switch {
	case t.TLSCert != "":
		keeper = &filedCertificate{cert: t.TLSCert, key: t.TLSKey, log: log}
	case t.TLSSwarmCA:
		keeper = &issuedCertificate{authority: a, hosts: hosts}
	default:
		return l, nil
	}
	if _, err := keeper.at(time.Now()); err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, // clients of this API are of all ages
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return keeper.at(time.Now())
		},
	}), nil
}

// certificates keep the one to show now.
type certificates interface {
	at(now time.Time) (*tls.Certificate, error)
}

// filedCertificate is read anew when one of its files has changed.
type filedCertificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	stamp   string    // of the files that it was read from, or that could not be read
	looked  time.Time // when the files were looked at
}

// fileLook is how often the files are looked at, at most.
const fileLook = time.Second

func (f *filedCertificate) at(now time.Time) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil && now.Sub(f.looked) < fileLook {
		return f.current, nil
	}
	f.looked = now
	stamp := stampOf(f.cert) + stampOf(f.key)
	if stamp == f.stamp {
		return f.current, nil
	}
	c, err := tls.LoadX509KeyPair(f.cert, f.key)
	switch {
	case err == nil:
		if f.current != nil {
			f.log.Info("the API has another certificate", "file", f.cert)
		}
		f.current, f.stamp = &c, stamp
	case f.current == nil:
		return nil, fmt.Errorf("read the API's certificate: %w", err)
	default: // half of the pair may be written only; it is looked at again
		f.log.Error("the API's new certificate cannot be used, the old one stays", "file", f.cert, "because", err)
	}
	return f.current, nil
}

// stampOf changes when a file does.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none;"
	}
	return fmt.Sprint(info.ModTime().UnixNano(), ",", info.Size(), ";")
}

// issuedCertificate is of the swarm's authority, and renewed in time.
type issuedCertificate struct {
	authority *identity.Authority
	hosts     []string

	mu      sync.Mutex
	current *tls.Certificate
	renew   time.Time
}

func (i *issuedCertificate) at(now time.Time) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != nil && now.Before(i.renew) && !now.Before(i.current.Leaf.NotBefore) {
		return i.current, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for the API: %w", err)
	}
	chain, err := i.authority.IssueServer(i.hosts, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, x := range chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	// By the time of the day: what counts hours stands still while the machine sleeps.
	i.current, i.renew = c, now.Round(0).Add(identity.CertificateLife/2)
	return c, nil
}
