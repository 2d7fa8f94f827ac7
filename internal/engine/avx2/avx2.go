// Package avx2 replaces two of the kernels' functions by faster ones when the
// program is linked: on Linux and x86-64, compiled for AVX2. It is imported for
// its effect, and for [Weights].
//
// Flash attention. The version of ggml that the engine uses computes attention
// one cached position at a time, with a call of the C library's expf for each
// and sums in half precision. For prompts of some hundred tokens that is a third
// of all time, and it grows with their length. Here it is eight positions at a
// time, exponentials in vector registers, sums in single precision, keys and
// values unpacked once for all query heads that share them.
//
// Products with weights in Q8_0 and Q4_0. ggml computes each pair of a weight
// row and an activation row by itself and then adds up across a vector
// register. Here eight weight rows are interleaved when they are loaded, so that
// each has a lane of its own: nothing is added up across lanes, each weight is
// fetched and unpacked once for up to eight activation rows, and one row at a
// time is bound by memory alone. Where the processor has dot products of bytes
// (VNNI) they are used; sums of integers are exact, so the results are the same.
//
// What the engine promises holds here too: the result of a row depends on its
// own history only. Attention takes positions in blocks of eight counted from
// the first one, each block in the same way, whatever else is computed beside
// it. A product is, for any number of rows, the same chain of one fused
// multiply-add per block of 32 weights, in their order. Cases that the engine
// does not use (other types, sinks, soft caps, ALiBi) go to the original
// functions.
package avx2

// Version changes whenever results may change in their last bits.
const Version = 2
