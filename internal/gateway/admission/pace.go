package admission

import (
	"time"
)

// pace measures how fast one model's room is given back. By Little's law, cells
// that are taken divided by how long a cell stays taken is the cells that
// become free per second.
type pace struct {
	answers int   // admitted and not ended
	cells   int64 // they hold, on each stage
	// born is the sum over them of cells times seconds since epoch, so that
	// their mean age costs nothing to know.
	born  float64
	epoch time.Time

	// Moving sums, weight 0.8 per answer: cells times seconds, and cells.
	held, ended float64

	promised time.Time // the last time that a refused client was told to come
}

// kept is what an ended answer leaves of the moving sums.
const kept = 0.8

func (p *pace) since(t time.Time) float64 {
	if p.epoch.IsZero() {
		p.epoch = t
	}
	return t.Sub(p.epoch).Seconds()
}

// begin notes an answer that was admitted.
func (p *pace) begin(cells int, now time.Time) {
	p.answers++
	p.cells += int64(cells)
	p.born += float64(cells) * p.since(now)
}

// grow notes that an answer got more, and gives the time since when it has all of
// it, on average.
func (p *pace) grow(cells, more int, began, now time.Time) time.Time {
	held := float64(cells)*p.since(began) + float64(more)*p.since(now)
	p.cells += int64(more)
	p.born += float64(more) * p.since(now)
	return p.epoch.Add(time.Duration(held / float64(cells+more) * float64(time.Second)))
}

// end notes that an answer ended. spent is what it held, in cells times seconds,
// before it gave way: room that it got again was free for nobody else.
func (p *pace) end(cells int, spent float64, began, now time.Time) {
	p.cancel(cells, began)
	p.held = kept*p.held + spent + float64(cells)*now.Sub(began).Seconds()
	p.ended = kept*p.ended + float64(cells)
}

// cancel is end for an answer that never ran, or is not over: it says nothing of how
// long answers take.
func (p *pace) cancel(cells int, began time.Time) {
	p.answers--
	p.cells -= int64(cells)
	p.born -= float64(cells) * p.since(began)
	if p.answers == 0 {
		p.born = 0 // what rounding left of it
	}
}

// stay is how many seconds a cell stays taken: by the answers that ended, but
// no less than those that run tell; they are halfway on average. 0: unknown.
func (p *pace) stay(now time.Time) float64 {
	stay := 0.
	if p.ended > 0 {
		stay = p.held / p.ended
	}
	if p.cells > 0 {
		stay = max(stay, 2*(p.since(now)-p.born/float64(p.cells)))
	}
	return stay
}

// wait estimates when a request is served that has so many cells before it: those
// must become free, and half of its own on average, since it may find some.
func (p *pace) wait(ahead, own int, now time.Time) time.Duration {
	if p.cells == 0 {
		return 0
	}
	cells := float64(ahead) + float64(own)/2
	return time.Duration(p.stay(now) * cells / float64(p.cells) * float64(time.Second))
}

// promise says when a refused client may come: after a time, and after those who
// were told before, one request's worth of room apart, or they would all come
// at once to find room for one.
func (p *pace) promise(after time.Duration, own int, l Limits, now time.Time) time.Duration {
	at := now.Add(after)
	if p.promised.After(now) {
		apart := p.wait(own, 0, now)
		if next := p.promised.Add(apart); next.After(at) {
			at = next
		}
	}
	retry := min(max(at.Sub(now), l.LeastRetry), l.MostRetry)
	p.promised = now.Add(retry)
	return retry
}
