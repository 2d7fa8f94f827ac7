package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hecate/internal/sim"
	"hecate/swarm"
)

type simCmd struct {
	weighing
	Topology string `help:"Simulate the swarm of this topology file." placeholder:"FILE"`
	Nodes    int    `help:"Size of a made-up swarm, without --topology." default:"60"`
	Models   int    `help:"Models of the made-up swarm." default:"1"`
	Even     bool   `help:"Make all nodes of the made-up swarm alike."`
	Copies   int    `help:"Copies of each model; 0: two of a topology file's, as many as fit in a made-up swarm." default:"0"`

	Requests int           `help:"How many requests come one by one." default:"10000"`
	Rate     float64       `help:"How many of them per second; 0: as many as keep the swarm busy to six tenths." default:"0"`
	Burst    int           `help:"How many more requests come at once." default:"0"`
	BurstAt  time.Duration `help:"When the burst comes." default:"10s"`
	BurstFor time.Duration `help:"How long the burst lasts." default:"1s"`
	Trace    string        `help:"Recorded requests instead: one a line, seconds, prompt and answer tokens, perhaps a model." placeholder:"FILE"`
	Prompt   int           `help:"Mean length of a prompt, in tokens." default:"256"`
	Output   int           `help:"Mean length of an answer, in tokens." default:"128"`

	TelemetryDelay time.Duration `help:"How late health reports arrive." default:"200ms"`
	TelemetryEvery time.Duration `help:"Time between two reports of a node." default:"1s"`
	Gateways       int           `help:"Gateways that share the requests; each knows its own reservations only." default:"1"`
	Kill           []string      `help:"Deaths of nodes: NODE@WHEN or NODE@WHEN+HOWLONG." placeholder:"NODE@10s+30s"`
	Deaths         int           `help:"How many deaths of nodes drawn by lot." default:"0"`
	DeathFor       time.Duration `help:"How long a node drawn by lot stays away." default:"30s"`
	Detect         time.Duration `help:"Time from a death to its detection." default:"300ms"`

	LayerTime time.Duration `help:"One decode step through one layer on a node of score 1." default:"3ms"`
	Slots     int           `help:"Sessions that a node computes in one batch." default:"8"`
	Piece     int           `help:"Tokens between two looks at the batches; 1 is exact and slow." default:"16"`
	Assemble  string        `help:"When routes may leave the planned copies: cheaper, broken, never, or auto: cheaper below 256 nodes, else broken." enum:"auto,cheaper,broken,never" default:"auto"`

	Policy []string `help:"Policies to compare, by name; all when absent." placeholder:"NAME"`
	Seed   uint64   `help:"Everything left to chance follows from it." default:"1"`
	JSON   bool     `help:"Print as JSON."`
	SVG    string   `help:"Draw a chart into this file." type:"path" placeholder:"FILE"`
}

// Help is what hecate sim --help says after the flags.
func (simCmd) Help() string {
	var b strings.Builder
	b.WriteString("Policies:\n")
	for _, p := range sim.Policies() {
		fmt.Fprintf(&b, "  %-13s %s\n", p.Name, p.About)
	}
	return b.String()
}

// simDocument is what --json prints. It does not say how long it took, so that
// the same command prints the same.
type simDocument struct {
	Nodes          int          `json:"nodes"`
	Copies         int          `json:"copies"`
	Requests       int          `json:"requests"`
	Rate           float64      `json:"requests_per_second"` // of those that come one by one
	Capacity       float64      `json:"capacity_per_second"`
	TelemetryDelay float64      `json:"telemetry_delay_ms"`
	Seed           uint64       `json:"seed"`
	Results        []sim.Result `json:"results"`
}

// Run simulates one scenario under every policy.
func (s *simCmd) Run(ctx context.Context, c console) error {
	policies, err := sim.PoliciesNamed(s.Policy...)
	if err != nil {
		return &UsageError{err}
	}
	began := time.Now()
	scenario, doc, err := s.scenario()
	if err != nil {
		return err
	}
	planned := time.Now()
	if doc.Results, err = sim.Compare(ctx, scenario, policies); err != nil {
		return &UsageError{err}
	}
	if s.SVG != "" {
		if err := s.draw(doc); err != nil {
			return err
		}
	}
	if s.JSON {
		return printJSON(c.out, doc)
	}
	printSim(c.out, doc)
	fmt.Fprintf(c.err, "planned in %.1f s, simulated in %.1f s\n", planned.Sub(began).Seconds(), time.Since(planned).Seconds())
	return nil
}

