// The parts of ggml's interface that are needed, as of the pinned version.
// same_layout() guards against another one.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct params {
	int ith, nth; // this thread's number, number of threads
	size_t work_size;
	void *work;
	void *pool;
};

struct tensor {
	int type;
	void *buffer;
	int64_t ne[4]; // elements
	size_t nb[4];  // strides in bytes
	int op;
	union {
		int32_t i[16];
		float f[16];
	} op_params;
	int32_t flags;
	struct tensor *src[10];
	struct tensor *view_src;
	size_t view_offset;
	char *data;
	char name[64];
	void *extra;
	char padding[8];
};

enum { type_f32 = 0, type_f16 = 1, type_q4_0 = 2, type_q8_0 = 8 };

extern size_t ggml_tensor_overhead(void);

static inline bool same_layout(void) {
	const size_t object = 32; // what ggml keeps before each tensor
	return ggml_tensor_overhead() == object + sizeof(struct tensor);
}
