package pool

import (
	"slices"
	"sync/atomic"
	"time"
)

// group is one node as the hot path sees it.
type group struct {
	name     string
	wanted   atomic.Bool // in the desired map
	sessions atomic.Int64
	view     atomic.Pointer[groupView] // immutable; replaced by the pool
	changed  bell                      // rings when view changes
	lastUse  atomic.Int64              // Unix nanoseconds of the newest bind or unbind
	lean     atomic.Bool               // the floor is lowered: the next session must say so
	recovery atomic.Int64              // Unix nanoseconds of the last asynchronous recovery
	patience atomic.Int64              // nanoseconds that a lost connection may take to be made again; 0: not known
	trips    trips

	// The pool's, under its lock.
	used     bool
	lastBusy time.Time       // newest moment with a session, or when the group appeared
	carried  map[string]bool // addresses that connections stood to since there was none
	absence  *absence        // nil while a connection stands, and before the first
	doubt    doubt
}

// recoveryEvery bounds how often waiting binds ask for a recovery.
const recoveryEvery = 5 * time.Second

// mayRecover says, at most once per recoveryEvery, that a bind may ask.
func (g *group) mayRecover(now time.Time) bool {
	last := g.recovery.Load()
	if last != 0 && now.UnixNano()-last < int64(recoveryEvery) {
		return false
	}
	return g.recovery.CompareAndSwap(last, now.UnixNano())
}

// groupView is what binds and readiness look at.
type groupView struct {
	candidates []candidate
	families   []FamilyReadiness // Living and Ready are filled in by who asks
	lost       bool              // every connection is lost, and none can be made
}

func (g *group) look() groupView {
	if v := g.view.Load(); v != nil {
		return *v
	}
	return groupView{}
}

// publish replaces the view if it differs.
func (g *group) publish(v groupView) {
	old := g.look()
	if slices.Equal(old.candidates, v.candidates) && slices.Equal(old.families, v.families) && old.lost == v.lost {
		return
	}
	g.view.Store(&v)
	g.changed.ring()
}

// pairKey names a group and family.
type pairKey struct {
	group  string
	family Family
}

func (k pairKey) compare(o pairKey) int {
	if k.group != o.group {
		if k.group < o.group {
			return -1
		}
		return 1
	}
	if k.family != o.family {
		if k.family < o.family {
			return -1
		}
		return 1
	}
	return 0
}

// pair is the control plane's state of one group and family, under the pool's
// lock.
type pair struct {
	key       pairKey
	group     *group
	reachable bool                // a connect ever succeeded
	circuits  map[string]*circuit // by address
	dialing   map[uint64]int      // connects under way, by generation
	refresh   int                 // replacements under way
	idleClose time.Duration       // shortest idle time after which the peer closed; 0: never seen

	floor, target   int // static requirement, and what refill aims for
	demand          int // writers still to connect, all generations
	losses          int // lost and not yet restored
	tries, failures uint64
	outage          bool

	asking, wanted int // connections of a reverse node: being added up, last told
	awaited        heir
}

// heir is the replacement of a reverse writer: the node was asked for one more
// connection, which takes the victim's place.
type heir struct {
	victim *writer   // nil: none is awaited
	until  time.Time // then it is given up
}

func newPair(key pairKey, g *group) *pair {
	return &pair{key: key, group: g, circuits: map[string]*circuit{}, dialing: map[uint64]int{}}
}

func (p *pair) circuit(addr string) *circuit {
	c := p.circuits[addr]
	if c == nil {
		c = new(circuit)
		p.circuits[addr] = c
	}
	return c
}
