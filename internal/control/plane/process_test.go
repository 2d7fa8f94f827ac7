package plane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/swarm"
)

// The test binary is also the gateway and the nodes of tests that need real
// processes: these variables say which.
const (
	roleVariable  = "HECATE_TEST_ROLE"
	dirVariable   = "HECATE_TEST_DIR"
	nameVariable  = "HECATE_TEST_NAME"
	tokenVariable = "HECATE_TEST_TOKEN"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "node":
		os.Exit(report(nodeProcess()))
	case "gateway":
		os.Exit(report(gatewayProcess()))
	}
	goleak.VerifyTestMain(m)
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func nodeProcess() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	n, err := OpenNode(ctx, NodeConfig{
		Dir: os.Getenv(dirVariable), Name: os.Getenv(nameVariable), Token: os.Getenv(tokenVariable),
	})
	if err != nil {
		return err
	}
	defer n.Close()
	w := &worker{node: n}
	return n.Run(ctx, w.duty())
}

// gatewayProcess prints a token, and then every event, one per line.
func gatewayProcess() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	g, err := StartGateway(ctx, GatewayConfig{Dir: os.Getenv(dirVariable), Planner: swarm.Planner{}.Plan})
	if err != nil {
		return err
	}
	defer g.Close()
	events := g.Membership().Subscribe()
	defer events.Close()
	tok, err := g.CreateToken(ctx, enrol.TokenOptions{Uses: 10})
	if err != nil {
		return err
	}
	fmt.Println(tok.Encode())
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events.C:
			fmt.Println(e)
		}
	}
}

// process starts the test binary in a role. It is killed with the test.
func process(t testing.TB, role, dir, name, token string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir, nameVariable+"="+name, tokenVariable+"="+token)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	return cmd, out
}

func send(t testing.TB, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// next waits for an event of a type, skipping others.
func next[E control.Event](t *testing.T, sub *control.Subscription) E {
	t.Helper()
	for {
		select {
		case e := <-sub.C:
			if e, ok := e.(E); ok {
				return e
			}
		case <-t.Context().Done():
			var want E
			t.Fatalf("no %T came", want)
		}
	}
}

func TestProcessesThatAreKilledAndThatStandStill(t *testing.T) {
	g := startGateway(t, t.TempDir(), control.Patience{})
	events := g.Membership().Subscribe()
	defer events.Close()
	dir, tok := t.TempDir(), token(t, g, 1)
	cmd, _ := process(t, "node", dir, "mini", tok)
	next[control.Joined](t, events)

	send(t, cmd, syscall.SIGSTOP)
	if d := next[control.Died](t, events); d.Cause != control.CauseSilence || d.Silence > 2600*time.Millisecond {
		t.Errorf("stopped: %s", d)
	}
	send(t, cmd, syscall.SIGCONT)
	if r := next[control.Returned](t, events); !r.WasDead {
		t.Errorf("continued: %s", r)
	}

	send(t, cmd, syscall.SIGKILL)
	g.Membership().ReportReset("mini") // as the data plane does
	if d := next[control.Died](t, events); d.Cause != control.CauseReset {
		t.Errorf("killed: %s", d)
	}
	_ = cmd.Wait() // killed, as it should be
	again, _ := process(t, "node", dir, "", "")
	if r := next[control.Returned](t, events); !r.WasDead {
		t.Errorf("started again: %s", r)
	}
	if m := g.Membership().View().Member("mini"); m.Health.Incarnation != 2 || m.Health.PID != again.Process.Pid {
		t.Errorf("%+v, want the second start, process %d", m.Health, again.Process.Pid)
	}
	send(t, again, os.Interrupt)
	if l := next[control.Left](t, events); l.Removed {
		t.Errorf("interrupted: %s", l)
	}
}

func TestAGatewayThatStoodStillCondemnsNobody(t *testing.T) {
	gateway, out := process(t, "gateway", t.TempDir(), "", "")
	lines := bufio.NewScanner(out)
	line := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the gateway says nothing more")
		}
		return lines.Text()
	}
	tok := line()
	a, _ := process(t, "node", t.TempDir(), "a", tok)
	_, _ = process(t, "node", t.TempDir(), "b", tok)
	for range 2 {
		if l := line(); !strings.Contains(l, "joined") {
			t.Fatal(l)
		}
	}
	send(t, gateway, syscall.SIGSTOP)
	standStill(t)
	send(t, gateway, syscall.SIGCONT)
	// Nothing may be said about the nodes until one of them really dies.
	send(t, a, syscall.SIGKILL)
	for {
		l := line()
		if strings.HasPrefix(l, "node b") {
			t.Errorf("after the pause: %s", l)
		}
		if strings.HasPrefix(l, "node a is dead") {
			break
		}
	}
}

// standStill lets twice the time pass after which a silent node is dead.
func standStill(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(5 * time.Second):
	case <-t.Context().Done():
	}
}