// scenario puts the flags together.
func (s *simCmd) scenario() (sim.Scenario, simDocument, error) {
	var none sim.Scenario
	t, err := s.topology()
	if err != nil {
		return none, simDocument{}, err
	}
	weights, err := s.weights()
	if err != nil {
		return none, simDocument{}, err
	}
	plan, err := swarm.Planner{Copies: s.Copies, Weights: weights}.Plan(t.Nodes, t.Models, nil)
	if err != nil {
		return none, simDocument{}, &UsageError{err}
	}
	out := sim.Scenario{Plan: plan, Hardware: sim.Hardware{LayerTime: s.LayerTime, Slots: s.Slots},
		Telemetry: sim.Telemetry{Every: s.TelemetryEvery, Delay: s.TelemetryDelay},
		Detect:    s.Detect, Gateways: s.Gateways, Piece: s.Piece, Seed: s.Seed, Weights: weights}
	out.Policy.Assemble = s.assemble(len(t.Nodes))
	doc := simDocument{Nodes: len(t.Nodes), Copies: len(plan.Pipelines), Rate: s.Rate, Seed: s.Seed,
		TelemetryDelay: float64(s.TelemetryDelay) / float64(time.Millisecond)}
	if err := s.arrivals(&out, &doc); err != nil {
		return none, doc, err
	}
	doc.Requests = len(out.Arrivals)
	out.Outages, err = s.outages(&out)
	return out, doc, err
}

func (s *simCmd) topology() (swarm.Topology, error) {
	if s.Copies < 0 {
		return swarm.Topology{}, usage("--copies is %d, want at least 0", s.Copies)
	}
	if s.Topology != "" {
		return readTopology(s.Topology)
	}
	t, err := sim.Generate(sim.Size{Nodes: s.Nodes, Models: s.Models, Copies: s.Copies, Even: s.Even}, s.Seed)
	if err != nil {
		return t, &UsageError{err}
	}
	return t, nil
}

// largeSwarm is from where on pricing every node for every request takes
// longer than most simulations are worth.
const largeSwarm = 256

func (s *simCmd) assemble(nodes int) swarm.AssembleMode {
	switch {
	case s.Assemble == "never":
		return swarm.AssembleNever
	case s.Assemble == "broken", s.Assemble == "auto" && nodes >= largeSwarm:
		return swarm.AssembleBroken
	}
	return swarm.AssembleCheaper
}

// mostRequests bounds what is kept in memory: some 40 bytes each.
const mostRequests = 20_000_000

// arrivals are the trace's, or those made up.
func (s *simCmd) arrivals(out *sim.Scenario, doc *simDocument) error {
	lengths := sim.Lengths{Prompt: s.Prompt, Output: s.Output}
	if s.Prompt < 1 || s.Output < 1 {
		return usage("prompts of %d and answers of %d tokens on average, want at least 1", s.Prompt, s.Output)
	}
	doc.Capacity = sim.Capacity(out.Plan, out.Hardware, lengths)
	if s.Trace != "" {
		return s.trace(out, doc)
	}
	switch {
	case s.Requests < 0, s.Burst < 0, s.Requests > mostRequests-s.Burst:
		return usage("--requests %d and --burst %d: want 0 to %d in all", s.Requests, s.Burst, mostRequests)
	case !(s.Rate >= 0 && s.Rate <= mostRequests):
		return usage("--rate is %v, want 0 to %d requests per second", s.Rate, mostRequests)
	case s.BurstAt < 0 || s.BurstFor < 0:
		return usage("--burst-at %v and --burst-for %v cannot be below zero", s.BurstAt, s.BurstFor)
	}
	if doc.Rate == 0 {
		doc.Rate = 0.6 * doc.Capacity
	}
	models := sim.Traffic(out.Plan)
	if len(models) == 0 {
		return usage("no model has a copy: %s", unplacedReason(out.Plan))
	}
	steady := sim.Poisson(s.Requests, doc.Rate, lengths, models, s.Seed)
	out.Arrivals = steady
	if s.Burst > 0 {
		burst := sim.Burst(s.Burst, s.BurstAt, s.BurstFor, lengths, models, s.Seed)
		out.Arrivals = sim.Merge(steady, burst)
		out.Watch = sim.Span{From: s.BurstAt, To: s.BurstAt + s.BurstFor + s.TelemetryDelay}
	}
	return nil
}

// unplacedReason says why the first model found no room.
func unplacedReason(plan *swarm.Plan) string {
	for _, u := range plan.Unplaced {
		return fmt.Sprintf("%s: %s", u.Model, u.Reason)
	}
	return "the plan is empty"
}

