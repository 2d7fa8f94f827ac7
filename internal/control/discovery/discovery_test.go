package discovery

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// insideVariable marks the test binary that runs in a network of its own.
const insideVariable = "HECATE_TEST_NETWORK"

// inNetwork runs the calling test again in a network namespace with one
// virtual cable, so that no multicast leaves the test. It reports whether the
// caller is that run.
func inNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return true
	}
	if runtime.GOOS != "linux" {
		t.Skip("network namespaces are Linux's")
	}
	script := `ip link set lo up && ip link add hec0 type veth peer name hec1 &&
		ip addr add 10.99.0.1/24 dev hec0 && ip addr add 10.99.0.2/24 dev hec1 &&
		ip link set hec0 up && ip link set hec1 up && ip route add 224.0.0.0/4 dev hec0 && exec "$0" "$@"`
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--map-root-user", "sh", "-c", script,
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	out, err := cmd.CombinedOutput()
	text := string(out)
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(text, "--- PASS: "+t.Name()):
	case errors.As(err, &exit) && strings.Contains(text, "--- FAIL: "):
		t.Errorf("in its own network:\n%s", text)
	default:
		t.Skipf("no network of its own can be made here: %v: %s", err, text)
	}
	return false
}

func TestAGatewayIsFoundOnTheNetworkByItsSwarm(t *testing.T) {
	if !inNetwork(t) {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	tag := Tag([32]byte{0xab, 0xcd})
	for _, a := range []Announcement{
		{Gateway: "gateway", Tag: tag, Port: 7443}, {Gateway: "gateway", Tag: "0123456789abcdef", Port: 7444},
	} {
		wg.Go(func() { Announce(ctx, a, slog.New(slog.DiscardHandler)) })
	}
	var found []string
	for len(found) == 0 { // the announcement starts beside us
		var err error
		if found, err = Find(ctx, tag, 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range found {
		if !strings.HasSuffix(a, ":7443") || !strings.HasPrefix(a, "10.99.0.") && !strings.Contains(a, "fe80") {
			t.Errorf("found %s", a)
		}
	}
	if other, err := Find(ctx, "ffffffffffffffff", 300*time.Millisecond); err != nil || len(other) != 0 {
		t.Errorf("a swarm that is not there: %v, %v", other, err)
	}
	cancel()
	wg.Wait()
	if gone, err := Find(t.Context(), tag, 300*time.Millisecond); err != nil || len(gone) != 0 {
		t.Errorf("after the gateway went: %v, %v", gone, err)
	}
}
