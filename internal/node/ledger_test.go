package node

import (
	"maps"
	"testing"

	"hecate/internal/stage"
)

func TestLedgerTellsGatewaysApart(t *testing.T) {
	var l ledger
	stageOf := func(gateway, model string, first, last int) *running {
		return &running{gateway: gateway, open: stage.Open{Model: model, First: first, Last: last}}
	}
	want := func(first, last int, want map[string]int) {
		t.Helper()
		if got := l.taken("m", first, last); got == nil || !maps.Equal(got, want) {
			t.Errorf("of layers %d to %d %v are taken, want %v", first, last, got, want)
		}
	}
	want(0, 9, map[string]int{})
	a, b, c := stageOf("one", "m", 0, 5), stageOf("two", "m", 4, 9), stageOf("one", "m", 7, 9)
	l.note(a, 100)
	l.note(b, 30)
	l.note(c, 90)
	l.note(stageOf("one", "other", 0, 9), 500)
	want(0, 3, map[string]int{"one": 100})
	want(0, 9, map[string]int{"one": 100, "two": 30})
	want(6, 6, map[string]int{"two": 30})
	l.note(c, 200) // it grows
	want(0, 9, map[string]int{"one": 200, "two": 30})
	l.note(c, 0)
	l.note(a, 0)
	l.note(a, 0) // an end is an end
	want(0, 9, map[string]int{"two": 30})
	l.note(b, 0)
	want(0, 9, map[string]int{})
}
