//go:build long

package pool

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// soakTime is how long real time runs.
const soakTime = 10 * time.Minute

// TestTenMinutesOfChurn is the hour of churn on real sockets with TLS: nodes stop
// and start, maps change, sessions run. Goroutines, descriptors and heap return
// to where they began.
func TestTenMinutesOfChurn(t *testing.T) {
	ca := newAuthority(t)
	names := []string{"n1", "n2", "n3"}
	m := Map{Groups: map[string]Group{}}
	starts := map[string]func() (stop func()){}
	for _, name := range names {
		l := listenLoopback(t)
		addr := l.Addr().String()
		_ = l.Close()
		m.Groups[name] = GroupOf(addr)
		cfg := ServerConfig{NodeID: name, SwarmID: "swarm", TLS: ca.tls(t, name), DrainTime: time.Second}
		starts[name] = func() func() { return serveOn(t, addr, cfg) }
	}
	p, err := New(Config{NodeID: "gateway", SwarmID: "swarm", TLS: ca.tls(t, "gateway")})
	if err != nil {
		t.Fatal(err)
	}
	before := footprintNow()
	soak(t, p, m, names, starts)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	time.Sleep(2 * time.Second) // descriptors of closed sockets leave the poller
	after := footprintNow()
	t.Logf("before %+v, after %+v; closed %v", before, after, p.Snapshot().SessionsClosed)
	if after.goroutines > before.goroutines || after.files > before.files+2 || after.heap > before.heap+8<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func soak(t *testing.T, p *Pool, m Map, names []string, starts map[string]func() func()) {
	stops := map[string]func(){}
	for _, name := range names {
		stops[name] = starts[name]()
	}
	ctx, cancel := context.WithTimeout(context.Background(), soakTime)
	defer cancel()
	var wg sync.WaitGroup
	var done, failed [4]int
	for i := range done {
		wg.Go(func() { user(ctx, p, rand.New(rand.NewPCG(uint64(i), 17)), names, &done[i], &failed[i]) })
	}
	rng := rand.New(rand.NewPCG(1, 19))
	for m.Revision = 1; ctx.Err() == nil; m.Revision++ {
		if err := p.Apply(m); err != nil {
			t.Error(err)
		}
		name := names[rng.IntN(len(names))]
		stops[name]()
		_ = sleepOr(ctx, time.Duration(rng.IntN(3000))*time.Millisecond)
		stops[name] = starts[name]()
		if rng.IntN(3) == 0 {
			p.Rotate()
		}
		_ = sleepOr(ctx, time.Duration(2+rng.IntN(8))*time.Second)
	}
	wg.Wait()
	for _, stop := range stops {
		stop()
	}
	t.Logf("conversations %v, ended early %v", done, failed)
}

func serveOn(t *testing.T, addr string, cfg ServerConfig) (stop func()) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Errorf("listen again: %v", err)
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, cfg, echo) }()
	return func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

type footprint struct {
	goroutines, files int
	heap              uint64
}

func footprintNow() footprint {
	runtime.GC()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	files, _ := os.ReadDir("/proc/self/fd")
	return footprint{runtime.NumGoroutine() - 1, len(files), mem.HeapAlloc}
}
