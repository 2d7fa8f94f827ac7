package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"hecate/internal/bench/measure"
	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/internal/engine"
)

// ClusterOptions say what to measure; zero values mean the defaults.
type ClusterOptions struct {
	Runs     int          // of joining, and of each kind of death; default 50
	Nodes    int          // simulated, for planning; default 100
	Progress func(string) // told what goes on; nil: nobody is
}

func (o ClusterOptions) filled() ClusterOptions {
	if o.Runs <= 0 {
		o.Runs = 50
	}
	if o.Nodes <= 0 {
		o.Nodes = 100
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// ClusterResult is one run.
type ClusterResult struct {
	Machine measure.Machine `json:"machine"`
	Runs    int             `json:"runs"`
	Took    time.Duration   `json:"took_ns"`

	Join    Joining `json:"join"`    // from the start of the process to serving
	Kill    Gaps    `json:"kill"`    // from kill -9 to the gateway's verdict; nobody was asking anything
	Silence Gaps    `json:"silence"` // from SIGSTOP to the verdict
	Load    Loaded  `json:"load"`    // what clients see of machines that come and go
	Weights Moved   `json:"weights"` // what left the gateway
	Plane   Plane   `json:"control_plane"`

	measure.Judgement
}

// Joining is how long each phase of joining took, median over the runs; the demo
// model of 2.9 MB was to be fetched.
type Joining struct {
	Enrol   time.Duration `json:"enrol_ns"`   // process start, key, certificate
	Profile time.Duration `json:"profile_ns"` // engine and round trip measured
	Attach  time.Duration `json:"attach_ns"`  // on the control plane
	Plan    time.Duration `json:"plan_ns"`    // until the plan gives it layers and it begins
	Fetch   time.Duration `json:"fetch_ns"`
	Load    time.Duration `json:"load_ns"`
	Ready   time.Duration `json:"ready_ns"` // until the gateway knows that it holds all
	Whole   Gaps          `json:"whole"`
}

// Loaded is what clients saw that asked all the time.
type Loaded struct {
	Answers int            `json:"answers"`
	Lost    map[string]int `json:"lost"` // by what happened: join, leave, kill
	Rescues map[string]int `json:"rescues"`
	Stories []string       `json:"stories,omitempty"`
}

func (l Loaded) lost() (n int) {
	for _, k := range l.Lost {
		n += k
	}
	return n
}

// Moved is what nodes fetched, and what of it left the gateway.
type Moved struct {
	Model   int64      `json:"model_bytes"`
	Fetched int64      `json:"fetched_bytes"` // by all nodes
	Sent    int64      `json:"sent_bytes"`    // by the gateway
	Nodes   int        `json:"nodes"`
	Ranges  []MovedRun `json:"ranges"` // by node, then layers
}

// MovedRun is what one node was sent by one sender for a range of layers.
type MovedRun struct {
	Node  string `json:"node"`
	First int    `json:"first_layer"`
	Last  int    `json:"last_layer"`
	From  string `json:"from"` // "gateway" or a node
	Bytes int64  `json:"bytes"`
}

// Cluster measures how machines join, die and leave. The error is for a run that
// could not be made.
func Cluster(ctx context.Context, o ClusterOptions) (*ClusterResult, error) {
	o = o.filled()
	if err := requireFastKernels(); err != nil {
		return nil, err
	}
	r := &ClusterResult{Machine: measure.ThisMachine(engine.KernelName()), Runs: o.Runs}
	began := time.Now()
	for _, part := range []func(context.Context, ClusterOptions) error{r.joins, r.deaths, r.loaded, r.plans} {
		if err := part(ctx, o); err != nil {
			return nil, err
		}
	}
	r.Took = time.Since(began)
	r.conclude()
	return r, nil
}

// joinsPerYard bounds how many machines one gateway of the measurement has.
const joinsPerYard = 5

// joins lets machines join, each under a new name and beside others.
func (r *ClusterResult) joins(ctx context.Context, o ClusterOptions) error {
	var all []joinTimes
	for len(all) < o.Runs {
		y, err := openYard(ctx)
		if err != nil {
			return err
		}
		for i := 0; i < joinsPerYard && len(all) < o.Runs && err == nil; i++ {
			o.Progress(fmt.Sprintf("joining: machine %d of %d", len(all)+1, o.Runs))
			var t joinTimes
			if t, err = y.timeJoin(ctx, fmt.Sprintf("node%d", i+1)); err == nil {
				all = append(all, t)
			}
		}
		if err == nil && r.Weights.Nodes == 0 {
			r.Weights, err = y.moved(ctx)
		}
		y.close()
		if err != nil {
			return err
		}
	}
	r.Join = joining(all)
	return nil
}

// joinTimes are moments of one joining.
type joinTimes struct {
	began, enrolled, measured, attached, fetching, served time.Time
	fetch, load                                           time.Duration
}

func (y *yard) timeJoin(ctx context.Context, name string) (t joinTimes, err error) {
	w, err := y.join(ctx, name)
	if err != nil {
		return t, err
	}
	if err := y.serving(ctx, name); err != nil {
		return t, err
	}
	t.began, t.served = w.began, time.Now()
	for msg, at := range map[string]*time.Time{"the node has its identity": &t.enrolled, "measured": &t.measured, "node joined": &t.attached} {
		said := w.lines.said(msg)
		if len(said) == 0 {
			return t, fmt.Errorf("node %s did not say %q", name, msg)
		}
		*at = said[0].Time
	}
	last := time.Time{}
	for i, e := range w.lines.said("layers fetched") {
		took, err := time.ParseDuration(e.Took)
		if err != nil {
			return t, fmt.Errorf("node %s fetched in %q: %w", name, e.Took, err)
		}
		if i == 0 {
			t.fetching = e.Time.Add(-took)
		}
		t.fetch += took
	}
	for _, e := range w.lines.said("layers loaded") {
		last = e.Time
	}
	if t.fetching.IsZero() || last.IsZero() {
		return t, fmt.Errorf("node %s fetched or loaded nothing", name)
	}
	t.load = max(0, last.Sub(t.fetching)-t.fetch)
	return t, nil
}

func joining(all []joinTimes) (j Joining) {
	median := func(of func(joinTimes) time.Duration) time.Duration {
		var v []time.Duration
		for _, t := range all {
			v = append(v, of(t))
		}
		return measure.Percentile(v, 0.5)
	}
	j.Enrol = median(func(t joinTimes) time.Duration { return t.enrolled.Sub(t.began) })
	j.Profile = median(func(t joinTimes) time.Duration { return t.measured.Sub(t.enrolled) })
	j.Attach = median(func(t joinTimes) time.Duration { return t.attached.Sub(t.measured) })
	j.Plan = median(func(t joinTimes) time.Duration { return t.fetching.Sub(t.attached) })
	j.Fetch = median(func(t joinTimes) time.Duration { return t.fetch })
	j.Load = median(func(t joinTimes) time.Duration { return t.load })
	j.Ready = median(func(t joinTimes) time.Duration { return t.served.Sub(t.fetching) - t.fetch - t.load })
	var whole []time.Duration
	for _, t := range all {
		whole = append(whole, t.served.Sub(t.began))
	}
	j.Whole = gapsOf(whole)
	return j
}

// moved sums what was fetched and what left the gateway.
func (y *yard) moved(ctx context.Context) (m Moved, err error) {
	st, err := y.status(ctx)
	if err != nil {
		return m, err
	}
	for _, model := range st.Models {
		m.Model, m.Sent = m.Model+model.Bytes, m.Sent+model.SentBytes
	}
	nodes, err := y.admin.Nodes(ctx)
	for _, n := range nodes {
		m.Ranges = append(m.Ranges, runsOf(n.Health)...)
	}
	slices.SortFunc(m.Ranges, func(a, b MovedRun) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.First-b.First, cmp.Compare(a.From, b.From))
	})
	for _, r := range m.Ranges {
		m.Fetched += r.Bytes
	}
	m.Nodes = len(y.workers)
	return m, err
}

