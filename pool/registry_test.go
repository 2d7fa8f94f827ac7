package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// seatOnly is a writer without connection, for tests of the registry alone.
func seatOnly(p *Pool, g *group) *writer {
	p.inv.Lock()
	defer p.inv.Unlock()
	p.inv.lastWriter++
	w := &writer{id: p.inv.lastWriter, pool: p, group: g, family: IP4, born: time.Now()}
	s := DefaultSettings()
	w.link = newLink(linkParts{}, p.st, p.counts, func() *Settings { return &s })
	return w
}

func bareRegistry() (*Pool, *group) {
	return &Pool{st: new(store), counts: new(counters)}, &group{name: "g"}
}

func newBound(t testing.TB, p *Pool, w *writer) *session {
	t.Helper()
	s, err := p.reg.register(func(id uint64) *session { return newSession(id, p, w.link) })
	if err != nil {
		t.Fatal(err)
	}
	if err := p.reg.bind(s, w); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLostWriterDoesNotTouchAMovedSession(t *testing.T) {
	p, g := bareRegistry()
	old, fresh := seatOnly(p, g), seatOnly(p, g)
	p.reg.publish(old)
	p.reg.publish(fresh)
	s, left := newBound(t, p, old), newBound(t, p, old)
	if err := p.reg.bind(s, fresh); err != nil {
		t.Fatal(err)
	}
	lost := p.reg.lose(old)
	if len(lost) != 1 || lost[0] != left {
		t.Fatalf("lost %d sessions, want only the one that stayed", len(lost))
	}
	if p.reg.find(s.id) != s || s.bound.w != fresh {
		t.Error("the moved session is not where it moved to")
	}
	if p.reg.find(left.id) != nil {
		t.Error("the lost session is still found")
	}
	if n, _ := p.reg.activity(fresh); n != 1 {
		t.Errorf("%d sessions on the new writer", n)
	}
}

func TestBindIsRefused(t *testing.T) {
	p, g := bareRegistry()
	w := seatOnly(p, g)
	s, err := p.reg.register(func(id uint64) *session { return newSession(id, p, w.link) })
	if err != nil {
		t.Fatal(err)
	}
	check := func(want error) {
		t.Helper()
		if err := p.reg.bind(s, w); !errors.Is(err, want) {
			t.Fatalf("bind: %v, want %v", err, want)
		}
	}
	check(errUnpublished)
	p.reg.publish(w)
	p.reg.refuse(w)
	check(errRefusing)
	p.reg.unregister(s)
	p.reg.unregister(s)
	check(errUnknownSession)
	p.reg.lose(w)
	p.reg.lose(w)
}

func TestConnIDsAreNeverUsedTwice(t *testing.T) {
	p, g := bareRegistry()
	w := seatOnly(p, g)
	p.reg.publish(w)
	seen := map[uint64]bool{}
	for range 3000 {
		s := newBound(t, p, w)
		if seen[s.id] || s.id == 0 {
			t.Fatalf("id %d for the second time", s.id)
		}
		seen[s.id] = true
		p.reg.unregister(s)
		if p.reg.find(s.id) != nil {
			t.Fatal("found after unregister")
		}
	}
	if p.reg.find(1<<63|7) != nil || p.reg.find(0) != nil {
		t.Error("found a session that never was")
	}
}

// TestRegistryAgainstModel drives random schedules and compares with maps.
func TestRegistryAgainstModel(t *testing.T) {
	for seed := range uint64(seeds(8)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { registrySchedule(t, seed, 4000) })
	}
}

type registryModel struct {
	bound     map[*session]*writer // registered sessions; nil: unbound
	published map[*writer]bool
	refusing  map[*writer]bool
	repl      map[*writer]replacement
}

func registrySchedule(t *testing.T, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	p, g := bareRegistry()
	m := registryModel{map[*session]*writer{}, map[*writer]bool{}, map[*writer]bool{}, map[*writer]replacement{}}
	var writers []*writer
	var sessions, dead []*session
	anyWriter := func() *writer {
		if len(writers) == 0 || rng.IntN(12) == 0 {
			writers = append(writers, seatOnly(p, g))
		}
		return writers[rng.IntN(len(writers))]
	}
	for step := range steps {
		w := anyWriter()
		switch op := rng.IntN(10); {
		case op < 2:
			s, err := p.reg.register(func(id uint64) *session { return newSession(id, p, w.link) })
			if err != nil {
				t.Fatal(err)
			}
			sessions, m.bound[s] = append(sessions, s), nil
		case op < 5 && len(sessions) > 0:
			s := sessions[rng.IntN(len(sessions))]
			err := p.reg.bind(s, w)
			_, known := m.bound[s]
			if ok := known && m.published[w] && !m.refusing[w]; ok != (err == nil) {
				t.Fatalf("step %d: bind says %v, model %v", step, err, ok)
			}
			if err == nil {
				m.bound[s] = w
			}
		case op == 5 && len(sessions) > 0:
			i := rng.IntN(len(sessions))
			p.reg.unregister(sessions[i])
			delete(m.bound, sessions[i])
			dead = append(dead, sessions[i])
		case op == 6:
			p.reg.publish(w)
			m.published[w] = true
		case op == 7 && rng.IntN(4) == 0:
			for _, s := range p.reg.lose(w) {
				if m.bound[s] != w {
					t.Fatalf("step %d: lose returned a session of another writer", step)
				}
				delete(m.bound, s)
			}
			m.published[w] = false
		case op == 8:
			if got, want := p.reg.prepare(w), m.published[w] && m.repl[w] == replOpen; got != want {
				t.Fatalf("step %d: prepare says %v, model %v", step, got, want)
			} else if got {
				m.repl[w] = replPreparing
			}
		case op == 9:
			replaceStep(t, p, &m, w, anyWriter(), rng.IntN(2) == 0)
		}
		if step%8 == 0 {
			compareRegistry(t, step, p, &m, writers, dead)
		}
	}
}

