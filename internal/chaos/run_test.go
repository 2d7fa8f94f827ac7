package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// diary are hands that write down what they were told, and when.
type diary struct {
	began  time.Time
	lines  []string
	sights func(since time.Duration) Sight
	fail   string // the act that errs
}

func (d *diary) note(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	d.lines = append(d.lines, fmt.Sprintf("%v %s", time.Since(d.began), text))
	if text == d.fail {
		return errors.New("no such process")
	}
	return nil
}

func (d *diary) Do(_ context.Context, node string, a Act) error { return d.note("%s %s", a, node) }
func (d *diary) Arm(_ context.Context, o Order) error           { return d.note("arm %+v", o) }
func (d *diary) Link(_ context.Context, node, command string) error {
	return d.note("link %s: %s", node, command)
}
func (d *diary) Look(context.Context) (Sight, error) {
	if d.sights == nil {
		return Sight{State: "healthy"}, nil
	}
	return d.sights(time.Since(d.began)), nil
}

func TestRun(t *testing.T) {
	ill := func(since time.Duration) Sight {
		s := Sight{State: "healthy", Alive: map[string]bool{"a": true}, PID: map[string]int{"a": 10}, Rescues: 5, Lost: 1}
		if since > 0 && since < 2*time.Second {
			s.State, s.Why, s.Alive["a"] = "degraded", []string{"copy 0 waits for a"}, false
		}
		if since >= 3*time.Second {
			s.PID["a"] = 11
		}
		if since > 0 {
			s.Rescues = 7
		}
		return s
	}
	for _, c := range []struct {
		name, script string
		fail         string
		want         []string
		err          string // "" is none
		took         time.Duration
	}{
		{
			name: "acts in order", script: "kill a\nwait 2s\narm stage=1 at=20 action=stop\nstop b\ncontinue b",
			want: []string{"0s kill a", "2s arm {Model: Stage:1 AtToken:20 Action:stop Rescues:0 Also:false}", "2s stop b", "2s continue b"}, took: 2 * time.Second,
		},
		{
			name: "flap", script: "flap a every 3s for 7s",
			want: []string{"0s stop a", "1.5s continue a", "3s stop a", "4.5s continue a"}, took: 6 * time.Second,
		},
		{name: "what was stopped goes on at the end", script: "stop b\nstop a\nwait 1s", want: []string{"0s stop b", "0s stop a", "1s continue a", "1s continue b"}, took: time.Second},
		{name: "also after a failure", script: "stop a\nexpect failed", want: []string{"0s stop a", "0s continue a"}, err: "d:2: expect failed: the swarm is healthy"},
		{
			name: "links", script: "delay a 200ms jitter 10ms\npartition b\nreset a\nwait 1s\nheal b\nheal b\ndrop c up", took: time.Second,
			want: []string{"0s link a: delay 200ms jitter 10ms", "0s link b: partition", "0s link a: reset", "1s link b: heal", "1s link b: heal", "1s link c: drop up", "1s link a: heal", "1s link c: heal"},
		},
		{name: "also after a failure of a link", script: "stop a\nloss b 0.5\nrefuse c", fail: "link c: refuse", want: []string{"0s stop a", "0s link b: loss 0.5", "0s link c: refuse", "0s continue a", "0s link b: heal"}, err: "d:3: refuse c: no such process"},
		{name: "what was killed does not", script: "stop a\nkill a", want: []string{"0s stop a", "0s kill a"}},
		{name: "an act fails", script: "wait 1s\nkill a\nkill b", fail: "kill a", want: []string{"1s kill a"}, err: "d:2: kill a: no such process", took: time.Second},
		{
			name: "conditions", took: 2 * time.Second,
			script: "expect healthy\nexpect rescues 0\nwait 1s\nexpect degraded\nexpect node a dead\nexpect rescues 2\nexpect lost 0\nawait state healthy within 3s\nexpect node a alive",
		},
		{name: "too late", script: "wait 1s\nawait healthy within 500ms", err: "d:2: await healthy within 500ms: still not after 500ms: the swarm is degraded: copy 0 waits for a", took: 1500 * time.Millisecond},
		{name: "too few rescues", script: "wait 1s\nexpect rescues 3", err: "d:2: expect rescues 3: answers survived 2 failures since the script began", took: time.Second},
		{name: "no such node", script: "expect node z alive", err: "d:1: expect node z alive: there is no node z"},
		{name: "restarted", script: "kill a\nawait node a restarted within 5s", want: []string{"0s kill a"}, took: 3 * time.Second},
		{name: "twice", script: "wait 3s\nkill a\nawait node a restarted within 1s", want: []string{"3s kill a"}, err: "d:3: await node a restarted within 1s: still not after 1s: a has no new process, its pid is 11", took: 4 * time.Second},
		{name: "dead is not restarted", script: "wait 1s\nexpect node a restarted", err: "d:2: expect node a restarted: a is dead", took: time.Second},
		{name: "still dead", script: "wait 1s\nexpect node a alive", err: "d:2: expect node a alive: a is dead", took: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := Parse("d", strings.NewReader(c.script))
				if err != nil {
					t.Fatal(err)
				}
				d := &diary{began: time.Now(), sights: ill, fail: c.fail}
				text := ""
				if err := s.Run(t.Context(), d, func(int, string) {}); err != nil {
					text = err.Error()
				}
				if text != c.err {
					t.Errorf("error %q, want %q", text, c.err)
				}
				if diff := cmp.Diff(c.want, d.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(d.began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// An interrupted script leaves no node frozen.
func TestInterruptedFlapEndsGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Parse("d", strings.NewReader("flap a every 4s for 1h"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		d := &diary{began: time.Now()}
		if err := s.Run(ctx, d, func(int, string) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if last := d.lines[len(d.lines)-1]; last != "5s continue a" {
			t.Errorf("the last act: %s", last)
		}
	})
}
