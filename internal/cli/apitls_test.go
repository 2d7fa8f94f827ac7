package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hecate/internal/control/identity"
)

func authority(t *testing.T) *identity.Authority {
	t.Helper()
	a, err := identity.OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pairIn writes a new certificate and its key.
func pairIn(t *testing.T, a *identity.Authority, cert, key string) []byte {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.IssueServer([]string{"localhost"}, &k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{
		cert: identity.EncodeCertificates(chain...), key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return chain[0].Raw
}

func TestCertificatesAreReadAnew(t *testing.T) {
	dir, a := t.TempDir(), authority(t)
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	var log bytes.Buffer
	f := &filedCertificate{cert: cert, key: key, log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Unix(1000, 0)
	shows := func(want []byte) {
		t.Helper()
		c, err := f.at(now)
		if err != nil || !bytes.Equal(c.Certificate[0], want) {
			t.Errorf("another certificate than expected (%v)\n%s", err, &log)
		}
	}
	if _, err := f.at(now); err == nil {
		t.Error("a certificate from files that are not there")
	}
	first := pairIn(t, a, cert, key)
	now = now.Add(fileLook)
	shows(first)
	second := pairIn(t, a, cert, key)
	later := time.Now().Add(time.Hour) // whatever the clock of the file system can tell apart
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	shows(first) // looked at a moment ago
	now = now.Add(fileLook)
	shows(second)
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(fileLook)
	shows(second)
	third := pairIn(t, a, cert, key)
	now = now.Add(fileLook)
	shows(third)
}

func TestCertificatesOfTheSwarmAreRenewed(t *testing.T) {
	a := authority(t)
	i := &issuedCertificate{authority: a, hosts: []string{"localhost", "10.0.0.7", "gpu.lan", "localhost"}}
	now := time.Now()
	first, err := i.at(now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate())
	for _, host := range []string{"localhost", "10.0.0.7", "gpu.lan"} {
		if _, err := first.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
			t.Errorf("as %s: %v", host, err)
		}
	}
	if _, err := identity.OfCertificate(first.Leaf); err == nil {
		t.Error("the API's certificate names a member of the swarm")
	}
	if again, _ := i.at(now.Add(time.Hour)); again != first {
		t.Error("renewed long before its time")
	}
	if i.renew != i.renew.Round(0) {
		t.Error("it counts the hours that the machine is awake, not those of the day")
	}
	if next, err := i.at(first.Leaf.NotBefore.Add(-time.Hour)); err != nil || next == first {
		t.Errorf("not renewed by a clock by which it is not good yet: %v", err)
	}
	if next, err := i.at(now.Add(identity.CertificateLife)); err != nil || next == first {
		t.Errorf("not renewed: %v", err)
	}
}

func TestTLSFlagsAreChecked(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	pairIn(t, authority(t), cert, key)
	for name, c := range map[string]struct {
		flags tlsFlags
		good  bool
	}{
		"none":       {tlsFlags{}, true},
		"files":      {tlsFlags{TLSCert: cert, TLSKey: key}, true},
		"swarm":      {tlsFlags{TLSSwarmCA: true}, true},
		"no key":     {tlsFlags{TLSCert: cert}, false},
		"both":       {tlsFlags{TLSCert: cert, TLSKey: key, TLSSwarmCA: true}, false},
		"no file":    {tlsFlags{TLSCert: cert + "x", TLSKey: key}, false},
		"wrong file": {tlsFlags{TLSCert: key, TLSKey: cert}, false},
	} {
		if err := c.flags.check(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := (&tlsFlags{}).encrypt(nil, nil, nil, nil); l != nil || err != nil {
		t.Error("TLS that nobody wanted")
	}
}
