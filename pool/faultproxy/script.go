package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Command is one line of a script. The commands, each of the first five for one way when
// "up" or "down" stands at its end and for both otherwise:
//
//	pass                      honest again; as a whole also ends refusing
//	delay 200ms [jitter 50ms] every byte comes later
//	loss 0.05                 a packet in twenty is late by a retransmission
//	throttle 64KiB            so much per second; B, KB, MB, KiB, MiB; 0 ends it
//	drop                      a black hole
//	half-close up|down        the receiver of that way reads the end of the stream
//	reset                     every living connection is aborted
//	refuse                    new connections are refused
//	accept                    and no longer
//	wait 2s                   only in scripts: time passes
type Command struct {
	Text string // as written
	Wait time.Duration
	do   func(*Proxy) error
}

func (c Command) String() string { return c.Text }

// ParseCommand reads one line.
func ParseCommand(line string) (Command, error) {
	c := Command{Text: strings.Join(strings.Fields(line), " ")}
	words := strings.Fields(line)
	if len(words) == 0 {
		return c, errors.New("faultproxy: empty command")
	}
	verb, args := words[0], words[1:]
	ways := []Way{Up, Down}
	if n := len(args); n > 0 && (args[n-1] == "up" || args[n-1] == "down") {
		ways = []Way{Up}
		if args[n-1] == "down" {
			ways = []Way{Down}
		}
		args = args[:n-1]
	}
	err := c.parse(verb, args, ways)
	if err != nil {
		return c, fmt.Errorf("faultproxy: command %q: %w", c.Text, err)
	}
	return c, nil
}

func (c *Command) parse(verb string, args []string, ways []Way) error {
	switch verb {
	case "pass":
		c.do = func(p *Proxy) error { return p.pass(ways) }
		return argsExactly(args, 0)
	case "drop":
		c.do = change(ways, func(d *Direction) { d.Silent = true })
		return argsExactly(args, 0)
	case "delay", "loss", "throttle":
		return c.parseAmount(verb, args, ways)
	case "half-close":
		if len(ways) != 1 {
			return errors.New("say up or down")
		}
		c.do = func(p *Proxy) error { p.HalfClose(ways[0]); return nil }
		return argsExactly(args, 0)
	}
	if len(ways) == 1 {
		return errors.New("this command has no direction")
	}
	switch verb {
	case "reset":
		c.do = func(p *Proxy) error { p.Reset(); return nil }
		return argsExactly(args, 0)
	case "refuse", "accept":
		c.do = func(p *Proxy) error { return p.Refuse(verb == "refuse") }
		return argsExactly(args, 0)
	case "wait":
		return c.parseWait(args)
	}
	return errors.New("known are pass, delay, loss, throttle, drop, half-close, reset, refuse, accept, wait")
}

func (c *Command) parseAmount(verb string, args []string, ways []Way) error {
	var d Direction
	var err error
	switch {
	case verb == "delay" && len(args) == 3 && args[1] == "jitter":
		if d.Jitter, err = time.ParseDuration(args[2]); err != nil {
			return err
		}
		args = args[:1]
	case len(args) != 1:
		return fmt.Errorf("%d arguments, one is needed", len(args))
	}
	switch verb {
	case "delay":
		d.Delay, err = time.ParseDuration(args[0])
		c.do = change(ways, func(old *Direction) { old.Delay, old.Jitter = d.Delay, d.Jitter })
	case "loss":
		d.Loss, err = strconv.ParseFloat(args[0], 64)
		c.do = change(ways, func(old *Direction) { old.Loss = d.Loss })
	case "throttle":
		d.BytesPerSecond, err = parseSize(args[0])
		c.do = change(ways, func(old *Direction) { old.BytesPerSecond = d.BytesPerSecond })
	}
	return errors.Join(err, d.Validate())
}

func (c *Command) parseWait(args []string) error {
	if err := argsExactly(args, 1); err != nil {
		return err
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("waiting %v: need 0 or more", d)
	}
	c.Wait = d
	return nil
}

func argsExactly(args []string, n int) error {
	if len(args) != n {
		return fmt.Errorf("%d arguments, %d allowed", len(args), n)
	}
	return nil
}

func change(ways []Way, f func(*Direction)) func(*Proxy) error {
	return func(p *Proxy) error {
		return p.update(func(fault *Fault) {
			for _, w := range ways {
				if w == Up {
					f(&fault.Up)
				} else {
					f(&fault.Down)
				}
			}
		})
	}
}

func (p *Proxy) pass(ways []Way) error {
	err := change(ways, func(d *Direction) { *d = Direction{} })(p)
	if len(ways) == 2 {
		err = errors.Join(err, p.Refuse(false))
	}
	return err
}

// parseSize reads bytes per second such as 0, 500, 64KiB, 1MB.
func parseSize(s string) (int, error) {
	number := strings.TrimRight(s, "BKMiG")
	units := map[string]int{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "KiB": 1 << 10, "MiB": 1 << 20}
	unit, ok := units[s[len(number):]]
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || n > 1<<40/unit {
		return 0, fmt.Errorf("%q is no size: need a number and B, KB, MB, KiB or MiB", s)
	}
	return n * unit, nil
}

// ParseScript reads commands, one per line; empty lines and what follows # are skipped. All
// faults are reported at once, with their lines.
func ParseScript(r io.Reader) ([]Command, error) {
	var out []Command
	var faults []error
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		c, err := ParseCommand(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", line, err))
		}
		out = append(out, c)
	}
	if err := errors.Join(append(faults, in.Err())...); err != nil {
		return nil, err
	}
	return out, nil
}

// Do executes a command; wait returns early when ctx or the proxy ends.
func (p *Proxy) Do(ctx context.Context, c Command) error {
	if c.do != nil {
		return c.do(p)
	}
	t := time.NewTimer(c.Wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return errors.New("faultproxy: closed")
	}
}

// Run executes a script; before each command it calls report, which may be nil.
func (p *Proxy) Run(ctx context.Context, script []Command, report func(Command)) error {
	for _, c := range script {
		if report != nil {
			report(c)
		}
		if err := p.Do(ctx, c); err != nil {
			return fmt.Errorf("faultproxy: %q: %w", c.Text, err)
		}
	}
	return nil
}
