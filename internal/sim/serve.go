package sim

// arrive takes a request in.
func (w *world) arrive(i int32) {
	a := &w.Arrivals[i]
	at := i % int32(len(w.gateways))
	g := w.gateways[at]
	job := g.job(a.Model, a.Prompt, g.expected(a.Model), w.now)
	route, err := g.decider.Route(&job)
	if err != nil {
		w.meter.refused++
		return
	}
	id, s := w.slot()
	s.arrival, s.gateway, s.route = i, at, route
	s.lease = g.fleet.Reserve(route, job.Prompt+job.Output)
	w.live++
	w.begin(id, s, a.Prompt)
}

// slot finds room for a session. The pointer holds until the next call.
func (w *world) slot() (int32, *session) {
	if k := len(w.free) - 1; k >= 0 {
		id := w.free[k]
		w.free = w.free[:k]
		s := &w.sessions[id]
		*s = session{gen: s.gen, legs: s.legs}
		return id, s
	}
	w.sessions = append(w.sessions, session{})
	id := len(w.sessions) - 1
	return int32(id), &w.sessions[id]
}

// begin sends a session down its route, with so many tokens to read first.
func (w *world) begin(id int32, s *session, unread int32) {
	w.plot(s)
	s.state, s.unread = reading, max(1, unread)
	left := float64(w.Arrivals[s.arrival].Output - s.emitted)
	for i := range s.legs {
		if w.machines[s.legs[i].node].dead {
			w.halt(s)
			return
		}
	}
	for i := range s.legs {
		l := &s.legs[i]
		m := &w.machines[l.node]
		m.enter(l.share, w.now)
		m.charge(m.token*float64(l.fresh)*float64(s.unread)+m.layer*float64(l.layers)*left, w.now)
	}
	w.startPiece(id, s)
}

// halt makes a session wait until the death of one of its nodes is noticed. A
// session that has halted before waits for longer.
func (w *world) halt(s *session) {
	if !s.resuming {
		s.stalled = w.now
	}
	s.state = stalled
	s.gen++
}

func (w *world) startPiece(id int32, s *session) {
	once := 0.0
	if s.state == reading {
		s.piece, once = min(s.unread, readPiece), w.roundTrip(s)
	} else {
		s.piece = min(int32(w.Piece), w.Arrivals[s.arrival].Output-s.emitted)
	}
	s.began, s.each = w.now, (w.pace(s)+once/float64(s.piece))*w.jitter()
	w.agenda.add(event{at: w.now + max(1, int64(s.each*float64(s.piece))), who: id, gen: s.gen, kind: pieceDone})
}

// jitter is a factor around 1.
func (w *world) jitter() float64 {
	const bits = 53
	return 1 + w.Hardware.Jitter*(2*float64(w.chance.Uint64()>>(64-bits))/(1<<bits)-1)
}

func (w *world) finishPiece(id int32, s *session) {
	if s.state == reading {
		s.unread -= s.piece
		if s.unread == 0 {
			w.speak(s) // reading the last token of the prompt makes the next one
		}
	} else {
		s.emitted += s.piece
	}
	if s.emitted < w.Arrivals[s.arrival].Output {
		w.startPiece(id, s)
		return
	}
	w.complete(id, s)
}

// speak emits the first token after reading: of the answer, or of its rest.
func (w *world) speak(s *session) {
	s.state = decoding
	s.emitted++
	w.meter.spoke(s, w.now, &w.Arrivals[s.arrival])
	g := w.gateways[s.gateway]
	for i := range s.legs {
		m := &w.machines[s.legs[i].node]
		g.learn(s.legs[i].node, m.id, m.layer*w.jitter()/1e6, m.link*w.jitter()/1e6)
	}
}

func (w *world) complete(id int32, s *session) {
	a := &w.Arrivals[s.arrival]
	w.leave(s)
	w.gateways[s.gateway].answered(a.Model, a.Output)
	w.meter.completed(s, w.now, a)
	w.drop(id, s)
}

// leave takes a session off its nodes.
func (w *world) leave(s *session) {
	for i := range s.legs {
		w.machines[s.legs[i].node].leave(s.legs[i].share, w.now)
	}
}

// drop ends a session that is on no node any more.
func (w *world) drop(id int32, s *session) {
	s.lease.Release()
	s.state, s.lease = free, nil
	s.gen++
	w.free = append(w.free, id)
	w.live--
}
