package sim

// A Result is what became of a scenario under one policy. Times are
// milliseconds.
type Result struct {
	Policy   string `json:"policy"`
	Requests int    `json:"requests"`
	Finished int    `json:"finished"`
	Rescued  int    `json:"rescued"` // finished although a node of theirs died
	Lost     int    `json:"lost"`    // begun, and ended by a death that nothing could mend
	Refused  int    `json:"refused"` // found no route when they came
	Copied   int    `json:"rescues_by_copy"`
	Spliced  int    `json:"rescues_by_splice"`

	Latency    Quantiles `json:"latency_ms"`     // arrival to last token
	FirstToken Quantiles `json:"first_token_ms"` // arrival to first token
	Gap        Quantiles `json:"gap_ms"`         // of rescued requests: death to next token

	TokensPerSecond float64 `json:"tokens_per_second"` // until the last answer was complete
	Load            Spread  `json:"load"`              // over nodes: sessions present per slot, mean over the watched time
	Work            Spread  `json:"work"`              // over nodes: node-seconds of work given per second of the watched time
	PeakSessions    int     `json:"peak_sessions"`     // most sessions on one node at any time
	Events          int64   `json:"events"`
}

// Quantiles describe a set of times, in milliseconds, by nearest rank. They are
// 0 when the set is empty.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// A Spread says how evenly something lies on the nodes that the plan uses.
type Spread struct {
	Mean        float64 `json:"mean"`
	Max         float64 `json:"max"`
	MaxOverMean float64 `json:"max_over_mean"` // 1 is perfectly even; 0 when there is nothing
	Hottest     string  `json:"hottest"`       // the node with the most
}

func (w *world) result(policy string) Result {
	m := &w.meter
	r := Result{Policy: policy, Requests: len(w.Arrivals), Finished: len(m.latency), Rescued: m.rescued, Lost: m.lost,
		Refused: m.refused, Copied: m.copied, Spliced: m.spliced, Events: m.events,
		Latency: quantiles(m.latency), FirstToken: quantiles(m.first), Gap: quantiles(m.gaps)}
	if span := float64(m.end-int64(w.Arrivals[0].At)) / 1e9; span > 0 {
		r.TokensPerSecond = round(float64(m.tokens) / span)
	}
	watched := float64(w.Watch.To - w.Watch.From)
	for i := range w.machines {
		w.machines[i].settle(w.machines[i].present, w.now)
		r.PeakSessions = max(r.PeakSessions, w.machines[i].peak)
	}
	if watched > 0 {
		r.Load = w.spread(func(n *machine) float64 { return n.area / watched / float64(w.Hardware.Slots) })
		r.Work = w.spread(func(n *machine) float64 { return n.work / watched })
	}
	return r
}

// spread looks at the nodes that the plan uses.
func (w *world) spread(of func(*machine) float64) Spread {
	var s Spread
	n := 0
	for i := range w.machines {
		m := &w.machines[i]
		if !m.used {
			continue
		}
		n++
		v := of(m)
		s.Mean += v
		if s.Hottest == "" || v > s.Max {
			s.Max, s.Hottest = v, m.id
		}
	}
	s.Mean /= float64(max(1, n))
	if s.Mean > 0 {
		s.MaxOverMean = round(s.Max / s.Mean)
	}
	s.Mean, s.Max = round(s.Mean), round(s.Max)
	return s
}
