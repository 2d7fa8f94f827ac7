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
	PID     map[string]int  // of nodes on this machine that live; 0 or absent otherwise
	Rescues int64           // failures that answers survived, since the gateway's start
	Lost    int64           // answers, since then
}

// condition is what a script waits for or insists on.
type condition struct {
	subject string // state, node, rescues, lost
	node    string
	word    string // of state; alive, dead or restarted of node
	count   int64  // of rescues (at least) and lost (at most)
}

var states = []string{"healthy", "degraded", "failed"}

// A node may be back before anybody saw it dead, so restarted asks for another process.
var lives = []string{"alive", "dead", "restarted"}

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
		if !slices.Contains(lives, args[2]) {
			return condition{}, fmt.Errorf("node %s %q: known are %s", args[1], args[2], strings.Join(lives, ", "))
		}
		return condition{subject: "node", node: args[1], word: args[2]}, nil
	case len(args) == 2 && (args[0] == "rescues" || args[0] == "lost"):
		n, err := number(args[1])
		return condition{subject: args[0], count: int64(n)}, err
	}
	return condition{}, errors.New("a condition is state STATE, node NAME alive|dead|restarted, rescues N or lost N")
}

// check gives nil when the condition holds, and otherwise what is seen instead.
// Counts are those since before, and so are restarts.
func (c condition) check(before, now Sight) error {
	switch c.subject {
	case "state":
		if now.State != c.word {
			return fmt.Errorf("the swarm is %s%s", now.State, because(now.Why))
		}
	case "node":
		return c.checkNode(before, now)
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

func (c condition) checkNode(before, now Sight) error {
	alive, known := now.Alive[c.node]
	pid := now.PID[c.node]
	switch {
	case !known:
		return fmt.Errorf("there is no node %s", c.node)
	case c.word == "restarted" && alive && (pid == 0 || pid == before.PID[c.node]):
		return fmt.Errorf("%s has no new process, its pid is %d", c.node, pid)
	case alive == (c.word == "dead"):
		return fmt.Errorf("%s is %s", c.node, map[bool]string{true: "alive", false: "dead"}[alive])
	}
	return nil
}

func because(why []string) string {
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}
