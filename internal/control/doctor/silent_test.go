package doctor_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/internal/control"
	"hecate/internal/control/doctor"
	"hecate/internal/control/plane"
	"hecate/swarm"
)

// A process that stands still takes connections, by its kernel, and says nothing.
func TestWhoTakesConnectionsAndSaysNothingIsNamed(t *testing.T) {
	g, err := plane.StartGateway(t.Context(), plane.GatewayConfig{Dir: t.TempDir(), Planner: swarm.Planner{}.Plan})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	at := frozen.Addr().String()
	all := doctor.Reach(t.Context(), g.Credentials(), []*control.NodeRecord{{
		ID: "frozen", Incarnation: 1, Desired: control.DesiredActive, Profile: swarm.NodeProfile{ID: "frozen", Endpoints: []string{at}},
	}}, nil)
	if f := find(t, all, "node", "frozen at "+at); f.Status != doctor.Fail || !strings.Contains(f.Do, "stands still") {
		t.Error(f)
	}
	all = doctor.Run(t.Context(), doctor.Config{Gateways: []string{at}, NoNetwork: true})
	if f := find(t, all, "gateway", at); f.Status != doctor.Fail || !strings.Contains(f.Do, "stands still") {
		t.Error(f)
	}
}

// Looking at a folder that was mistyped, or is to be made, does not make it.
func TestALookMakesNoFolder(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "not", "yet")
	all := doctor.Run(t.Context(), doctor.Config{Dir: dir, NoNetwork: true})
	find(t, all, "disk", top)
	find(t, all, "identity", "not enrolled")
	if left, err := os.ReadDir(top); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
