package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"hecate/internal/gateway/calls"
	"hecate/internal/gateway/openai"
)

// listModels serves GET /v1/models.
func (g *Gateway) listModels(w http.ResponseWriter, r *http.Request) error {
	list := openai.ModelList{Object: "list", Data: []openai.Model{}}
	for _, m := range g.catalog.all() {
		list.Data = append(list.Data, g.describe(m))
	}
	list.Data = append(list.Data, g.engineModels()...)
	slices.SortFunc(list.Data, func(a, b openai.Model) int { return cmp.Compare(a.ID, b.ID) })
	key := keyOf(r.Context())
	list.Data = slices.DeleteFunc(list.Data, func(m openai.Model) bool { return key.mayAsk(m.ID) != nil })
	return writeJSON(w, list)
}

// oneModel serves GET /v1/models/{id}; ids may hold slashes.
func (g *Gateway) oneModel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if fault := keyOf(r.Context()).mayAsk(id); fault != nil {
		return fault
	}
	for _, m := range g.engineModels() {
		if m.ID == id {
			return writeJSON(w, m)
		}
	}
	m, fault := g.lookup(r.Context(), id)
	if fault != nil {
		return fault
	}
	return writeJSON(w, g.describe(m))
}

func (g *Gateway) describe(m *Model) openai.Model {
	missing, made := g.missing(m), ""
	if p := m.Text.Pooling(); p.Declared {
		made = p.Kind
	}
	return openai.Model{
		ID: m.Record.ID, Object: "model", Created: m.Record.Created.Unix(), OwnedBy: "hecate",
		Hecate: &openai.ModelDetail{
			Ready: missing == "", Demo: m.Record.Demo, ContextLength: m.Context(), Missing: missing, FallbackFor: m.Record.Spec.FallbackFor,
			Tools: m.Text.Calls().Kind != calls.None, Embeddings: made,
		},
	}
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(patient{w, http.NewResponseController(w)}).Encode(v)
}
