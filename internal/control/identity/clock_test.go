package identity

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// aged is a certificate of a member as it looks after its machine's clock has
// jumped: made that long ago, or in a time to come.
func aged(t *testing.T, a *Authority, c *Credentials, since time.Duration) []*x509.Certificate {
	t.Helper()
	serial, err := newSerial()
	if err != nil {
		t.Fatal(err)
	}
	made := time.Now().Add(-since)
	leaf, err := sign(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: c.ID().Name}, URIs: []*url.URL{c.ID().uri()},
		NotBefore: made.Add(-clockSlack), NotAfter: made.Add(CertificateLife), KeyUsage: x509.KeyUsageDigitalSignature,
	}, a.cert, c.Key().Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{leaf, a.cert}
}

// A machine that sleeps, or that learns the right time after its start, stands
// still by its own count of hours while its certificate runs out.
func TestACertificateIsRenewedByTheTimeOfTheDay(t *testing.T) {
	for name, since := range map[string]time.Duration{
		"it is time": 20 * time.Hour, "it has run out": 40 * 24 * time.Hour, "it is not good yet": -48 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := authority(t)
				c := member(t, a, RoleGateway, "gw")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go c.KeepFresh(ctx, func(context.Context) ([]*x509.Certificate, error) {
					return a.Issue(RoleGateway, "gw", c.Key().Public())
				}, nil)
				time.Sleep(time.Hour)
				if err := c.Replace(aged(t, a, c, since)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if leaf := c.Leaf(); time.Now().Before(leaf.NotBefore) || time.Until(leaf.NotAfter) < CertificateLife/2 {
					t.Errorf("a minute later it is good from %s to %s, now is %s", leaf.NotBefore, leaf.NotAfter, time.Now().UTC())
				}
			})
		})
	}
}

// A certificate that something else has renewed is not renewed again.
func TestARenewalByOthersCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t)
		c := member(t, a, RoleNode, "mini")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		renewals := 0
		go c.KeepFresh(ctx, func(context.Context) ([]*x509.Certificate, error) {
			renewals++
			return a.Issue(RoleNode, "mini", c.Key().Public())
		}, nil)
		for range 10 {
			time.Sleep(10 * time.Hour)
			if err := c.Replace(aged(t, a, c, 0)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if renewals != 0 {
			t.Errorf("%d renewals more", renewals)
		}
	})
}
