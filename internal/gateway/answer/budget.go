package answer

import "sync/atomic"

// Budget bounds the boundary states of all answers together, in bytes.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget allows limit bytes in all.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Used is what is kept now, in bytes.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// purse is one answer's share of the budget. Invariant: used <= limit, but for
// the rows that the next stage has not read yet.
type purse struct {
	limit int64
	used  atomic.Int64
	all   *Budget
}

func (p *purse) take(n int64) {
	p.used.Add(n)
	if p.all != nil {
		p.all.used.Add(n)
	}
}

func (p *purse) give(n int64) { p.take(-n) }

func (p *purse) over() bool {
	return p.used.Load() > p.limit || p.all != nil && p.all.used.Load() > p.all.limit
}

// empty gives everything back at the end of an answer.
func (p *purse) empty() { p.give(p.used.Load()) }
