package pool

import "time"

// candidate is a writer as the hot path sees it: an entry of an immutable list
// that the pool publishes.
type candidate struct {
	w       *writer
	contour contour
	stale   bool
}

// The score of a writer for a new session; the lowest wins. A class of contour
// outweighs any delay, a stale generation or a degraded path most of it.
const (
	costWarm     = 200
	costDraining = 600
	costStale    = 300
	costDegraded = 250
	costIdleRank = 100
	costFill     = 4   // per percent of the queue
	costMaxTrip  = 400 // per millisecond of round trip, at most
)

// Idle ranks: the longer a connection was idle, the likelier the peer is about
// to close it.
const (
	idleRank1 = 45 * time.Second
	idleRank2 = 55 * time.Second
)

func idleRank(idle time.Duration) int {
	switch {
	case idle < idleRank1:
		return 0
	case idle < idleRank2:
		return 1
	}
	return 2
}

// scoreInput is what a score depends on.
type scoreInput struct {
	contour   contour
	stale     bool
	degraded  bool
	idle      time.Duration
	fill      int // percent
	roundTrip time.Duration
}

func (in scoreInput) score() int {
	score := [...]int{contourActive: 0, contourWarm: costWarm, contourDraining: costDraining}[in.contour]
	if in.stale {
		score += costStale
	}
	if in.degraded {
		score += costDegraded
	}
	score += costIdleRank * idleRank(in.idle)
	score += costFill * in.fill
	return score + int(min(in.roundTrip.Milliseconds(), costMaxTrip))
}

func (c candidate) score(now time.Time, s *Settings) int {
	in := scoreInput{
		contour: c.contour, stale: c.stale, degraded: c.w.link.degraded.Load(),
		fill: c.w.link.out.fill(s), roundTrip: time.Duration(c.w.link.rtt.Load()),
	}
	if since := c.w.idleSince.Load(); since != 0 {
		in.idle = time.Duration(now.UnixNano() - since)
	}
	return in.score()
}

// picker chooses among a group's candidates for one bind, one after the other
// until one takes the session. It allocates nothing up to maxPicks candidates.
type picker struct {
	all      []candidate
	settings *Settings
	now      time.Time
	prefer   string        // endpoint that comes first
	random   func() uint64 // for p2c
	tried    [maxPicks / 64]uint64
}

// maxPicks bounds the candidates that one bind looks at.
const maxPicks = 256

// next returns the best untried candidate. Warm ones come only when no active
// one is left.
func (p *picker) next() (candidate, bool) {
	for _, wanted := range [...]func(candidate) bool{
		func(c candidate) bool { return p.prefer != "" && c.w.endpoint.Addr == p.prefer },
		func(c candidate) bool { return c.contour == contourActive },
		func(candidate) bool { return true },
	} {
		if i, ok := p.best(wanted); ok {
			p.tried[i/64] |= 1 << (i % 64)
			return p.all[i], true
		}
	}
	return candidate{}, false
}

// best is the lowest score among the untried that are wanted: of all, or of a
// random sample. Ties go to the one with fewer sessions.
func (p *picker) best(wanted func(candidate) bool) (int, bool) {
	var pool [maxPicks]uint8
	n := 0
	for i := range min(len(p.all), maxPicks) {
		if p.tried[i/64]&(1<<(i%64)) == 0 && wanted(p.all[i]) {
			pool[n] = uint8(i)
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	look := n
	if p.settings.Pick == PickP2C && n > p.settings.PickSample {
		look = p.settings.PickSample
		for i := range look { // the front of a shuffle
			j := i + int(p.random()%uint64(n-i))
			pool[i], pool[j] = pool[j], pool[i]
		}
	}
	best := int(pool[0])
	for _, i := range pool[1:look] {
		if p.less(int(i), best) {
			best = int(i)
		}
	}
	return best, true
}

func (p *picker) less(i, j int) bool {
	a, b := p.all[i], p.all[j]
	sa, sb := a.score(p.now, p.settings), b.score(p.now, p.settings)
	if sa != sb {
		return sa < sb
	}
	return a.w.sessions.Load() < b.w.sessions.Load()
}
