package node

import (
	"fmt"
	"testing"

	"hecate/internal/engine"
	"hecate/internal/sampling"
	"hecate/internal/stage"
)

// What no other node could do better is no failure of this one.
func TestWhoseFaultARefusalIs(t *testing.T) {
	for err, want := range map[error]stage.Code{
		sampling.ErrNoToken:   stage.CodeBad,
		sampling.ErrNotFinite: stage.CodeNotFinite,
		engine.ErrNoCells:     stage.CodeNoCells,
		engine.ErrPosition:    stage.CodeBad,
	} {
		if got := refusal(fmt.Errorf("at position 7: %w", err)); got.Code != want {
			t.Errorf("%v: %s, want %s", err, got.Code, want)
		}
	}
}
