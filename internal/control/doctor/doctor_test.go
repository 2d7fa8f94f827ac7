package doctor_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/internal/control/doctor"
	"hecate/internal/control/enrol"
	"hecate/internal/control/natsbus"
	"hecate/internal/control/plane"
	"hecate/swarm"
)

// find returns the finding of a check whose detail holds a text.
func find(t *testing.T, all []doctor.Finding, check, text string) doctor.Finding {
	t.Helper()
	for _, f := range all {
		if f.Check == check && strings.Contains(f.Detail, text) {
			if (f.Status == doctor.OK) != (f.Do == "") {
				t.Errorf("%s: a bad finding says what to do, a good one nothing", f)
			}
			return f
		}
	}
	t.Fatalf("no finding of %q with %q in %v", check, text, all)
	return doctor.Finding{}
}

func TestAHealthySwarmIsFoundHealthy(t *testing.T) {
	g, err := plane.StartGateway(t.Context(), plane.GatewayConfig{Dir: t.TempDir(), Planner: swarm.Planner{}.Plan})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	tok, err := g.CreateToken(t.Context(), enrol.TokenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e, err := enrol.Join(t.Context(), dir, tok, "mini", enrol.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := attach(t, e)
	all := doctor.Run(t.Context(), doctor.Config{Dir: dir, Token: tok.Encode(), NoNetwork: true})
	for check, text := range map[string]string{
		"identity": "enrolled as mini", "token": tok.ID(), "gateway": g.JoinAddresses()[0],
		"clock": "within", "control": at.Bus[0], "disk": dir,
	} {
		if f := find(t, all, check, text); f.Status != doctor.OK && check != "disk" {
			t.Error(f)
		}
	}
	for _, f := range all {
		if strings.Contains(f.String(), tok.Encode()) {
			t.Error("the token's secret is shown")
		}
	}
}

func attach(t *testing.T, e *enrol.Enrolment) enrol.Attached {
	t.Helper()
	user, err := natsbus.NewUser()
	if err != nil {
		t.Fatal(err)
	}
	at, err := e.Attach(t.Context(), enrol.AttachRequest{
		Instance: "x", Host: "h", PID: 1, BusKey: user.PublicKey(),
		Profile: swarm.NodeProfile{MemoryBytes: 1 << 30, Score: 1, Endpoints: []string{"127.0.0.1:7000"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWhatIsWrongIsNamedWithWhatToDo(t *testing.T) {
	g, err := plane.StartGateway(t.Context(), plane.GatewayConfig{Dir: t.TempDir(), Planner: swarm.Planner{}.Plan})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	other, err := enrol.NewToken([32]byte{1}, g.JoinAddresses(), 1, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	notAFolder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notAFolder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := doctor.Run(t.Context(), doctor.Config{
		Dir: t.TempDir(), Token: other.Encode(), Gateways: []string{"127.0.0.1:1", "nowhere.invalid:7"}, NoNetwork: true,
	})
	for _, c := range []struct {
		check, text, do string
		status          doctor.Status
	}{
		{"identity", "not enrolled", "hecate node --join", doctor.Warn},
		{"token", other.ID(), "hecate token create", doctor.Fail},
		{"gateway", "127.0.0.1:1", "hecate serve", doctor.Fail},
		{"gateway", "nowhere.invalid", "IP address", doctor.Fail},
		{"gateway", g.JoinAddresses()[0], "of this swarm", doctor.Fail},
	} {
		if f := find(t, all, c.check, c.text); f.Status != c.status || !strings.Contains(f.Do, c.do) {
			t.Error(f)
		}
	}
	all = doctor.Run(t.Context(), doctor.Config{Dir: notAFolder, Token: "rubbish", NoNetwork: true})
	find(t, all, "token", "no join token")
	if f := find(t, all, "disk", "file"); f.Status != doctor.Fail {
		t.Error(f)
	}
}

func TestNodesThatCannotBeReached(t *testing.T) {
	g, err := plane.StartGateway(t.Context(), plane.GatewayConfig{Dir: t.TempDir(), Planner: swarm.Planner{}.Plan})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	record := func(id, endpoint string, reverse bool) *control.NodeRecord {
		return &control.NodeRecord{
			ID: id, Incarnation: 1, Desired: control.DesiredActive, Reverse: reverse,
			Profile: swarm.NodeProfile{ID: id, Endpoints: []string{endpoint}},
		}
	}
	all := doctor.Reach(t.Context(), g.Credentials(), []*control.NodeRecord{
		record("gone", "127.0.0.1:1", false), record("behind", "", true), record("impostor", g.JoinAddresses()[0], false),
		record("detour", "127.0.0.1:1", false),
	}, func(node string) bool { return node == "detour" })
	for text, want := range map[string]doctor.Status{"gone at": doctor.Fail, "behind connects": doctor.OK, "detour at": doctor.Warn, "impostor at": doctor.Fail} {
		if f := find(t, all, "node", text); f.Status != want {
			t.Error(f)
		}
	}
}

func TestMulticastIsTried(t *testing.T) {
	if !controltest.InNetwork(t) {
		return
	}
	if f := find(t, doctor.Run(t.Context(), doctor.Config{}), "multicast", "hears its own announcements"); f.Status != doctor.OK {
		t.Error(f)
	}
}
