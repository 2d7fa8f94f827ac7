package weights

import (
	"net"
	"net/http"
	"time"

	"hecate/internal/control/identity"
)

// Client reaches one kind of member; name "" is any of them. Its connections are
// its own, and do not outlive a transfer.
func Client(c *identity.Credentials, role identity.Role, name string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: c.Client(role, name), DisableKeepAlives: true,
		DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 20 * time.Second,
	}}
}