func (s *simCmd) trace(out *sim.Scenario, doc *simDocument) error {
	f, err := os.Open(filepath.Clean(s.Trace))
	if err != nil {
		return usage("--trace: %w", err)
	}
	defer f.Close()
	if out.Arrivals, err = sim.ReadTrace(f, out.Plan.Models); err != nil {
		return usage("%s: %w", s.Trace, err)
	}
	doc.Rate = 0
	return nil
}

// outages are those that were asked for and those drawn by lot, spread over
// the time in which requests arrive.
func (s *simCmd) outages(sc *sim.Scenario) ([]sim.Outage, error) {
	var out []sim.Outage
	for _, text := range s.Kill {
		o, err := parseOutage(text)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if s.Deaths < 0 || s.Deaths > 0 && s.Deaths > len(sc.Plan.Nodes) {
		return nil, usage("--deaths is %d, the swarm has %d nodes and each dies once", s.Deaths, len(sc.Plan.Nodes))
	}
	if len(sc.Arrivals) == 0 {
		return nil, usage("no requests: --requests, --burst and --trace give none")
	}
	chance := rand.New(rand.NewPCG(s.Seed, 0x6465617468730000))
	span := float64(sc.Arrivals[len(sc.Arrivals)-1].At)
	for _, n := range chance.Perm(len(sc.Plan.Nodes))[:s.Deaths] {
		out = append(out, sim.Outage{Node: sc.Plan.Nodes[n].Profile.ID, At: time.Duration(chance.Float64() * span), For: s.DeathFor})
	}
	return out, nil
}

func parseOutage(text string) (sim.Outage, error) {
	node, times, ok := strings.Cut(text, "@")
	at, long, comesBack := strings.Cut(times, "+")
	var o sim.Outage
	var err error
	if o.Node = node; ok && node != "" {
		if o.At, err = time.ParseDuration(at); err == nil && comesBack {
			o.For, err = time.ParseDuration(long)
		}
		if err == nil {
			return o, nil
		}
	}
	return o, usage("--kill %s: want NODE@WHEN or NODE@WHEN+HOWLONG, such as gpu@10s+30s", strconv.Quote(text))
}

func printSim(w io.Writer, d simDocument) {
	fmt.Fprintf(w, "%d nodes, %d copies, %d requests; reports arrive %v late; the swarm can finish %.1f requests/s\n\n",
		d.Nodes, d.Copies, d.Requests, time.Duration(d.TelemetryDelay*float64(time.Millisecond)), d.Capacity)
	t := table(w)
	fmt.Fprintln(t, "POLICY\tLATENCY p50\tp90\tp99\tFIRST TOKEN p50\tp99\tLOAD max/mean\tPEAK\tRESCUED\tLOST\tREFUSED")
	for _, r := range d.Results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%d\t%d\t%d\t%d\n", r.Policy, seconds(r.Latency.P50), seconds(r.Latency.P90), seconds(r.Latency.P99),
			seconds(r.FirstToken.P50), seconds(r.FirstToken.P99), r.Load.MaxOverMean, r.PeakSessions, r.Rescued, r.Lost, r.Refused)
	}
	_ = t.Flush()
}

// seconds prints milliseconds as seconds.
func seconds(ms float64) string { return fmt.Sprintf("%.2f s", ms/1000) }

// draw makes a chart of the results.
func (s *simCmd) draw(d simDocument) error {
	nodes := fmt.Sprintf("%d nodes", d.Nodes)
	if s.Even && s.Topology == "" {
		nodes = fmt.Sprintf("%d alike nodes", d.Nodes)
	}
	title := fmt.Sprintf("%d requests on %s with %d copies", d.Requests, nodes, d.Copies)
	if s.Trace == "" && s.Burst > 0 {
		title = fmt.Sprintf("A burst of %d requests within %v on %s with %d copies", s.Burst, s.BurstFor, nodes, d.Copies)
	}
	note := fmt.Sprintf("health reports every %v, %v late; %.0f requests/s besides, %.0f%% of what the swarm can finish; seed %d",
		s.TelemetryEvery, s.TelemetryDelay, d.Rate, 100*d.Rate/d.Capacity, d.Seed)
	chart := sim.Comparison(title, note, d.Results)
	f, err := os.Create(filepath.Clean(s.SVG))
	if err != nil {
		return usage("--svg: %w", err)
	}
	if err := errors.Join(chart.WriteSVG(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", s.SVG, err)
	}
	return nil
}
