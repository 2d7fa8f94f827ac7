package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/internal/control/plane"
	"hecate/swarm"
)

type serveCmd struct {
	Listen     string        `help:"Address of the API. Off loopback it wants API keys." default:"127.0.0.1:8080"`
	JoinListen string        `help:"Address where machines join; the API's host and a free port that stays the same when absent." placeholder:"ADDR"`
	BusListen  string        `help:"Address of the control plane; the host of --join-listen and a free port that stays the same when absent." placeholder:"ADDR"`
	DataListen string        `help:"Address to which nodes connect that cannot be reached; the host of --join-listen and a free port that stays the same when absent." placeholder:"ADDR"`
	Advertise  []string      `help:"Hosts under which nodes reach this machine; what it listens on when absent." placeholder:"HOST"`
	Data       string        `help:"Data folder." default:"${data}" type:"path"`
	Name       string        `help:"Id of this gateway in the swarm." default:"gateway"`
	Model      string        `help:"GGUF file to serve; what the catalogue holds when absent, and the built-in demo model when that is empty." type:"path" placeholder:"FILE"`
	NoModel    bool          `help:"Put no model into an empty catalogue: a gateway to engines only, or to what is added later."`
	Copies     int           `help:"Complete copies of a model: any copies-1 nodes may die." default:"2"`
	AllowHost  []string      `help:"Host names, besides loopback and --advertise, that requests may name." placeholder:"NAME"`
	RequireKey bool          `help:"Want API keys on loopback too, as behind a proxy."`
	TokenUses  int           `help:"How many machines the printed join token lets in; 0 prints none." default:"16"`
	TokenLife  time.Duration `help:"How long the printed join token is good." default:"24h"`
	RescueTime time.Duration `help:"How long an answer that lost its last path waits for a node to return." default:"20s"`
	SendRate   bytesFlag     `help:"Bytes per second that weights on their way to nodes may take; unbounded when absent." placeholder:"SIZE"`
	AllowChaos bool          `help:"Let hecate chaos make nodes fail, to rehearse failures."`
	JSON       bool          `help:"Print events as JSON lines."`
	Verbose    bool          `help:"Show the log." short:"v"`

	tlsFlags
	traceFlags
	natsFlags
}

// natsFlags name a NATS cluster that somebody else runs.
type natsFlags struct {
	NATS         []string `help:"Use an existing NATS cluster instead of the built-in server, tls://host:port of each server." name:"nats" placeholder:"URL"`
	NATSTrust    string   `help:"PEM file with the authority of the cluster's certificates." name:"nats-trust" type:"path" placeholder:"FILE"`
	NATSAccounts string   `help:"File with the keys of an account of your own operator; the swarm's own account when absent." name:"nats-accounts" type:"path" placeholder:"FILE"`
	NATSReplicas int      `help:"Replicas of each bucket." name:"nats-replicas" default:"3"`
	NATSConfig   bool     `help:"Print what the configuration of each server of the cluster must include, and end." name:"nats-config"`
}

// external is the cluster that the flags name, nil when they name none.
func (n *natsFlags) external() (*plane.External, error) {
	switch {
	case len(n.NATS) == 0 && (n.NATSTrust != "" || n.NATSAccounts != ""):
		return nil, usage("--nats-trust and --nats-accounts are for a NATS cluster: name its servers with --nats")
	case len(n.NATS) == 0:
		return nil, nil
	case n.NATSTrust == "":
		return nil, usage("--nats needs --nats-trust FILE: the certificate of the authority that signed the cluster's certificates")
	case n.NATSReplicas < 1 || n.NATSReplicas > 5:
		return nil, usage("--nats-replicas is %d, want 1 to 5", n.NATSReplicas)
	}
	return &plane.External{Servers: n.NATS, Trust: n.NATSTrust, Accounts: n.NATSAccounts, Replicas: n.NATSReplicas}, nil
}

// maxTokenUses bounds what one join token lets in.
const maxTokenUses = 10_000

// Run serves until it is told to stop.
func (s *serveCmd) Run(ctx context.Context, c console) error {
	if s.NATSConfig {
		return s.printNATS(c)
	}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	if s.Verbose {
		cfg.log = logger(c.err, slog.LevelInfo)
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return err
	}
	defer h.close()
	if err := s.stock(ctx, h); err != nil {
		return err
	}
	say := &announcer{c: c, json: s.JSON}
	if err := s.invite(ctx, h, say); err != nil {
		return err
	}
	if err := h.mentionKeys(ctx, say); err != nil {
		return err
	}
	return s.serve(ctx, h, say)
}

// serve says where the API is as soon as it answers: nodes come later.
func (s *serveCmd) serve(ctx context.Context, h *host, say *announcer) error {
	url := h.url(s.Advertise)
	if err := h.cfg.dir.announce(h.url(nil)); err != nil {
		return fmt.Errorf("write down the address: %w", err)
	}
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { err = h.run(ctx) })
	say.event("ready", "ready "+url, map[string]any{"url": url})
	wg.Wait()
	h.cfg.dir.hide()
	say.event("stopped", "", nil)
	return err
}

