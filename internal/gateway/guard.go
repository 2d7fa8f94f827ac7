package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hecate/internal/gateway/openai"
)

// guard is what every request passes first: it keeps web pages of other sites
// from using this gateway through a browser (DNS rebinding, cross-site posts),
// and gives each request an id.
type guard struct {
	hosts []string // allowed host names besides loopback, lower case, without port
	next  http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A stream on this connection may have left its bound; it is not ours.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	w.Header().Set("X-Request-Id", requestID(r))
	if !g.allowed(r.Host) {
		e := openai.BadRequest("", "host_not_allowed", "The host name %q is not one of this gateway's. Add it with --allow-host.", r.Host)
		e.Status = http.StatusMisdirectedRequest
		e.Write(w)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !g.sameSite(origin) && r.Method != http.MethodGet && r.Method != http.MethodHead {
		e := openai.BadRequest("", "origin_not_allowed", "Pages of %q may not use this gateway.", origin)
		e.Status = http.StatusForbidden
		e.Write(w)
		return
	}
	g.next.ServeHTTP(w, patiently(w, r))
}

// allowed accepts loopback names, and what the operator listed.
func (g *guard) allowed(host string) bool {
	name := strings.ToLower(hostName(host))
	if name == "localhost" || slices.Contains(g.hosts, name) {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// sameSite accepts pages that this gateway itself served.
func (g *guard) sameSite(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && g.allowed(u.Host)
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

const maxRequestID = 128

// requestID is the client's own, if it is decent, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return id
	}
	return newID("req_")
}

// newID is a random name with a prefix that tells what it names.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return prefix + hex.EncodeToString(b[:])
}
