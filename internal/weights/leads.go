package weights

import (
	"slices"
	"sync"
	"time"

	"hecate/internal/control"
)

// leads are answers that were not followed yet: which piece to take from whom. The
// zero value is ready.
type leads struct {
	mu   sync.Mutex
	list []lead
}

type lead struct {
	Assignment
	hash    string // of the model's content
	gateway string // that said so
	until   time.Time
}

// keep adds what a gateway said.
func (l *leads) keep(hash, gateway string, more []Assignment, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range more[:min(len(more), mostLeads)] {
		l.list = append(l.list, lead{a, hash, gateway, now.Add(leadTime)})
	}
}

// take gives the first lead to one of the pieces, and forgets it.
func (l *leads) take(hash string, pieces []control.Piece, now time.Time) (lead, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(x lead) bool { return now.After(x.until) })
	i := slices.IndexFunc(l.list, func(x lead) bool {
		return x.hash == hash && slices.ContainsFunc(pieces, func(p control.Piece) bool { return p.Name == x.Piece })
	})
	if i < 0 {
		return lead{}, false
	}
	found := l.list[i]
	l.list = slices.Delete(l.list, i, i+1)
	return found, true
}

// drop forgets the leads to one sender, which has just failed.
func (l *leads) drop(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(x lead) bool { return x.Node == node })
}
