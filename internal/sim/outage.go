package sim

// outage plans a node's death, its detection and its return.
func (w *world) outage(o Outage) {
	node := w.index[o.Node]
	at := int64(o.At)
	w.agenda.add(event{at: at, who: node, kind: nodeDies})
	w.agenda.add(event{at: at + int64(w.Detect), who: node, kind: nodeMissed})
	if o.For > 0 {
		w.agenda.add(event{at: at + int64(o.For), who: node, kind: nodeReturns})
	}
}

// die stops a node, and every session that runs through it.
func (w *world) die(node int32) {
	w.machines[node].dead = true
	for i := range w.sessions {
		s := &w.sessions[i]
		if s.state != reading && s.state != decoding || !s.visits(node) {
			continue
		}
		if s.state == decoding {
			s.emitted += min(s.piece, int32(float64(w.now-s.began)/s.each))
		}
		w.leave(s)
		w.halt(s)
	}
}

func (s *session) visits(node int32) bool {
	for i := range s.legs {
		if s.legs[i].node == node {
			return true
		}
	}
	return false
}

// miss lets the gateways notice a death and rescue what stood on the node.
func (w *world) miss(node int32) {
	m := &w.machines[node]
	for _, g := range w.gateways {
		g.miss(node, m.id, m.incarnation)
	}
	for i := range w.sessions {
		if s := &w.sessions[i]; s.state == stalled && s.visits(node) {
			w.rescue(int32(i), s, m.id)
		}
	}
}

// rescue puts a session on another route, or loses it. The new route is
// reserved before the old one is given back.
func (w *world) rescue(id int32, s *session, failed string) {
	a := &w.Arrivals[s.arrival]
	g := w.gateways[s.gateway]
	context := a.Prompt + s.emitted
	job := g.job(a.Model, context, max(1, g.expected(a.Model)-s.emitted), w.now)
	route, err := g.decider.Rescue(&job, s.route, failed)
	if err != nil {
		w.meter.lost++
		w.drop(id, s)
		return
	}
	lease := g.fleet.Reserve(route, job.Prompt+job.Output)
	s.lease.Release()
	s.route, s.lease = route, lease
	w.meter.saved(s)
	s.resuming, s.rescued = true, true
	w.begin(id, s, context)
}

// comeBack starts a node anew: it knows nothing of what it did before.
func (w *world) comeBack(node int32) {
	m := &w.machines[node]
	m.dead = false
	m.incarnation++
	m.latency.Known = false
	m.step = m.idleStep()
}
