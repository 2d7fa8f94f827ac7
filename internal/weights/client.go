package weights

import (
	"net"
	"net/http"
	"time"

	"hecate/internal/control/identity"
)

// idleTime is how long a connection waits for the next piece: longer than a layer
// takes to load, and shorter than the other side's patience.
const idleTime = 20 * time.Second

// Client reaches one kind of member; name "" is any of them. Its connections are
// its own, and stay for the next piece: over a far link, a new one costs longer
// than a small piece.
func Client(c *identity.Credentials, role identity.Role, name string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: c.Client(role, name), IdleConnTimeout: idleTime, MaxIdleConnsPerHost: 1,
		DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 20 * time.Second,
	}}
}
