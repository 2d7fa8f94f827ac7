package doctor_test

import (
	"net"
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
