package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"hecate/internal/control"
	"hecate/internal/gateway/dispatch"
	"hecate/internal/gateway/openai"
)

// Model is one model that this gateway can speak for.
type Model struct {
	Record control.ModelRecord
	Text   Text
}

// Context is how many tokens one answer may have, prompt included. It must find
// room beside the cells that are kept for rescues.
func (m *Model) Context() int {
	return min(m.Record.ContextLength, dispatch.Sellable(m.Record.Spec.ContextTokens))
}

// Quantised says that results do not depend on how the work was cut.
func (m *Model) Quantised() bool {
	q := m.Record.Quantisation
	return strings.HasPrefix(q, "Q") || strings.HasPrefix(q, "IQ")
}

// catalog holds the models that may be asked for.
type catalog struct {
	mu sync.RWMutex
	by map[string]*Model
}

// put adds or replaces a model.
func (c *catalog) put(m *Model) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]*Model{}
	}
	c.by[m.Record.ID] = m
}

// remove takes a model away.
func (c *catalog) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, id)
}

// find gives a model, nil when there is none of that name.
func (c *catalog) find(id string) *Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.by[id]
}

// all lists the models in id order.
func (c *catalog) all() []*Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []*Model
	for _, m := range c.by {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Model) int { return cmp.Compare(a.Record.ID, b.Record.ID) })
	return out
}

// standIns lists the models that were declared to stand in for another one.
func (c *catalog) standIns(id string) []*Model {
	return slices.DeleteFunc(c.all(), func(m *Model) bool { return m.Record.Spec.FallbackFor != id })
}

// lookup finds a model that the caller's key is for. Who reads a model's name asks
// here: bodies name it in more ways than one.
func (g *Gateway) lookup(ctx context.Context, id string) (*Model, *openai.Error) {
	if err := keyOf(ctx).mayAsk(id); err != nil {
		return nil, err
	}
	if m := g.catalog.find(id); m != nil {
		return m, nil
	}
	return nil, openai.NotFound(id)
}
