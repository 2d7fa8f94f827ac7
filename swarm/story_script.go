package swarm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Command is one step of a story.
type Command struct {
	Verb string
	Args []string
	Line int // in the script, from 1; 0 when it is from none
}

// The verbs of a story. Each may be a line of a script:
//
//	kill NODE                 the node dies
//	revive NODE               a dead node is back
//	join [NODE]               a joiner of the topology joins, the next one by default
//	leave NODE                a member is removed
//	load NODE LOAD [LATENCY]  telemetry: load, and latency in milliseconds
//	request [MODEL] [prompt=TOKENS] [layers=FIRST-LAST]
//	replan                    plan again over the living
//	stop                      the end; every later step is refused
//
// Blank lines and what follows a # are ignored.
var verbs = map[string]struct{ least, most int }{
	"kill": {1, 1}, "revive": {1, 1}, "join": {0, 1}, "leave": {1, 1},
	"load": {2, 3}, "request": {0, 3}, "replan": {0, 0}, "stop": {0, 0},
}

// maxScriptLines bounds a script; each line may plan a whole swarm.
const maxScriptLines = 100_000

// ParseScript reads a script, one command per line. The error names the line.
func ParseScript(text string) ([]Command, error) {
	var out []Command
	lines := strings.Split(text, "\n")
	if len(lines) > maxScriptLines {
		return nil, fmt.Errorf("script has %d lines, more than %d: %w", len(lines), maxScriptLines, ErrInvalid)
	}
	for i, line := range lines {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		c := Command{Verb: words[0], Args: words[1:], Line: i + 1}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("script line %d: %w", c.Line, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func (c Command) String() string { return strings.Join(append([]string{c.Verb}, c.Args...), " ") }

// check refuses unknown verbs, wrong counts and malformed numbers.
func (c Command) check() error {
	want, ok := verbs[c.Verb]
	switch {
	case !ok:
		return fmt.Errorf("unknown command %q: %w", c.Verb, ErrInvalid)
	case len(c.Args) < want.least || len(c.Args) > want.most:
		return fmt.Errorf("%s with %d arguments: %w", c.Verb, len(c.Args), ErrInvalid)
	}
	switch c.Verb {
	case "load":
		_, err := c.sample()
		return err
	case "request":
		_, _, err := c.request()
		return err
	}
	return nil
}

// sample reads the numbers of a load command.
func (c Command) sample() ([]float64, error) {
	var out []float64
	for _, a := range c.Args[1:] {
		v, err := strconv.ParseFloat(a, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return nil, fmt.Errorf("%s: %q is no number from 0 up: %w", c, a, ErrInvalid)
		}
		out = append(out, v)
	}
	return out, nil
}

// request reads the words of a request command; an empty model is the base.
func (c Command) request() (model string, req Request, err error) {
	for _, a := range c.Args {
		key, value, named := strings.Cut(a, "=")
		switch {
		case !named && model == "":
			model = a
		case named && key == "prompt":
			if req.PromptTokens, err = strconv.Atoi(value); err != nil || req.PromptTokens < 0 {
				return "", req, fmt.Errorf("%s: prompt of %q tokens: %w", c, value, ErrInvalid)
			}
		case named && key == "layers":
			first, last, _ := strings.Cut(value, "-")
			f, err1 := strconv.Atoi(first)
			l, err2 := strconv.Atoi(last)
			r := LayerRange{f, l}
			if err1 != nil || err2 != nil || !r.Valid() {
				return "", req, fmt.Errorf("%s: layers %q are not FIRST-LAST: %w", c, value, ErrInvalid)
			}
			req.Window = &r
		default:
			return "", req, fmt.Errorf("%s: what is %q? %w", c, a, ErrInvalid)
		}
	}
	return model, req, nil
}
