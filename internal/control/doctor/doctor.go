// Package doctor looks at what a machine needs to be part of a swarm, and says
// of each thing whether it is well and what to do when it is not. It changes
// nothing but a file that it writes and removes in the data folder.
package doctor

import (
	"context"
	"fmt"
	"sync"

	"hecate/internal/control/enrol"
)

// A Status is how bad a finding is.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn" // works, with limits
	Fail Status = "fail" // something will not work
)

// A Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`       // what was found
	Do     string `json:"do,omitempty"` // what to do about it; empty when well
}

// String is the finding as one line.
func (f Finding) String() string {
	line := fmt.Sprintf("%-4s  %-10s %s", f.Status, f.Check, f.Detail)
	if f.Do != "" {
		line += ": " + f.Do
	}
	return line
}

func well(check, format string, args ...any) Finding {
	return Finding{Check: check, Status: OK, Detail: fmt.Sprintf(format, args...)}
}

// Config says what to look at; all of it is optional.
type Config struct {
	Dir      string   // the data folder of a node or a gateway
	Token    string   // a join token: its addresses are tried
	Gateways []string // more addresses to try, host:port
	// NoNetwork leaves out what sends to other machines.
	NoNetwork bool
}

// Run makes all checks, those that wait for the network at the same time, and
// returns the findings in a fixed order.
func Run(ctx context.Context, cfg Config) []Finding {
	out := interfaces()
	if cfg.Dir != "" {
		out = append(out, disk(cfg.Dir)...)
	}
	out = append(out, memory()...)
	place, findings := locate(cfg)
	out = append(out, findings...)
	var slow []func() []Finding
	if !cfg.NoNetwork {
		slow = append(slow, func() []Finding { return multicast(ctx) })
	}
	for _, address := range place.gateways {
		slow = append(slow, func() []Finding { return gateway(ctx, address, place.pin) })
	}
	for _, address := range place.bus {
		slow = append(slow, func() []Finding { return bus(ctx, address) })
	}
	return append(out, together(slow)...)
}

// together runs checks at the same time and keeps their order.
func together(checks []func() []Finding) (out []Finding) {
	results := make([][]Finding, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() { results[i] = check() })
	}
	wg.Wait()
	for _, r := range results {
		out = append(out, r...)
	}
	return out
}

// A place is where a swarm is, as far as it is known here.
type place struct {
	gateways []string
	bus      []string
	pin      *[32]byte // of the authority; nil: unknown
}

// locate reads the token and the enrolment.
func locate(cfg Config) (place, []Finding) {
	p := place{gateways: cfg.Gateways}
	var out []Finding
	if cfg.Token != "" {
		token, err := enrol.ParseToken(cfg.Token)
		if err != nil {
			out = append(out, Finding{"token", Fail, err.Error(), "make a new one with hecate token create"})
		} else {
			p.gateways, p.pin = append(p.gateways, token.Addresses...), &token.Fingerprint
			out = append(out, tokenLife(token))
		}
	}
	if cfg.Dir == "" {
		return p, out
	}
	e, findings := enrolment(cfg.Dir)
	if e != nil {
		pin := e.Pin()
		p.gateways, p.bus, p.pin = append(p.gateways, e.Gateways()...), e.Bus(), &pin
	}
	return p, append(out, findings...)
}
