//go:build !noengine

package test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"hecate/test/harness"
)

// A gateway that stands still for a moment, in the middle of answers, heard nothing
// meanwhile: that is not the nodes' fault. Its clocks say that all of them are late.
func TestAGatewayThatStoodStillSuspectsInVain(t *testing.T) {
	t.Parallel()
	s := harness.Up(t)
	want := s.Ask(harness.Story, nil).Text()
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				st, err := s.AskPatiently(context.Background(), harness.Story, nil)
				if err != nil || !st.Done || st.Text != want {
					t.Errorf("%v, done %v, %q", err, st.Done, st.Text)
					return
				}
			}
		})
	}
	for _, pause := range []time.Duration{300, 600, 900, 900, 1500} {
		signalProcess(t, s.PID(), syscall.SIGSTOP)
		standStill(t, pause*time.Millisecond)
		signalProcess(t, s.PID(), syscall.SIGCONT)
		s.Ask(harness.Story, nil)
	}
	close(stop)
	asking.Wait()
	if now := poolNow(s); now.Probes["silent"] != 0 {
		t.Errorf("nodes were taken for silent: probes %v, connections lost %v", now.Probes, now.WriterLosses)
	}
}
