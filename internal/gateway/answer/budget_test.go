package answer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"hecate/internal/stage"
)

// Twenty long prompts at once keep no more boundary states than they may, but for the
// rows that are on their way from one stage to the next.
func TestBoundaryStatesStayInBudget(t *testing.T) {
	const (
		answers = 20
		chunk   = 8
		limit   = 4 * 2000
		rows    = 800
	)
	f := threeStages()
	r := f.runner(Limits{Chunk: chunk})
	r.Budget = NewBudget(limit)
	var most atomic.Int64
	f.onStep = func(string, stage.Step) {
		for u := r.Budget.Used(); ; {
			old := most.Load()
			if u <= old || most.CompareAndSwap(old, u) {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			j := job(rows, 3)
			j.ID = fmt.Sprint("job", i)
			if _, _, err := generate(t, r, j, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Between two stages are a few chunks that are not read yet.
	if under := int64(limit + answers*2*4*(aheadChunks+2)*chunk); most.Load() > under {
		t.Errorf("%d bytes were kept at a time, want %d at most; %d are allowed", most.Load(), under, limit)
	}
	if r.Budget.Used() != 0 {
		t.Errorf("%d bytes are left", r.Budget.Used())
	}
}
