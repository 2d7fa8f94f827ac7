package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// steps makes a queue from pairs of rows and what is wanted of them.
func steps(spec string) []*step {
	var out []*step
	for _, f := range strings.Fields(spec) {
		st := &step{in: Input{Want: WantLast}}
		if strings.HasSuffix(f, "a") {
			st.in.Want = WantAll
		}
		fmt.Sscanf(f, "%d", &st.rows)
		out = append(out, st)
	}
	return out
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name, queue string
		lim         limits
		want        string // rows by place in the queue
	}{
		{"one stream", "1", limits{rows: 64, long: 8}, "0:1"},
		{"streams before prompts", "100 1 1", limits{rows: 64, long: 8}, "1:1 2:1 0:8"},
		{"a prompt alone takes what it may", "100", limits{rows: 64, long: 32}, "0:32"},
		{"rows are bounded", "1 1 1 1", limits{rows: 3, long: 8}, "0:1 1:1 2:1"},
		{"prompts share", "5 100 100", limits{rows: 64, long: 20}, "0:5 1:15"},
		{"no room for prompts beside streams", "1 50", limits{rows: 64, long: 0}, "0:1"},
		{"but a prompt alone always gets on", "50", limits{rows: 64, long: 0}, "0:1"},
		{"few rows of logits", "50a 1", limits{rows: 64, long: 64, outs: 4}, "1:1 0:3"},
		{"a last row that would be one too many waits", "10 1 1", limits{rows: 64, long: 64, outs: 2}, "1:1 2:1 0:9"},
		{"few sessions", "1 1 1 9", limits{rows: 64, long: 64, segs: 2}, "0:1 1:1"},
	} {
		queue := steps(c.queue)
		var got []string
		for _, p := range plan(queue, c.lim) {
			for i, st := range queue {
				if st == p.st {
					got = append(got, fmt.Sprintf("%d:%d", i, p.n))
				}
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

func TestChunkFollowsSpeed(t *testing.T) {
	const (
		target = 60 * time.Millisecond
		most   = 256
	)
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	for _, c := range []struct {
		name           string
		decode, perRow time.Duration
		beside, alone  int // rows beside streams, and without any
	}{
		{"nothing known", 0, 0, 32, 64},
		{"fast", ms(1), ms(0.1), 256, 256},
		{"only rows known", 0, ms(2), 32, 120},
		{"the target decides", ms(5), ms(2), 30, 120},
		{"a pass of one row decides", ms(50), ms(20), 10, 40},
		{"the same machine ten times as busy", ms(500), ms(200), 10, 40},
		{"slow", ms(60), ms(50), 8, 19},
		{"only streams seen so far", ms(5), 0, 12, 48},
	} {
		x := timing{decode: c.decode, perRow: c.perRow}
		if b, a := x.chunk(target, true, most), x.chunk(target, false, most); b != c.beside || a != c.alone {
			t.Errorf("%s: %d rows beside streams and %d alone, want %d and %d", c.name, b, a, c.beside, c.alone)
		}
	}
}
