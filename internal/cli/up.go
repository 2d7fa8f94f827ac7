package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/swarm"
)

type upCmd struct {
	Listen     string        `help:"Address of the API." default:"127.0.0.1:8080"`
	Data       string        `help:"Data folder." default:"${data}" type:"path"`
	Nodes      int           `help:"Worker processes." default:"3"`
	Copies     int           `help:"Complete copies of the model: any copies-1 nodes may die." default:"2"`
	NodeMemory bytesFlag     `help:"What each node may hold; the smallest size for which the plan is sound when absent." placeholder:"SIZE"`
	Model      string        `help:"GGUF file; the built-in demo model when absent." type:"path" placeholder:"FILE"`
	Threads    int           `help:"Threads that compute, per node." default:"1"`
	AllowHost  []string      `help:"Host names, besides loopback, that requests may name." placeholder:"NAME"`
	RescueTime time.Duration `help:"How long an answer that lost its last path waits for a node to return." default:"20s"`
	AllowChaos bool          `help:"Let hecate chaos make nodes fail, to rehearse failures."`
	JSON       bool          `help:"Print events as JSON lines."`
	Verbose    bool          `help:"Show the log of gateway and nodes." short:"v"`
	tlsFlags
	traceFlags
	Boundary  bytesFlag `help:"What boundary states of all answers may take; benchmarks take them away with 1." name:"boundary-memory" hidden:"" placeholder:"SIZE"`
	ShadeFrom int       `help:"Tokens of context from which shadows of stages are kept; below 0: never. Benchmarks compare." name:"shadow-from" default:"0" hidden:""`
}

// nodeNames are the names of local workers, in order; then come node10, node11...
var nodeNames = []string{"mini", "laptop", "desk", "tower", "attic", "studio", "rack", "nas", "den"}

func nodeName(i int) string {
	if i < len(nodeNames) {
		return nodeNames[i]
	}
	return "node" + strconv.Itoa(i+1)
}

// maxLocalNodes bounds what one machine is asked to run.
const maxLocalNodes = 32

// Run starts everything, says when it is ready, and keeps it running.
func (u *upCmd) Run(ctx context.Context, c console) error {
	if u.Nodes < 1 || u.Nodes > maxLocalNodes {
		return usage("--nodes is %d, want 1 to %d", u.Nodes, maxLocalNodes)
	}
	if u.Copies < 1 || u.Copies > u.Nodes {
		return usage("--copies is %d, want 1 to the number of nodes, %d", u.Copies, u.Nodes)
	}
	err := first(threads(u.Threads), notBelow("--rescue-time", u.RescueTime, true), address("--listen", u.Listen), u.tlsFlags.check(), u.traceFlags.check())
	if err != nil {
		return err
	}
	dir := dataDir(u.Data)
	say := &announcer{c: c, json: u.JSON}
	rec, err := u.record(ctx, dir)
	if err != nil {
		return err
	}
	if err := u.budget(rec); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	out := &lineWriter{w: c.err}
	if u.Verbose {
		log = logger(out, slog.LevelInfo)
	}
	return u.start(ctx, dir, rec, say, log, out)
}

// record describes the model to serve.
func (u *upCmd) record(ctx context.Context, dir dataDir) (*control.ModelRecord, error) {
	if u.Model == "" {
		return demoRecord(ctx, dir)
	}
	id, err := modelID(u.Model)
	if err != nil {
		return nil, &UsageError{err}
	}
	rec, err := describeModel(ctx, dir, u.Model, id, nil)
	if err != nil {
		return nil, &UsageError{err}
	}
	return rec, nil
}

func (u *upCmd) planner() swarm.Planner { return swarm.Planner{Copies: u.Copies} }

// budget finds the nodes' memory, or checks that the given one is enough.
func (u *upCmd) budget(rec *control.ModelRecord) error {
	least, err := u.planner().MinimumNodeMemory(rec.Spec, u.Nodes, u.Copies)
	if err != nil {
		return fmt.Errorf("plan %d copies of %s on %d nodes: %w", u.Copies, rec.ID, u.Nodes, err)
	}
	if u.NodeMemory == 0 {
		u.NodeMemory = bytesFlag(least)
	}
	if int64(u.NodeMemory) < least {
		short := least - int64(u.NodeMemory)
		return fmt.Errorf("%d copies of %s do not fit on %d nodes of %s: each lacks %d bytes (%s in all); give --node-memory %d or more, or more nodes",
			u.Copies, rec.ID, u.Nodes, sizeOf(int64(u.NodeMemory)), short, sizeOf(short*int64(u.Nodes)), least)
	}
	return nil
}

