package engine

import (
	"context"
	"math"
	"sync"
	"time"
)

// computing is held while the kernels work. One CPU backend with one work
// memory exists per process, so this is the one thing that engines of the same
// process share.
var computing sync.Mutex

// maxLogitRows bounds the rows of logits in one pass, and so their memory.
const maxLogitRows = 64

// job is something other than a pass that the goroutine does, such as loading.
type job struct {
	do   func() error
	err  error
	done chan struct{}
}

// loop computes until the engine is closed. Jobs and passes take turns.
func (c *core) loop() {
	defer close(c.stopped)
	var p pass
	jobsTurn := false
	for {
		j, g, wait, closing := c.next(jobsTurn)
		switch {
		case closing:
			return
		case j != nil:
			j.run()
			jobsTurn = false
		case g != nil:
			c.compute(g, &p)
			jobsTurn = true
		default:
			c.sleep(wait)
		}
	}
}

// next says what to do: a job, a pass of a group, or wait.
func (c *core) next(jobsTurn bool) (j *job, g *group, wait time.Duration, closing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		c.shutdownLocked()
		return nil, nil, 0, true
	}
	if len(c.jobs) > 0 && jobsTurn {
		return c.popJobLocked(), nil, 0, false
	}
	if g, wait = c.groups.pick(time.Now()); g != nil {
		return nil, g, 0, false
	}
	if len(c.jobs) > 0 {
		return c.popJobLocked(), nil, 0, false
	}
	return nil, nil, wait, false
}

func (c *core) popJobLocked() *job {
	j := c.jobs[0]
	c.jobs = c.jobs[1:]
	return j
}

// sleep waits for a poke, or for a time if that is not negative.
func (c *core) sleep(wait time.Duration) {
	if wait < 0 {
		<-c.wake
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-c.wake:
	case <-t.C:
	}
}

func (j *job) run() {
	computing.Lock()
	defer computing.Unlock()
	j.err = guard("load", j.do)
	close(j.done)
}

// do runs f on the computing goroutine and waits for it, unless ctx has ended
// already.
func (c *core) do(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{do: f, done: make(chan struct{})}
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return ErrClosed
	}
	c.jobs = append(c.jobs, j)
	c.mu.Unlock()
	c.poke()
	<-j.done // soon: a job waits for one pass and the jobs before it
	return j.err
}

// compute runs one pass of a group.
func (c *core) compute(g *group, p *pass) {
	c.mu.Lock()
	now := time.Now()
	picks := c.planLocked(g, p, now)
	c.mu.Unlock()
	if len(picks) == 0 {
		return
	}
	p.gatherHidden(picks)

	computing.Lock()
	begun := time.Now()
	err := guard("compute", func() error { return c.k.run(p) })
	end := time.Now()
	computing.Unlock()

	bad := p.notFinite(picks)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commitLocked(g, p, picks, bad, err, end.Sub(begun), end)
}

// planLocked chooses rows and sets the pass up, but for hidden states.
func (c *core) planLocked(g *group, p *pass, now time.Time) []pick {
	info := g.model.spec.Info
	lim := limits{rows: c.opts.MaxBatch, segs: c.k.segments(g.layers.Len())}
	lim.long = g.timing.chunk(c.opts.MixTarget, c.groups.streaming(now), lim.rows)
	if g.layers.Last == info.Layers-1 && !g.states {
		lim.outs = maxLogitRows
	}
	due := g.due()
	if due[0].in.Background && c.groups.awaited(now) {
		lim.long = g.timing.background(c.opts.MixTarget, lim.rows)
	}
	picks := plan(due, lim)
	p.reset(g)
	for _, k := range picks {
		p.add(k)
		k.st.s.running = true
		if k.st.begun.IsZero() {
			k.st.begun = now
		}
	}
	return picks
}

// reset empties a pass for a group, keeping its memory.
func (p *pass) reset(g *group) {
	m := g.model
	p.spec, p.layers, p.states = m.spec, g.layers, g.states
	p.units, p.segs = p.units[:0], p.segs[:0]
	p.positions, p.tokens, p.wanted = p.positions[:0], p.tokens[:0], p.wanted[:0]
	p.hidden, p.out, p.sums = nil, nil, nil
	p.embed, p.head = nil, nil
	for i := g.layers.First; i <= g.layers.Last; i++ {
		p.units = append(p.units, m.layers[i].unit)
	}
	if g.layers.First == 0 {
		p.embed = m.embed
	}
	if g.layers.Last == m.spec.Info.Layers-1 {
		p.head = m.head
	}
}

