package swarm

import (
	"fmt"
	"time"
)

// A CircuitState says whether a node may be used at all.
//
//	closed --several errors in a row--> open --cool-down over--> half open
//	half open --a probe succeeds--> closed;  --it fails--> open, for longer
type CircuitState int

const (
	// CircuitClosed: the node is used. Entered at first and when a probe
	// succeeds; left when errors pile up.
	CircuitClosed CircuitState = iota
	// CircuitOpen: the node is not used. Entered on too many errors in a row
	// or a failed probe; left by the cool-down's end.
	CircuitOpen
	// CircuitHalfOpen: one request at a time may probe the node. Entered at
	// the end of a cool-down; left by the probe's outcome.
	CircuitHalfOpen
)

func (s CircuitState) String() string {
	switch s {
	case CircuitClosed:
		return "closed"
	case CircuitOpen:
		return "open"
	case CircuitHalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("CircuitState(%d)", int(s))
}

// MarshalText writes the state's name.
func (s CircuitState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// CircuitConfig tunes a Circuit. The zero value is the default.
type CircuitConfig struct {
	Failures    int           // errors in a row that open it; 0 means 3
	CoolDown    time.Duration // how long it stays open the first time; 0 means 2 s
	MaxCoolDown time.Duration // each failed probe doubles the time up to this; 0 means 60 s
	// ErrorHalf is the time in which half of the remembered share of errors is
	// forgotten when nothing happens: a node that gets no traffic must be
	// forgiven. 0 means 30 s.
	ErrorHalf time.Duration
}

func (c CircuitConfig) withDefaults() CircuitConfig {
	if c.Failures <= 0 {
		c.Failures = 3
	}
	if c.CoolDown <= 0 {
		c.CoolDown = 2 * time.Second
	}
	if c.MaxCoolDown <= 0 {
		c.MaxCoolDown = time.Minute
	}
	if c.ErrorHalf <= 0 {
		c.ErrorHalf = 30 * time.Second
	}
	c.MaxCoolDown = max(c.MaxCoolDown, c.CoolDown)
	return c
}

// A Circuit watches the outcomes of one node's requests and takes the node out
// of use for a while when they fail. It is a value without a clock: every call
// says when it happens, and time must not run backwards. The zero value is a
// closed circuit with the default configuration.
//
// Its states are independent of life and death: a node may be alive and fail
// every request. It is not safe for concurrent use.
type Circuit struct {
	Config CircuitConfig

	open     bool          // open or half open; which one, the time says
	until    time.Time     // when open: the end of the cool-down
	coolDown time.Duration // the present one, 0 while closed
	probing  bool          // half open: the one probe is out
	row      int           // errors since the last success; < Config.Failures while closed
	rate     Reading       // moving average of outcomes, 1 an error
	rateAt   time.Time
}

// State says where the circuit stands at that time.
func (c *Circuit) State(now time.Time) CircuitState {
	switch {
	case !c.open:
		return CircuitClosed
	case now.Before(c.until):
		return CircuitOpen
	}
	return CircuitHalfOpen
}

// Allow asks to use the node. Half open it grants one probe, which must be
// answered with Success, Failure or Abandon before another is granted.
func (c *Circuit) Allow(now time.Time) bool {
	switch c.State(now) {
	case CircuitClosed:
		return true
	case CircuitHalfOpen:
		if !c.probing {
			c.probing = true
			return true
		}
	}
	return false
}

// Success reports a request that the node served. It closes a half-open
// circuit; the late success of an old request does not end a cool-down.
func (c *Circuit) Success(now time.Time) {
	c.observe(0, now)
	if c.State(now) == CircuitOpen {
		return
	}
	c.open, c.probing, c.row, c.coolDown = false, false, 0, 0
}

// Failure reports a request that failed through the node's fault. Errors of
// the client do not belong here.
func (c *Circuit) Failure(now time.Time) {
	c.observe(1, now)
	cfg := c.Config.withDefaults()
	switch c.State(now) {
	case CircuitClosed:
		c.row++
		if c.row >= cfg.Failures {
			c.trip(cfg.CoolDown, now)
		}
	case CircuitHalfOpen:
		c.trip(min(2*c.coolDown, cfg.MaxCoolDown), now)
	case CircuitOpen:
		// A request from before it opened: known already.
	}
}

// Abandon gives a probe back that had no outcome: its client went away.
func (c *Circuit) Abandon() { c.probing = false }

// Reset closes the circuit and forgets all errors: the node came back as a
// new incarnation.
func (c *Circuit) Reset() { *c = Circuit{Config: c.Config} }

// RetryAt is when an open circuit will let a probe through; zero when it is
// closed.
func (c *Circuit) RetryAt() time.Time {
	if !c.open {
		return time.Time{}
	}
	return c.until
}

// ErrorRate is the moving average of outcomes, 0 none failed to 1 all failed,
// fading with time. It is unmeasured before the first outcome.
func (c *Circuit) ErrorRate(now time.Time) Reading {
	if !c.rate.Known {
		return c.rate
	}
	return Measured(c.rate.Value * c.fade(now))
}

func (c *Circuit) trip(coolDown time.Duration, now time.Time) {
	c.open, c.probing, c.row = true, false, 0
	c.coolDown, c.until = coolDown, now.Add(coolDown)
}

func (c *Circuit) observe(outcome float64, now time.Time) {
	if !c.rate.Known {
		// Unlike a latency, one error is not yet a share: a node is presumed
		// good, so that the first error weighs like any other.
		c.rate = Measured(0)
		c.rateAt = now
	}
	c.rate = Measured(c.rate.Value * c.fade(now)).Observe(outcome)
	c.rateAt = now
}

// fade is what is left of the remembered rate: half after ErrorHalf.
func (c *Circuit) fade(now time.Time) float64 {
	idle := now.Sub(c.rateAt)
	if idle <= 0 {
		return 1
	}
	return 1 - fading(idle, c.Config.withDefaults().ErrorHalf)
}
