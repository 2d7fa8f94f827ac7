package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"

	"hecate/internal/chaos"
	"hecate/internal/gateway"
	"hecate/internal/report"
)

// swarmHands do what a script says to a swarm on this machine.
type swarmHands struct {
	where
	processes map[string]*os.Process // by node: a frozen node's pid is in no status any more
}

// Do signals the node's process, after a look whether it is one.
func (h *swarmHands) Do(ctx context.Context, node string, act chaos.Act) error {
	if err := h.here(ctx); err != nil {
		return err
	}
	p, err := h.process(ctx, node)
	if held := h.processes[node]; err != nil && act == chaos.Continue && held != nil {
		p, err = held, nil // whatever became of the gateway, what we froze must go on
	}
	if err != nil {
		return err
	}
	if err := signalProcess(p, act); err != nil {
		return fmt.Errorf("signal process %d of %s: %w", p.Pid, node, err)
	}
	return nil
}

// process finds a node's process and makes sure that it is one.
func (h *swarmHands) process(ctx context.Context, node string) (*os.Process, error) {
	var st report.Status
	if err := h.get(ctx, "/v1/swarm", &st); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(st.Nodes, func(n report.Node) bool { return n.ID == node })
	if i < 0 {
		return nil, fmt.Errorf("there is no node %s", node)
	}
	held := h.processes[node]
	pid := st.Nodes[i].PID
	switch {
	case pid == 0 && held == nil:
		return nil, fmt.Errorf("%s has no process here: it is dead, or runs on another machine", node)
	case held != nil && (pid == 0 || pid == held.Pid):
		return held, nil
	}
	// First a handle on the process, then the look at it: a pid that is given to
	// another program in between is not followed.
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("find process %d of %s: %w", pid, node, err)
	}
	args, err := commandLine(pid)
	if err != nil {
		return nil, fmt.Errorf("look at process %d of %s: %w", pid, node, err)
	}
	if !isWorker(args, node) {
		return nil, fmt.Errorf("process %d is no worker named %s on this machine; it is left alone", pid, node)
	}
	h.processes[node] = p
	return p, nil
}

// here makes sure that pids of the gateway are pids of this machine.
func (h *swarmHands) here(ctx context.Context) error {
	base, err := h.base()
	if err != nil {
		return err
	}
	u, err := url.Parse(base)
	if err != nil {
		return usage("%s is no address of a gateway: %w", base, err)
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, u.Hostname())
	if err != nil {
		return fmt.Errorf("find the machine of the gateway: %w", err)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("find the addresses of this machine: %w", err)
	}
	for _, ip := range ips {
		if ip.IP.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip.IP)
		}) {
			return nil
		}
	}
	return fmt.Errorf("the gateway %s is on another machine: run the script there", base)
}

// Arm arms a failure for the next request.
func (h *swarmHands) Arm(ctx context.Context, o chaos.Order) error {
	resp, err := h.call(ctx, http.MethodPost, "/v1/swarm/chaos/arm", gateway.ChaosOrder{
		Model: o.Model, Stage: o.Stage, AtToken: o.AtToken, Action: o.Action, Rescues: o.Rescues, Also: o.Also,
	})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Link lets the gateway do it: its links lead through proxies of its own.
func (h *swarmHands) Link(ctx context.Context, node, command string) error {
	resp, err := h.call(ctx, http.MethodPost, "/v1/swarm/chaos/link", gateway.LinkOrder{Node: node, Command: command})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Look asks the gateway.
func (h *swarmHands) Look(ctx context.Context) (chaos.Sight, error) {
	var st report.Status
	if err := h.get(ctx, "/v1/swarm", &st); err != nil {
		return chaos.Sight{}, err
	}
	s := chaos.Sight{State: st.State, Why: st.Why, Alive: map[string]bool{}, PID: map[string]int{}, Lost: st.Answers.Lost}
	for _, n := range st.Nodes {
		s.Alive[n.ID], s.PID[n.ID] = n.Alive, n.PID
	}
	for _, n := range st.Answers.Rescues {
		s.Rescues += n
	}
	return s, nil
}
