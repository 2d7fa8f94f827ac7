package plane

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/discovery"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
	"hecate/internal/control/natsbus"
)

// NodeConfig says who a node is.
type NodeConfig struct {
	// Dir is the data folder: key, certificate, where the swarm is. It is
	// locked as long as the node is open.
	Dir string
	// Name is the node's id; empty: the name it enrolled under, else the
	// host's.
	Name string
	// Token is a join token; needed only the first time.
	Token string
	// Gateways are more enrolment addresses to try, host:port.
	Gateways []string
	// NoDiscovery keeps the node from asking the network for its gateway when
	// none can be reached where one was known.
	NoDiscovery bool
	Log         *slog.Logger // nil: silent
}

// A Node is this machine's place in a swarm.
type Node struct {
	cfg       NodeConfig
	lock      *FolderLock
	enrolment *enrol.Enrolment
	instance  string
	user      *natsbus.User
	mu        struct {
		sync.Mutex
		reporter *control.Reporter // nil before it was attached
	}
}

// OpenNode opens the node's identity, and enrols it first when it has none.
func OpenNode(ctx context.Context, cfg NodeConfig) (*Node, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	lock, err := LockFolder(cfg.Dir)
	if err != nil {
		return nil, err
	}
	e, err := openEnrolment(ctx, cfg)
	if err == nil && cfg.Name != "" && cfg.Name != e.Name() {
		err = fmt.Errorf("%s is enrolled as %q, not as %q: use another data folder for another node", cfg.Dir, e.Name(), cfg.Name)
	}
	var user *natsbus.User
	if err == nil {
		user, err = natsbus.NewUser()
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return &Node{cfg: cfg, lock: lock, enrolment: e, instance: rand.Text(), user: user}, nil
}

func openEnrolment(ctx context.Context, cfg NodeConfig) (*enrol.Enrolment, error) {
	how := enrol.Options{
		Gateways: cfg.Gateways,
		Trouble:  func(err error) { cfg.Log.Warn("the gateway has trouble, asking again", "error", err) },
		Unkept: func(err error) {
			cfg.Log.Warn("what the gateway said was not written down, it is asked again after a restart; make room on the disk of "+cfg.Dir, "error", err)
		},
	}
	if !cfg.NoDiscovery {
		how.Find = cfg.find
	}
	if cfg.Token == "" {
		return enrol.Load(cfg.Dir, how)
	}
	token, err := enrol.ParseToken(cfg.Token)
	if err != nil {
		return nil, err
	}
	name := cfg.Name
	if name == "" {
		if name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("this machine has no name, give one: %w", err)
		}
	}
	return enrol.Join(ctx, cfg.Dir, token, name, how)
}

// findWithin is how long gateways on the network have to answer.
const findWithin = 1500 * time.Millisecond

func (cfg NodeConfig) find(ctx context.Context, authority [32]byte) []string {
	found, err := discovery.Find(ctx, discovery.Tag(authority), findWithin)
	if err != nil {
		cfg.Log.Info("the network could not be asked for a gateway", "error", err)
	}
	return found
}

// ID is the node's name in the swarm.
func (n *Node) ID() string { return n.enrolment.Name() }

// Credentials are the node's, for its data plane.
func (n *Node) Credentials() *identity.Credentials { return n.enrolment.Credentials() }

// Gateways are where the swarm was found so far, host:port.
func (n *Node) Gateways() []string { return n.enrolment.Gateways() }

// Changed asks for a health report now.
func (n *Node) Changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.reporter != nil {
		n.mu.reporter.Changed()
	}
}

// Close gives the data folder back. It is idempotent.
func (n *Node) Close() { n.lock.Release() }

// A Duty is what the node's room does for the control plane.
type Duty struct {
	// Profile is called at each attachment: what the node is now. Instance,
	// Host and PID are filled in.
	Profile func() enrol.AttachRequest
	// Fill writes the room's part of a health report; it must not wait.
	Fill func(*control.Health)
	// Plan is given each newer plan; while it runs, newer ones replace each
	// other. The node works towards the plan; what it holds, Fill says.
	Plan func(*control.PlanDocument)
	// Attached (may be nil) is told each attachment, and the store: the
	// models bucket can be read through it.
	Attached func(enrol.Attached, control.Store)
	Commands map[string]control.CommandFunc
}

const (
	// lostAfter is how long the connection may be gone before the node asks a
	// gateway where the control plane is now.
	lostAfter = 5 * time.Second
	// checkLost is how often it looks.
	checkLost = 500 * time.Millisecond
	// attachRetry and attachRetryMax space the tries to find a gateway.
	attachRetry    = 250 * time.Millisecond
	attachRetryMax = 5 * time.Second
)

// Run keeps the node attached to its swarm until ctx ends, then says goodbye.
// While no gateway can be found, or the clocks differ, it goes on trying; the node
// serves meanwhile. It returns early only for what trying again cannot mend:
// enrol.ErrRemoved, enrol.ErrUnknown, enrol.ErrDuplicate, control.ErrSuperseded.
func (n *Node) Run(ctx context.Context, duty Duty) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	renewed := make(chan struct{}, 1)
	tasks.Go(func() {
		n.Credentials().KeepFresh(ctx, func(ctx context.Context) ([]*x509.Certificate, error) {
			chain, err := n.enrolment.Renew(ctx)
			if err != nil {
				return nil, err
			}
			// The login on the control plane lives as long as the certificate.
			if _, err := n.attach(ctx, duty); err != nil {
				return nil, err
			}
			wake(renewed)
			return chain, nil
		}, func(err error) { n.cfg.Log.Error("certificate", "error", err) })
	})
	s := &service{node: n, duty: duty, renewed: renewed}
	for ctx.Err() == nil {
		if err := s.serve(ctx); err != nil {
			return err
		}
	}
	return nil
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// service is one Run: what outlives a single connection.
type service struct {
	node     *Node
	duty     Duty
	renewed  chan struct{}
	attached enrol.Attached
	plan     *control.PlanDocument // newest that was given to the room
}

