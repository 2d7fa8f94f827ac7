// Package gguf reads, checks and writes GGUF model files, in pure Go.
//
// Files come from strangers, and the code that finally loads them trusts what
// they say: lengths become allocations, shapes become pointer arithmetic. So
// [Open] reads the header of every file first, within hard bounds, and refuses
// what is malformed with a [FormatError] that names file, field and value. It
// never reads tensor data, and its memory does not grow with hostile counts.
//
// [Inspect] turns a header into the numbers a planner needs. [WriteShard]
// copies some of a model's layers into a file of their own. The package does
// not know how to compute with a model, nor which architectures can be run.
package gguf
