package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"hecate/internal/chaos"
	"hecate/internal/gateway"
	"hecate/pool/faultproxy"
)

type chaosCmd struct {
	Arm      chaosArmCmd      `cmd:"" help:"For the next request: the node of a stage fails just before it computes a token."`
	Link     chaosLinkCmd     `cmd:"" help:"Delay, lose or cut what travels between the gateway and one node."`
	Run      chaosRunCmd      `cmd:"" help:"Play a script of failures against a swarm on this machine."`
	Proxy    chaosProxyCmd    `cmd:"" help:"A TCP proxy that delays, loses, falls silent, resets and refuses on command."`
	Upstream chaosUpstreamCmd `cmd:"" help:"A server of OpenAI's API that fails on purpose, to try clients and gateways on."`
}

type chaosArmCmd struct {
	where
	Model   string `help:"Only for requests to this model." placeholder:"ID"`
	Stage   int    `help:"Stage of the route, 0 is the first." required:""`
	AtToken int    `help:"Generated token before which it fails, 0 is the first." required:""`
	Action  string `help:"kill (the process dies), stop (it freezes) or drop (its packets vanish)." enum:"kill,stop,drop" default:"kill"`
	Rescues int    `help:"Not the node of the first route, but the one that takes over at the rescue of this number." placeholder:"N"`
	Also    bool   `help:"In the same request as the failure that was armed before."`
}

// Run arms one failure. The swarm must have been started with --allow-chaos.
func (a *chaosArmCmd) Run(ctx context.Context, c console) error {
	resp, err := a.call(ctx, http.MethodPost, "/v1/swarm/chaos/arm", gateway.ChaosOrder{
		Model: a.Model, Stage: a.Stage, AtToken: a.AtToken, Action: a.Action, Rescues: a.Rescues, Also: a.Also,
	})
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	who := fmt.Sprintf("the node of stage %d", a.Stage)
	if a.Rescues > 0 {
		who = fmt.Sprintf("the node that takes over stage %d at rescue %d", a.Stage, a.Rescues)
	}
	what := map[string]string{"kill": "dies", "stop": "freezes", "drop": "falls silent"}[a.Action]
	fmt.Fprintf(c.out, "armed: in the next request %s %s before token %d\n", who, what, a.AtToken)
	return nil
}

type chaosLinkCmd struct {
	where
	Node    string   `arg:"" help:"Name of the node."`
	Command []string `arg:"" help:"What is done to its link."`
}

// Help lists the commands.
func (*chaosLinkCmd) Help() string {
	return `Commands, each of the first four for one way when "up" (to the node) or "down" (from it) ends the line:
  delay 200ms [jitter 50ms]   loss 0.05   throttle 64KiB   drop
  partition   reset   refuse   heal
They last until heal. The gateway must have been started with --allow-chaos. The node's reports to the control plane pass.`
}

// Run changes the link of one node.
func (l *chaosLinkCmd) Run(ctx context.Context, c console) error {
	command, err := chaos.ParseLink(strings.Join(l.Command, " "))
	if err != nil {
		return usage("%s: %w", strings.Join(l.Command, " "), err)
	}
	h := &swarmHands{where: l.where}
	if err := h.Link(ctx, l.Node, command.String()); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "link of %s: %s\n", l.Node, command)
	return nil
}

type chaosProxyCmd struct {
	Target string `arg:"" help:"Where connections go, host:port."`
	Listen string `help:"Where they come from." default:"127.0.0.1:0"`
	Script string `help:"File of commands, one a line; without it commands are read from standard input." type:"existingfile" placeholder:"FILE"`
	Seed   uint64 `help:"Of jitter and loss." default:"1"`
}

// Help lists the commands.
func (*chaosProxyCmd) Help() string {
	return `Commands, each of the first five for one way when "up" or "down" ends the line:
  pass   delay 200ms [jitter 50ms]   loss 0.05   throttle 64KiB   drop
  half-close up|down   reset   refuse   accept   wait 2s (in scripts)`
}

// Run proxies until it is told to stop, or its script ends.
func (p *chaosProxyCmd) Run(ctx context.Context, c console) error {
	proxy, err := faultproxy.Listen(p.Listen, p.Target, faultproxy.Options{Seed: p.Seed})
	if err != nil {
		return fmt.Errorf("listen on %s: %w", p.Listen, err)
	}
	defer proxy.Close()
	fmt.Fprintf(c.out, "proxy %s -> %s\n", proxy.Addr(), p.Target)
	if p.Script != "" {
		return p.script(ctx, c, proxy)
	}
	go p.follow(ctx, c, proxy)
	<-ctx.Done()
	return nil
}

func (p *chaosProxyCmd) script(ctx context.Context, c console, proxy *faultproxy.Proxy) error {
	f, err := os.Open(p.Script)
	if err != nil {
		return usage("read the script: %w", err)
	}
	defer f.Close()
	commands, err := faultproxy.ParseScript(f)
	if err != nil {
		return usage("%s: %w", p.Script, err)
	}
	err = proxy.Run(ctx, commands, func(cmd faultproxy.Command) { fmt.Fprintln(c.out, cmd) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// follow obeys lines of standard input; a bad one is said and skipped.
func (p *chaosProxyCmd) follow(ctx context.Context, c console, proxy *faultproxy.Proxy) {
	lines := bufio.NewScanner(c.in)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		cmd, err := faultproxy.ParseCommand(lines.Text())
		if err == nil {
			err = proxy.Do(ctx, cmd)
		}
		if err != nil {
			fmt.Fprintf(c.err, "hecate: %v\n", err)
			continue
		}
		fmt.Fprintln(c.out, cmd)
	}
}
