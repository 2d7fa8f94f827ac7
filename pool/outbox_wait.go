package pool

import (
	"context"
	"slices"
	"time"
)

// send queues the parcel, waiting in line for room at most so long. On error
// nothing of it was queued and its memory is given back.
func (o *outbox) send(ctx context.Context, p *parcel, wait time.Duration) (offered, error) {
	got := o.offer(p)
	if got == noRoom {
		return o.wait(ctx, p, wait)
	}
	if got == refused {
		o.drop(p)
	}
	return got, nil
}

// wait is the slow path of send.
func (o *outbox) wait(ctx context.Context, waiting *parcel, wait time.Duration) (offered, error) {
	p := *waiting // the fast path's parcel stays on its stack
	p.settled = make(chan bool, 1)
	o.mu.Lock()
	o.mu.waiting = append(o.mu.waiting, &p)
	o.admitLocked()
	o.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	got := noRoom
	select {
	case queued := <-p.settled:
		return o.settled(&p, queued), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	if o.leave(&p) {
		o.drop(&p)
		return got, err
	}
	return o.settled(&p, <-p.settled), nil
}

func (o *outbox) settled(p *parcel, queued bool) offered {
	if queued {
		return taken
	}
	o.drop(p)
	return refused
}

// leave takes the parcel out of the line; false: it was settled already.
func (o *outbox) leave(p *parcel) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.mu.waiting, p)
	if i < 0 {
		return false
	}
	o.mu.waiting = slices.Delete(o.mu.waiting, i, i+1)
	o.admitLocked() // whoever stood behind may fit
	return true
}

// admitLocked queues those in line that fit, in order. One that only exceeds
// its own session's share does not hold up the others.
func (o *outbox) admitLocked() {
	if len(o.mu.waiting) == 0 {
		return
	}
	kept := o.mu.waiting[:0]
	blocked := false
	for _, p := range o.mu.waiting {
		got := o.fitsLocked(p)
		switch {
		case got == refused:
			p.settled <- false
		case got == taken && !blocked:
			o.countLocked(p.frames, p.bytes)
			o.queueLocked(p)
			p.settled <- true
		default:
			blocked = blocked || !o.overShareLocked(p)
			kept = append(kept, p)
		}
	}
	clear(o.mu.waiting[len(kept):])
	o.mu.waiting = kept
}

// overShareLocked says that the queue has room and only the session's own
// share stands in the way.
func (o *outbox) overShareLocked(p *parcel) bool {
	return o.mu.frames+p.frames <= o.mu.maxFrames && o.mu.bytes+p.bytes <= o.mu.maxBytes
}
