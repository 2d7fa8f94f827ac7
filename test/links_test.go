//go:build !noengine

package test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hecate/internal/report"
	"hecate/test/harness"
)

// slowLink makes an answer of 64 tokens take a second or more: then what is done
// from outside meets it in its middle, on any machine.
const slowLink = 10 * time.Millisecond

// during does something once so many pieces of a streamed answer have come, and
// gives the answer.
func (r *rehearsal) during(t *testing.T, pieces int, do func(route string)) harness.Stream {
	t.Helper()
	seen := 0
	route := ""
	st, err := r.AskStreamFrom(context.Background(), harness.Story, limit64(nil), func(s *harness.Stream, _ string) {
		if route == "" {
			route = s.Header.Get("X-Hecate-Route")
		}
		if seen++; seen == pieces {
			do(route)
		}
	})
	if err != nil || !st.Done || st.Broken != nil || st.Fault != nil {
		t.Errorf("%v, done %v, broken %v, fault %v after %q", err, st.Done, st.Broken, st.Fault, st.Text)
	}
	return st
}

// Whatever befalls the link to a node in the middle of an answer, the text is the
// same; and a node whose connections broke goes on with the state that it kept.
func TestALinkThatFailsInAnAnswer(t *testing.T) {
	t.Parallel()
	r := rehearse(t)
	want := r.Ask(harness.Story, limit64(nil)).Text()
	for _, c := range []struct {
		command string
		kinds   []string // of which a rescue must be; none: no rescue is needed
	}{
		{"delay 30ms jitter 10ms", nil},
		{"throttle 64KiB", nil},
		{"reset", []string{"reconnect", "splice", "copy"}},
		{"partition", []string{"splice", "copy"}},
		{"drop", []string{"splice", "copy"}},
	} {
		for stage := range 2 {
			struck := false
			for n := 0; n < aims && !struck; n++ {
				struck = r.tryLink(t, c.command, stage, c.kinds, want)
			}
			if !struck {
				t.Errorf("%s of stage %d: no answer had to be rescued", c.command, stage)
			}
		}
	}
}

// tryLink does a command to the link of a stage in the middle of an answer; false
// when a rescue is wanted and none was needed.
func (r *rehearsal) tryLink(t *testing.T, command string, stage int, wanted []string, want string) bool {
	t.Helper()
	r.slow(t, slowLink)
	before := r.Status()
	st := r.during(t, 20, func(route string) { r.link(t, nodesOf(route)[stage], command) })
	kinds := rescued(before, r.Status())
	if st.Text != want {
		t.Errorf("%s of stage %d: got %q, want %q", command, stage, st.Text, want)
	}
	met := slices.ContainsFunc(wanted, func(k string) bool { return kinds[k] > 0 })
	if st.Rescues > 0 && !met {
		t.Errorf("%s of stage %d: told of %d rescues, counted %v, want some of %v", command, stage, st.Rescues, kinds, wanted)
	}
	for _, n := range before.Nodes {
		r.link(t, n.ID, "heal")
	}
	r.AwaitHealthy()
	if changed(pidsIn(before), pidsOf(r.Swarm)) != 0 {
		t.Errorf("%s of stage %d: a process was started anew", command, stage)
	}
	return met || len(wanted) == 0
}

func pidsIn(st report.Status) map[string]int {
	out := map[string]int{}
	for _, n := range st.Nodes {
		out[n.ID] = n.PID
	}
	return out
}

// Every node dies in the middle of an answer, and what comes back goes on with it.
func TestAllCopiesDieAndReturn(t *testing.T) {
	t.Parallel()
	r := rehearse(t)
	want := r.Ask(harness.Story, limit64(nil)).Text()
	for _, pieces := range allDead {
		struck := false
		for n := 0; n < aims && !struck; n++ {
			struck = r.tryAll(t, pieces, want)
		}
		if !struck {
			t.Errorf("all died after %d pieces: no answer had to be rescued", pieces)
		}
	}
}

