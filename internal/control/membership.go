package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hecate/swarm"
)

// A View is one observer's membership at one moment. It is immutable.
type View struct {
	// Revision grows with every view.
	Revision uint64
	// Members holds everybody who is enrolled, in id order.
	Members []Member
	// Nodes is what routing wants: by node id, what each last said of itself.
	// A member that may not take new work now (not living, paused, or never
	// heard) stands here as dead.
	Nodes map[string]swarm.NodeState
}

// Member finds a member by id; nil when there is none.
func (v *View) Member(id string) *Member {
	for i := range v.Members {
		if v.Members[i].ID == id {
			return &v.Members[i]
		}
	}
	return nil
}

func newView(revision uint64, members []Member) *View {
	v := &View{Revision: revision, Members: members, Nodes: make(map[string]swarm.NodeState, len(members))}
	for i := range members {
		v.Nodes[members[i].ID] = members[i].nodeState()
	}
	return v
}

// Usable reports whether new work may go to the member.
func (m *Member) Usable() bool {
	if !m.Status.Living() || m.Health == nil || m.Health.Paused {
		return false
	}
	if m.Record == nil {
		return true
	}
	// A node that is being drained may be the last holder of something.
	return m.Record.Desired != DesiredPaused && m.Record.Desired != DesiredRemoved
}

func (m *Member) nodeState() swarm.NodeState {
	state := swarm.NodeState{ID: m.ID}
	if m.Health != nil {
		state = m.Health.State
		state.ID = m.ID
	}
	state.Dead = state.Dead || !m.Usable()
	return state
}

// MembershipConfig says what a Membership listens to.
type MembershipConfig struct {
	Store Store
	Bus   Bus
	// Name is this gateway's; it may not share the bus with another of that
	// name. Empty: "gateway".
	Name     string
	Liveness Liveness
	Log      *slog.Logger // nil: silent
}

// viewEvery bounds how often telemetry alone makes a new view, so that a
// thousand nodes do not cost a thousand views a second. Events do at once.
const viewEvery = 50 * time.Millisecond

// A Membership keeps a Roster up to date from the store and the bus. Reading
// it (View) takes no lock.
type Membership struct {
	cfg  MembershipConfig
	view atomic.Pointer[View]
	wake chan struct{} // capacity 1: the timer must be set anew
	bad  atomic.Uint64

	mu struct {
		sync.Mutex
		roster   *Roster
		revision uint64
		dirty    bool // the view lags behind the roster by some telemetry
		subs     map[*Subscription]bool
		watchers map[chan *View]bool
		asks     map[string]func(context.Context) // questions to put on the bus
	}
}

// NewMembership returns a membership that knows nobody until Run.
func NewMembership(cfg MembershipConfig) *Membership {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Name == "" {
		cfg.Name = "gateway"
	}
	m := &Membership{cfg: cfg, wake: make(chan struct{}, 1)}
	m.mu.roster = NewRoster(cfg.Liveness)
	m.mu.subs = map[*Subscription]bool{}
	m.mu.watchers = map[chan *View]bool{}
	m.mu.asks = map[string]func(context.Context){}
	m.view.Store(newView(0, nil))
	return m
}

// View returns the newest view; never nil.
func (m *Membership) View() *View { return m.view.Load() }

// BadReports counts reports that were refused: unreadable, out of range, or
// published under another node's subject.
func (m *Membership) BadReports() uint64 { return m.bad.Load() }

// Run listens until ctx ends.
func (m *Membership) Run(ctx context.Context) error {
	var probes sync.WaitGroup
	defer probes.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records, err := m.cfg.Store.Watch(ctx, BucketNodes, "")
	if err != nil {
		return fmt.Errorf("watching the nodes: %w", err)
	}
	stop, err := m.cfg.Bus.Subscribe(AllHealth, m.hear)
	if err != nil {
		return fmt.Errorf("listening for health: %w", err)
	}
	defer stop()
	e := &ear{bus: m.cfg.Bus, subject: EchoSubject(m.cfg.Name), heard: time.Now()}
	stopEcho, err := e.open()
	if err != nil {
		return fmt.Errorf("listening to oneself: %w", err)
	}
	defer stopEcho()
	timer := time.NewTimer(soonest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case u, ok := <-records:
			if !ok {
				return nil
			}
			m.record(u)
		case <-timer.C:
			m.tick(e)
			m.flush()
		case <-m.wake:
			for _, ask := range m.wanted() {
				probes.Go(func() { ask(ctx) })
			}
		}
		timer.Reset(max(soonest, m.untilNext()))
	}
}

// tick lets time pass. When we do not even hear ourselves, silence says
// nothing about others.
func (m *Membership) tick(e *ear) {
	deaf := e.deaf(time.Now())
	m.apply(func(r *Roster, now time.Time) []Event {
		if deaf {
			r.Deaf(now)
		}
		return r.Tick(now)
	})
}

// ReportReset says that the data plane's connections to a node broke, and that it
// does not answer new ones: it is dead at once. In the background it is asked
// whether it lives, and is back as soon as it answers.
func (m *Membership) ReportReset(id string) { m.lose(id, (*Roster).Reset) }

