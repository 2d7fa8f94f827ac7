package cli

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// Mistakes are refused before a port is taken or a file is made.
func TestServeRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"--listen here is no address":      {"--listen", "here"},
		"--join-listen here is no address": {"--join-listen", "here"},
		"--bus-listen here is no address":  {"--bus-listen", "here"},
		"--copies is 0":                    {"--copies", "0"},
		"--token-uses is -1":               {"--token-uses=-1"},
		"--nats needs --nats-trust":        {"--nats", "tls://127.0.0.1:4222"},
		"name its servers with --nats":     {"--nats-trust", "ca.pem"},
		"--nats-replicas is 9":             {"--nats", "tls://127.0.0.1:4222", "--nats-trust", "ca.pem", "--nats-replicas", "9"},
		"--name: ":                         {"--name", "../x"},
		"--rescue-time is -5s":             {"--rescue-time=-5s"},
		"--token-life is 0s":               {"--token-life", "0s"},
		"--advertise attic.lan:8080":       {"--advertise", "attic.lan:8080"},
		"--advertise http://attic.lan":     {"--advertise", "10.0.0.1,http://attic.lan"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		_, errs, code := probe(t, append([]string{"serve", "--data", data}, args...)...)
		if code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("serve %v: code %d, %q, want %q in it", args, code, errs, says)
		}
		if found, _ := filepath.Glob(data); len(found) > 0 {
			t.Errorf("serve %v made %v", args, found)
		}
	}
}

// Likewise for a swarm on this machine, whose workers would die again and again.
func TestUpRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"--threads is -2":         {"--threads=-2"},
		"--threads is 0":          {"--threads", "0"},
		"--rescue-time is -1s":    {"--rescue-time=-1s"},
		"--nodes is 0":            {"--nodes", "0"},
		"--copies is 4":           {"--copies", "4"},
		"--listen here is no add": {"--listen", "here"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		_, errs, code := probe(t, append([]string{"up", "--data", data}, args...)...)
		if code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("up %v: code %d, %q, want %q in it", args, code, errs, says)
		}
		if found, _ := filepath.Glob(data); len(found) > 0 {
			t.Errorf("up %v made %v", args, found)
		}
	}
}

// A worker looks at its flags before it enrols: a token is used once.
func TestNodeRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"--threads is -3":                     {"--threads=-3"},
		"--threads is 0":                      {"--threads", "0"},
		"--listen here is no address":         {"--listen", "here"},
		"--weights-listen here is no address": {"--weights-listen", "here"},
		"--gateway here is no address":        {"--gateway", "here"},
		"--keep-weights is -1h":               {"--keep-weights=-1h"},
		"--name: ":                            {"--name", "../x"},
		"a join token starts with":            {"--join", "rubbish"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		_, errs, code := probe(t, append([]string{"node", "run", "--data", data}, args...)...)
		if code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("node run %v: code %d, %q, want %q in it", args, code, errs, says)
		}
		if found, _ := filepath.Glob(data); len(found) > 0 {
			t.Errorf("node run %v made %v", args, found)
		}
	}
}

func TestAdministrationRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"node", "pause", "../x"}, exitUsage, "bad name"},
		{[]string{"node", "pause"}, exitUsage, "<node>"},
		{[]string{"token", "create", "--uses", "0"}, exitUsage, "--uses is 0"},
		{[]string{"token", "create", "--life=-1h"}, exitUsage, "--life is -1h"},
		{[]string{"key", "create", "--life=-1h"}, exitUsage, "--life is -1h"},
		{[]string{"key", "create", "--rate=-1"}, exitUsage, "want 0 (no limit)"},
		{[]string{"token", "revoke"}, exitUsage, "<id>"},
		{[]string{"token", "revoke", ""}, exitUsage, "token ls"},
		{[]string{"token", "revoke", ".."}, exitUsage, "token ls"},
		{[]string{"key", "revoke", "."}, exitUsage, "key ls"},
		{[]string{"engine", "rm", ".."}, exitUsage, "bad name"},
		{[]string{"node", "ls"}, exitFail, "no gateway runs there"},
		{[]string{"token", "ls"}, exitFail, "no gateway runs there"},
		{[]string{"key", "revoke", "abc"}, exitFail, "no gateway runs there"},
	} {
		_, errs, code := probe(t, append(c.args, "--data", t.TempDir())...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: code %d, %q, want %d and %q", c.args, code, errs, c.code, c.says)
		}
	}
}

// Whoever else can reach the API must show a key.
func TestKeysAreWantedOffLoopback(t *testing.T) {
	for ip, loopback := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"0.0.0.0": false, "::": false, "192.168.1.5": false, "fe80::1": false,
	} {
		if got := onLoopback(&net.TCPAddr{IP: net.ParseIP(ip), Port: 8080}); got != loopback {
			t.Errorf("onLoopback(%s) = %t, want %t", ip, got, loopback)
		}
	}
	if onLoopback(&net.UnixAddr{Name: "x"}) {
		t.Error("an address of another kind counts as loopback")
	}
}

func TestAddressToType(t *testing.T) {
	for _, c := range []struct {
		ip    string
		hosts []string
		want  string
	}{
		{"127.0.0.1", nil, "127.0.0.1:80"},
		{"0.0.0.0", nil, "127.0.0.1:80"},
		{"::", nil, "127.0.0.1:80"},
		{"::", []string{"attic.lan", "10.0.0.1"}, "attic.lan:80"},
		{"127.0.0.1", []string{"attic.lan"}, "127.0.0.1:80"},
		{"fe80::1", nil, "[fe80::1]:80"},
	} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(c.ip), Port: 80}, c.hosts); got != c.want {
			t.Errorf("reachable(%s, %v) = %s, want %s", c.ip, c.hosts, got, c.want)
		}
	}
}
