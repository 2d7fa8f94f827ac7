package answer

import (
	"context"
	"sync"
)

// boundary is the log of hidden states that crossed one layer boundary, rows
// base..end-1. A log over its budget forgets all it has (base = end) and counts
// on; a substitute behind it is then fed by a prefill from further up.
type boundary struct {
	layer int // the first layer behind the boundary
	width int

	mu   sync.Mutex
	base int
	end  int
	rows []float32 // (end-base) x width
	more chan struct{}

	purse *purse
}

func newBoundary(layer int, p *purse) *boundary {
	return &boundary{layer: layer, more: make(chan struct{}), purse: p}
}

// append adds rows that start at position; rows the log has already are skipped.
func (b *boundary) append(position int, rows []float32, width int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(rows) / width
	if skip := b.end - position; skip > 0 {
		rows, n = rows[min(skip, n)*width:], max(n-skip, 0)
	}
	if n == 0 {
		return
	}
	b.width = width
	b.end += n
	b.keepLocked(rows)
	close(b.more)
	b.more = make(chan struct{})
}

// keepLocked stores rows if the purse pays for them. The newest rows must stay
// for the stage behind in any case; they are dropped by forget.
func (b *boundary) keepLocked(rows []float32) {
	b.rows = append(b.rows, rows...)
	b.purse.take(4 * int64(len(rows)))
}

// forget drops rows before position when the purse is empty.
func (b *boundary) forget(position int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.purse.over() || position <= b.base {
		return
	}
	n := (min(position, b.end) - b.base) * b.width
	b.purse.give(4 * int64(n))
	b.rows = append([]float32(nil), b.rows[n:]...)
	b.base = min(position, b.end)
}

// reset empties the log and lets it start at position.
func (b *boundary) reset(position int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.purse.give(4 * int64(len(b.rows)))
	b.rows, b.base, b.end = nil, position, position
}

// span gives the positions the log has.
func (b *boundary) span() (base, end int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.base, b.end
}

// take waits until row position is there and gives up to limit rows from it, and
// how many floats a row has.
func (b *boundary) take(ctx context.Context, position, limit int) (rows []float32, width int, err error) {
	for {
		b.mu.Lock()
		if position < b.base {
			b.mu.Unlock()
			return nil, 0, errForgotten
		}
		if position < b.end {
			n := min(limit, b.end-position)
			from := (position - b.base) * b.width
			rows, width = b.rows[from:from+n*b.width:from+n*b.width], b.width
			b.mu.Unlock()
			return rows, width, nil
		}
		more := b.more
		b.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}
