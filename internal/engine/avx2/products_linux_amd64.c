//go:build cgo && !noengine

// Products with weights in Q8_0 and Q4_0; see the package's documentation.

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "parts.h"

extern const char *ggml_op_name(int op);
extern bool ggml_backend_buffer_is_host(void *buffer);
extern void *ggml_backend_buffer_get_base(void *buffer);
extern size_t ggml_backend_buffer_get_size(void *buffer);
extern void ggml_barrier(void *pool);
bool __real_ggml_cpu_extra_compute_forward(struct params *p, struct tensor *op);
bool __real_ggml_cpu_extra_work_size(int threads, const struct tensor *op, size_t *size);

static atomic_long calls;
long hecate_products_calls(void) { return atomic_load(&calls); }

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

// Both kinds have blocks of 32 weights: a scale in half precision and the
// weights as bytes, or as halves of bytes (weight i low, i + 16 high).
//
// Interleaved, eight rows take the place they had before: first all scales, for
// each block those of the eight rows, then for each block pieces of 32 bytes,
// four bytes of each row. Bytes of Q8_0 have 128 added, so that weights of both
// kinds are unsigned; the sum of the activations corrects for that.
enum {
	in_block = 32,
	lanes = 8, // weight rows side by side
	most_wide = 8, // activation rows side by side
	per_activation_block = in_block + 4 + 4,
	ahead = 1024, // bytes of weights that are asked for beforehand; hardware stops at the ends of pages
	cache = 512 << 10 // bytes of activations that stay near while weights pass
};

static inline int64_t block_bytes(int type) { return type == type_q8_0 ? 34 : 18; }

// tile is up to most_wide activation rows, quantised like Q8_0. Everything is
// in order of blocks, and within one of rows.
struct tile {
	int wide;
	int8_t *q;
	float *scale;
	int32_t *correction; // what the weights' offset adds, negative
};

static struct tile tile_at(char *work, int64_t blocks, int64_t rows, int wide, int64_t first) {
	struct tile t;
	t.wide = (int)(rows - first < wide ? rows - first : wide);
	t.q = (int8_t *)(work + first * blocks * per_activation_block);
	t.scale = (float *)(t.q + blocks * t.wide * in_block);
	t.correction = (int32_t *)(t.scale + blocks * t.wide);
	return t;
}

// The kernels, by what the processor has.
#define NAME(x) x##_avx2
#define TARGET
#include "products_kernel.h"
#undef NAME
#undef TARGET

#if defined(__clang__) || __GNUC__ >= 12
#define NAME(x) x##_avxvnni
#define TARGET __attribute__((target("avxvnni")))
#define DOT(sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)
#include "products_kernel.h"
#undef NAME
#undef TARGET
#undef DOT

#define NAME(x) x##_avx512vnni
#define TARGET __attribute__((target("avx512vnni,avx512vl")))
#define DOT(sum, u, s) _mm256_dpbusd_epi32(sum, u, s)
#include "products_kernel.h"
#undef NAME
#undef TARGET
#undef DOT
#define HAS_VNNI 1
#else
#define HAS_VNNI 0
#endif

static const struct kernel {
	const char *name;
	int wide; // activation rows side by side that registers allow
	void (*multiply)(int type, const char *group, int64_t blocks, struct tile t, float *to, size_t stride);
} kernels[] = {
	{"avx2", 4, multiply_avx2},
#if HAS_VNNI
	{"avxvnni", 6, multiply_avxvnni},
	{"avx512vnni", 8, multiply_avx512vnni},
#endif
};

static atomic_int chosen = -1;

static int best(void) {
#if HAS_VNNI
	if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl"))
		return 2;
	if (__builtin_cpu_supports("avxvnni"))
		return 1;
#endif
	return 0;
}

static const struct kernel *kernel(void) {
	int k = atomic_load(&chosen);
	if (k < 0)
		atomic_store(&chosen, k = best());
	return &kernels[k];
}

const char *hecate_products_kernel(void) { return kernel()->name; }

int hecate_products_choose(const char *name) {
	for (int i = 0; i < (int)(sizeof kernels / sizeof *kernels); i++) {
		if (strcmp(name, kernels[i].name) == 0 && (i == 0 || i == best() || (i == 1 && __builtin_cpu_supports("avxvnni")))) {
			atomic_store(&chosen, i);
			return 1;
		}
	}
	return 0;
}

