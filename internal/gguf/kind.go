package gguf

import "fmt"

// Kind is how a tensor's elements are stored, numbered as in the format.
type Kind uint32

// The kinds that this module names; others that the format knows have sizes
// too (see layouts).
const (
	F32  Kind = 0
	F16  Kind = 1
	Q4_0 Kind = 2
	Q8_0 Kind = 8
	Q4_K Kind = 12
	Q5_K Kind = 13
	Q6_K Kind = 14
	I8   Kind = 24
	I32  Kind = 26
	BF16 Kind = 30
)

// layout is a kind's name and how many elements one block of how many bytes
// holds.
type layout struct {
	name         string
	elems, bytes int64
}

// layouts is the storage table of the GGUF specification. Numbers that are
// missing were withdrawn or are not tensor data.
var layouts = map[Kind]layout{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, 28: {"F64", 1, 8},
	I8: {"I8", 1, 1}, 25: {"I16", 1, 2}, I32: {"I32", 1, 4}, 27: {"I64", 1, 8},
	Q4_0: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24},
	Q8_0: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144},
	Q5_K: {"Q5_K", 256, 176}, Q6_K: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98},
	19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110},
	22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 29: {"IQ1_M", 256, 56},
	39: {"MXFP4", 32, 17},
}

// Known says whether the format defines the kind.
func (k Kind) Known() bool { _, ok := layouts[k]; return ok }

// String is the format's own name, such as "Q8_0".
func (k Kind) String() string {
	if l, ok := layouts[k]; ok {
		return l.name
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// Block is the number of elements that are stored together; 0 for unknown
// kinds. A tensor's first dimension is a multiple of it.
func (k Kind) Block() int64 { return layouts[k].elems }

// Bytes is the size of n elements, n being a multiple of Block.
func (k Kind) Bytes(n int64) int64 {
	l := layouts[k]
	if l.elems == 0 {
		return 0
	}
	return n / l.elems * l.bytes
}
