package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func member(t *testing.T, a *Authority, role Role, name string) *Credentials {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.Issue(role, name, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCredentials(key, chain)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shake makes a TLS 1.3 connection in memory and returns what each side says.
func shake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error, peer ID) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer conn.Close()
		s := tls.Server(conn, server)
		err = s.Handshake()
		if err == nil && len(s.ConnectionState().PeerCertificates) > 0 {
			peer, err = OfPeer(s.ConnectionState())
		}
		if err == nil {
			_, err = io.WriteString(s, "x")
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := tls.Client(conn, client)
	clientErr = c.Handshake()
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // TLS 1.3: the server's verdict comes with the first bytes
	}
	conn.Close()
	return <-done, clientErr, peer
}

func TestTheAuthorityIsMadeOnceAndKeptSecret(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.Swarm() != b.Swarm() || a.Fingerprint() != b.Fingerprint() || len(a.Swarm()) != 16 {
		t.Error("opening it again made another one")
	}
	path := filepath.Join(dir, "ca.key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that all can read: %v", err)
	}
}

func TestDamagedAuthoritiesAreRefused(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"key of another": func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) },
		"no key in it":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.key"), []byte("hello"), 0o600) },
		"no certificate": func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("hello"), 0o600) },
	} {
		dir := t.TempDir()
		if _, err := OpenAuthority(dir); err != nil {
			t.Fatal(err)
		}
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAuthority(dir); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWhoMayTalkToWhom(t *testing.T) {
	a, other := authority(t), authority(t)
	gateway, mini := member(t, a, RoleGateway, "gw"), member(t, a, RoleNode, "mini")
	laptop, stranger := member(t, a, RoleNode, "laptop"), member(t, other, RoleGateway, "gw")
	fingerprint, err := KeyFingerprint(mini.Key().Public())
	if err != nil {
		t.Fatal(err)
	}
	removed := func(id ID, key string) error {
		if key != fingerprint {
			t.Errorf("asked about the key %.8s of %s, which has %.8s", key, id.Name, fingerprint)
		}
		return fmt.Errorf("%s was removed", id.Name)
	}
	nobody := &tls.Config{RootCAs: gateway.roots, ServerName: serverName(RoleNode)}
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		ok             bool
	}{
		{"gateway to node", mini.Server(nil, RoleGateway), gateway.Client(RoleNode, "mini"), true},
		{"gateway to any node", mini.Server(nil, RoleGateway), gateway.Client(RoleNode, ""), true},
		{"gateway to another node than it thinks", mini.Server(nil, RoleGateway), gateway.Client(RoleNode, "laptop"), false},
		{"node to node", mini.Server(nil, RoleGateway), laptop.Client(RoleNode, "mini"), false},
		{"node to gateway", gateway.Server(nil, RoleNode), mini.Client(RoleGateway, "gw"), true},
		{"node that plays gateway", mini.Server(nil, RoleNode), laptop.Client(RoleGateway, ""), false},
		{"gateway of another swarm", mini.Server(nil, RoleGateway), stranger.Client(RoleNode, ""), false},
		{"no certificate", mini.Server(nil, RoleGateway), nobody, false},
		{"no certificate where none is needed", gateway.OpenServer(), Pinned(a.Fingerprint()), true},
		{"pinned to another swarm", stranger.OpenServer(), Pinned(a.Fingerprint()), false},
		{"pinned, but a node answers", mini.OpenServer(), Pinned(a.Fingerprint()), false},
		{"not admitted", gateway.Server(removed, RoleNode), mini.Client(RoleGateway, ""), false},
		{"node to a gateway's data plane", asking(gateway.Both(nil, RoleNode)), mini.Client(RoleGateway, "gw"), true},
		{"not admitted to the data plane", asking(gateway.Both(removed, RoleNode)), mini.Client(RoleGateway, "gw"), false},
		{"not admitted where the gateway connects", mini.Server(nil, RoleGateway), gateway.Both(removed, RoleNode), false},
		{"old TLS", mini.Server(nil, RoleGateway), oldTLS(gateway.Client(RoleNode, "")), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			serverErr, clientErr, _ := shake(t, c.server, c.client)
			if ok := serverErr == nil && clientErr == nil; ok != c.ok {
				t.Errorf("server: %v, client: %v", serverErr, clientErr)
			}
		})
	}
}

