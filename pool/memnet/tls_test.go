package memnet

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"sync"
	"testing"
	"time"
)

// certificate makes a self-signed one that is valid in fake time, which begins in
// the year 2000.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"server"},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestTLS(t *testing.T) {
	cert := certificate(t)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	inBubble(t, func(t *testing.T, n *Network) {
		n.SetLinks("", "", Link{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01})
		a, b := connect(t, n)
		client := tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "server"})
		server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{cert}})
		payload := bytes.Repeat([]byte("both sides talk at once "), 5000)
		var wg sync.WaitGroup
		for _, c := range []*tls.Conn{client, server} {
			wg.Go(func() {
				if err := c.Handshake(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, c := range []*tls.Conn{client, server} {
			wg.Go(func() { mustWrite(t, c, payload); c.CloseWrite() })
			wg.Go(func() {
				if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, payload) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		wg.Wait()
		client.Close()
		server.Close()
	})
}

// The case in which net.Pipe deadlocks: one side writes an alert while the other
// one is writing too.
func TestTLSAlertDoesNotDeadlock(t *testing.T) {
	cert := certificate(t)
	inBubble(t, func(t *testing.T, n *Network) {
		a, b := connect(t, n)
		client := tls.Client(a, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "server"})
		server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{cert}})
		done := make(chan error)
		go func() { done <- server.Handshake() }()
		var unknown x509.UnknownAuthorityError
		if err := client.Handshake(); !errors.As(err, &unknown) {
			t.Errorf("client: %v", err)
		}
		if err := <-done; err == nil {
			if _, err = server.Read(make([]byte, 1)); err == nil {
				t.Error("the server never hears that its certificate was refused")
			}
		}
		client.Close()
		server.Close()
	})
}
