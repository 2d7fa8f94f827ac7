//go:build !noengine && cgo

package engine

import (
	"reflect"
	"unsafe"

	"github.com/ollama/ollama/ml"

	"hecate/internal/engine/avx2"
	"hecate/internal/gguf"
)

// ownProducts can be switched off by tests and benchmarks, for models that are
// loaded afterwards.
var ownProducts = true

// interleaver knows the weights whose products are ours, and brings their data
// into the order that these want. The kernels see the mark that such a tensor
// bears.
type interleaver map[ml.Tensor]gguf.Kind

// take makes products with a weight ours, if it is one of those that can be.
func (n interleaver) take(t ml.Tensor, kind gguf.Kind) {
	if p := address(t); ownProducts && p != nil && avx2.Take(p) {
		n[t] = kind
	}
}

// arrange rearranges a chunk of a tensor.
func (n interleaver) arrange(t ml.Tensor, data []byte) {
	if kind, taken := n[t]; taken {
		avx2.Interleave(int(kind), data, t.Dim(0), len(data)/t.Stride(1))
	}
}

// address is ggml's own tensor behind a Go one, or nil if the Go type is not
// the one we know. It has no accessor for it.
func address(t ml.Tensor) unsafe.Pointer {
	v := reflect.ValueOf(t)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	f := v.Elem().FieldByName("t")
	if !f.IsValid() || f.Kind() != reflect.Pointer || f.Type().Elem().Name() != "_Ctype_struct_ggml_tensor" {
		return nil
	}
	return f.UnsafePointer()
}