// config checks the flags; what is wrong is the caller's mistake.
func (s *serveCmd) config() (hostConfig, error) {
	cfg := hostConfig{
		dir: dataDir(s.Data), name: s.Name, listen: s.Listen, allowHosts: s.AllowHost, allowChaos: s.AllowChaos, requireKey: s.RequireKey,
		rescueTime: s.RescueTime, sendRate: int64(s.SendRate), planner: swarm.Planner{Copies: s.Copies}, log: slog.New(slog.DiscardHandler),
	}
	if s.NoModel && s.Model != "" {
		return cfg, usage("either --model or --no-model, not both")
	}
	cfg.tls, cfg.trace = s.tlsFlags, s.traceFlags
	if err := errors.Join(cfg.tls.check(), cfg.trace.check()); err != nil {
		return cfg, err
	}
	if err := address("--listen", s.Listen); err != nil {
		return cfg, err
	}
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return cfg, err
	}
	if err := control.ValidateNodeName(s.Name); err != nil {
		return cfg, usage("--name: %w", err)
	}
	if s.Copies < 1 {
		return cfg, usage("--copies is %d, want at least 1", s.Copies)
	}
	if err := first(notBelow("--rescue-time", s.RescueTime, true), notBelow("--token-life", s.TokenLife, false), each("--advertise", s.Advertise, bareHost)); err != nil {
		return cfg, err
	}
	if s.TokenUses < 0 || s.TokenUses > maxTokenUses {
		return cfg, usage("--token-uses is %d, want 0 to %d", s.TokenUses, maxTokenUses)
	}
	if cfg.members, err = s.members(host); err != nil {
		return cfg, err
	}
	cfg.allowHosts = append(append(cfg.allowHosts, s.Advertise...), ownName(host)...)
	return cfg, nil
}

// members is where nodes reach this gateway: by default where the API is.
func (s *serveCmd) members(host string) (m membersConfig, err error) {
	if m.external, err = s.external(); err != nil {
		return m, err
	}
	m.join, m.bus, m.data, m.advertise = s.JoinListen, s.BusListen, s.DataListen, s.Advertise
	if m.join == "" {
		m.join = net.JoinHostPort(host, "0")
	}
	host, _, err = net.SplitHostPort(m.join)
	if err != nil {
		return m, usage("--join-listen %s is no address, want host:port: %w", m.join, err)
	}
	if m.bus == "" {
		m.bus = net.JoinHostPort(host, "0")
	}
	if _, _, err = net.SplitHostPort(m.bus); err != nil {
		return m, usage("--bus-listen %s is no address, want host:port: %w", m.bus, err)
	}
	if m.data == "" {
		m.data = net.JoinHostPort(host, "0")
	}
	if _, _, err = net.SplitHostPort(m.data); err != nil {
		return m, usage("--data-listen %s is no address, want host:port: %w", m.data, err)
	}
	return m, nil
}

// ownName is what requests may name when the API listens on one address.
func ownName(host string) []string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil
	}
	return []string{host}
}

// reachable is an address to type: of the first host given, else of a listener,
// with loopback in place of "everywhere".
func reachable(a net.Addr, hosts []string) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if len(hosts) > 0 {
			host = hosts[0]
		}
	}
	return net.JoinHostPort(host, port)
}

// stock puts the model into the catalogue. The demo gives way to a real one.
func (s *serveCmd) stock(ctx context.Context, h *host) error {
	store := h.plane.Store()
	have, err := control.Models(ctx, store)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	if s.Model == "" {
		if len(have) > 0 || s.NoModel {
			return h.restock(ctx, have)
		}
		rec, err := demoRecord(ctx, h.cfg.dir)
		if err != nil {
			return err
		}
		return control.PutModel(ctx, store, rec)
	}
	id, err := modelID(s.Model)
	if err != nil {
		return &UsageError{err}
	}
	rec, err := describeModel(ctx, h.cfg.dir, s.Model, id, nil)
	if err != nil {
		return &UsageError{err}
	}
	for _, m := range have {
		if m.Demo && m.ID != id {
			if err := control.RemoveModel(ctx, store, m.ID); err != nil {
				return fmt.Errorf("take out the demo model: %w", err)
			}
		}
		if m.ID == id && m.Hash == rec.Hash {
			rec.Created = m.Created
		}
	}
	return control.PutModel(ctx, store, rec)
}

// serveNote marks the tokens that serve makes by itself.
const serveNote = "hecate serve"

// invite prints a join token, after clearing away its predecessors whose time
// is over.
func (s *serveCmd) invite(ctx context.Context, h *host, say *announcer) error {
	if s.TokenUses == 0 {
		return nil
	}
	old, err := h.plane.Tokens().List(ctx)
	if err != nil {
		return fmt.Errorf("list the join tokens: %w", err)
	}
	for _, t := range old {
		if t.Note == serveNote && time.Now().After(t.Expires) {
			if err := h.plane.Tokens().Revoke(ctx, t.ID); err != nil {
				return fmt.Errorf("clear away an old join token: %w", err)
			}
		}
	}
	token, err := h.token(ctx, enrol.TokenOptions{Uses: s.TokenUses, Life: s.TokenLife, Note: serveNote})
	if err != nil {
		return err
	}
	say.event("token", "join    hecate node run --join "+token, map[string]any{"token": token, "uses": s.TokenUses, "life_seconds": s.TokenLife.Seconds()})
	return nil
}

func (s *serveCmd) printNATS(c console) error {
	text, err := plane.ServerConfig(s.Data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, text)
	return err
}