// ReportRefused says that new connections are refused, or nobody is there to make
// them. It is the same, but believed always.
func (m *Membership) ReportRefused(id string) { m.lose(id, (*Roster).Refuse) }

func (m *Membership) lose(id string, how func(*Roster, time.Time, string) []Event) {
	m.apply(func(r *Roster, now time.Time) []Event { return how(r, now, id) })
	m.ask("who "+id, func(ctx context.Context) { m.probe(ctx, id) })
}

// Inquire looks after a node whose connections broke and that cannot be dialled:
// when nobody has its name on the bus any more either, its process is gone.
func (m *Membership) Inquire(id string) {
	m.ask("is "+id, func(ctx context.Context) { m.inquire(ctx, id) })
}

func (m *Membership) ask(what string, question func(context.Context)) {
	m.mu.Lock()
	m.mu.asks[what] = question
	m.mu.Unlock()
	m.poke()
}

// The bus may know a little later than the data plane that a process ended. Until
// then a question is lost, and put again.
const (
	inquiries    = 5
	inquiryTime  = 50 * time.Millisecond
	inquiryPause = 5 * time.Millisecond
)

func (m *Membership) inquire(ctx context.Context, id string) {
	for range inquiries {
		who, err := m.whoIs(ctx, id)
		switch {
		case err == nil:
			m.apply(func(r *Roster, now time.Time) []Event { return r.Confirm(now, id, who.Incarnation) })
			return
		case errors.Is(err, ErrNoResponder):
			m.ReportRefused(id)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(inquiryPause):
		}
	}
}

func (m *Membership) whoIs(ctx context.Context, id string) (Who, error) {
	ctx, cancel := context.WithTimeout(ctx, inquiryTime)
	defer cancel()
	return AskWho(ctx, m.cfg.Bus, id)
}

// wanted takes the questions that are to be asked on the bus.
func (m *Membership) wanted() []func(context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asks := slices.Collect(maps.Values(m.mu.asks))
	clear(m.mu.asks)
	return asks
}

// askTimeout bounds a question to a node that may not be there.
const askTimeout = time.Second

// probe asks a node directly. Silence proves nothing that its missing reports
// will not prove.
func (m *Membership) probe(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	who, err := AskWho(ctx, m.cfg.Bus, id)
	if err != nil {
		return
	}
	m.apply(func(r *Roster, now time.Time) []Event { return r.Confirm(now, id, who.Incarnation) })
}

// banish tells an old start of a node that it was replaced. Both hear it; the
// newer one ignores it.
func (m *Membership) banish(ctx context.Context, g Ghost) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	w := Who{Node: g.Node, Incarnation: g.Current}
	if member := m.View().Member(g.Node); member != nil && member.Record != nil {
		w.Host, w.PID, w.Instance = member.Record.Host, member.Record.PID, member.Record.Instance
	}
	// It will report again if this was lost, and then be told again.
	_ = Call(ctx, m.cfg.Bus, g.Node, CommandSuperseded, w, nil)
}

func (m *Membership) hear(msg Message) {
	h := new(Health)
	if err := Decode(msg.Data, h); err != nil || msg.Subject != HealthSubject(h.Node) {
		m.bad.Add(1)
		return
	}
	m.apply(func(r *Roster, now time.Time) []Event { return r.Hear(now, h) })
	m.poke()
}

func (m *Membership) record(u Update) {
	switch {
	case u.Synced:
		m.apply(func(r *Roster, now time.Time) []Event { return r.Complete(now) })
	case u.Deleted:
		m.apply(func(r *Roster, now time.Time) []Event { return r.Forgotten(now, u.Key) })
	default:
		rec := new(NodeRecord)
		if err := Decode(u.Value, rec); err != nil || rec.ID != u.Key {
			m.cfg.Log.Warn("unreadable node record", "key", u.Key, "error", err)
			return
		}
		m.apply(func(r *Roster, now time.Time) []Event { return r.Enrolled(now, rec) })
	}
}

// apply runs one step of the roster and publishes what came of it.
func (m *Membership) apply(step func(*Roster, time.Time) []Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := step(m.mu.roster, time.Now())
	m.mu.dirty = true
	if len(events) == 0 {
		return
	}
	m.publishLocked()
	for _, e := range events {
		if g, ok := e.(Ghost); ok {
			m.mu.asks["superseded "+g.Node] = func(ctx context.Context) { m.banish(ctx, g) }
		}
		for s := range m.mu.subs {
			s.offer(e)
		}
	}
}

func (m *Membership) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.dirty {
		m.publishLocked()
	}
}

func (m *Membership) publishLocked() {
	m.mu.dirty = false
	m.mu.revision++
	v := newView(m.mu.revision, m.mu.roster.Members())
	m.view.Store(v)
	for ch := range m.mu.watchers {
		offerNewest(ch, v)
	}
}

// offerNewest leaves v in a channel of capacity 1, whoever reads it when.
func offerNewest[T any](ch chan T, v T) {
	for {
		select {
		case ch <- v:
			return
		default:
		}
		select {
		case <-ch:
		default:
		}
	}
}

func (m *Membership) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Membership) untilNext() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	wait := m.mu.roster.Next(now).Sub(now)
	if m.mu.dirty {
		wait = min(wait, viewEvery)
	}
	return wait
}
