package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
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
}

const maxArmed = 64

func (a *armory) arm(o ChaosOrder) *openai.Error {
	switch {
	case !a.allowed:
		e := openai.BadRequest("", "chaos_not_allowed", "This gateway was not started with --allow-chaos.")
		e.Status = http.StatusForbidden
		return e
	case !slices.Contains([]string{"kill", "stop", "drop"}, o.Action):
		return openai.BadRequest("action", "invalid_value", "'action' is %q, want kill, stop or drop.", o.Action)
	case o.Stage < 0 || o.AtToken < 0:
		return openai.BadRequest("stage", "invalid_value", "'stage' is %d and 'at_token' %d, want 0 or more.", o.Stage, o.AtToken)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.armed) >= maxArmed {
		return openai.BadRequest("", "too_many", "%d failures are armed already and wait for requests.", len(a.armed))
	}
	a.armed = append(a.armed, o)
	return nil
}

// take gives the failure for a request to the model, if one is armed.
func (a *armory) take(model string) *answer.Chaos {
	if !a.allowed {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, o := range a.armed {
		if o.Model == "" || o.Model == model {
			a.armed = slices.Delete(a.armed, i, i+1)
			return &answer.Chaos{Stage: o.Stage, AtToken: o.AtToken, Action: o.Action}
		}
	}
	return nil
}

// armChaos serves POST /v1/swarm/chaos/arm.
func (g *Gateway) armChaos(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	var o ChaosOrder
	if err := json.Unmarshal(body, &o); err != nil {
		return openai.BadRequest("", "invalid_json", "The body is not valid: %s.", err)
	}
	if fault := g.chaos.arm(o); fault != nil {
		return fault
	}
	g.log.Warn("a failure is armed", "stage", o.Stage, "at_token", o.AtToken, "action", o.Action)
	return writeJSON(w, map[string]bool{"armed": true})
}
