package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// errDied ends the contexts that Alive gave.
var errDied = errors.New("membership declared the node dead")

// rescueShare of each node's KV cells is sold to rescues only. Nodes hold to the
// same share and refuse what would cut into it.
const rescueShare = 1. / 8

// Sellable is how many of a node's KV cells an answer that is no rescue may have.
func Sellable(cells int) int { return cells - int(math.Ceil(rescueShare*float64(cells))) }

// Config tunes a Dispatcher. The zero value is the default.
type Config struct {
	Policy  swarm.Policy // KVReserve 0 means an eighth, as nodes keep it
	Gateway string       // whose leases these are, as nodes call it
}

// Dispatcher chooses nodes and keeps the books on them. It is safe for
// concurrent use; choosing and reserving are one step, so that simultaneous
// requests see one another.
type Dispatcher struct {
	cfg Config

	mu struct {
		sync.Mutex
		fleet    *swarm.Fleet
		router   *swarm.Router // nil: no plan yet
		nodes    map[string]*book
		leases   map[uint64]lease
		standbys map[uint64]*standby
		next     uint64
		focus    focus         // the cells that the fleet was told of
		freed    chan struct{} // closed whenever something may have become possible
	}
}

// book is what this gateway knows of one node by itself.
type book struct {
	measures measures
	circuit  swarm.Circuit
	alive    context.Context // ends when the node dies
	die      context.CancelCauseFunc
	living   bool
	lost     time.Time // when its connections were last lost, as news

	incarnation, sequence uint64           // of its last report
	condemned             time.Time        // we saw it fail; it counts as dead until it is heard of again
	rooms                 map[string]*room // by model: each has cells of its own
}

// lease is what one grant holds. It belongs to the nodes that it was taken on,
// whatever the plan has become since.
type lease struct {
	held  *swarm.Lease
	nodes []string // of its stages, each once
	model string
	cells int // on each, by now
}

// New makes a dispatcher without plan and nodes.
func New(cfg Config) *Dispatcher {
	if cfg.Policy.KVReserve == 0 {
		cfg.Policy.KVReserve = rescueShare
	}
	d := &Dispatcher{cfg: cfg}
	d.mu.fleet = swarm.NewFleet("")
	d.mu.nodes = map[string]*book{}
	d.mu.leases, d.mu.standbys = map[uint64]lease{}, map[uint64]*standby{}
	d.mu.freed = make(chan struct{})
	return d
}

// SetPlan takes a newer plan: routes cut over to it at once, leases stay.
func (d *Dispatcher) SetPlan(plan *swarm.Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.router = swarm.NewRouter(plan, d.mu.fleet)
	d.wakeLocked()
}

// SetView takes what membership believes now.
func (d *Dispatcher) SetView(v *control.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for i := range v.Members {
		m := &v.Members[i]
		b := d.bookLocked(m.ID)
		d.hearLocked(b, m, now)
		d.lifeLocked(m.ID, b, m.Status)
		state, heard := v.Nodes[m.ID], m.Heard
		if !heard.After(b.condemned) {
			state.Dead = true
		}
		if heard.IsZero() {
			heard = now
		}
		// What does not validate was refused at the edge already.
		_ = d.mu.fleet.Observe(state, heard)
		d.signalLocked(m.ID, b, now)
	}
	for id, b := range d.mu.nodes {
		if _, enrolled := v.Nodes[id]; !enrolled && b.living {
			d.lifeLocked(id, b, control.StatusLeft)
			d.mu.fleet.MarkDead(id)
		}
	}
	d.wakeLocked()
}

// hearLocked takes a report, once. A new incarnation starts with a clean slate; the
// same one that only was out of reach does not, or a node that breaks every
// connection would be as good as new after each.
func (d *Dispatcher) hearLocked(b *book, m *control.Member, now time.Time) {
	h := m.Health
	if h == nil || h.Incarnation == b.incarnation && h.Sequence == b.sequence {
		return
	}
	if h.Incarnation != b.incarnation {
		b.circuit.Reset()
	}
	b.incarnation, b.sequence = h.Incarnation, h.Sequence
	b.reportRooms(h, d.cfg.Gateway, now)
}

// lifeLocked starts and ends the context that Alive gives. A node that was only
// never heard is not dead yet.
func (d *Dispatcher) lifeLocked(id string, b *book, s control.Status) {
	switch {
	case s.Living() && !b.living:
		if b.alive.Err() != nil {
			b.alive, b.die = context.WithCancelCause(context.Background())
		}
		b.living = true
	case !s.Living() && s != control.StatusUnheard && b.living:
		b.living = false
		b.die(fmt.Errorf("node %s is %s: %w", id, s, errDied))
	}
}

func (d *Dispatcher) bookLocked(id string) *book {
	b := d.mu.nodes[id]
	if b == nil {
		b = &book{}
		b.alive, b.die = context.WithCancelCause(context.Background())
		d.mu.nodes[id] = b
	}
	return b
}

// signalLocked tells the fleet what the gateway itself knows of a node.
func (d *Dispatcher) signalLocked(id string, b *book, now time.Time) {
	s := b.measures.signals()
	s.Circuit = b.circuit.State(now)
	s.Errors = b.circuit.ErrorRate(now)
	if r := b.rooms[d.mu.focus.model]; r != nil && r.cells > 0 {
		free := max(0, r.free(now)-r.kept(d.mu.focus.who))
		s.KVTotal, s.KVFree = swarm.Measured(float64(r.cells)), swarm.Measured(float64(free))
	}
	if err := d.mu.fleet.Signal(id, s); err != nil {
		panic("BUG: a measured signal that is refused: " + err.Error())
	}
}

// wakeLocked lets waiting requests look again.
func (d *Dispatcher) wakeLocked() {
	close(d.mu.freed)
	d.mu.freed = make(chan struct{})
}

// Changed gives a channel that closes when a choice that failed may succeed.
func (d *Dispatcher) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.freed
}

// Alive gives a context that ends when the node dies.
func (d *Dispatcher) Alive(node string) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bookLocked(node).alive
}

// Observe takes one finished step.
func (d *Dispatcher) Observe(node string, s answer.Sample) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.bookLocked(node)
	b.measures.take(s)
	now := time.Now()
	before := b.circuit.State(now)
	b.circuit.Success(now)
	d.signalLocked(node, b, now)
	if before != b.circuit.State(now) {
		d.wakeLocked()
	}
}

// Patience is how long to wait for a step.
func (d *Dispatcher) Patience(node string, rows, layers int) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bookLocked(node).measures.patience(rows, layers)
}