func runsOf(h *control.Health) (out []MovedRun) {
	if h == nil {
		return nil
	}
	for _, r := range h.Received {
		for _, run := range r.Runs {
			out = append(out, MovedRun{h.Node, run.Layers.First, run.Layers.Last, cmp.Or(r.From, "gateway"), run.Bytes})
		}
	}
	return out
}

// deaths kills and stops idle nodes, and looks when the gateway knows.
func (r *ClusterResult) deaths(ctx context.Context, o ClusterOptions) error {
	y, err := openYard(ctx)
	if err != nil {
		return err
	}
	defer y.close()
	for _, name := range []string{"first", "second"} {
		if _, err := y.join(ctx, name); err != nil {
			return err
		}
		if err := y.serving(ctx, name); err != nil {
			return err
		}
	}
	var killed, silent []time.Duration
	for i := range o.Runs {
		o.Progress(fmt.Sprintf("deaths: %d of %d", i+1, o.Runs))
		t, err := y.timeKill(ctx, "first")
		if err != nil {
			return err
		}
		killed = append(killed, t)
		if t, err = y.timeSilence(ctx, "second"); err != nil {
			return err
		}
		silent = append(silent, t)
	}
	r.Kill, r.Silence = gapsOf(killed), gapsOf(silent)
	return nil
}

