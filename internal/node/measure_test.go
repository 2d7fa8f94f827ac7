//go:build !noengine

package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"hecate/internal/engine"
)

func TestStepsHideNoise(t *testing.T) {
	for _, c := range []struct{ v, least, want float64 }{
		{1, 0, 1}, {1.1, 0, 1}, {0.9, 0, 1}, {1.3, 0, 1.414}, {2.1, 0, 2}, {0.4, 0, 0.354}, {1.9, 2, 0}, {9, 2, 8}, {0, 0, 0},
	} {
		if got := stepped(c.v, c.least); got != c.want {
			t.Errorf("%v (nothing up to %v): %v, want %v", c.v, c.least, got, c.want)
		}
	}
}

func TestTheEngineIsMeasured(t *testing.T) {
	rows, err := benchmark(t.Context(), t.TempDir(), 1)
	if err != nil || rows <= 0 {
		t.Fatalf("%v rows per second, %v", rows, err)
	}
	t.Logf("%.0f rows per second with %s", rows, engine.KernelName())
}

// What was measured once stays, until what was measured is another.
func TestAProfileIsKept(t *testing.T) {
	dir := t.TempDir()
	write := func(p profile) {
		data, err := json.Marshal(p)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, profileFile), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n := &Node{cfg: Config{Data: dir, Threads: 1}, log: slog.New(slog.DiscardHandler)}
	kept := profile{Kernels: engine.KernelName(), Threads: 1, Score: 7, LatencyMS: 4}
	write(kept)
	if got := n.measure(context.Background()); got != kept {
		t.Errorf("%+v, want what was kept, %+v", got, kept)
	}
	n.cfg.Score = 3
	if got := n.measure(context.Background()); got.Score != 3 || got.LatencyMS != 4 {
		t.Errorf("with a given score: %+v", got)
	}
}