// tryAll kills every node after some pieces of an answer; false when that was too
// late for it.
func (r *rehearsal) tryAll(t *testing.T, pieces int, want string) bool {
	t.Helper()
	r.AwaitHealthy()
	r.slow(t, slowLink)
	before := r.Status()
	st := r.during(t, pieces, func(string) {
		for _, n := range before.Nodes {
			if err := syscall.Kill(n.PID, syscall.SIGKILL); err != nil {
				t.Errorf("kill %s: %v", n.ID, err)
			}
		}
	})
	if st.Text != want {
		t.Errorf("all died after %d pieces: got %q, want %q", pieces, st.Text, want)
	}
	for _, n := range before.Nodes {
		if !harness.Gone(n.PID) {
			t.Errorf("process %d of %s is still there", n.PID, n.ID)
		}
	}
	return st.Rescues > 0
}

// A node that fails at once, whenever it is asked, looks quick and idle. It must
// not draw the requests to it: here it reports that it is well, and refuses every
// connection of the data plane.
func TestANodeThatFailsFastDoesNotAttract(t *testing.T) {
	t.Parallel()
	r := rehearse(t, "--nodes", "4", "--copies", "4")
	want := r.Ask(harness.Story, limit64(nil)).Text()
	first := r.Status().Nodes[0].ID
	r.link(t, first, "refuse")
	r.link(t, first, "reset")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				a := r.AskWith(t, harness.Story, limit64(nil))
				if a.Text() != want {
					t.Errorf("got %q, want %q", a.Text(), want)
				}
				if strings.HasPrefix(a.Hecate.Route, first+"[") {
					t.Errorf("an answer came from %s, which nobody can reach", first)
				}
			}
		})
	}
	wg.Wait()
	if a := r.Status().Answers; a.Lost != 0 || sum(a.Rescues) > 8 {
		t.Errorf("of 40 answers %d were lost, and %v had to be rescued from a node that fails at once", a.Lost, a.Rescues)
	}
	r.link(t, first, "heal")
	r.AwaitHealthy()
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Every script that ships holds, while somebody asks all the time. An answer is
// the usual one, or refused because no copy was left when it began.
func TestDrillsHold(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../examples/drills/*.drill")
	if err != nil || len(files) == 0 {
		t.Fatalf("no drills: %v", err)
	}
	r := rehearse(t)
	want := r.Ask(harness.Story, limit64(nil)).Text()
	for _, file := range files {
		script := drill(t, file)
		began := time.Now()
		over := make(chan struct{})
		var asking sync.WaitGroup
		asked := 0
		asking.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				st, err := r.AskStream(context.Background(), harness.Story, limit64(nil), nil)
				if err != nil && strings.Contains(err.Error(), "503") {
					continue
				}
				if err != nil || st.Text != want || !st.Done {
					t.Errorf("%s: an answer became %q (%v, %v)", file, st.Text, err, st.Fault)
					return
				}
				asked++
			}
		})
		out, errs, code := harness.Run(t, script, "chaos", "run", "-", "--url", r.URL)
		close(over)
		asking.Wait()
		if code != 0 || !strings.Contains(out, "the script held") || asked == 0 {
			t.Errorf("%s: code %d after %d answers\n%s%s", file, code, asked, out, errs)
		}
		t.Logf("%s: %s, %d answers", filepath.Base(file), time.Since(began).Round(time.Second), asked)
		r.AwaitHealthy()
	}
}

// drill reads a script, as it ships or, for `make test`, shortened.
func drill(t *testing.T, file string) string {
	t.Helper()
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(script)
	for _, s := range shortDrills[filepath.Base(file)] {
		if !strings.Contains(text, s[0]) {
			t.Fatalf("%s has no %q, which is to become %q", file, s[0], s[1])
		}
		text = strings.ReplaceAll(text, s[0], s[1])
	}
	return text
}