// quantise makes one row of activations a row of a tile, with the same
// operations as ggml.
static void quantise(const float *x, int64_t blocks, struct tile t, int row, int offset) {
	const __m256 sign = _mm256_set1_ps(-0.0f);
	for (int64_t l = 0; l < blocks; l++, x += in_block) {
		__m256 v[4];
		__m256 most = _mm256_setzero_ps();
		for (int i = 0; i < 4; i++) {
			v[i] = _mm256_loadu_ps(x + 8 * i);
			most = _mm256_max_ps(most, _mm256_andnot_ps(sign, v[i]));
		}
		__m128 m = _mm_max_ps(_mm256_extractf128_ps(most, 1), _mm256_castps256_ps128(most));
		m = _mm_max_ps(m, _mm_movehl_ps(m, m));
		const float largest = _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
		const __m256 by = _mm256_set1_ps(largest != 0 ? 127.0f / largest : 0);
		__m256i n[4];
		for (int i = 0; i < 4; i++)
			n[i] = _mm256_cvtps_epi32(_mm256_round_ps(_mm256_mul_ps(v[i], by), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
		const __m256i packed = _mm256_permutevar8x32_epi32(
			_mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3])),
			_mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
		const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), packed);
		const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
		__m128i s = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
		s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
		s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
		const int64_t at = l * t.wide + row;
		_mm256_storeu_si256((__m256i *)(t.q + at * in_block), packed);
		t.scale[at] = _cvtsh_ss(_cvtss_sh(largest / 127.0f, 0));
		t.correction[at] = -offset * _mm_cvtsi128_si32(s);
	}
}

// plain computes a row that is not interleaved: one of the last seven at most.
static float plain(int type, const char *row, int64_t blocks, struct tile t, int column) {
	float sum = 0;
	for (int64_t l = 0; l < blocks; l++, row += block_bytes(type)) {
		const int64_t at = l * t.wide + column;
		const int8_t *q = t.q + at * in_block;
		const uint8_t *w = (const uint8_t *)row + 2;
		int32_t dot = type == type_q8_0 ? 0 : t.correction[at];
		for (int i = 0; i < in_block; i++) {
			if (type == type_q8_0)
				dot += (int8_t)w[i] * q[i];
			else
				dot += (i < 16 ? w[i] & 15 : w[i - 16] >> 4) * q[i];
		}
		uint16_t half;
		memcpy(&half, row, sizeof half);
		sum = __builtin_fmaf(_cvtsh_ss(half) * t.scale[at], (float)dot, sum);
	}
	return sum;
}

static inline char *row_of(const struct tensor *t, int64_t i) {
	const int64_t i3 = i / (t->ne[1] * t->ne[2]), i2 = i / t->ne[1] % t->ne[2];
	return t->data + i % t->ne[1] * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3];
}

static char *aligned(void *work) { return (char *)(((uintptr_t)work + 63) & ~(uintptr_t)63); }

// weights_pass multiplies some activation rows with this thread's share of the weights.
static void weights_pass(const struct params *p, struct tensor *dst, const struct kernel *k, char *work, int64_t first, int64_t last, int64_t rows) {
	const struct tensor *w = dst->src[0];
	const int64_t blocks = w->ne[0] / in_block, groups = w->ne[1] / lanes, left = w->ne[1] % lanes;
	const int64_t to = groups * (p->ith + 1) / p->nth;
	for (int64_t g = groups * p->ith / p->nth; g < to; g++) {
		for (int64_t c = first; c < last; c += k->wide) {
			const struct tile t = tile_at(work, blocks, rows, k->wide, c);
			k->multiply(w->type, w->data + g * lanes * w->nb[1], blocks, t, (float *)row_of(dst, c) + g * lanes, dst->nb[1]);
		}
	}
	if (p->ith != p->nth - 1)
		return;
	for (int64_t i = w->ne[1] - left; i < w->ne[1]; i++)
		for (int64_t c = first; c < last; c++)
			((float *)row_of(dst, c))[i] = plain(w->type, w->data + i * w->nb[1], blocks, tile_at(work, blocks, rows, k->wide, c / k->wide * k->wide), (int)(c % k->wide));
}

static void multiply(const struct params *p, struct tensor *dst) {
	const struct tensor *w = dst->src[0], *x = dst->src[1];
	const struct kernel *k = kernel();
	const int64_t blocks = w->ne[0] / in_block, rows = x->ne[1] * x->ne[2] * x->ne[3];
	char *work = aligned(p->work);
	if (p->ith == 0)
		atomic_fetch_add(&calls, 1);
	for (int64_t c = p->ith; c < rows; c += p->nth)
		quantise((const float *)row_of(x, c), blocks, tile_at(work, blocks, rows, k->wide, c / k->wide * k->wide), (int)(c % k->wide), w->type == type_q8_0 ? 128 : 8);
	ggml_barrier(p->pool);
	int64_t near = cache / (blocks * per_activation_block) / k->wide * k->wide;
	if (near < k->wide)
		near = k->wide;
	for (int64_t c = 0; c < rows; c += near)
		weights_pass(p, dst, k, work, c, c + near < rows ? c + near : rows, rows);
}

