package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
)

// IssueServer signs a certificate, of the usual life, for an API that is reached
// under hosts: names or addresses. It names no member of the swarm, so nobody can
// join or administer with it.
func (a *Authority) IssueServer(hosts []string, public any) ([]*x509.Certificate, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "HECATE API"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(public, template)
}
