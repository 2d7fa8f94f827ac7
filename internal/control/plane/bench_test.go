package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/swarm"
)

// These measure what people wait for. Run them with -benchtime=20x or so: one
// iteration of some takes seconds.

// spread reports the median, the 99th percentile and the worst of some times.
func spread(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	at := func(q float64) float64 {
		return float64(times[int(q*float64(len(times)-1))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "worst-ms")
	b.ReportMetric(0, "ns/op")
}

func benchGateway(b *testing.B) *Gateway {
	b.Helper()
	g, err := StartGateway(b.Context(), GatewayConfig{Dir: b.TempDir(), Planner: swarm.Planner{}.Plan})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(g.Close)
	return g
}

// BenchmarkJoin is the time from a token to a node that the gateway calls
// alive: key, enrolment, attachment, first report.
func BenchmarkJoin(b *testing.B) {
	g := benchGateway(b)
	events := g.Membership().Subscribe()
	defer events.Close()
	tok, err := g.CreateToken(b.Context(), enrol.TokenOptions{Uses: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		stop := benchWorker(b, fmt.Sprintf("n%d", len(times)), tok.Encode())
		for joined := false; !joined; {
			_, joined = (<-events.C).(control.Joined)
		}
		times = append(times, time.Since(began))
		stop()
	}
	spread(b, times)
}

func benchWorker(b *testing.B, name, token string) (stop func()) {
	b.Helper()
	n, err := OpenNode(b.Context(), NodeConfig{Dir: b.TempDir(), Name: name, Token: token, NoDiscovery: true})
	if err != nil {
		b.Fatal(err)
	}
	w := &worker{node: n}
	return runUntil(b, func(ctx context.Context) error { return n.Run(ctx, w.duty()) }, n.Close)
}

// BenchmarkDetectSilence is the time from a process's death to the verdict
// when nobody but its missing reports tells.
func BenchmarkDetectSilence(b *testing.B) {
	g := benchGateway(b)
	events := g.Membership().Subscribe()
	defer events.Close()
	tok, err := g.CreateToken(b.Context(), enrol.TokenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	var times []time.Duration
	for b.Loop() {
		cmd, _ := process(b, "node", dir, "mini", tok.Encode())
		for up := false; !up; {
			switch (<-events.C).(type) {
			case control.Joined, control.Returned:
				up = true
			}
		}
		send(b, cmd, syscall.SIGKILL)
		killed := time.Now()
		for dead := false; !dead; {
			_, dead = (<-events.C).(control.Died)
		}
		times = append(times, time.Since(killed))
		_ = cmd.Wait()
	}
	spread(b, times)
}

// BenchmarkReplan100 is the time from a node's removal to the new plan's
// arrival at a follower, with 100 reporting nodes, over NATS.
func BenchmarkReplan100(b *testing.B) {
	g := benchGateway(b)
	model := swarm.ModelSpec{ID: "big", Layers: 80, LayerBytes: []int64{800 << 20}, KVBytes: 4096, ContextTokens: 8192}
	err := control.PutModel(b.Context(), g.Store(), &control.ModelRecord{
		ID: "big", Hash: fmt.Sprintf("%064d", 1), Size: 64 << 30, ContextLength: 8192, Created: time.Now(), Spec: model,
	})
	if err != nil {
		b.Fatal(err)
	}
	const nodes = 100
	for i := range nodes + 50 { // so many may be removed
		b.Cleanup(simulateNode(b, g, fmt.Sprintf("n%03d", i)))
	}
	plans := make(chan *control.PlanDocument, 64)
	stop := runUntil(b, func(ctx context.Context) error {
		return g.FollowPlan(ctx, func(d *control.PlanDocument) { plans <- d })
	}, func() {})
	defer stop()
	for d := range plans {
		if len(d.Plan.Nodes) == nodes+50 {
			break
		}
	}
	var times []time.Duration
	for b.Loop() {
		id := fmt.Sprintf("n%03d", len(times))
		began := time.Now()
		if err := control.SetDesired(b.Context(), g.Store(), id, control.DesiredRemoved); err != nil {
			b.Fatal(err)
		}
		for d := range plans {
			if d.DesiredOf(id) == control.DesiredRemoved {
				break
			}
		}
		times = append(times, time.Since(began))
	}
	spread(b, times)
}

// simulateNode puts a node into the store and lets it report over the bus.
func simulateNode(b *testing.B, g *Gateway, id string) (stop func()) {
	b.Helper()
	data, err := control.Encode(&control.NodeRecord{
		ID: id, Key: fmt.Sprintf("%064s", id), Incarnation: 1, Desired: control.DesiredActive,
		Profile: swarm.NodeProfile{ID: id, MemoryBytes: 24 << 30, Score: 10, LatencyMS: 1, Endpoints: []string{"127.0.0.1:7000"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := g.Store().Create(b.Context(), control.BucketNodes, id, data); err != nil {
		b.Fatal(err)
	}
	r := control.NewReporter(control.ReporterConfig{Node: id, Incarnation: 1, Instance: id, Fill: func(*control.Health) {}})
	return runUntil(b, func(ctx context.Context) error { return r.Run(ctx, g.Bus()) }, func() {})
}

// BenchmarkHealthBytes is what one report of a node with four fragments costs
// on the wire, before TLS and NATS.
func BenchmarkHealthBytes(b *testing.B) {
	h := &control.Health{
		Node: "mini", Incarnation: 1, Sequence: 1, State: swarm.NodeState{ID: "mini", Load: swarm.Measured(0.25), LatencyMS: swarm.Measured(12.5)},
	}
	for i := range 4 {
		r := swarm.LayerRange{First: 4 * i, Last: 4*i + 3}
		h.Held = append(h.Held, control.HeldFragment{Model: "demo", Layers: r, State: control.HoldServing, Tokens: 12345})
		h.State.Fragments = append(h.State.Fragments, swarm.Fragment{Model: "demo", Layers: r})
	}
	var n int
	for b.Loop() {
		data, err := control.Encode(h)
		if err != nil {
			b.Fatal(err)
		}
		n = len(data)
	}
	b.ReportMetric(float64(n), "bytes/report")
}

// runUntil runs a task until the returned function is called.
func runUntil(b *testing.B, task func(context.Context) error, after func()) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- task(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
		after()
	}
}
