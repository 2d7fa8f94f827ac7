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
	fast, slow := timing{perRow: 100 * time.Microsecond}, timing{perRow: 50 * time.Millisecond}
	const target = 60 * time.Millisecond
	if n := fast.chunk(target, true, 256); n != 256 {
		t.Errorf("600 rows fit: %d, want the limit of 256", n)
	}
	if n := slow.chunk(target, true, 256); n != 8 {
		t.Errorf("one row fits: %d, want the least, 8", n)
	}
	middle := timing{perRow: 2 * time.Millisecond}
	if a, b := middle.chunk(target, true, 256), middle.chunk(target, false, 256); a != 30 || b != 120 {
		t.Errorf("beside streams %d, want 30; alone %d, want 120", a, b)
	}
}
