// Package attention makes the kernels' flash attention fast on x86-64.
//
// The version of ggml that the engine uses computes attention one cached
// position at a time, with a call of the C library's expf for each and sums in
// half precision. For prompts of some hundred tokens that is a third of all
// time, and it grows with their length. On Linux with AVX2 this package
// replaces that one function when the program is linked: eight positions at a
// time, exponentials in vector registers, sums in single precision, keys and
// values unpacked once for all query heads that share them.
//
// What the engine promises holds here too: the result of a query depends on
// its own history only. Positions are taken in blocks of eight counted from
// the first one, each block in the same way, whatever else is computed beside
// it. Cases that the engine does not use (other types, sinks, soft caps,
// ALiBi) go to the original function.
//
// The package is imported for its effect.
package attention

// Version changes whenever results may change in their last bits.
const Version = 1
