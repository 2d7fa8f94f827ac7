package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one way of an upstream to fail.
type Fault struct {
	Name  string // as written in flags and requests
	About string // a sentence: what a client meets

	once   bool // spent by the first request
	part   bool // strikes for a part of the time, so that another may stand behind it
	down   bool // the whole server fails, the list of models too
	strike func(*stage)
}

// faults are all that there are, in the order in which they are listed.
var faults = []Fault{
	{Name: "none", About: "Every answer is right.", strike: (*stage).honest},
	{Name: "429-once", About: "The first request is refused with 429 and Retry-After; those after it are answered.", once: true, strike: (*stage).tooMany},
	{Name: "429", About: "Every request is refused with 429 and Retry-After.", strike: (*stage).tooMany},
	{Name: "500-once", About: "The first request ends with 500; those after it are answered.", once: true, strike: (*stage).broken},
	{Name: "503", About: "Every request is refused with 503, and there is no Retry-After.", down: true, strike: (*stage).unavailable},
	{Name: "reset", About: "The connection is reset (RST) after the request, before any header.", down: true, strike: (*stage).reset},
	{Name: "silence", About: "The request is taken, and not one byte comes back.", down: true, strike: (*stage).silence},
	{Name: "late", About: "Headers come at once, the first token after --delay; an answer that is not streamed comes as late as a whole.", strike: (*stage).late},
	{Name: "cut", About: "The connection breaks in the middle of the answer.", strike: (*stage).cut},
	{Name: "stall", About: "Half of the answer comes, then nothing, and the connection stays open.", strike: (*stage).stall},
	{Name: "malformed", About: "An event in the middle of the stream, or the body as a whole, is JSON that breaks off.", strike: (*stage).malformed},
	{Name: "no-done", About: "The stream ends cleanly without a finish reason and without [DONE]; an answer that is not streamed is right.", strike: (*stage).noDone},
	{Name: "empty", About: "Status 200 with no body at all.", strike: (*stage).empty},
	{Name: "context-length", About: "Every request is refused with 400, code context_length_exceeded.", strike: (*stage).contextLength},
	{Name: "content-filter", About: "Every request is refused with 400, code content_filter.", strike: (*stage).contentFilter},
	{Name: "filtered", About: "The answer breaks off in the middle, properly, with finish reason content_filter.", strike: (*stage).filtered},
	{Name: "wrong-usage", About: "The answer is right, but its usage counts are impossible.", strike: (*stage).wrongUsage},
	{Name: "flapping", About: "Connections are reset for half of each --period, then served for the other half.", part: true, down: true, strike: (*stage).reset},
}

// Faults lists every fault.
func Faults() []Fault { return slices.Clone(faults) }

// lookUp finds faults by name and checks that each can have its turn.
func lookUp(names []string) ([]Fault, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("no fault is named; %s", known())
	}
	var out []Fault
	for _, name := range names {
		i := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q; %s", name, known())
		}
		if n := len(out); n > 0 && !out[n-1].once && !out[n-1].part {
			return nil, fmt.Errorf("%q never has its turn: %q before it strikes every request", name, out[n-1].Name)
		}
		out = append(out, faults[i])
	}
	return out, nil
}

func known() string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.Name
	}
	return "known are " + strings.Join(names, ", ")
}
