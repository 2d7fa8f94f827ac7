//go:build !noengine && cgo

package engine

/*
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

import "runtime"

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

// Class is the exactness class of this build: machines of the same class
// compute bit-identical results. It names the kernels' version, the processor
// family and the instruction set they were compiled for.
func Class() string {
	return "ollama-" + kernelVersion + "/" + runtime.GOARCH + "/" + KernelName()
}
