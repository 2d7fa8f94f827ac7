package gateway

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"hecate/internal/control"
	"hecate/internal/gateway/openai"
)

// adminHeader carries the admin token from the page. It is no standard header,
// so no page of another site can send it without asking first, which is refused.
const adminHeader = "X-Hecate-Admin"

// handles are what the page may do to a node; the command line can do more.
var handles = map[string]control.Desired{"pause": control.DesiredPaused, "resume": control.DesiredActive}

// steerNode serves POST /v1/swarm/nodes/{id}/{action}: pause or resume.
func (g *Gateway) steerNode(w http.ResponseWriter, r *http.Request) error {
	if fault := g.administrator(r); fault != nil {
		return fault
	}
	id := r.PathValue("id")
	want, ok := handles[r.PathValue("action")]
	if !ok {
		return openai.BadRequest("action", "invalid_value", "There is no %q here, only pause and resume; hecate node does the rest.", r.PathValue("action"))
	}
	err := control.SetDesired(r.Context(), g.cfg.Store, id, want)
	if errors.Is(err, control.ErrNotFound) || errors.Is(err, control.ErrBadName) {
		e := openai.BadRequest("id", "unknown_node", "There is no node %q.", id)
		e.Status = http.StatusNotFound
		return e
	}
	if err != nil {
		return err
	}
	g.log.Info("administration", "node", id, "want", string(want), "from", r.RemoteAddr)
	return writeJSON(w, map[string]string{"node": id, "desired": string(want)})
}

// administrator wants the admin token, and a way on which nobody reads it: an
// unencrypted request may come from this machine only.
func (g *Gateway) administrator(r *http.Request) *openai.Error {
	token := strings.TrimSpace(r.Header.Get(adminHeader))
	fault := func(code, text string) *openai.Error {
		e := openai.BadRequest("", code, "%s", text)
		e.Status = http.StatusForbidden
		return e
	}
	switch {
	case g.cfg.Administrator == nil:
		return fault("admin_not_here", "This gateway takes no administration over HTTP: use hecate node pause.")
	case r.TLS == nil && !fromHere(r.RemoteAddr):
		return fault("admin_needs_encryption", "An admin token is taken from this machine only, because this connection is not encrypted: use hecate node pause, or a tunnel.")
	case token == "":
		return fault("admin_token_missing", "This wants the admin token, in the header "+adminHeader+". It stands in admin.json in the gateway's data folder.")
	case !g.cfg.Administrator(token):
		g.log.Warn("administration refused", "path", r.URL.Path, "from", r.RemoteAddr)
		return fault("admin_token_wrong", "The admin token was refused. The right one stands in admin.json in the gateway's data folder.")
	}
	return nil
}

// fromHere says that a request came over loopback.
func fromHere(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
