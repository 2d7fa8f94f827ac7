package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// lookAgain is how often await looks: a tenth of the time in which a person
// would call something immediate, and little work for a gateway.
const lookAgain = 100 * time.Millisecond

// Act is what is done to a node's process.
type Act int

// Acts.
const (
	Kill     Act = iota // it dies at once
	Stop                // it freezes
	Continue            // it goes on
)

func (a Act) String() string {
	switch a {
	case Kill:
		return "kill"
	case Stop:
		return "stop"
	case Continue:
		return "continue"
	}
	panic(fmt.Sprintf("BUG: no such act: %d", int(a)))
}

// Hands do what a script says. They err when a node has no process that they may touch.
type Hands interface {
	// Do acts on a node's process. A node that was stopped stays known to the
	// hands, though the swarm takes it for dead.
	Do(ctx context.Context, node string, act Act) error
	// Link does a command to the node's link, as ParseLink reads it.
	Link(ctx context.Context, node, command string) error
	// Arm arms a failure for the next request.
	Arm(ctx context.Context, o Order) error
	// Look gives the swarm as it is now.
	Look(ctx context.Context) (Sight, error)
}

// run is one run of a script.
type run struct {
	script *Script
	hands  Hands
	before Sight           // when it began; pids of killed nodes: just before
	frozen map[string]bool // stopped and not continued
	bent   map[string]bool // their links were made to fail and not healed
}

// Run does the commands in order and ends at the first that fails; its error
// names file and line. Before each command it calls report. However it ends, at
// the latest then every node that it stopped is continued, and every link healed.
func (s *Script) Run(ctx context.Context, hands Hands, report func(line int, text string)) (err error) {
	r := &run{script: s, hands: hands, frozen: map[string]bool{}, bent: map[string]bool{}}
	if r.before, err = hands.Look(ctx); err != nil {
		return fmt.Errorf("look at the swarm: %w", err)
	}
	r.before.PID = maps.Clone(r.before.PID)
	if r.before.PID == nil {
		r.before.PID = map[string]int{}
	}
	defer func() { err = errors.Join(err, r.mend(context.WithoutCancel(ctx))) }()
	for _, c := range s.commands {
		report(c.line, c.text)
		if err := r.do(ctx, c); err != nil {
			return s.at(c, err)
		}
	}
	return nil
}

func (r *run) do(ctx context.Context, c command) error {
	switch c.verb {
	case "kill":
		return r.act(ctx, c.node, Kill)
	case "stop":
		return r.act(ctx, c.node, Stop)
	case "continue":
		return r.act(ctx, c.node, Continue)
	case "delay", "loss", "throttle", "drop", "partition", "reset", "refuse", "heal":
		return r.link(ctx, c.node, c.link)
	case "flap":
		return r.flap(ctx, c)
	case "arm":
		return r.hands.Arm(ctx, c.order)
	case "wait":
		return pause(ctx, c.within)
	case "expect":
		now, err := r.hands.Look(ctx)
		if err != nil {
			return err
		}
		return c.wanted.check(r.before, now)
	case "await":
		return r.await(ctx, c)
	}
	panic("BUG: a command that was parsed is unknown: " + c.verb)
}

// act does and remembers whom to continue at the end.
func (r *run) act(ctx context.Context, node string, a Act) error {
	if a == Kill {
		now, err := r.hands.Look(ctx)
		if err != nil {
			return err
		}
		if pid := now.PID[node]; pid != 0 {
			r.before.PID[node] = pid
		}
	}
	if err := r.hands.Do(ctx, node, a); err != nil {
		return err
	}
	if a == Stop {
		r.frozen[node] = true
	} else {
		delete(r.frozen, node)
	}
	return nil
}

// link changes a link and remembers which to heal at the end.
func (r *run) link(ctx context.Context, node, command string) error {
	if err := r.hands.Link(ctx, node, command); err != nil {
		return err
	}
	switch command {
	case "heal":
		delete(r.bent, node)
	case "reset": // over as soon as it is done
	default:
		r.bent[node] = true
	}
	return nil
}

// mendWithin bounds each thing that is mended: a gateway may stand still itself.
const mendWithin = 5 * time.Second

// mend continues what is still frozen and heals what is still bent, all of it
// even if one fails.
func (r *run) mend(whole context.Context) error {
	var faults []error
	within := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(whole, mendWithin)
		defer cancel()
		return do(ctx)
	}
	for _, node := range slices.Sorted(maps.Keys(r.frozen)) {
		if err := within(func(ctx context.Context) error { return r.act(ctx, node, Continue) }); err != nil {
			faults = append(faults, fmt.Errorf("%s: continue %s at the end: %w", r.script.name, node, err))
		}
	}
	for _, node := range slices.Sorted(maps.Keys(r.bent)) {
		if err := within(func(ctx context.Context) error { return r.link(ctx, node, "heal") }); err != nil {
			faults = append(faults, fmt.Errorf("%s: heal %s at the end: %w", r.script.name, node, err))
		}
	}
	return errors.Join(faults...)
}

// flap freezes the node for half of every period; it ends with the node going.
func (r *run) flap(ctx context.Context, c command) error {
	for range int(c.length / c.every) {
		if err := r.act(ctx, c.node, Stop); err != nil {
			return err
		}
		if err := pause(ctx, c.every/2); err != nil {
			return err
		}
		if err := r.act(ctx, c.node, Continue); err != nil {
			return err
		}
		if err := pause(ctx, c.every-c.every/2); err != nil {
			return err
		}
	}
	return nil
}

// await looks until the condition holds, once at least and once after the time is over.
func (r *run) await(ctx context.Context, c command) error {
	deadline := time.Now().Add(c.within)
	for {
		over := !time.Now().Before(deadline)
		now, err := r.hands.Look(ctx)
		if err == nil {
			err = c.wanted.check(r.before, now)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if over {
			return fmt.Errorf("still not after %v: %w", c.within, err)
		}
		if err := pause(ctx, min(lookAgain, time.Until(deadline))); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
