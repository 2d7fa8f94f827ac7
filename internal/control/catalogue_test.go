package control_test

import (
	"errors"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/swarm"
)

// standIn is a small model that stands in for another one; "": for none.
func standIn(id, other string) *control.ModelRecord {
	return &control.ModelRecord{
		ID: id, Hash: someKey, Size: 100, ContextLength: 512, Created: time.Unix(1e9, 0).UTC(),
		Spec: swarm.ModelSpec{ID: id, Layers: 6, LayerBytes: []int64{1 << 20}, KVBytes: 64, ContextTokens: 512, FallbackFor: other},
	}
}

// Models that stand in for each other in a circle could not be taken out one by one.
func TestNoModelStandsInForItselfByOthers(t *testing.T) {
	store := controltest.NewStore()
	for _, c := range []struct {
		model, standsInFor string
		ok                 bool
	}{
		{"a", "", true}, {"b", "a", true}, {"c", "b", true},
		{"a", "c", false}, {"a", "b", false}, {"b", "c", false}, {"a", "a", false}, {"d", "c", true}, {"c", "a", true},
	} {
		err := control.AddModel(t.Context(), store, standIn(c.model, c.standsInFor))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, control.ErrCatalogue) {
			t.Errorf("%s for %q: %v", c.model, c.standsInFor, err)
		}
	}
	for _, id := range []string{"d", "c", "b", "a"} {
		if err := control.WithdrawModel(t.Context(), store, id); err != nil {
			t.Error(err)
		}
	}
}
