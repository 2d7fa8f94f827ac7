//go:build !noengine

package test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"hecate/pool"
	"hecate/test/harness"
)

// A crowd asks all the time, some with streams, and notes what went wrong.
type crowd struct {
	stop  context.CancelFunc
	wg    sync.WaitGroup
	mu    sync.Mutex
	asked int
	lost  []string
}

// crowdTokens is how long each answer is: long enough to be underway when
// something happens.
const crowdTokens = 96

// gather lets n clients ask until the crowd leaves.
func gather(s *harness.Swarm, n int) *crowd {
	s.T.Helper()
	c := &crowd{}
	want := s.Ask(harness.Story, map[string]any{"max_tokens": crowdTokens}).Text()
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for i := range n {
		c.wg.Go(func() {
			for ctx.Err() == nil {
				c.note(i, askOnce(s, i%2 == 0, want))
			}
		})
	}
	return c
}

// askOnce asks one question to its end and says what was wrong with the answer.
func askOnce(s *harness.Swarm, streamed bool, want string) string {
	more := map[string]any{"max_tokens": crowdTokens}
	if !streamed {
		code, _, body, err := s.TryPost(context.Background(), "/v1/chat/completions", harness.Question(harness.Story, more))
		if err != nil || code != 200 {
			return fmt.Sprintf("status %d, %v: %s", code, err, body)
		}
		return ""
	}
	answer, err := s.AskStream(context.Background(), harness.Story, more, nil)
	switch {
	case err != nil || answer.Broken != nil || answer.Fault != nil || !answer.Done:
		return fmt.Sprintf("a stream broke: %v %v %v", err, answer.Broken, answer.Fault)
	case answer.Text != want:
		return fmt.Sprintf("a stream told another story after %d rescues:\n%s\nwant\n%s", answer.Rescues, answer.Text, want)
	}
	return ""
}

func (c *crowd) note(who int, fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if fault != "" {
		c.lost = append(c.lost, fmt.Sprintf("client %d: %s", who, fault))
	}
}

// count is how many answers came so far.
func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// more waits until n more answers came.
func (c *crowd) more(s *harness.Swarm, n int) {
	s.T.Helper()
	goal := c.count() + n
	s.Await(fmt.Sprintf("%d more answers", n), time.Minute, func() bool { return c.count() >= goal })
}

// leave ends the crowd and wants that nothing was lost.
func (c *crowd) leave(t *testing.T) {
	t.Helper()
	c.stop()
	c.wg.Wait()
	for _, fault := range c.lost {
		t.Error(fault)
	}
	t.Logf("%d answers under load, %d lost", c.asked, len(c.lost))
}

func holdsNothing(t *testing.T, s *harness.Swarm, node string) func() bool {
	return func() bool {
		h := listedNodes(t, s)[node].Health
		return h != nil && len(h.Held) == 0
	}
}

func moved(s *harness.Swarm) (n int64) {
	for _, k := range s.Status().Answers.Rescues {
		n += k
	}
	return n
}

func poolNow(s *harness.Swarm) pool.Snapshot {
	s.T.Helper()
	var now pool.Snapshot
	s.Get("/v1/pool", &now)
	return now
}

func draining(s *harness.Swarm) (n int) {
	for _, w := range poolNow(s).Writers {
		if w.Contour == "draining" {
			n++
		}
	}
	return n
}

// Under constant load a node is drained at once: its answers go on elsewhere,
// none is lost and none differs, and the node is empty.
func TestANodeIsDrainedAtOnceUnderLoad(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	harness.Join(t, "first", "--join", s.Token(), "--memory", "64MiB")
	harness.Join(t, "second", "--join", s.Token(), "--memory", "64MiB")
	harness.Join(t, "third", "--join", s.Token(), "--memory", "64MiB")
	s.AwaitHealthy()
	c := gather(s, 4)
	for _, node := range []string{"first", "second", "third"} {
		c.more(s, 2)
		s.Do("node", "drain", node, "--now")
		s.Await(node+" holds nothing", time.Minute, holdsNothing(t, s, node))
		c.more(s, 2)
		s.Do("node", "resume", node)
		s.Await("all of "+node+" is back", time.Minute, func() bool { return !holdsNothing(t, s, node)() || s.Status().State == "healthy" })
		s.AwaitHealthy()
	}
	c.leave(t)
	if moved(s) == 0 {
		t.Error("no running answer moved")
	}
}

// Nodes come and go under constant load: nothing is lost, each change is a new
// plan and a new generation of the pool, and what it replaced drains.
func TestNodesComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	harness.Join(t, "first", "--join", s.Token(), "--memory", "64MiB")
	harness.Join(t, "second", "--join", s.Token(), "--memory", "64MiB")
	s.AwaitHealthy()
	plan, before := s.Status().Generation, poolNow(s).Generation.Active
	c := gather(s, 4)
	harness.Join(t, "third", "--join", s.Token(), "--memory", "64MiB")
	s.Await("third is a member", time.Minute, func() bool { return listedNodes(t, s)["third"].Status == "alive" })
	s.Do("node", "remove", "second")
	s.Await("second is gone", time.Minute, func() bool { return len(listedNodes(t, s)) == 2 })
	s.AwaitHealthy()
	c.more(s, 4)
	s.Do("node", "remove", "first", "--now")
	s.Await("first is gone", time.Minute, func() bool { return len(listedNodes(t, s)) == 1 })
	c.more(s, 4)
	c.leave(t)
	if now := s.Status().Generation; now <= plan {
		t.Errorf("plan generation %d, before %d", now, plan)
	}
	if now := poolNow(s).Generation.Active; now <= before {
		t.Errorf("pool generation %d, before %d", now, before)
	}
	s.Await("what was replaced has drained", time.Minute, func() bool { return draining(s) == 0 })
}
