package gguf

// Limits on what a header may claim. Each is far above what real models use
// and low enough that a hostile file costs little before it is refused.
const (
	maxKeys        = 1 << 14 // real models: some dozens; bounds the key index
	maxTensors     = 1 << 17 // largest known: tens of thousands; bounds the tensor index
	maxKeyLen      = 1 << 16 // the format's own limit is 65535
	maxNameLen     = 63      // the kernels cut longer names, and two could become one
	maxStringLen   = 1 << 24 // chat templates and licences: under 1 MB; bounds one allocation
	maxKept        = 1 << 28 // bytes: all strings that are kept, or one array's; bounds memory
	maxArrayLen    = 1 << 24 // vocabularies: under 1 M; bounds the time of a scan
	maxKeptNumbers = 1 << 16 // numeric arrays longer than this are checked, not kept
	maxHeader      = 1 << 30 // bytes before the tensor data; bounds the time of a scan
	maxElements    = 1 << 42 // elements of one tensor; keeps all products within int64
	maxDim         = 1 << 40 // one dimension; two may still be multiplied
	maxAlignment   = 1 << 16 // usual: 32; bounds padding
	maxBlocks      = 1 << 12 // layers; largest known: under 200
)
