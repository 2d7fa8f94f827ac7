//go:build cgo && !noengine

package avx2

/*
#cgo CFLAGS: -O3
#cgo LDFLAGS: -Wl,--wrap=ggml_compute_forward_flash_attn_ext
#cgo LDFLAGS: -Wl,--wrap=ggml_cpu_extra_compute_forward -Wl,--wrap=ggml_cpu_extra_work_size
#include <stdint.h>
#include <stdlib.h>
long hecate_attention_calls(void);
long hecate_products_calls(void);
int hecate_products_take(void *tensor);
int hecate_products_interleave(int type, void *data, int64_t columns, int64_t rows);
const char *hecate_products_kernel(void);
int hecate_products_choose(const char *name);
*/
import "C"

import "unsafe"

// AttentionCalls counts how often our attention has computed, in this process.
func AttentionCalls() int64 { return int64(C.hecate_attention_calls()) }

// ProductCalls counts how often our products have computed, in this process.
func ProductCalls() int64 { return int64(C.hecate_products_calls()) }

// Kernel names what the products use of this processor: avx2, avxvnni or
// avx512vnni; none if they are not in this build.
func Kernel() string { return C.GoString(C.hecate_products_kernel()) }

// Choose makes products use another kernel than the best one, for tests, and
// says whether this processor has it. Nothing may be computing.
func Choose(kernel string) bool {
	name := C.CString(kernel)
	defer C.free(unsafe.Pointer(name))
	return C.hecate_products_choose(name) != 0
}

// Take makes products with a weight ours, from now on: its data must be
// interleaved (see [Interleave]), and it may be used for nothing but products.
// The argument is a ggml tensor with its memory. It is false, and nothing has
// changed, if the tensor is not of a kind and shape that is computed here.
func Take(tensor unsafe.Pointer) bool { return C.hecate_products_take(tensor) != 0 }

// Lanes is how many rows are interleaved with each other.
const Lanes = 8

// Interleave rearranges rows of so many columns, given in the file's layout, as
// they must be in a tensor that was taken. The kind is ggml's number. All but a
// tensor's last call are for a multiple of [Lanes] rows; a remainder stays as it
// is. It panics when there is no memory.
func Interleave(kind int, data []byte, columns, rows int) {
	if rows == 0 {
		return
	}
	if C.hecate_products_interleave(C.int(kind), unsafe.Pointer(&data[0]), C.int64_t(columns), C.int64_t(rows)) == 0 {
		panic("no memory to interleave rows")
	}
}
