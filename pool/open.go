package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hecate/pool/wire"
)

// openFailure is why an Open failed. Each has a counter.
type openFailure int

const (
	openClosed openFailure = iota
	openUnknownGroup
	openNoWriter
	openTooLarge
	openCancelled
	openDirectFailed
	openNoSlots
	openFailureKinds
)

var openFailureNames = [openFailureKinds]string{
	openClosed: "pool_closed", openUnknownGroup: "unknown_group", openNoWriter: "no_writer", openTooLarge: "too_large",
	openCancelled: "cancelled", openDirectFailed: "direct_failed", openNoSlots: "no_slots",
}

func (f openFailure) String() string { return openFailureNames[f] }

func (p *Pool) openFailed(kind openFailure, err error) (Session, error) {
	p.openFailures[kind].Add(1)
	return nil, err
}

// Open binds a new session to a writer of the group. When no writer can take it,
// an ordinary admission waits up to no_writer_wait (a rescue not at all), while
// a recovery is asked for. Errors: ErrUnknownGroup, *NoWriterError,
// *TooLargeError, ErrPoolClosed, or the context's own, wrapped.
func (p *Pool) Open(ctx context.Context, group string, opt OpenOptions) (Session, error) {
	if p.closed.Load() {
		return p.openFailed(openClosed, ErrPoolClosed)
	}
	g := (*p.groups.Load())[group]
	if g == nil {
		return p.openFailed(openUnknownGroup, fmt.Errorf("open on %q: %w", group, ErrUnknownGroup))
	}
	if p.settings().Fallback == FallbackDirect {
		return p.openDirect(ctx, g, opt)
	}
	s, err := p.tryOpen(g, opt)
	if s == nil && err == nil {
		if opt.Rescue && !opt.Reconnect {
			return p.openFailed(openNoWriter, &NoWriterError{Group: group, Reason: p.whyNoWriter(g)})
		}
		return p.waitOpen(ctx, g, opt)
	}
	return p.opened(s, err)
}

// opened turns the result of tryOpen into that of Open.
func (p *Pool) opened(s *session, err error) (Session, error) {
	if err == nil {
		return s, nil
	}
	var large *TooLargeError
	if errors.As(err, &large) {
		return p.openFailed(openTooLarge, err)
	}
	return p.openFailed(openNoSlots, err)
}

// waitOpen is the bounded wait of a new admission: subscribe, check, wait.
func (p *Pool) waitOpen(ctx context.Context, g *group, opt OpenOptions) (Session, error) {
	limit := p.settings().NoWriterWait.D()
	if opt.Reconnect {
		limit = max(p.settings().LostAfter.D(), time.Duration(g.patience.Load()))
	}
	start := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		changed := g.changed.heard()
		s, err := p.tryOpen(g, opt)
		if s != nil || err != nil {
			return p.opened(s, err)
		}
		switch {
		case p.closed.Load():
			return p.openFailed(openClosed, ErrPoolClosed)
		case !g.wanted.Load():
			return p.openFailed(openUnknownGroup, fmt.Errorf("open on %q: %w", g.name, ErrUnknownGroup))
		case opt.Reconnect && g.look().lost:
			return p.openFailed(openNoWriter, &NoWriterError{Group: g.name, Reason: "every connection is lost, and none can be made"})
		case !opt.Reconnect && g.mayRecover(time.Now()):
			p.recover(g)
		}
		select {
		case <-changed:
		case <-timer.C:
			return p.openFailed(openNoWriter, &NoWriterError{Group: g.name, Reason: p.whyNoWriter(g), Waited: time.Since(start)})
		case <-ctx.Done():
			return p.openFailed(openCancelled, fmt.Errorf("open on %q: %w", g.name, context.Cause(ctx)))
		}
	}
}

// tryOpen goes through the candidates, best first: reserve room, bind, send. A
// session that was bound to a writer which died before the OPEN was queued moves
// to the next. Neither a session nor an error means that nobody took it.
func (p *Pool) tryOpen(g *group, opt OpenOptions) (*session, error) {
	pick := picker{all: g.look().candidates, settings: p.settings(), now: time.Now(), prefer: opt.Endpoint, random: p.random}
	var s *session
	for {
		c, ok := pick.next()
		if !ok {
			p.forget(s)
			return nil, nil
		}
		if len(opt.Payload) > c.w.link.maxMessage {
			p.forget(s)
			return nil, &TooLargeError{Bytes: len(opt.Payload), Limit: c.w.link.maxMessage}
		}
		frames := 1
		if opt.Payload != nil {
			frames += wire.Chunks(len(opt.Payload))
		}
		if c.w.link.out.reserve(frames, len(opt.Payload)) != taken {
			continue
		}
		var err error
		if s, err = p.bindTo(c.w, s); err != nil {
			c.w.link.out.release(frames, len(opt.Payload))
			if errors.Is(err, errNoSlots) {
				return nil, err
			}
			continue
		}
		if p.launch(s, opt.Payload) {
			if g.lean.Load() {
				p.poke() // the floor is lowered, and here is demand
			}
			return s, nil
		}
	}
}

// bindTo binds s to the writer, making it first if there is none, or if the one
// there is was ended by the loss of its last writer. After an error other than
// errNoSlots the session, if any, can be bound elsewhere.
func (p *Pool) bindTo(w *writer, s *session) (*session, error) {
	if s != nil {
		s.settle(w.link)
		if err := p.reg.bind(s, w); !errors.Is(err, errUnknownSession) {
			return s, err
		}
	}
	s, err := p.reg.register(func(id uint64) *session { return newSession(id, p, w.link) })
	if err != nil {
		return nil, err
	}
	return s, p.reg.bind(s, w)
}

// launch queues OPEN and the first message, for which room is reserved. False:
// the connection has just ended, and nothing was sent.
func (p *Pool) launch(s *session, payload []byte) bool {
	out := s.on().out
	parcel := parcel{lane: &s.lane}
	open := p.st.get(0)
	open.open = true
	parcel.append(open)
	if payload != nil {
		s.mu.Lock()
		s.mu.out.spend(len(payload))
		s.mu.Unlock()
		first := out.pack(&s.lane, payload)
		open.next, parcel.last = first.first, first.last
		parcel.frames, parcel.bytes = parcel.frames+first.frames, first.bytes
	}
	if !out.commit(&parcel) {
		out.drop(&parcel)
		return false
	}
	p.counts.opened.Add(1)
	return true
}

// forget drops a session that was never opened.
func (p *Pool) forget(s *session) {
	if s != nil {
		p.reg.unregister(s)
	}
}

// ended implements sessionOwner.
func (p *Pool) ended(s *session, _ endReason) {
	p.reg.unregister(s)
	p.idle.ring()
	select {
	case <-s.on().draining:
		p.poke() // the writer may be empty now
	default:
	}
}

// recover asks the governor to look at a group at once, whatever pauses its
// endpoints are in.
func (p *Pool) recover(g *group) {
	p.inv.Lock()
	for key, pr := range p.inv.pairs {
		if key.group != g.name {
			continue
		}
		for _, c := range pr.circuits {
			c.retryAt = time.Time{}
		}
	}
	p.inv.Unlock()
	p.poke()
}