// start opens the host, keeps the workers alive, and waits for the end.
func (u *upCmd) start(ctx context.Context, dir dataDir, rec *control.ModelRecord, say *announcer, log *slog.Logger, out *lineWriter) error {
	h, err := openHost(ctx, hostConfig{
		dir: dir, name: "gateway", listen: u.Listen, allowHosts: u.AllowHost, allowChaos: u.AllowChaos, rescueTime: u.RescueTime,
		planner: u.planner(), firstNodes: u.Nodes, tls: u.tlsFlags, trace: u.traceFlags, memory: int64(u.Boundary), shadeFrom: u.ShadeFrom, log: log,
	})
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.catalogue(ctx, rec); err != nil {
		return err
	}
	token, err := h.token(ctx, enrol.TokenOptions{Uses: u.Nodes, Life: time.Hour, Note: "hecate up"})
	if err != nil {
		return err
	}
	if err := h.mentionKeys(ctx, say); err != nil {
		return err
	}
	url := h.url(nil)
	say.starting(u, rec)
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for i := range u.Nodes {
		child := u.child(dir, nodeName(i), token, say, log, out)
		wg.Go(func() { child.keep(ctx) })
	}
	wg.Go(func() { u.announce(ctx, h, dir, url, rec, say) })
	err = h.run(ctx)
	dir.hide()
	say.event("stopped", "", nil)
	return err
}

// child is one worker of ours.
func (u *upCmd) child(dir dataDir, name, token string, say *announcer, log *slog.Logger, out *lineWriter) *child {
	args := []string{"node", "run", "--leash", "--name", name, "--data", dir.file("nodes", name), "--listen", "127.0.0.1:0",
		"--memory", fmt.Sprint(int64(u.NodeMemory)), "--threads", fmt.Sprint(u.Threads), "--score", fmt.Sprint(max(1, u.Threads)), "--shared-store", dir.file("weights")}
	if u.AllowChaos {
		args = append(args, "--allow-chaos")
	}
	ch := &child{name: name, args: args, log: log, out: out, env: []string{"HECATE_JOIN=" + token}}
	ch.died = func(pid int, err error) {
		say.event("node died", fmt.Sprintf("%s (pid %d) ended: %s; starting it again", name, pid, orFine(err)), map[string]any{"node": name, "pid": pid})
	}
	if !u.Verbose {
		ch.out = io.Discard
	}
	return ch
}

func orFine(err error) string {
	if err == nil {
		return "by itself"
	}
	return err.Error()
}

// wholeWait is how long `ready` waits for the other copies once one is there:
// who pulls a plug right after it should not be disappointed.
const wholeWait = 10 * time.Second

// stillWaiting is how often a start that takes long says what it waits for.
const stillWaiting = 15 * time.Second

// announce prints the one line that others wait for, when the first request can
// be served.
func (u *upCmd) announce(ctx context.Context, h *host, dir dataDir, url string, rec *control.ModelRecord, say *announcer) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var first time.Time // when the first copy could be asked
	patience := time.NewTicker(stillWaiting)
	defer patience.Stop()
	for !h.gateway.Settled() {
		if first.IsZero() && h.gateway.Ready() {
			first = time.Now()
		}
		if !first.IsZero() && time.Since(first) > wholeWait {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			say.event("waiting", "still waiting: "+strings.Join(h.gateway.Status().Why, "; "), nil)
		case <-tick.C:
		}
	}
	if err := dir.announce(url); err != nil {
		h.cfg.log.Error("the address was not written down", "because", err)
	}
	say.ready(url, rec)
}

// announcer prints what happens, for people or as JSON lines.
type announcer struct {
	mu   sync.Mutex
	c    console
	json bool
}

func (a *announcer) event(kind, text string, more map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.json {
		line := map[string]any{"event": kind, "time": time.Now().UTC().Format(time.RFC3339Nano)}
		for k, v := range more {
			line[k] = v
		}
		b, err := json.Marshal(line)
		if err == nil {
			fmt.Fprintf(a.c.out, "%s\n", b)
		}
		return
	}
	if text != "" {
		fmt.Fprintln(a.c.out, text)
	}
}

func (a *announcer) starting(u *upCmd, rec *control.ModelRecord) {
	what := fmt.Sprintf("model %s (%s)", rec.ID, sizeOf(rec.Size))
	if rec.Demo {
		what = fmt.Sprintf("the built-in demo model (%s: a toy, it makes mistakes)", sizeOf(rec.Size))
	}
	a.event("starting", fmt.Sprintf("starting %d nodes of %s each for %d copies of %s", u.Nodes, sizeOf(int64(u.NodeMemory)), u.Copies, what),
		map[string]any{"nodes": u.Nodes, "copies": u.Copies, "model": rec.ID, "node_memory": int64(u.NodeMemory), "pid": os.Getpid()})
}

func (a *announcer) ready(url string, rec *control.ModelRecord) {
	a.event("ready", "ready "+url, map[string]any{"url": url, "model": rec.ID})
	if a.json {
		return
	}
	a.event("", fmt.Sprintf(`
  see      %s/
  ask      bin/hecate chat --url %s
  or       curl %s/v1/chat/completions -d '{"model":"%s","messages":[{"role":"user","content":"Tell me a long story about a fox and a lantern."}],"stream":true}'
  look     bin/hecate status --url %s
  Ctrl-C stops everything.
`, url, url, url, rec.ID, url), nil)
}
