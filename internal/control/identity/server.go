package identity

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"
)

// IssueServer signs a certificate, of the usual life, for an API that is reached
// under hosts: names or addresses. It names no member of the swarm, so nobody can
// join or administer with it.
func (a *Authority) IssueServer(hosts []string, public any) ([]*x509.Certificate, error) {
	if _, ok := public.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("issuing a certificate: key of the kind %T, want ECDSA", public)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "HECATE API"},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(CertificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	leaf, err := sign(template, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{leaf, a.cert}, nil
}
