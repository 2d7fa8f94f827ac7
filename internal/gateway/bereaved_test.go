package gateway

import (
	"slices"
	"testing"

	"hecate/pool"
)

func TestTheLastConnectionOfANode(t *testing.T) {
	up := func(node string, w uint64) pool.Event {
		return pool.Event{Kind: pool.EventWriterUp, Group: node, Writer: w}
	}
	lost := func(node string, w uint64, why string) pool.Event {
		return pool.Event{Kind: pool.EventWriterLost, Group: node, Writer: w, Reason: why + ": x"}
	}
	for name, c := range map[string]struct {
		events []pool.Event
		want   []string
	}{
		"one of two":                {[]pool.Event{up("a", 1), up("a", 2), lost("a", 1, "reset")}, nil},
		"both, one node of two":     {[]pool.Event{up("a", 1), up("a", 2), up("b", 3), lost("a", 1, "idle_close"), lost("a", 2, "idle_close")}, []string{"a"}},
		"we closed it":              {[]pool.Event{up("a", 1), lost("a", 1, "shutdown")}, nil},
		"it was drained":            {[]pool.Event{up("a", 1), {Kind: pool.EventWriterRemoved, Group: "a", Writer: 1, Reason: "retired: x"}}, nil},
		"it died while it drained":  {[]pool.Event{up("a", 1), up("a", 2), lost("a", 2, "reset"), {Kind: pool.EventWriterRemoved, Group: "a", Writer: 1, Reason: "idle_close: x"}}, []string{"a"}},
		"ended before it was known": {[]pool.Event{lost("a", 1, "reset"), up("a", 1), up("a", 2), lost("a", 2, "reset")}, []string{"a"}},
		"twice":                     {[]pool.Event{up("a", 1), lost("a", 1, "reset"), up("a", 2), lost("a", 2, "silent")}, []string{"a", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			hear := Bereaved(func(node string) { told = append(told, node) })
			for _, e := range c.events {
				hear(e)
			}
			if !slices.Equal(told, c.want) {
				t.Errorf("told %v, want %v", told, c.want)
			}
		})
	}
}
