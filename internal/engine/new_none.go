//go:build noengine || !cgo

package engine

// FastKernels says whether the kernels use the instruction sets they need to be
// fast. There are none in this build.
const FastKernels = false

// KernelName names the instruction set the kernels were compiled for.
func KernelName() string { return "none" }

// New returns ErrNoEngine: this build has no kernels.
func New(Options) (Engine, error) { return nil, ErrNoEngine }

// Class is the exactness class of this build: machines of the same class
// compute bit-identical results. A build without kernels has none.
func Class() string { return "" }

// Instructions names what products with weights use of this processor: nothing
// is computed in this build.
func Instructions() string { return "none" }

// UseInstructions limits them: there are none.
func UseInstructions(string) bool { return false }
