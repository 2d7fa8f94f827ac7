package engines

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hecate/internal/chaos"
	"hecate/internal/control"
)

// heap is what is held, once everything that nobody holds is gone.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// atOnce runs n jobs, so many at a time.
func atOnce(n, parallel int, job func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range parallel {
		wg.Go(func() {
			for i := range next {
				job(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// pair is a house with two engines, one of which fails now and then.
func pair(t *testing.T, faults ...string) *house {
	h := newHouse(t, Config{})
	for i, id := range []string{"a", "b"} {
		u, url := upstream(t, chaos.Options{Pace: time.Duration(i) * 100 * time.Microsecond})
		h.engine(control.EngineRecord{ID: id, URL: url})
		if i == 0 && len(faults) > 0 {
			if err := u.SetFaults(faults); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h
}

// Streams, half of which their clients leave at random points: nothing of them
// stays behind.
func TestStreamsThatClientsLeave(t *testing.T) {
	h := pair(t)
	h.post("/v1/chat/completions", askStream)
	h.http.CloseIdleConnections()
	before, started := heap(), runtime.NumGoroutine()
	seeds := rand.New(rand.NewPCG(7, 7))
	points := make([]int, streams)
	for i := range points {
		points[i] = seeds.IntN(2000)
	}
	atOnce(streams, 32, func(i int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/chat/completions", strings.NewReader(askStream))
		resp, err := h.http.Do(req)
		if err != nil {
			t.Errorf("stream %d: %v", i, err)
			return
		}
		defer resp.Body.Close()
		if i%2 == 0 {
			_, _ = io.CopyN(io.Discard, resp.Body, int64(points[i]))
			return
		}
		if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(b), "[DONE]\n\n") {
			t.Errorf("stream %d: %v, %d bytes", i, err, len(b))
		}
	})
	h.http.CloseIdleConnections()
	h.until(func() bool { return h.room.idle() })
	h.until(func() bool { return runtime.NumGoroutine() <= started+8+2*idleHere(h) })
	if after := heap(); after > before+16<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
}

// idleHere is how many connections to engines may be kept, with two goroutines each
// at either end.
func idleHere(*house) int { return 2 * 2 * 64 }

// idle says that nothing runs and nobody waits.
func (r *Engines) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.by {
		if e.running != 0 {
			return false
		}
	}
	return len(r.mu.queues) == 0
}

// Many requests of all kinds, some of which fail: memory stays flat.
func TestSoak(t *testing.T) {
	h := pair(t, "500-once", "429-once", "none")
	ask5k := strings.Replace(ask, "Count!", strings.Repeat("count ", 5000/6), 1)
	kinds := []string{ask, askStream, ask5k}
	round := func(n int) {
		atOnce(n, 16, func(i int) {
			r := h.post("/v1/chat/completions", kinds[i%len(kinds)])
			if r.status != 200 || r.err != nil || !strings.Contains(r.body, "sixteen") {
				t.Errorf("request %d: %d %v %q", i, r.status, r.err, r.body)
			}
		})
	}
	round(max(200, requests/10))
	before := heap()
	round(requests)
	after := heap()
	t.Logf("%d requests: %d KiB before, %d KiB after", requests, before>>10, after>>10)
	if after > before+8<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
	if !h.room.idle() {
		t.Error("something is still counted as running")
	}
}

// Names of models and paths come from anywhere.
func TestOddNamesAndPaths(t *testing.T) {
	h := newHouse(t, Config{})
	h.engine(control.EngineRecord{ID: "a", URL: server(t, "org/model:7b@q4", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path != r.URL.EscapedPath() {
			t.Errorf("the engine was asked for %q", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})})
	if r := h.post("/v1/audio/speech", `{"model":"org\/model:7b@q4"}`); r.status != 200 {
		t.Errorf("a name with a slash: %d %s", r.status, r.body)
	}
	seeds := rand.New(rand.NewPCG(1, 2))
	letters := []rune("a/\\\"{}:,\u0000\u00e9\U0001d11e%2f.. \n")
	for range 300 {
		name := make([]rune, seeds.IntN(20))
		for i := range name {
			name[i] = letters[seeds.IntN(len(letters))]
		}
		if r := h.post("/v1/chat/completions", fmt.Sprintf(`{"model":%s}`, quoted(string(name)))); r.status != 503 {
			t.Errorf("model %q: %d %s", string(name), r.status, r.body)
		}
	}
}