// asking wants a certificate, as the data plane does of who connects.
func asking(c *tls.Config) *tls.Config {
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c
}

func oldTLS(c *tls.Config) *tls.Config {
	c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	return c
}

func TestThePeerIsWhoItsCertificateSays(t *testing.T) {
	a := authority(t)
	_, _, peer := shake(t, member(t, a, RoleNode, "mini").Server(nil, RoleGateway), member(t, a, RoleGateway, "gw").Client(RoleNode, "mini"))
	if peer != (ID{Swarm: a.Swarm(), Role: RoleGateway, Name: "gw"}) {
		t.Errorf("the node saw %s", peer)
	}
	if want := "hecate://" + a.Swarm() + "/gateway/gw"; peer.String() != want {
		t.Errorf("%s, want %s", peer, want)
	}
}

func TestOddNamesGetNoCertificate(t *testing.T) {
	a := authority(t)
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "..", "a/b", "a b", "a?b"} {
		if _, err := a.Issue(RoleNode, name, key.Public()); err == nil {
			t.Errorf("%q got one", name)
		}
	}
	if _, err := a.Issue("admin", "a", key.Public()); err == nil {
		t.Error("an unknown role got one")
	}
}

func TestARenewedCertificateMustBeOurs(t *testing.T) {
	a, other := authority(t), authority(t)
	c := member(t, a, RoleNode, "mini")
	for name, by := range map[string]func() ([]*x509.Certificate, error){
		"another name":      func() ([]*x509.Certificate, error) { return a.Issue(RoleNode, "laptop", c.Key().Public()) },
		"another authority": func() ([]*x509.Certificate, error) { return other.Issue(RoleNode, "mini", c.Key().Public()) },
		"another key":       func() ([]*x509.Certificate, error) { return a.Issue(RoleNode, "mini", other.cert.PublicKey) },
	} {
		chain, err := by()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Replace(chain); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestCertificatesRenewThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t)
		c := member(t, a, RoleNode, "mini")
		first := c.Leaf()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var failures, renewals atomic.Int32
		go c.KeepFresh(ctx, func(context.Context) ([]*x509.Certificate, error) {
			if failures.Load() < 3 {
				return nil, errors.New("no gateway")
			}
			renewals.Add(1)
			return a.Issue(RoleNode, "mini", c.Key().Public())
		}, func(error) { failures.Add(1) })
		time.Sleep(15 * time.Hour)
		if n := failures.Load(); c.Leaf() != first || n != 0 {
			t.Errorf("renewed too early (%d failures)", n)
		}
		time.Sleep(4 * time.Hour)
		if n := failures.Load(); c.Leaf() == first || n != 3 {
			t.Errorf("not renewed after %d failures", n)
		}
		for range 30 {
			time.Sleep(24 * time.Hour)
			if c.Expired() {
				t.Fatal("it ran out")
			}
		}
		if n := renewals.Load(); n < 30 || n > 60 {
			t.Errorf("%d renewals in 30 days", n)
		}
	})
}

func TestAWrongClockIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t)
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		chain, err := a.Issue(RoleGateway, "gw", key.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := verifyPinned(chain, a.Fingerprint()); err != nil {
			t.Errorf("now: %v", err)
		}
		time.Sleep(25 * time.Hour)
		if err := verifyPinned(chain, a.Fingerprint()); !errors.Is(err, ErrClock) || !strings.Contains(err.Error(), "set the clock") {
			t.Errorf("a day later: %v", err)
		}
	})
}
