package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sight is what a script sees of a swarm.
type Sight struct {
	State   string          // healthy, degraded or failed
	Why     []string        // what is missing for healthy
	Alive   map[string]bool // by node; one that is absent is unknown
	Rescues int64           // failures that answers survived, since the gateway's start
	Lost    int64           // answers, since then
}

// condition is what a script waits for or insists on.
type condition struct {
	subject string // state, node, rescues, lost
	node    string
	word    string // of state and node
	count   int64  // of rescues (at least) and lost (at most)
}

var states = []string{"healthy", "degraded", "failed"}

func parseCondition(args []string) (condition, error) {
	if len(args) == 1 && slices.Contains(states, args[0]) {
		args = []string{"state", args[0]}
	}
	switch {
	case len(args) == 2 && args[0] == "state":
		if !slices.Contains(states, args[1]) {
			return condition{}, fmt.Errorf("state %q: known are %s", args[1], strings.Join(states, ", "))
		}
		return condition{subject: "state", word: args[1]}, nil
	case len(args) == 3 && args[0] == "node":
		if args[2] != "alive" && args[2] != "dead" {
			return condition{}, fmt.Errorf("node %s %q: known are alive, dead", args[1], args[2])
		}
		return condition{subject: "node", node: args[1], word: args[2]}, nil
	case len(args) == 2 && (args[0] == "rescues" || args[0] == "lost"):
		n, err := number(args[1])
		return condition{subject: args[0], count: int64(n)}, err
	}
	return condition{}, errors.New("a condition is state STATE, node NAME alive|dead, rescues N or lost N")
}

// check gives nil when the condition holds, and otherwise what is seen instead.
// Counts are those since before.
func (c condition) check(before, now Sight) error {
	switch c.subject {
	case "state":
		if now.State != c.word {
			return fmt.Errorf("the swarm is %s%s", now.State, because(now.Why))
		}
	case "node":
		alive, known := now.Alive[c.node]
		switch {
		case !known:
			return fmt.Errorf("there is no node %s", c.node)
		case alive != (c.word == "alive"):
			return fmt.Errorf("%s is %s", c.node, map[bool]string{true: "alive", false: "dead"}[alive])
		}
	case "rescues":
		if n := now.Rescues - before.Rescues; n < c.count {
			return fmt.Errorf("answers survived %d failures since the script began", n)
		}
	case "lost":
		if n := now.Lost - before.Lost; n > c.count {
			return fmt.Errorf("%d answers were lost since the script began", n)
		}
	default:
		panic("BUG: no such condition: " + c.subject)
	}
	return nil
}

func because(why []string) string {
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}
