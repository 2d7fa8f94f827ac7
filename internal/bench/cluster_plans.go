package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/plane"
	"hecate/swarm"
)

// Plane is what the control plane of many nodes costs. The nodes are simulated:
// they report over NATS and hold nothing.
type Plane struct {
	Nodes  int     `json:"nodes"`
	Replan Gaps    `json:"replan"`               // from a node's removal to the new plan's arrival at a follower
	Bytes  float64 `json:"bytes_per_node_per_s"` // messages in and out of the server, without framing and TLS
}

const (
	replans     = 20
	trafficTime = 5 * time.Second
)

// plans starts a control plane in this process and lets it plan.
func (r *ClusterResult) plans(ctx context.Context, o ClusterOptions) error {
	o.Progress(fmt.Sprintf("planning for %d nodes", o.Nodes))
	dir, err := os.MkdirTemp("", "hecate-bench-")
	if err != nil {
		return fmt.Errorf("make a data folder: %w", err)
	}
	defer os.RemoveAll(dir)
	g, err := plane.StartGateway(ctx, plane.GatewayConfig{Dir: dir, Planner: swarm.Planner{}.Plan, Patience: control.Patience{FirstNodes: o.Nodes}})
	if err != nil {
		return err
	}
	defer g.Close()
	var nodes sync.WaitGroup
	defer nodes.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := crowdOf(ctx, g, o.Nodes, &nodes); err != nil {
		return err
	}
	plans := make(chan *control.PlanDocument, 64)
	nodes.Go(func() { _ = g.FollowPlan(ctx, func(d *control.PlanDocument) { plans <- d }) })
	if err := awaitPlan(ctx, plans, func(d *control.PlanDocument) bool { return len(d.Plan.Nodes) == o.Nodes }); err != nil {
		return err
	}
	r.Plane.Nodes = o.Nodes
	r.Plane.Bytes = traffic(ctx, g) / float64(o.Nodes)
	var times []time.Duration
	for i := range min(replans, o.Nodes/2) {
		id := simulated(i)
		began := time.Now()
		if err := control.SetDesired(ctx, g.Store(), id, control.DesiredRemoved); err != nil {
			return err
		}
		if err := awaitPlan(ctx, plans, func(d *control.PlanDocument) bool { return d.DesiredOf(id) == control.DesiredRemoved }); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	r.Plane.Replan = gapsOf(times)
	return nil
}

// traffic is how many bytes of messages pass the server in a second.
func traffic(ctx context.Context, g *plane.Gateway) float64 {
	before, began := g.BusBytes(), time.Now()
	select {
	case <-ctx.Done():
	case <-time.After(trafficTime):
	}
	return float64(g.BusBytes()-before) / time.Since(began).Seconds()
}

func awaitPlan(ctx context.Context, plans <-chan *control.PlanDocument, holds func(*control.PlanDocument) bool) error {
	limit := time.After(wholeTime)
	for {
		select {
		case d := <-plans:
			if holds(d) {
				return nil
			}
		case <-limit:
			return errors.New("the plan does not come")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func simulated(i int) string { return fmt.Sprintf("n%03d", i) }

// crowdOf puts a large model and nodes into the store, and lets these report.
func crowdOf(ctx context.Context, g *plane.Gateway, n int, wg *sync.WaitGroup) error {
	err := control.PutModel(ctx, g.Store(), &control.ModelRecord{
		ID: "big", Hash: fmt.Sprintf("%064d", 1), Size: 64 << 30, ContextLength: 8192, Created: time.Now(),
		Spec: swarm.ModelSpec{ID: "big", Layers: 80, LayerBytes: []int64{800 << 20}, KVBytes: 4096, ContextTokens: 8192},
	})
	if err != nil {
		return err
	}
	for i := range n {
		id := simulated(i)
		data, err := control.Encode(&control.NodeRecord{
			ID: id, Key: fmt.Sprintf("%064s", id), Incarnation: 1, Desired: control.DesiredActive,
			Profile: swarm.NodeProfile{ID: id, MemoryBytes: 24 << 30, Score: 10, LatencyMS: 1, Endpoints: []string{"127.0.0.1:7000"}},
		})
		if err == nil {
			_, err = g.Store().Create(ctx, control.BucketNodes, id, data)
		}
		if err != nil {
			return fmt.Errorf("simulate node %s: %w", id, err)
		}
		r := control.NewReporter(control.ReporterConfig{Node: id, Incarnation: 1, Instance: id, Fill: fillSimulated})
		wg.Go(func() { _ = r.Run(ctx, g.Bus()) })
	}
	return nil
}

// fillSimulated is a report of usual size.
func fillSimulated(h *control.Health) {
	h.State.Load, h.State.LatencyMS = swarm.Measured(0.25), swarm.Measured(12.5)
	for i := range 4 {
		layers := swarm.Layers(4*i, 4*i+2)
		h.Held = append(h.Held, control.HeldFragment{Model: "other", Layers: layers, State: control.HoldServing, Tokens: 12345})
		h.State.Fragments = append(h.State.Fragments, swarm.Fragment{Model: "other", Layers: layers})
	}
}
