package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Limits of a script.
const (
	maxLines = 10_000
	maxWait  = 24 * time.Hour // of one command
	minFlap  = 100 * time.Millisecond
)

// Script is a parsed script. The commands, one a line; empty lines and what
// follows # are skipped:
//
//	kill NODE                         the node's process dies at once (SIGKILL)
//	stop NODE                         it freezes, and its connections stay open (SIGSTOP)
//	continue NODE                     it goes on (SIGCONT)
//	flap NODE every 3s for 30s        it is frozen for half of every 3 s
//	delay NODE 200ms [jitter 50ms]    what travels between gateway and node comes later, each way; this and
//	                                  the other commands for links are those of [LinkCommand]:
//	loss NODE 0.05    throttle NODE 64KiB    drop NODE    partition NODE    reset NODE    refuse NODE
//	heal NODE                         the link is good again
//	arm stage=1 at=20 action=kill [model=ID] [rescues=N] [also]
//	                                  in the next request the node of that stage fails just before it
//	                                  computes that token; action is kill, stop or drop; with rescues=N not
//	                                  the first node, but the one that took over at the Nth rescue; with
//	                                  also in the same request as the failure that was armed before
//	wait 2s                           time passes
//	expect CONDITION                  or the script has failed
//	await CONDITION within 30s        waits for it, or the script has failed
//
// Conditions are `state healthy` (or degraded, failed; `state` may be left
// out), `node NAME alive` (or dead, or restarted: it lives as another process than
// when the script began or killed it), `rescues N` (answers went on after at
// least N failures since the script began) and `lost N` (at most N answers were
// lost since then).
type Script struct {
	name     string
	commands []command
}

// command is one line.
type command struct {
	line int
	text string // as written, with single spaces
	verb string

	node          string // kill, stop, continue, flap, and all of links
	link          string // what is done to the node's link
	every, length time.Duration
	order         Order
	wanted        condition
	within        time.Duration // wait, await
}

// Order is a failure that is armed for the next request.
type Order struct {
	Model   string // "" is any
	Stage   int    // of the route, 0 is the first
	AtToken int    // generated, 0 is the first
	Action  string // kill, stop or drop
	Rescues int    // 0: the node of the first route; N: the substitute of the Nth rescue
	Also    bool   // in the same request as the one armed before
}

// Parse reads a script; name is what errors call it. All faults are reported at
// once, each with file and line.
func Parse(name string, r io.Reader) (*Script, error) {
	s := &Script{name: name}
	var faults []error
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if line > maxLines {
			return nil, fmt.Errorf("%s:%d: a script has at most %d lines", name, line, maxLines)
		}
		c := command{line: line, text: strings.Join(words, " "), verb: words[0]}
		if err := c.parse(words[1:]); err != nil {
			faults = append(faults, s.at(c, err))
		}
		s.commands = append(s.commands, c)
	}
	if err := in.Err(); err != nil {
		faults = append(faults, fmt.Errorf("%s: %w", name, err))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(s.commands) == 0 {
		return nil, fmt.Errorf("%s: there is no command in it", name)
	}
	return s, nil
}

// at says where an error is.
func (s *Script) at(c command, err error) error {
	return fmt.Errorf("%s:%d: %s: %w", s.name, c.line, c.text, err)
}

func (c *command) parse(args []string) (err error) {
	switch c.verb {
	case "kill", "stop", "continue":
		if len(args) != 1 {
			return fmt.Errorf("want %s NODE", c.verb)
		}
		c.node = args[0]
		return nil
	case "delay", "loss", "throttle", "drop", "partition", "reset", "refuse", "heal":
		return c.parseLink(args)
	case "flap":
		return c.parseFlap(args)
	case "arm":
		return c.parseArm(args)
	case "wait":
		if len(args) != 1 {
			return errors.New("want wait DURATION, such as wait 2s")
		}
		c.within, err = duration(args[0])
		return err
	case "expect":
		c.wanted, err = parseCondition(args)
		return err
	case "await":
		n := len(args) - 2
		if n < 1 || args[n] != "within" {
			return errors.New("want await CONDITION within DURATION")
		}
		if c.within, err = duration(args[n+1]); err != nil {
			return err
		}
		c.wanted, err = parseCondition(args[:n])
		return err
	}
	return fmt.Errorf("known are kill, stop, continue, flap, %s, arm, wait, expect, await", strings.Join(linkVerbs, ", "))
}

func (c *command) parseLink(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want %s NODE, and what belongs to it", c.verb)
	}
	c.node = args[0]
	l, err := ParseLink(strings.Join(append([]string{c.verb}, args[1:]...), " "))
	c.link = l.String()
	return err
}

func (c *command) parseFlap(args []string) (err error) {
	if len(args) != 5 || args[1] != "every" || args[3] != "for" {
		return errors.New("want flap NODE every DURATION for DURATION")
	}
	c.node = args[0]
	if c.every, err = duration(args[2]); err != nil {
		return err
	}
	if c.length, err = duration(args[4]); err != nil {
		return err
	}
	if c.every < minFlap || c.length < c.every {
		return fmt.Errorf("every %v for %v: need at least %v, and one period", c.every, c.length, minFlap)
	}
	return nil
}

func (c *command) parseArm(args []string) error {
	c.order = Order{Stage: -1, AtToken: -1, Action: "kill"}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "stage":
			c.order.Stage, err = number(value)
		case "at":
			c.order.AtToken, err = number(value)
		case "model":
			c.order.Model = value
		case "action":
			c.order.Action = value
		case "rescues":
			c.order.Rescues, err = number(value)
		case "also":
			c.order.Also = true
		default:
			return fmt.Errorf("%q: known are stage, at, action, model, rescues, also", arg)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
	}
	switch c.order.Action {
	case "kill", "stop", "drop":
	default:
		return fmt.Errorf("action %q: known are kill, stop, drop", c.order.Action)
	}
	if c.order.Stage < 0 || c.order.AtToken < 0 {
		return errors.New("want arm stage=N at=TOKEN [action=kill|stop|drop] [model=ID] [rescues=N] [also]")
	}
	return nil
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number from 0 on", s)
	}
	return n, nil
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxWait {
		return 0, fmt.Errorf("%q is no time from 0 to %v, such as 500ms or 3s", s, maxWait)
	}
	return d, nil
}