// interleave is for eight rows; from and to must not overlap.
static void interleave(int type, const uint8_t *from, uint8_t *to, int64_t blocks) {
	const int64_t size = block_bytes(type), row = blocks * size;
	const uint8_t offset = type == type_q8_0 ? 0x80 : 0;
	uint8_t *scales = to, *weights = to + blocks * lanes * 2;
	for (int64_t l = 0; l < blocks; l++) {
		for (int i = 0; i < lanes; i++, scales += 2)
			memcpy(scales, from + i * row + l * size, 2);
		for (int64_t at = 2; at < size; at += 4)
			for (int i = 0; i < lanes; i++)
				for (int b = 0; b < 4; b++)
					*weights++ = from[i * row + l * size + at + b] ^ offset;
	}
}

int hecate_products_interleave(int type, void *data, int64_t columns, int64_t rows) {
	const int64_t blocks = columns / in_block, group = lanes * blocks * block_bytes(type);
	uint8_t *before = malloc(group);
	if (before == NULL)
		return 0;
	for (uint8_t *at = data; rows >= lanes; rows -= lanes, at += group) {
		memcpy(before, at, group);
		interleave(type, before, at, blocks);
	}
	free(before);
	return 1;
}

// marker is the extra of tensors that are interleaved.
static char marker;

// product is the number of the operation that is replaced; 0: not found yet.
static atomic_int product;

static void find_product(void) {
	int op = 0;
	while (strcmp(ggml_op_name(op), "MUL_MAT") != 0)
		op++;
	atomic_store(&product, op);
}

// large_pages asks for pages of 2 MiB within a buffer that has not been written
// yet: weights are read from beginning to end for each token, which hardware
// does not do ahead across the ends of pages. A wish, no more.
static void large_pages(void *buffer) {
	const uintptr_t size = 2 << 20, begin = (uintptr_t)ggml_backend_buffer_get_base(buffer);
	const uintptr_t from = (begin + size - 1) / size * size, to = (begin + ggml_backend_buffer_get_size(buffer)) / size * size;
	if (to > from)
		(void)madvise((void *)from, to - from, MADV_HUGEPAGE);
}

int hecate_products_take(struct tensor *t) {
	if (!same_layout())
		return 0;
	find_product();
	const bool kind = (t->type == type_q8_0 || t->type == type_q4_0) && t->ne[0] % in_block == 0;
	const bool shape = t->ne[1] >= lanes && t->ne[2] == 1 && t->ne[3] == 1 && (int64_t)t->nb[1] == t->ne[0] / in_block * block_bytes(t->type);
	if (!kind || !shape || t->extra != NULL || t->view_src != NULL || t->buffer == NULL || !ggml_backend_buffer_is_host(t->buffer))
		return 0;
	large_pages(t->buffer);
	t->extra = &marker;
	return 1;
}

static bool ours(const struct tensor *op) {
	return op->op == atomic_load_explicit(&product, memory_order_relaxed) && op->src[0] != NULL && op->src[0]->extra == &marker;
}

bool __wrap_ggml_cpu_extra_compute_forward(struct params *p, struct tensor *op) {
	if (!ours(op))
		return __real_ggml_cpu_extra_compute_forward(p, op);
	multiply(p, op);
	return true;
}

bool __wrap_ggml_cpu_extra_work_size(int threads, const struct tensor *op, size_t *size) {
	if (!ours(op))
		return __real_ggml_cpu_extra_work_size(threads, op, size);
	const struct tensor *x = op->src[1];
	*size = x->ne[0] / in_block * per_activation_block * x->ne[1] * x->ne[2] * x->ne[3] + 64;
	return true;
}

#else

int hecate_products_take(struct tensor *t) { return 0; }
int hecate_products_interleave(int type, void *data, int64_t columns, int64_t rows) { return 0; }
const char *hecate_products_kernel(void) { return "none"; }
int hecate_products_choose(const char *name) { return 0; }

bool __wrap_ggml_cpu_extra_compute_forward(struct params *p, struct tensor *op) {
	return __real_ggml_cpu_extra_compute_forward(p, op);
}

bool __wrap_ggml_cpu_extra_work_size(int threads, const struct tensor *op, size_t *size) {
	return __real_ggml_cpu_extra_work_size(threads, op, size);
}

#endif
