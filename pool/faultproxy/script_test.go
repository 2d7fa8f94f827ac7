package faultproxy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestScriptChangesTheFault(t *testing.T) {
	p, _, _ := through(t, Options{})
	for _, c := range []struct {
		line string
		want Fault
	}{
		{"delay 200ms jitter 50ms up", Fault{Up: Direction{Delay: 200 * time.Millisecond, Jitter: 50 * time.Millisecond}}},
		{"loss 0.05 up", Fault{Up: Direction{Delay: 200 * time.Millisecond, Jitter: 50 * time.Millisecond, Loss: 0.05}}},
		{"pass up", Fault{}},
		{"throttle 64KiB", Fault{Up: Direction{BytesPerSecond: 65536}, Down: Direction{BytesPerSecond: 65536}}},
		{"throttle 0 down", Fault{Up: Direction{BytesPerSecond: 65536}}},
		{"  drop   down ", Fault{Up: Direction{BytesPerSecond: 65536}, Down: Direction{Silent: true}}},
		{"pass", Fault{}},
	} {
		cmd, err := ParseCommand(c.line)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Do(context.Background(), cmd); err != nil {
			t.Fatal(err)
		}
		if got := p.Fault(); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.line, got, c.want)
		}
	}
}

func TestScriptRuns(t *testing.T) {
	p, c, s := through(t, Options{})
	script, err := ParseScript(strings.NewReader(`
		# a bad minute
		drop         # both ways
		wait 1ms
		refuse
		half-close up
		pass         # listens again, too
		reset
	`))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	if err := p.Run(context.Background(), script, func(c Command) { seen = append(seen, c.String()) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ";"); got != "drop;wait 1ms;refuse;half-close up;pass;reset" {
		t.Errorf("ran %q", got)
	}
	for _, e := range []interface{ Read([]byte) (int, error) }{c, s} {
		if _, err := e.Read(make([]byte, 1)); err == nil {
			t.Error("alive after reset")
		}
	}
	dial(t, p)
}

func TestScriptEndsWithContext(t *testing.T) {
	p, _, _ := through(t, Options{})
	script, err := ParseScript(strings.NewReader("wait 1h"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := p.Run(ctx, script, func(Command) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := p.Run(context.Background(), script, func(Command) { go p.Close() }); err == nil {
		t.Error("runs on a closed proxy")
	}
}

func TestScriptFaultsAreAllReported(t *testing.T) {
	bad := []string{
		"explode", "delay", "delay soon", "delay 1s jitter", "delay 1s jitter later", "delay -1s", "loss 2", "loss NaN", "loss x",
		"throttle 5 parsecs", "throttle 64kb", "throttle -1", "throttle 9999999999999MiB", "drop everything", "half-close", "reset up",
		"refuse down", "wait", "wait -1s", "wait forever", "pass now", "refuse me",
	}
	_, err := ParseScript(strings.NewReader(strings.Join(bad, "\n")))
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, b := range bad {
		if _, err := ParseCommand(b); err == nil {
			t.Errorf("%q is accepted", b)
		} else if i < len(lines) && !strings.Contains(err.Error(), strings.Fields(b)[0]) {
			t.Errorf("%q: the message does not name it: %v", b, err)
		}
	}
	if strings.Count(err.Error(), "faultproxy: command") != len(bad) {
		t.Errorf("not every fault is reported:\n%v", err)
	}
	if _, err := ParseCommand("  "); err == nil {
		t.Error("an empty command is accepted")
	}
}

func TestSetRefusesBadValues(t *testing.T) {
	p, _, _ := through(t, Options{})
	if err := p.Set(Fault{Up: Direction{Loss: 1.5}, Down: Direction{Delay: -1}}); err == nil ||
		!strings.Contains(err.Error(), "up: loss") || !strings.Contains(err.Error(), "down: delay") {
		t.Errorf("got %v", err)
	}
	if p.Fault() != (Fault{}) {
		t.Error("something was changed")
	}
	if _, err := Listen("127.0.0.1:0", "x:1", Options{Fault: Fault{Up: Direction{BytesPerSecond: -1}}}); err == nil {
		t.Error("Listen accepts it")
	}
}