func replaceStep(t *testing.T, p *Pool, m *registryModel, victim, successor *writer, abort bool) {
	t.Helper()
	if m.repl[victim] == replRetiring || victim == successor {
		return
	}
	if abort {
		p.reg.abort(victim)
		m.repl[victim] = replOpen
		return
	}
	want := m.published[victim] && m.repl[victim] == replPreparing
	if got := p.reg.commit(victim, successor); got != want {
		t.Fatalf("commit says %v, model %v", got, want)
	}
	if want {
		m.repl[victim], m.refusing[victim], m.published[successor] = replRetiring, true, true
	}
}

func compareRegistry(t *testing.T, step int, p *Pool, m *registryModel, writers []*writer, dead []*session) {
	t.Helper()
	counts := map[*writer]int{}
	for s, w := range m.bound {
		if p.reg.find(s.id) != s {
			t.Fatalf("step %d: session %d is not found", step, s.id)
		}
		if s.bound.w != w {
			t.Fatalf("step %d: session %d is bound elsewhere", step, s.id)
		}
		if w != nil {
			counts[w]++
		}
	}
	total := int64(0)
	for _, w := range writers {
		n, idle := p.reg.activity(w)
		total += int64(n)
		if n != counts[w] || len(p.reg.sessionsOf(w)) != n {
			t.Fatalf("step %d: writer %d has %d sessions, model %d", step, w.id, n, counts[w])
		}
		if n > 0 && !idle.IsZero() || n == 0 && idle.IsZero() && w.seat.published {
			t.Fatalf("step %d: idle since %v with %d sessions", step, idle, n)
		}
	}
	if got := p.reg.open.Load(); got != int64(len(m.bound)) {
		t.Fatalf("step %d: %d sessions open, model %d", step, got, len(m.bound))
	}
	if writers[0].group.sessions.Load() != total {
		t.Fatalf("step %d: the group counts %d sessions, its writers %d", step, writers[0].group.sessions.Load(), total)
	}
	for _, s := range dead[max(0, len(dead)-5):] {
		if p.reg.find(s.id) != nil {
			t.Fatalf("step %d: a dead session is found", step)
		}
	}
}

// TestBindRaces: binds against publication, promotion to retiring, loss and
// cancellation, thousands of rounds; run with -race.
func TestBindRaces(t *testing.T) {
	for seed := range uint64(seeds(1000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p, g := bareRegistry()
		victim, successor := seatOnly(p, g), seatOnly(p, g)
		p.reg.publish(victim)
		var all []*session
		for range 4 {
			s, err := p.reg.register(func(id uint64) *session { return newSession(id, p, victim.link) })
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		var lost []*session
		tasks := []func(){
			func() {
				if p.reg.prepare(victim) && !p.reg.commit(victim, successor) {
					p.reg.abort(victim)
				}
			},
			func() { lost = p.reg.lose(victim) },
			func() { _ = p.reg.bind(all[0], victim); _ = p.reg.bind(all[0], successor) },
			func() { _ = p.reg.bind(all[1], successor); _ = p.reg.bind(all[1], victim) },
			func() { _ = p.reg.bind(all[2], victim); p.reg.unregister(all[2]) },
			func() { _ = p.reg.bind(all[3], victim) },
		}
		rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		var wg sync.WaitGroup
		for _, f := range tasks {
			wg.Go(f)
		}
		wg.Wait()
		for _, s := range lost {
			if s.bound.registered || s.bound.w != nil || p.reg.find(s.id) != nil {
				t.Fatalf("seed %d: a lost session is still bound", seed)
			}
		}
		if n, _ := p.reg.activity(victim); n != 0 {
			t.Fatalf("seed %d: %d sessions dangle on the lost writer", seed, n)
		}
		for _, s := range all {
			if s.bound.w == victim {
				t.Fatalf("seed %d: bound to a lost writer", seed)
			}
		}
	}
}
