package node

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"hecate/internal/demomodel"
	"hecate/internal/engine"
)

// A profile is what a node measured of itself at its first start. It is kept:
// numbers that differ a little at each start would move layers for nothing.
type profile struct {
	Kernels   string  `json:"kernels"` // what was measured
	Threads   int     `json:"threads"`
	Score     float64 `json:"score"`      // relative speed; 1 is referenceRows
	LatencyMS float64 `json:"latency_ms"` // to the gateway and back
}

const (
	profileFile = "profile.json"
	// measureTime is how long the engine is measured.
	measureTime = 300 * time.Millisecond
	// referenceRows are the rows per second through the demo model that count as
	// a score of 1: one thread of a common server, with AVX2 kernels.
	referenceRows = 15000
	// nearMS is up to how many milliseconds a gateway counts as next door.
	nearMS = 2
)

// measure gives the node's profile, from the data folder when nothing changed.
func (n *Node) measure(ctx context.Context) profile {
	path := filepath.Join(n.cfg.Data, profileFile)
	p, known := readProfile(path)
	if !known || p.Kernels != engine.KernelName() || p.Threads != n.cfg.Threads {
		p = profile{Kernels: engine.KernelName(), Threads: n.cfg.Threads, LatencyMS: stepped(n.roundTrip(ctx), nearMS)}
		rows, err := benchmark(ctx, n.cfg.Data, n.cfg.Threads)
		if err != nil {
			n.log.Warn("the engine was not measured; its threads are its score", "because", err)
			rows = referenceRows * float64(max(1, n.cfg.Threads))
		}
		p.Score = stepped(rows/referenceRows, 0)
		n.log.Info("measured", "rows_per_second", math.Round(rows), "score", p.Score, "round_trip_ms", p.LatencyMS, "kernels", p.Kernels, "threads", p.Threads)
		if data, err := json.Marshal(p); err == nil {
			if err := renameio.WriteFile(path, data, 0o600); err != nil {
				n.log.Warn("the profile was not kept; it is measured again at the next start", "because", err)
			}
		}
	}
	if n.cfg.Score > 0 {
		p.Score = n.cfg.Score
	}
	return p
}

func readProfile(path string) (p profile, ok bool) {
	data, err := os.ReadFile(path)
	ok = err == nil && json.Unmarshal(data, &p) == nil && p.Score > 0 && p.LatencyMS >= 0
	return p, ok
}

// stepped rounds to a power of the square root of two, so that noise makes no
// difference between machines that are alike; least and less is 0.
func stepped(v, least float64) float64 {
	if v <= least || math.IsInf(v, 0) {
		return 0
	}
	step := math.Exp2(math.Round(2*math.Log2(v)) / 2)
	return math.Round(step*1000) / 1000
}

// benchmark runs rows through the demo model for a moment: rows per second.
func benchmark(ctx context.Context, dir string, threads int) (float64, error) {
	e, err := engine.New(engine.Options{Threads: threads, MemoryBudget: WorkMemory, ScratchDir: dir})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	all := engine.Range{First: 0, Last: demomodel.Layers - 1}
	if err := e.LoadLayers(ctx, engine.LoadRequest{Model: demomodel.Name, Path: demomodel.Name, Weights: resident{bytes.NewReader(demomodel.GGUF())}, Layers: all, Cells: 2 * measureRows}, nil); err != nil {
		return 0, err
	}
	s, err := e.Open(ctx, engine.SessionOptions{Model: demomodel.Name, Layers: all, Cells: measureRows})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return rate(ctx, s)
}

// resident are weights that need no file.
type resident struct{ *bytes.Reader }

func (resident) Close() error { return nil }

// measureRows are computed in one step: as in a prompt.
const measureRows = 64

// rate is the best of several steps: others may use the machine meanwhile.
func rate(ctx context.Context, s engine.Session) (float64, error) {
	best := math.Inf(1)
	tokens := slices.Repeat([]int32{1}, measureRows)
	for began := time.Now(); time.Since(began) < measureTime || math.IsInf(best, 1); {
		from := time.Now()
		if _, err := s.Step(ctx, engine.Input{Tokens: tokens, Want: engine.WantNone}); err != nil {
			return 0, err
		}
		best = min(best, time.Since(from).Seconds())
		if err := s.Truncate(0); err != nil {
			return 0, err
		}
	}
	return measureRows / max(best, 1e-9), nil
}

// roundTrips are tried; the fastest counts.
const roundTrips = 5

// roundTrip is how long a connection to a gateway takes, in milliseconds; 0
// when there is none.
func (n *Node) roundTrip(ctx context.Context) float64 {
	best := math.Inf(1)
	dialer := &net.Dialer{Timeout: time.Second}
	for _, gateway := range n.member.Gateways() {
		for range roundTrips {
			from := time.Now()
			conn, err := dialer.DialContext(ctx, "tcp", gateway)
			if err != nil {
				break
			}
			best = min(best, float64(time.Since(from).Microseconds())/1000)
			_ = conn.Close()
		}
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}
