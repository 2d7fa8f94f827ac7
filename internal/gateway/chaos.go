package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
)

// armory holds failures that wait for the next request. The nodes inflict them
// on themselves: from outside nobody could aim at one token.
type armory struct {
	allowed bool
	mu      sync.Mutex
	armed   []ChaosOrder
}

// ChaosOrder is the body of POST /v1/swarm/chaos/arm.
type ChaosOrder struct {
	Model   string `json:"model,omitempty"` // "" is any
	Stage   int    `json:"stage"`           // index into the route
	AtToken int    `json:"at_token"`        // generated tokens, 0 is the first
	Action  string `json:"action"`          // kill, stop or drop
	// Rescues strikes the substitute that takes the stage over at the rescue of
	// this number; 0 strikes the node of the first route.
	Rescues int  `json:"rescues,omitempty"`
	Also    bool `json:"also,omitempty"` // befalls the same request as the one armed before it
}

const maxArmed = 64

func (a *armory) arm(o ChaosOrder) *openai.Error {
	switch {
	case !a.allowed:
		return errNoChaos()
	case !slices.Contains([]string{"kill", "stop", "drop"}, o.Action):
		return openai.BadRequest("action", "invalid_value", "'action' is %q, want kill, stop or drop.", o.Action)
	case o.Stage < 0 || o.AtToken < 0 || o.Rescues < 0:
		return openai.BadRequest("stage", "invalid_value", "'stage' is %d, 'at_token' %d and 'rescues' %d, want 0 or more.", o.Stage, o.AtToken, o.Rescues)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch n := len(a.armed); {
	case n >= maxArmed:
		return openai.BadRequest("", "too_many", "%d failures are armed already and wait for requests.", n)
	case o.Also && n == 0:
		return openai.BadRequest("also", "invalid_value", "'also' belongs to a failure that was armed before and still waits, and there is none.")
	case o.Also && a.armed[n-1].Model != o.Model:
		return openai.BadRequest("model", "invalid_value", "'model' is %q, but the failure armed before is for %q.", o.Model, a.armed[n-1].Model)
	}
	a.armed = append(a.armed, o)
	return nil
}

func errNoChaos() *openai.Error {
	e := openai.BadRequest("", "chaos_not_allowed", "This gateway was not started with --allow-chaos.")
	e.Status = http.StatusForbidden
	return e
}

// take gives the failures for a request to the model, none if none is armed.
func (a *armory) take(model string) (taken []answer.Chaos) {
	if !a.allowed {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	first := slices.IndexFunc(a.armed, func(o ChaosOrder) bool { return o.Model == "" || o.Model == model })
	if first < 0 {
		return nil
	}
	end := first + 1
	for end < len(a.armed) && a.armed[end].Also {
		end++
	}
	for _, o := range a.armed[first:end] {
		taken = append(taken, answer.Chaos{Stage: o.Stage, AtToken: o.AtToken, Action: o.Action, Rescues: o.Rescues})
	}
	a.armed = slices.Delete(a.armed, first, end)
	return taken
}

// armChaos serves POST /v1/swarm/chaos/arm.
func (g *Gateway) armChaos(w http.ResponseWriter, r *http.Request) error {
	var o ChaosOrder
	if err := readOrder(w, r, &o); err != nil {
		return err
	}
	if fault := g.chaos.arm(o); fault != nil {
		return fault
	}
	g.log.Warn("a failure is armed", "stage", o.Stage, "at_token", o.AtToken, "action", o.Action, "rescues", o.Rescues, "also", o.Also)
	return writeJSON(w, map[string]bool{"armed": true})
}

func readOrder(w http.ResponseWriter, r *http.Request, o any) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, o); err != nil {
		return openai.BadRequest("", "invalid_json", "The body is not valid: %s.", err)
	}
	return nil
}

// Links are the ways to the nodes, which fail on command.
type Links interface {
	// Tell does a command, such as `delay 200ms`, to the link of a node.
	Tell(ctx context.Context, node, command string) error
	// Bent says that a node's link was told to fail and is not healed.
	Bent(node string) bool
}

// LinkOrder is the body of POST /v1/swarm/chaos/link.
type LinkOrder struct {
	Node    string `json:"node"`
	Command string `json:"command"` // as in scripts, without the node
}

// bendLink serves POST /v1/swarm/chaos/link.
func (g *Gateway) bendLink(w http.ResponseWriter, r *http.Request) error {
	var o LinkOrder
	if err := readOrder(w, r, &o); err != nil {
		return err
	}
	if !g.chaos.allowed || g.cfg.Links == nil {
		return errNoChaos()
	}
	if g.cfg.Membership.View().Member(o.Node) == nil {
		return openai.BadRequest("node", "invalid_value", "There is no node %q.", o.Node)
	}
	if err := g.cfg.Links.Tell(r.Context(), o.Node, o.Command); err != nil {
		return openai.BadRequest("command", "invalid_value", "%s.", err)
	}
	g.bent.note(o.Node, o.Command)
	g.log.Warn("a link was told to fail", "node", o.Node, "command", o.Command)
	return writeJSON(w, map[string]string{"node": o.Node, "link": o.Command})
}

// bent remembers which links were told to fail, so that a page can show it.
type bent struct {
	mu    sync.Mutex
	links map[string]string // command by node
}

func (b *bent) note(node, command string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.links == nil {
		b.links = map[string]string{}
	}
	switch verb, _, _ := strings.Cut(command, " "); verb {
	case "heal":
		delete(b.links, node)
	case "reset": // over at once
	default:
		b.links[node] = command
	}
}

func (b *bent) of(node string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.links[node]
}
