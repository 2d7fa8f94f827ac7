package gateway

import (
	"encoding/json"
	"net/http"

	"hecate/internal/gateway/openai"
)

// listModels serves GET /v1/models.
func (g *Gateway) listModels(w http.ResponseWriter, _ *http.Request) error {
	list := openai.ModelList{Object: "list", Data: []openai.Model{}}
	for _, m := range g.catalog.all() {
		list.Data = append(list.Data, g.describe(m))
	}
	return writeJSON(w, list)
}

// oneModel serves GET /v1/models/{id}; ids may hold slashes.
func (g *Gateway) oneModel(w http.ResponseWriter, r *http.Request) error {
	m, fault := g.lookup(r.PathValue("id"))
	if fault != nil {
		return fault
	}
	return writeJSON(w, g.describe(m))
}

func (g *Gateway) describe(m *Model) openai.Model {
	missing := g.missing(m)
	return openai.Model{
		ID: m.Record.ID, Object: "model", Created: m.Record.Created.Unix(), OwnedBy: "hecate",
		Hecate: &openai.ModelDetail{Ready: missing == "", Demo: m.Record.Demo, ContextLength: m.Context(), Missing: missing, FallbackFor: m.Record.Spec.FallbackFor},
	}
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}
