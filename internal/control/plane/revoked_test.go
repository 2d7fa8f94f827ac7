package plane

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/identity"
	"hecate/internal/control/natsbus"
)

// intruder has a node's credentials and a login of its own, as somebody may who
// copied its data folder.
func intruder(t *testing.T, g *Gateway, credentials *identity.Credentials) natsbus.Config {
	t.Helper()
	user, err := natsbus.NewUser()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := g.accounts.NodeToken(credentials.ID().Name, user.PublicKey(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	user.SetToken(tok)
	return natsbus.Config{Servers: g.busServers(nil), Credentials: credentials, User: user}
}

func TestAKeyThatWasRemovedStaysOutThoughItsNameIsTakenAnew(t *testing.T) {
	g := startGateway(t, t.TempDir(), control.Patience{})
	lost := startWorker(t, t.TempDir(), "mini", token(t, g, 1))
	await(t, "it lives", func() bool { return alive(g) == 1 })
	thief := intruder(t, g, lost.node.Credentials())
	inside, err := natsbus.Connect(t.Context(), thief)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	if err := control.SetDesired(t.Context(), g.Store(), "mini", control.DesiredRemoved); err != nil {
		t.Fatal(err)
	}
	<-lost.ended
	startWorker(t, t.TempDir(), "mini", token(t, g, 1)) // another machine, with a key of its own
	await(t, "the new one lives", func() bool { return alive(g) == 1 })
	await(t, "the old key's connection is ended", func() bool { return !inside.Connected() })
	if conn, err := natsbus.Connect(t.Context(), thief); err == nil {
		conn.Close()
		t.Error("the old key was admitted to the control plane again")
	}
	old := lost.node.Credentials()
	request := &http.Request{TLS: &tls.ConnectionState{
		VerifiedChains:   [][]*x509.Certificate{{old.Leaf(), old.Authority()}},
		PeerCertificates: []*x509.Certificate{old.Leaf()},
	}}
	if name, err := g.Peer(request); err == nil {
		t.Errorf("the old key is given weights, as %s", name)
	}
	await(t, "the new one is still there", func() bool { return alive(g) == 1 })
}