// serve attaches, connects and works until the connection is lost for good
// (nil), ctx ends (nil), or the swarm refuses the node.
func (s *service) serve(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil || conn == nil {
		return err
	}
	defer conn.Close()
	reporter := s.node.reporterFor(s.attached, s.duty)
	if s.duty.Attached != nil {
		s.duty.Attached(s.attached, conn)
	}
	ended := make(chan error, 3)
	var tasks sync.WaitGroup
	inner, cancel := context.WithCancel(ctx)
	tasks.Go(func() { ended <- reporter.Run(inner, conn) })
	tasks.Go(func() { ended <- s.followPlan(inner, conn) })
	tasks.Go(func() { ended <- s.watchConnection(inner, conn) })
	err = <-ended
	cancel()
	tasks.Wait()
	switch {
	case ctx.Err() != nil:
		reporter.Goodbye(conn)
		return nil
	case final(err) || errors.Is(err, control.ErrSuperseded):
		return err
	case err != nil:
		s.node.cfg.Log.Warn("the control plane failed, connecting anew", "node", s.node.ID(), "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
	return nil
}

// connect attaches and connects, trying again until it works; nil when ctx
// ended.
func (s *service) connect(ctx context.Context) (*natsbus.Conn, error) {
	wait := attachRetry
	for ctx.Err() == nil {
		conn, err := s.connectOnce(ctx)
		if err == nil {
			return conn, nil
		}
		if final(err) {
			return nil, err
		}
		s.node.cfg.Log.Warn("the swarm cannot be reached, trying again", "node", s.node.ID(), "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, attachRetryMax)
	}
	return nil, nil
}

func final(err error) bool {
	for _, e := range []error{
		enrol.ErrRemoved, enrol.ErrUnknown, enrol.ErrDuplicate, enrol.ErrBad, identity.ErrOtherSwarm,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *service) connectOnce(ctx context.Context) (*natsbus.Conn, error) {
	attached, err := s.node.attach(ctx, s.duty)
	if err != nil {
		return nil, err
	}
	s.attached = attached
	trust, err := trustOf(attached)
	if err != nil {
		return nil, err
	}
	return natsbus.Connect(ctx, natsbus.Config{
		Servers: attached.Bus, Credentials: s.node.Credentials(), User: s.node.user, Trust: trust, Log: s.node.cfg.Log,
	})
}

// trustOf is whom to trust as a server of the control plane; nil: the swarm's
// own authority.
func trustOf(a enrol.Attached) (*x509.CertPool, error) {
	if len(a.BusTrust) == 0 {
		return nil, nil
	}
	return poolOf(a.BusTrust)
}

func poolOf(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the authority of the control plane's servers: no certificate in it")
	}
	return pool, nil
}

// attach tells the gateway what this node is, and takes the token with which
// it logs in.
func (n *Node) attach(ctx context.Context, duty Duty) (enrol.Attached, error) {
	in := duty.Profile()
	in.Instance, in.PID, in.BusKey = n.instance, os.Getpid(), n.user.PublicKey()
	if host, err := os.Hostname(); err == nil {
		in.Host = host
	}
	attached, err := n.enrolment.Attach(ctx, in)
	if err == nil {
		n.user.SetToken(attached.BusToken)
		if fault := attached.ClockFault(); fault != nil {
			n.cfg.Log.Error("the certificate cannot be renewed", "node", n.ID(), "because", fault)
		}
	}
	return attached, err
}

// reporterFor keeps one reporter per incarnation: its sequence must not start
// over.
func (n *Node) reporterFor(attached enrol.Attached, duty Duty) *control.Reporter {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.reporter == nil {
		n.mu.reporter = control.NewReporter(control.ReporterConfig{
			Node: n.ID(), Incarnation: attached.Incarnation, Instance: n.instance,
			Fill: duty.Fill, Commands: duty.Commands, Log: n.cfg.Log,
		})
	}
	return n.mu.reporter
}

func (s *service) followPlan(ctx context.Context, store control.Store) error {
	var refused error
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	err := control.FollowPlan(inner, store, s.node.cfg.Log, func(d *control.PlanDocument) {
		if !d.Newer(s.plan) {
			return
		}
		s.plan = d
		s.duty.Plan(d)
		if d.DesiredOf(s.node.ID()) != control.DesiredRemoved {
			return
		}
		// Or was, before it enrolled anew: the gateway knows.
		if _, err := s.node.attach(inner, s.duty); final(err) {
			refused = err
			cancel()
		}
	})
	return errors.Join(err, refused)
}

// watchConnection ends when the connection has been lost for so long that the
// control plane may be somewhere else now.
func (s *service) watchConnection(ctx context.Context, conn *natsbus.Conn) error {
	tick := time.NewTicker(checkLost)
	defer tick.Stop()
	lost := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.renewed:
			if err := conn.Reconnect(); err != nil {
				return nil //nolint:nilerr // closed: connect anew
			}
		case <-tick.C:
			switch {
			case conn.Connected():
				lost = time.Time{}
			case lost.IsZero():
				lost = time.Now()
			case time.Since(lost) >= lostAfter && s.moved(ctx):
				return nil
			}
		}
	}
}

// moved asks a gateway whether the control plane is elsewhere now.
func (s *service) moved(ctx context.Context) bool {
	attached, err := s.node.attach(ctx, s.duty)
	return final(err) || err == nil && !slices.Equal(attached.Bus, s.attached.Bus)
}
