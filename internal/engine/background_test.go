package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// behind computes rows in the background on a range of its own, step after step. It
// gives how long that took.
func behind(t *testing.T, c *core, rows int) <-chan time.Duration {
	t.Helper()
	s := mustOpen(t, c, Range{0, tinyLayers - 2}, rows)
	done := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		for s.Held() < rows {
			n := min(32, rows-s.Held())
			if _, err := s.Step(t.Context(), Input{Position: s.Held(), Tokens: make([]int32, n), Background: true}); err != nil {
				t.Error(err)
				break
			}
		}
		done <- time.Since(began)
	}()
	return done
}

// A stream's tokens wait for a short pass at most when something is computed in the
// background, and that goes on all the same.
func TestTheBackgroundHardlyDelaysStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: 2 * time.Millisecond, perRow: 3 * time.Millisecond}
		c := imitated(t, Options{Cells: 8000, ContextTokens: 8000}, k)
		s := mustOpen(t, c, Range{0, tinyLayers - 1}, 2000)
		pace(t, s, 20)
		done := behind(t, c, 600)
		worst := time.Duration(0)
		for range 300 {
			time.Sleep(20 * time.Millisecond) // other stages are at it
			worst = max(worst, pace(t, s, 1))
		}
		if most := 5*time.Millisecond + 30*time.Millisecond; worst > most {
			t.Errorf("a token took %v beside work in the background", worst)
		}
		select {
		case <-done:
		default:
			t.Error("300 pauses of 20 ms were not enough for 600 rows of 3 ms in the background")
			<-done
		}
	})
}

// A prompt is computed as if there were nothing in the background.
func TestAPromptGoesBeforeTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: time.Millisecond, perRow: time.Millisecond}
		c := imitated(t, Options{Cells: 8000, ContextTokens: 8000}, k)
		alone := behind(t, c, 1000)
		took := <-alone
		done := behind(t, c, 1000)
		synctest.Wait()
		s := mustOpen(t, c, Range{0, tinyLayers - 1}, 2000)
		began := time.Now()
		if _, err := s.Step(t.Context(), Input{Tokens: make([]int32, 1000), Want: WantLast}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 1100*time.Millisecond {
			t.Errorf("1,000 rows of 1 ms took %v beside work in the background", d)
		}
		if d := <-done; d > 3*took {
			t.Errorf("the background took %v, by itself %v", d, took)
		}
	})
}
