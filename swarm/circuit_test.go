package swarm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A story of what happens to a circuit, one event per word: f failure, s
// success, ? ask to use it, a abandon, a number waits that many seconds. After
// each event the state stands; a granted use is marked +, a refused one -.
func circuitStory(c *Circuit, story string) string {
	now := time.Unix(0, 0)
	var out []string
	for _, event := range strings.Fields(story) {
		mark := event
		switch event {
		case "f":
			c.Failure(now)
		case "s":
			c.Success(now)
		case "a":
			c.Abandon()
		case "?":
			mark = "-"
			if c.Allow(now) {
				mark = "+"
			}
		default:
			d, err := time.ParseDuration(event + "s")
			if err != nil {
				panic(err)
			}
			now = now.Add(d)
		}
		out = append(out, fmt.Sprintf("%s:%s", mark, c.State(now)))
	}
	return strings.Join(out, " ")
}

func TestCircuit(t *testing.T) {
	for _, c := range []struct{ name, story, want string }{
		{"opens on the third error in a row", "f f ? f ?", "f:closed f:closed +:closed f:open -:open"},
		{"a success between starts over", "f f s f f", "f:closed f:closed s:closed f:closed f:closed"},
		{"half-opens for one probe", "f f f 2 ? ?", "f:closed f:closed f:open 2:half-open +:half-open -:half-open"},
		{"a good probe closes it", "f f f 2 ? s ? f f", "f:closed f:closed f:open 2:half-open +:half-open s:closed +:closed f:closed f:closed"},
		{"a bad probe opens it for twice as long", "f f f 2 ? f 2 2", "f:closed f:closed f:open 2:half-open +:half-open f:open 2:open 2:half-open"},
		{"an abandoned probe is given back", "f f f 2 ? a ?", "f:closed f:closed f:open 2:half-open +:half-open a:half-open +:half-open"},
		{"late outcomes do not disturb the cool-down", "f f f 1 f s 1", "f:closed f:closed f:open 1:open f:open s:open 1:half-open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := circuitStory(&Circuit{}, c.story); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCircuitCoolDownIsBounded(t *testing.T) {
	c := Circuit{Config: CircuitConfig{Failures: 1, CoolDown: time.Second, MaxCoolDown: 5 * time.Second}}
	now := time.Unix(0, 0)
	c.Failure(now)
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		if got := c.RetryAt().Sub(now); got != want*time.Second {
			t.Fatalf("cool-down of %v, want %v", got, want*time.Second)
		}
		now = c.RetryAt()
		if !c.Allow(now) {
			t.Fatal("no probe after the cool-down")
		}
		c.Failure(now)
	}
	c.Reset()
	if c.State(now) != CircuitClosed || c.ErrorRate(now).Known || !c.RetryAt().IsZero() {
		t.Errorf("a reset leaves %+v", c)
	}
}

func TestCircuitForgetsErrors(t *testing.T) {
	var c Circuit
	now := time.Unix(0, 0)
	if c.ErrorRate(now).Known {
		t.Error("an error rate before any outcome")
	}
	c.Failure(now)
	if got := c.ErrorRate(now); got != Measured(0.2) {
		t.Errorf("one error gives %v, want 0.2", got)
	}
	if got := c.ErrorRate(now.Add(30 * time.Second)); got != Measured(0.1) {
		t.Errorf("half a minute later %v, want 0.1", got)
	}
}

// One random history after another: open exactly between trip and cool-down,
// never two probes at once, the rate within 0..1.
func TestCircuitInvariants(t *testing.T) {
	r := rand.New(rand.NewPCG(81, 82))
	for range 300 {
		var c Circuit
		now, out := time.Unix(0, 0), 0
		for range 200 {
			before := c.State(now)
			switch r.IntN(4) {
			case 0:
				now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			case 1:
				if c.Allow(now) && before == CircuitHalfOpen {
					out++
				}
				if before == CircuitOpen && c.State(now) != CircuitOpen {
					t.Fatal("asking closed it")
				}
			case 2:
				c.Failure(now)
				if before != CircuitClosed && c.State(now) != CircuitOpen {
					t.Fatalf("a failure took it from %v to %v", before, c.State(now))
				}
				if before == CircuitHalfOpen {
					out = 0
				}
			case 3:
				c.Success(now)
				if before == CircuitOpen != (c.State(now) == CircuitOpen) {
					t.Fatalf("a success took it from %v to %v", before, c.State(now))
				}
				if before != CircuitOpen {
					out = 0
				}
			}
			if rate := c.ErrorRate(now); out > 1 || rate.Value < 0 || rate.Value > 1 {
				t.Fatalf("%d probes out, rate %v", out, rate)
			}
		}
	}
}