func dead(n admin.NodeInfo) bool { return n.Status == "dead" }

// timeKill kills a worker and starts it again.
func (y *yard) timeKill(ctx context.Context, name string) (time.Duration, error) {
	killed := time.Now()
	y.workers[name].end()
	n, err := y.until(ctx, name, dead)
	if err != nil {
		return 0, err
	}
	if _, err := y.join(ctx, name); err != nil {
		return 0, err
	}
	return n.Since.Sub(killed), y.serving(ctx, name)
}

// timeSilence stops a worker and lets it go on.
func (y *yard) timeSilence(ctx context.Context, name string) (time.Duration, error) {
	proc := y.workers[name].proc
	stopped := time.Now()
	if err := proc.Signal(syscall.SIGSTOP); err != nil {
		return 0, err
	}
	n, err := y.until(ctx, name, dead)
	if goesOn := proc.Signal(syscall.SIGCONT); err == nil {
		err = goesOn
	}
	if err != nil {
		return 0, err
	}
	return n.Since.Sub(stopped), y.serving(ctx, name)
}

// loadClients ask at once while machines come and go.
const loadClients = 3

// loaded lets machines join, leave and die while clients ask.
func (r *ClusterResult) loaded(ctx context.Context, o ClusterOptions) error {
	y, err := openYard(ctx)
	if err != nil {
		return err
	}
	defer y.close()
	for _, name := range []string{"first", "second"} {
		if _, err := y.join(ctx, name); err != nil {
			return err
		}
		if err := y.serving(ctx, name); err != nil {
			return err
		}
	}
	s, err := openSubject(ModelDemo)
	if err != nil {
		return err
	}
	then, err := y.status(ctx)
	if err != nil {
		return err
	}
	y.model = then.Models[0].ID
	r.Load.Lost = map[string]int{}
	for round := range max(1, o.Runs/10) {
		o.Progress(fmt.Sprintf("machines come and go under load: round %d", round+1))
		for _, turn := range []struct {
			what string
			do   func() error
		}{
			{"join", func() error { return y.comeIn(ctx, "third") }},
			{"leave", func() error { return y.leave(ctx, "third") }},
			{"kill", func() error { _, err := y.timeKill(ctx, "second"); return err }},
		} {
			if err := y.under(ctx, s, turn.what, turn.do, &r.Load); err != nil {
				return fmt.Errorf("%s under load: %w", turn.what, err)
			}
		}
	}
	now, err := y.status(ctx)
	r.Load.Rescues = rescued(then, now)
	return err
}

func (y *yard) comeIn(ctx context.Context, name string) error {
	if _, err := y.join(ctx, name); err != nil {
		return err
	}
	return y.serving(ctx, name)
}

// leave removes a node, and waits for its process to end by itself.
func (y *yard) leave(ctx context.Context, name string) error {
	if err := y.admin.Remove(ctx, name); err != nil {
		return err
	}
	select {
	case <-y.workers[name].done:
	case <-time.After(wholeTime):
		return fmt.Errorf("node %s does not go", name)
	}
	delete(y.workers, name) // it needs a token to come back
	return nil
}

// under does something while clients ask, and counts what they lose.
func (y *yard) under(ctx context.Context, s *subject, what string, do func() error, l *Loaded) error {
	asking, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range loadClients {
		wg.Go(func() {
			for asking.Err() == nil {
				a, err := y.ask(ctx, s, question{text: shortQuestions[i%len(shortQuestions)], tokens: 64, seed: 7})
				mu.Lock()
				l.Answers++
				if err != nil || a.flaw != "" {
					l.Lost[what]++
					if len(l.Stories) < maxStories {
						l.Stories = append(l.Stories, fmt.Sprintf("%s: %v %+v", what, err, a))
					}
				}
				mu.Unlock()
			}
		})
	}
	err := do()
	stop()
	wg.Wait()
	return err
}
