package controltest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// insideVariable marks the test binary that runs in a network of its own.
const insideVariable = "HECATE_TEST_NETWORK"

// InNetwork runs the calling test again in a network namespace with one
// virtual cable, so that no multicast leaves the test. It reports whether the
// caller is that run.
func InNetwork(t *testing.T) bool {
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
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=90s")
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
