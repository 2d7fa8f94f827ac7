package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hecate/swarm"
)

// A story is a transcript: lines of "<milliseconds> <action> [node] [number]"
// and, after "->", the events that must come of it.
//
//	enrol node incarnation    the store knows the node
//	remove|forget node        it was removed by an operator / from the store
//	complete                  the store has told all it knows
//	hear node inc.sequence    a report
//	bye node inc.sequence     the last report
//	reset node                the data plane's connections broke, and no new one is answered
//	refuse node               ... and new ones are refused
//	confirm node incarnation  it answered a direct question
//	tick                      the clock
//	status node text          the status must be text
func tell(t *testing.T, story string) {
	t.Helper()
	start := time.Unix(1_000_000, 0)
	r := NewRoster(Liveness{})
	records := map[string]*NodeRecord{}
	for n, line := range strings.Split(strings.TrimSpace(story), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		action, want, _ := strings.Cut(line, "->")
		var ms int
		var verb, node, arg string
		_, _ = fmt.Sscan(action, &ms, &verb, &node, &arg) // shorter lines leave the rest empty
		now := start.Add(time.Duration(ms) * time.Millisecond)
		if verb == "status" {
			if got := statusIn(r, node); got != arg {
				t.Errorf("line %d: %s: status %s", n+1, line, got)
			}
			continue
		}
		got := describeEvents(act(r, now, verb, node, arg, records))
		if got != strings.TrimSpace(want) {
			t.Errorf("line %d: %s\n got %q", n+1, line, got)
		}
	}
}

func act(r *Roster, now time.Time, verb, node, arg string, records map[string]*NodeRecord) []Event {
	var a, b uint64
	_, _ = fmt.Sscanf(arg, "%d.%d", &a, &b) // not every action has two numbers
	switch verb {
	case "enrol":
		records[node] = &NodeRecord{ID: node, Incarnation: a, Desired: DesiredActive}
		return r.Enrolled(now, records[node])
	case "remove":
		removed := *records[node]
		removed.Desired = DesiredRemoved
		return r.Enrolled(now, &removed)
	case "forget":
		return r.Forgotten(now, node)
	case "complete":
		return r.Complete(now)
	case "hear", "bye":
		return r.Hear(now, &Health{
			Node: node, Incarnation: a, Sequence: b, Leaving: verb == "bye", State: swarm.NodeState{ID: node},
		})
	case "reset":
		return r.Reset(now, node)
	case "refuse":
		return r.Refuse(now, node)
	case "confirm":
		return r.Confirm(now, node, a)
	case "tick":
		return r.Tick(now)
	}
	panic("no such action: " + verb)
}

func statusIn(r *Roster, node string) string {
	for _, m := range r.Members() {
		if m.ID == node {
			return m.Status.String()
		}
	}
	return "absent"
}

func describeEvents(events []Event) string {
	var parts []string
	for _, e := range events {
		parts = append(parts, e.String())
	}
	return strings.Join(parts, "; ")
}

