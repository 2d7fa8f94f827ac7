//go:build linux && amd64 && !noengine && cgo

package engine

import (
	"testing"

	"hecate/internal/engine/avx2"
)

// TestOwnAttentionIsInUse: it replaces a function of the kernels when the
// program is linked, which could fail silently.
func TestOwnAttentionIsInUse(t *testing.T) {
	if !FastKernels {
		t.Skip("only with AVX2")
	}
	e := newDemo(t, Options{}, 0, 11)
	s := open(t, e, "demo", Range{0, 11}, 100)
	before := avx2.AttentionCalls()
	feed(t, s, []int32{1, 2, 3}, nil, WantLast)
	if got := avx2.AttentionCalls() - before; got != 12 {
		t.Errorf("%d calls for 12 layers", got)
	}
}
