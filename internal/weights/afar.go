package weights

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// afarFor is how long a neighbour that could not be reached is not asked again:
// nodes need no way to each other, and each try costs a timeout.
const afarFor = time.Minute

// afar knows which neighbours could not be reached lately.
type afar struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// note takes what a neighbour failed with; only that nobody could be reached
// there counts.
func (a *afar) note(node string, err error, now time.Time) {
	var op *net.OpError
	if node == "" || !errors.As(err, &op) || op.Op != "dial" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil {
		a.since = map[string]time.Time{}
	}
	a.since[node] = now
}

// avoid adds them to those that are avoided for each piece.
func (a *afar) avoid(pieces []string, avoid map[string][]string, now time.Time) map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string][]string{}
	for _, p := range pieces {
		if names := slices.Clone(avoid[p]); len(names) > 0 {
			out[p] = names
		}
		for node, at := range a.since {
			if now.Sub(at) < afarFor && !slices.Contains(out[p], node) {
				out[p] = append(out[p], node)
			}
		}
	}
	return out
}
