//go:build !noengine && cgo

package engine

/*
#if defined(__GLIBC__) || defined(__linux__)
#include <features.h>
#endif
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
static const char *libc_name(void) { return gnu_get_libc_version(); }
#else
static const char *libc_name(void) { return "other"; }
#endif
static const char *compiler(void) { return __VERSION__; }
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
enum { kernel_isa = 4 };
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
enum { kernel_isa = 3 };
#elif defined(__ARM_FEATURE_DOTPROD)
enum { kernel_isa = 2 };
#elif defined(__x86_64__)
enum { kernel_isa = 1 };
#else
enum { kernel_isa = 0 };
#endif
*/
import "C"

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"

	"hecate/internal/engine/avx2"
)

// FastKernels says whether the kernels use the instruction sets they need to be
// fast: AVX2 with FMA on x86-64, dot products on arm64. It follows from the C
// flags of the build; without them everything works, several times slower.
const FastKernels = C.kernel_isa >= 2

// KernelName names the instruction set the kernels were compiled for.
func KernelName() string {
	return [...]string{"generic", "sse2", "dotprod", "avx2", "avx512"}[C.kernel_isa]
}

// kernelVersion is the version of the module that the kernels come from; a
// test compares it with go.mod.
const kernelVersion = "v0.17.4"

// Class is the exactness class of this build on this machine: engines of the
// same class compute bit-identical results. It is the kernels' version, the
// processor family, the instruction set they were compiled for, and a hash of
// the compiler (which decides where products and sums are fused), of the C
// library (whose trigonometric functions the kernels call) and of the version
// of our own kernels.
func Class() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", C.GoString(C.compiler()), C.GoString(C.libc_name()), avx2.Version))
	return kernelVersion + "/" + runtime.GOARCH + "/" + KernelName() + "/" + hex.EncodeToString(sum[:4])
}

// Instructions names what products with weights use of this processor: avx2,
// avxvnni or avx512vnni where they are our own, else none. Results are the same.
func Instructions() string { return avx2.Kernel() }

// UseInstructions makes them use no more than that, for comparisons on equal
// terms; it is false if this processor or build has no such instructions.
// Nothing may be computing.
func UseInstructions(name string) bool { return avx2.Choose(name) }
