package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// Shadows take what nobody needs: never the cells that are kept for rescues, at
// most half of a node's, and no node that is busy. They go as soon as somebody
// finds no room, or the node gets busy.
const (
	shadowShare = 0.5 // of a node's cells; the rest stays free for answers
	quietUpTo   = 2   // sessions in flight at a node that may take a shadow
	crowdedFrom = 5   // sessions in flight at a node that has none to spare
	quietLoad   = 0.9 // reported load of a node that may take a shadow
)

// ErrNoStandby: there is no place for a shadow.
var ErrNoStandby = errors.New("no place for a shadow")

// errRevoked is why a shadow ends whose room is wanted.
var errRevoked = errors.New("the room is wanted for answers")

// standby is the room of one shadow.
type standby struct {
	model  string
	stages []swarm.Stage
	cells  int         // on each
	beside swarm.Route // of its answer, when it began
	revoke context.CancelCauseFunc
}

// Standby reserves room for what Rescue would put in the place of one stage's
// node if it failed now.
func (d *Dispatcher) Standby(n answer.Need, route swarm.Route, stage int) (answer.Standby, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.router == nil {
		return answer.Standby{}, ErrNoPlan
	}
	req := swarm.RescueRequest{Adaptive: d.requestLocked(n, true), Prefer: swarm.PreferSoonest, StatesHeld: true}
	r, err := d.mu.router.Rescue(route, route.Stages[stage].Node, req, d.cfg.Policy)
	if err != nil {
		return answer.Standby{}, fmt.Errorf("%w: %w", ErrNoStandby, err)
	}
	s := &standby{model: n.Model, cells: n.Room(), beside: route}
	next := d.keepStagesLocked(route, r.Route, n.PromptTokens, n.OutputTokens)
	for _, st := range next.Stages {
		if !slices.Contains(route.Stages, st) {
			s.stages = append(s.stages, st)
		}
	}
	if err := d.spareLocked(s, s.cells); err != nil {
		return answer.Standby{}, err
	}
	ctx, revoke := context.WithCancelCause(context.Background())
	s.revoke = revoke
	d.takeStandbyLocked(s, 1)
	d.mu.next++
	d.mu.standbys[d.mu.next] = s
	return answer.Standby{Stages: s.stages, Token: d.mu.next, Revoked: ctx}, nil
}

// Widen makes a shadow's room as large as the need's, if its nodes have that to
// spare.
func (d *Dispatcher) Widen(token uint64, n answer.Need) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.mu.standbys[token]
	if s == nil {
		return false
	}
	more := n.Room() - s.cells
	if more <= 0 {
		return true
	}
	if d.spareLocked(s, more) != nil {
		return false
	}
	d.shiftLocked(s, more)
	s.cells += more
	return true
}

// spareLocked says whether the nodes have so much to spare on each stage. Every layer
// has cells of its own: what the shadow's own answer has of other layers of a node is
// not in its way.
func (d *Dispatcher) spareLocked(s *standby, cells int) error {
	if len(s.stages) == 0 {
		return ErrNoStandby
	}
	wanted := map[string]int{}
	for _, st := range s.stages {
		wanted[st.Node] = cells
	}
	now := time.Now()
	for node, cells := range wanted {
		room := d.bookLocked(node).room(s.model)
		left := room.free(now) - cells
		if s.beside.Uses(node) {
			left += s.cells
		}
		if float64(left) < (1-shadowShare)*float64(room.cells) {
			return fmt.Errorf("%w: %s has %d of %d cells free", ErrNoStandby, node, room.free(now), room.cells)
		}
		v, known := d.mu.fleet.Node(node)
		if !known || v.InFlight > quietUpTo || v.State.Load.Known && v.State.Load.Value > quietLoad {
			return fmt.Errorf("%w: %s is busy", ErrNoStandby, node)
		}
	}
	return nil
}

// takeStandbyLocked takes a shadow's room (times is 1) or gives it back (-1).
func (d *Dispatcher) takeStandbyLocked(s *standby, times int) {
	now := time.Now()
	for _, node := range nodesOf(s.stages) {
		b := d.bookLocked(node)
		if times > 0 {
			b.room(s.model).take(s.cells)
		} else {
			b.room(s.model).give(s.cells, now)
		}
		d.signalLocked(node, b, now)
	}
}

// Dismiss gives a shadow's room back, once.
func (d *Dispatcher) Dismiss(token uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.mu.standbys[token]
	if s == nil {
		return
	}
	delete(d.mu.standbys, token)
	s.revoke(nil)
	d.takeStandbyLocked(s, -1)
	d.wakeLocked()
}

// revokeLocked asks for the room of shadows back: all, or those on some nodes, and
// says how many there are. They give it back themselves, when their nodes have
// freed it.
func (d *Dispatcher) revokeLocked(nodes ...string) (asked int) {
	for _, s := range d.mu.standbys {
		if len(nodes) == 0 || slices.ContainsFunc(s.stages, func(st swarm.Stage) bool { return slices.Contains(nodes, st.Node) }) {
			s.revoke(errRevoked)
			asked++
		}
	}
	return asked
}

// Crowd asks for the room of all shadows back: another gateway wants it.
func (d *Dispatcher) Crowd() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revokeLocked()
}

// crowdLocked asks shadows off the nodes of a new route that are busy now.
func (d *Dispatcher) crowdLocked(route swarm.Route) {
	for _, st := range route.Stages {
		if v, known := d.mu.fleet.Node(st.Node); known && v.InFlight >= crowdedFrom {
			d.revokeLocked(st.Node)
		}
	}
}

// lendLocked counts the room of an answer's own shadow as free while its rescue
// is looked for. What the new route uses is spent, the rest is taken again.
func (d *Dispatcher) lendLocked(tokens []uint64) (settle func(route swarm.Route, err error)) {
	lent := map[uint64]*standby{}
	for _, t := range tokens {
		if s := d.mu.standbys[t]; s != nil {
			lent[t] = s
			d.shiftLocked(s, -s.cells)
		}
	}
	return func(route swarm.Route, err error) {
		for t, s := range lent {
			used := err == nil && slices.ContainsFunc(s.stages, func(st swarm.Stage) bool { return slices.Contains(route.Stages, st) })
			if used {
				delete(d.mu.standbys, t)
				s.revoke(nil)
				continue
			}
			d.shiftLocked(s, s.cells)
		}
	}
}

// shiftLocked changes a shadow's room without a trace: nobody else has seen it.
func (d *Dispatcher) shiftLocked(s *standby, cells int) {
	now := time.Now()
	for _, node := range nodesOf(s.stages) {
		b := d.bookLocked(node)
		b.room(s.model).take(cells)
		d.signalLocked(node, b, now)
	}
}