func TestRosterStories(t *testing.T) {
	stories := map[string]string{
		"a node joins, is silent, dies, and comes back": `
			0 enrol mini 1
			0 complete
			10 hear mini 1.1 -> node mini joined (incarnation 1)
			1000 hear mini 1.2
			1900 tick
			2800 tick
			3099 tick
			3100 tick -> node mini is suspect: silent for 2.1s
			0 status mini suspect
			3399 tick
			3400 tick -> node mini is dead: silence (last heard 2.4s ago)
			4200 tick
			4900 hear mini 1.3 -> node mini is back after 1.5s as dead
			0 status mini alive`,
		"a suspect that is heard again": `
			0 enrol mini 1
			0 hear mini 1.1 -> node mini joined (incarnation 1)
			900 tick
			1800 tick
			2200 tick -> node mini is suspect: silent for 2.2s
			2300 hear mini 1.2 -> node mini is back after 100ms as suspect`,
		"a reset condemns at once, what was on its way does not save, fresh evidence does": `
			0 enrol mini 1
			0 hear mini 1.1 -> node mini joined (incarnation 1)
			500 reset mini -> node mini is dead: connection reset (last heard 500ms ago)
			510 reset mini
			700 hear mini 1.2
			0 status mini dead
			1000 hear mini 1.3 -> node mini is back after 500ms as dead`,
		"a reset node that answers is back at once": `
			0 enrol mini 1
			0 hear mini 1.1 -> node mini joined (incarnation 1)
			500 reset mini -> node mini is dead: connection reset (last heard 500ms ago)
			510 confirm mini 2
			520 confirm mini 1 -> node mini is back after 20ms as dead`,
		"a paused observer condemns nobody, and everyone gets one fresh window": `
			0 enrol a 1
			0 enrol b 1
			0 hear a 1.1 -> node a joined (incarnation 1)
			0 hear b 1.1 -> node b joined (incarnation 1)
			60000 tick
			60100 reset a
			61000 hear a 1.2
			61900 tick
			62000 tick
			62200 tick -> node b is suspect: silent for 2.2s
			62400 tick -> node b is dead: silence (last heard 2.4s ago)
			0 status a alive`,
		"a paused observer believes a refusal": `
			0 enrol a 1
			0 enrol b 1
			0 hear a 1.1 -> node a joined (incarnation 1)
			0 hear b 1.1 -> node b joined (incarnation 1)
			60000 tick
			60100 reset a
			60200 refuse a -> node a is dead: connection refused (last heard 200ms ago)
			60300 hear a 1.2
			0 status a dead
			60300 confirm a 1 -> node a is back after 100ms as dead`,
		"two real deaths in a swarm of three are two deaths": `
			0 enrol a 1
			0 enrol b 1
			0 enrol c 1
			0 hear a 1.1 -> node a joined (incarnation 1)
			0 hear b 1.1 -> node b joined (incarnation 1)
			0 hear c 1.1 -> node c joined (incarnation 1)
			900 hear a 1.2
			1800 hear a 1.3
			2400 hear a 1.4 -> node b is dead: silence (last heard 2.4s ago); node c is dead: silence (last heard 2.4s ago)`,
		"repeated and old reports are no evidence": `
			0 enrol mini 1
			0 hear mini 1.5 -> node mini joined (incarnation 1)
			900 hear mini 1.5
			1800 hear mini 1.4
			2400 tick -> node mini is dead: silence (last heard 2.4s ago)`,
		"a restart: the new one replaces the old, whose late words are a ghost's": `
			0 enrol mini 1
			0 hear mini 1.7 -> node mini joined (incarnation 1)
			300 enrol mini 2 -> node mini is dead: it was started anew (last heard 300ms ago)
			310 hear mini 1.8 -> an old start of node mini (incarnation 1, current 2) still reports
			400 hear mini 2.1 -> node mini is back after 100ms as dead
			410 hear mini 1.9 -> an old start of node mini (incarnation 1, current 2) still reports
			0 status mini alive`,
		"twenty starts leave one entry": `
			0 enrol mini 1
			0 complete
			0 hear mini 1.1 -> node mini joined (incarnation 1)
			10 bye mini 1.2 -> node mini left
			20 hear mini 1.3
			30 enrol mini 2
			40 hear mini 2.1 -> node mini joined (incarnation 2)
			50 enrol mini 3 -> node mini is dead: it was started anew (last heard 10ms ago)
			60 hear mini 3.1 -> node mini is back after 10ms as dead`,
		"a removed node stays away until it enrols anew": `
			0 enrol mini 1
			0 hear mini 1.1 -> node mini joined (incarnation 1)
			100 remove mini -> node mini was removed
			200 hear mini 1.2
			0 status mini left
			300 enrol mini 2
			400 hear mini 2.1 -> node mini joined (incarnation 2)`,
		"nobody whom the store does not know": `
			0 hear stray 1.1 -> node stray joined (incarnation 1)
			10 complete -> node stray was removed
			0 status stray absent
			20 hear stray 1.2
			0 status stray absent`,
		"a reset of somebody who is not living is nothing": `
			0 enrol mini 1
			0 reset mini
			0 reset nobody
			0 status mini unheard`,
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { tell(t, story) })
	}
}

func TestTheRosterWantsTheClockWhenSomethingIsDue(t *testing.T) {
	r := NewRoster(Liveness{})
	start := time.Unix(0, 0)
	r.Enrolled(start, &NodeRecord{ID: "a", Incarnation: 1, Desired: DesiredActive})
	r.Hear(start, &Health{Node: "a", Incarnation: 1, Sequence: 1})
	now := start
	for range 10 {
		now = r.Next(now)
		r.Tick(now)
	}
	if m := r.Members()[0]; m.Status != StatusSuspect {
		t.Fatalf("after %s: %s", now.Sub(start), m.Status)
	}
	for statusIn(r, "a") != "dead" {
		now = r.Next(now)
		r.Tick(now)
	}
	if now.Sub(start) != 2400*time.Millisecond {
		t.Errorf("dead after %s, want exactly 2.4s", now.Sub(start))
	}
}

// BenchmarkHear is what one report costs in a swarm of a thousand.
func BenchmarkHear(b *testing.B) {
	r := NewRoster(Liveness{})
	const nodes = 1000
	now := time.Unix(0, 0)
	reports := make([]*Health, nodes)
	for i := range reports {
		id := fmt.Sprintf("n%04d", i)
		r.Enrolled(now, &NodeRecord{ID: id, Incarnation: 1, Desired: DesiredActive})
		reports[i] = &Health{Node: id, Incarnation: 1}
	}
	r.Complete(now)
	var n uint64
	for b.Loop() {
		h := *reports[n%nodes]
		n++
		h.Sequence = n
		now = now.Add(time.Second / nodes)
		r.Hear(now, &h)
	}
}