// add appends the next n rows of a step.
func (p *pass) add(k pick) {
	st, row := k.st, p.rows()
	p.segs = append(p.segs, segment{row: row, n: k.n, start: st.s.held, cells: st.s.starts})
	for i := range k.n {
		p.positions = append(p.positions, int32(st.s.held+i))
	}
	if p.embed != nil {
		p.tokens = append(p.tokens, st.in.Tokens[st.done:st.done+k.n]...)
	}
	for i := k.n - st.outs(k.n); i < k.n; i++ {
		p.wanted = append(p.wanted, int32(row+i))
	}
}

// gatherHidden lays the rows' hidden states side by side. A single input is
// used where it is.
func (p *pass) gatherHidden(picks []pick) {
	if p.embed != nil {
		return
	}
	w := p.spec.Info.Width
	rows := func(k pick) []float32 { return k.st.in.Hidden[k.st.done*w : (k.st.done+k.n)*w] }
	if len(picks) == 1 {
		p.hidden = rows(picks[0])
		return
	}
	p.staging = p.staging[:0]
	for _, k := range picks {
		p.staging = append(p.staging, rows(k)...)
	}
	p.hidden = p.staging
}

// notFinite says for each pick whether a value returned for it is NaN or
// infinite.
func (p *pass) notFinite(picks []pick) []bool {
	bad := make([]bool, len(picks))
	w, at := p.outWidth(), 0
	for i, k := range picks {
		n := k.st.outs(k.n)
		if (at+n)*w > len(p.out) {
			break // the pass failed
		}
		bad[i] = !finite(p.out[at*w:(at+n)*w]) || p.sums != nil && !finite(p.sums[at:at+n])
		at += n
	}
	return bad
}

func finite(v []float32) bool {
	const exponent = 0x7f800000
	for _, x := range v {
		if math.Float32bits(x)&exponent == exponent {
			return false
		}
	}
	return true
}

// commitLocked hands a pass's results to its sessions.
func (c *core) commitLocked(g *group, p *pass, picks []pick, bad []bool, err error, took time.Duration, end time.Time) {
	waiting, streams, awaited := len(g.queue)-len(picks), 0, false
	at, w := 0, p.outWidth()
	for i, k := range picks {
		st, s := k.st, k.st.s
		s.running = false
		outs := st.outs(k.n) * w
		if st.rows == 1 && !st.in.Background {
			streams++
		}
		awaited = awaited || !st.in.Background
		switch {
		case err != nil:
			c.finishLocked(st, err)
		case bad[i]:
			s.failed = &NotFiniteError{s.model.name, s.layers, s.held}
			c.finishLocked(st, s.failed)
		default:
			st.take(p.out[at:at+outs:at+outs], k.n, p.rows(), took)
			c.advanceLocked(st)
		}
		at += outs
		if s.closed {
			c.releaseLocked(s)
		}
	}
	if err == nil {
		g.timing.record(p.rows(), len(picks), streams, took, end)
		if awaited {
			g.timing.lastAwaited = end
		} else {
			g.timing.behind = average(g.timing.behind, took/time.Duration(p.rows()))
		}
		g.gathering.ended(end, len(picks), waiting)
		c.stats.Passes++
		c.stats.Rows += uint64(p.rows())
		c.stats.Computed += took
	}
}

// take adds n computed rows and the values returned for them.
func (st *step) take(values []float32, n, batch int, took time.Duration) {
	switch {
	case st.values == nil && st.left() == n:
		st.values = values
	case st.values == nil && len(values) > 0:
		st.values = append(make([]float32, 0, len(values)/n*st.rows), values...)
	default:
		st.values = append(st.values, values...)
	}
	st.done += n
	st.s.held += n
	st.out.Compute += took
	st.out.Batch = batch
}

// advanceLocked finishes a step, or lets it wait for its next turn.
func (c *core) advanceLocked(st *step) {
	switch {
	case st.dropped:
		c.finishLocked(st, st.err)
	case st.left() == 0:
		c.finishLocked(st, nil)
	default:
		st.s.group.rotate(st)
	}
}

// shutdownLocked ends all that waits and frees what is loaded.
func (c *core) shutdownLocked() {
	for _, j := range c.jobs {
		j.err = ErrClosed
		close(j.done)
	}
	c.jobs = nil
	for s := range c.sessions {
		if s.step != nil {
			c.finishLocked(s.step, ErrClosed)
		}
		s.closed = true
		c.releaseLocked(s)
	}
	computing.Lock()
	defer computing.Unlock()
	for _, m := range c.models {
		m.free()
	}
	clear(c.models)
	c.k.close()
	c.mem = Memory{Budget: c.mem.Budget}
}
