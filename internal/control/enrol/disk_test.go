package enrol

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// A node whose disk is full, perhaps of weights, stays in its swarm: what it cannot
// write down it only has to ask for again after a restart.
func TestANodeWithoutRoomOnItsDiskStaysInTheSwarm(t *testing.T) {
	e := newEndpoint(t)
	dir := t.TempDir()
	var unkept []error
	how := Options{Unkept: func(err error) { unkept = append(unkept, err) }}
	node, err := Join(t.Context(), dir, e.token(t, TokenOptions{}), "mini", how)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil { // nothing can be written there any more
		t.Fatal(err)
	}
	attached, err := node.Attach(t.Context(), someStart("one"))
	if err != nil || attached.BusToken == "" || attached.Incarnation != 1 {
		t.Errorf("attached %+v, %v", attached, err)
	}
	before := node.Credentials().Leaf()
	if _, err := node.Renew(t.Context()); err != nil || node.Credentials().Leaf() == before {
		t.Errorf("not renewed: %v", err)
	}
	if len(unkept) != 2 || !strings.Contains(unkept[0].Error(), dir) {
		t.Errorf("said that %v", unkept)
	}
	// Who is not in yet needs its certificate: it must not think that it has joined.
	if _, err := Join(t.Context(), dir+"/file/below", e.token(t, TokenOptions{}), "maxi", how); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/full", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), dir+"/full", e.token(t, TokenOptions{}), "midi", how); err == nil || errors.Is(err, ErrGateway) {
		t.Errorf("joined where nothing can be kept: %v", err)
	}
}
