package pool

import (
	"context"
	"fmt"
)

// Close ends the pool under one deadline: admission stops at once, sessions may
// end by themselves until ctx does, the rest is closed with CodeDraining, and
// every connection and goroutine is gone when Close returns. A ctx without a
// deadline gives running sessions no time. The error says how many sessions
// were cut off, nil if none. Further calls wait for the first.
func (p *Pool) Close(ctx context.Context) error {
	first := p.closed.CompareAndSwap(false, true)
	if !first {
		p.wg.Wait()
		return nil
	}
	for _, g := range *p.groups.Load() {
		g.changed.ring() // whoever waits for a writer must not wait any longer
	}
	p.stopGrowing()
	cut := 0
	if _, bounded := ctx.Deadline(); bounded {
		p.awaitSessions(ctx)
	}
	cut = p.endSessions()
	p.release()
	p.cancel()
	p.wg.Wait()
	if cut > 0 {
		return fmt.Errorf("pool close: %d sessions were cut off", cut)
	}
	return nil
}

// stopGrowing lets no new writer, connect or direct session join.
func (p *Pool) stopGrowing() {
	p.inv.Lock()
	p.inv.ending = true
	for r := range p.inv.reverse {
		r.stop()
	}
	p.inv.Unlock()
	p.co.end()
	p.direct.mu.Lock()
	p.direct.closing = true
	p.direct.mu.Unlock()
}

// awaitSessions waits until no session is left, or ctx ends.
func (p *Pool) awaitSessions(ctx context.Context) {
	for {
		changed := p.idle.heard()
		if p.reg.open.Load() == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// endSessions closes every session that is left.
func (p *Pool) endSessions() int {
	p.inv.Lock()
	writers := p.sortedLocked()
	p.inv.Unlock()
	var left []*session
	for _, w := range writers {
		p.reg.refuse(w)
		left = append(left, p.reg.sessionsOf(w)...)
	}
	for _, c := range p.direct.list() {
		left = append(left, c.session)
	}
	cut := 0
	for _, s := range left {
		err := &CloseError{Code: CodeDraining, Detail: "the pool closes"}
		if s.closeFor(err, endShutdown) {
			cut++
		}
	}
	return cut
}

// release ends every connection: what is queued is flushed within closeLinger.
func (p *Pool) release() {
	p.inv.Lock()
	writers := p.sortedLocked()
	p.inv.Unlock()
	links := make([]*link, 0, len(writers))
	for _, w := range writers {
		links = append(links, w.link)
	}
	for _, c := range p.direct.list() {
		links = append(links, c.link)
	}
	for _, l := range links {
		l.retire()
	}
	linger, cancel := context.WithTimeout(context.Background(), closeLinger)
	defer cancel()
	for _, l := range links {
		select {
		case <-l.gone:
		case <-linger.Done():
			l.fail(linkFault{why: lossShutdown, detail: "did not drain in time"})
			<-l.gone
		}
	}
}
