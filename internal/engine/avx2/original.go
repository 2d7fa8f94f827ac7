//go:build !linux || !amd64 || !cgo || noengine

package avx2

import "unsafe"

// AttentionCalls counts how often our attention has computed, in this process. It is
// not part of this build.
func AttentionCalls() int64 { return 0 }

// ProductCalls counts how often our products have computed, in this process.
// They are not part of this build.
func ProductCalls() int64 { return 0 }

// Kernel names what the products use of this processor: none in this build.
func Kernel() string { return "none" }

// Choose makes products use another kernel: there is none in this build.
func Choose(string) bool { return false }

// Take makes products with a weight ours: none in this build.
func Take(unsafe.Pointer) bool { return false }

// Lanes is how many rows are interleaved with each other.
const Lanes = 8

// Interleave is for tensors that were taken: none in this build.
func Interleave(kind int, data []byte, columns, rows int) {
	panic("BUG: no tensor is interleaved in this build")
}
