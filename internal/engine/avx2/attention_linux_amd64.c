//go:build cgo && !noengine

// Flash attention for AVX2; see the package's documentation.

#include <stdatomic.h>

#include "parts.h"

void __real_ggml_compute_forward_flash_attn_ext(const struct params *p, struct tensor *dst);

static atomic_long calls;
long hecate_attention_calls(void) { return atomic_load(&calls); }

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#include <math.h>

enum {
	block = 8,        // positions at a time
	stretch = 64,     // of a head, summed up in registers
	most_dim = 256,   // of a head
	most_queries = 32 // computed side by side
};

// query is the state of one row and head.
struct query {
	const float *q;
	const uint16_t *mask; // of its row, or NULL
	float *out;
	float most; // largest score so far
	float sum;  // of exponentials, relative to most
	float acc[most_dim] __attribute__((aligned(32)));
};

// exp8 computes e^x for x <= 0, with 0 for what would be denormal. The error
// is below 2 units in the last place; e^0 is exactly 1. Method: x = n ln 2 + r
// with |r| <= ln 2 / 2, Taylor series of e^r, n added to the exponent.
static inline __m256 exp8(__m256 x) {
	const __m256 least = _mm256_set1_ps(-87.0f);
	const __m256 alive = _mm256_cmp_ps(x, least, _CMP_GT_OQ);
	x = _mm256_max_ps(x, least);
	__m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	__m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693145752f), x); // upper bits of ln 2
	r = _mm256_fnmadd_ps(n, _mm256_set1_ps(1.42860677e-6f), r);      // the rest
	__m256 y = _mm256_set1_ps(1.0f / 5040);
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 720));
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 120));
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 24));
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 6));
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0.5f));
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
	y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
	__m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
	y = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y), power));
	return _mm256_and_ps(y, alive);
}

// sums8 returns the sum of each of eight vectors.
static inline __m256 sums8(const __m256 v[8]) {
	__m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
	__m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
	return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

static inline float largest(__m256 v) {
	__m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static inline float total(__m256 v) {
	__m128 m = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
	m = _mm_add_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_add_ss(m, _mm_movehdup_ps(m)));
}

// unpack turns n rows of half precision into single precision; rows that are
// missing from the block become zeros.
static void unpack(float *to, const char *from, size_t stride, int dim, int n) {
	for (int j = 0; j < n; j++, from += stride, to += dim)
		for (int d = 0; d < dim; d += 8)
			_mm256_store_ps(to + d, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + 2 * d))));
	for (int i = 0; i < (block - n) * dim; i++)
		to[i] = 0;
}

// scores are a query's products with a block's keys, scaled and masked;
// positions beyond the n there are get minus infinity.
static inline __m256 scores(const struct query *s, const float *keys, int dim, float scale, int64_t at, int n) {
	__m256 sum[block];
	for (int j = 0; j < block; j++)
		sum[j] = _mm256_setzero_ps();
	for (int d = 0; d < dim; d += 8) {
		const __m256 q = _mm256_loadu_ps(s->q + d);
		for (int j = 0; j < block; j++)
			sum[j] = _mm256_fmadd_ps(q, _mm256_load_ps(keys + j * dim + d), sum[j]);
	}
	__m256 x = _mm256_mul_ps(sums8(sum), _mm256_set1_ps(scale));
	if (s->mask == NULL && n == block)
		return x;
	if (n == block)
		return _mm256_add_ps(x, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s->mask + at))));
	uint16_t masks[block];
	for (int j = 0; j < block; j++)
		masks[j] = j >= n ? 0xfc00 : s->mask ? s->mask[at + j] : 0;
	return _mm256_add_ps(x, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)masks)));
}

// hidden says that a query sees nothing of a whole block, as the first rows of
// a chunk see nothing of the last ones.
static inline bool hidden(const struct query *s, int64_t at, int n) {
	if (s->mask == NULL || n < block)
		return false;
	const __m128i mask = _mm_loadu_si128((const __m128i *)(s->mask + at));
	return _mm_movemask_epi8(_mm_cmpeq_epi16(mask, _mm_set1_epi16((short)0xfc00))) == 0xffff;
}

// rescale makes the state relative to a new largest score.
static inline void rescale(struct query *s, float most, int dim) {
	const __m256 by = exp8(_mm256_set1_ps(s->most - most));
	s->most = most;
	s->sum *= _mm256_cvtss_f32(by);
	for (int d = 0; d < dim; d += 8)
		_mm256_store_ps(s->acc + d, _mm256_mul_ps(_mm256_load_ps(s->acc + d), by));
}

// weigh adds a block's weighted values to a stretch of a sum, which stays in registers
// meanwhile. Each element adds up in order of position, as everywhere.
static inline void weigh(float *acc, const float *weight, const float *values, int dim) {
	__m256 a[stretch / 8];
	for (int i = 0; i < stretch / 8; i++)
		a[i] = _mm256_load_ps(acc + 8 * i);
	for (int j = 0; j < block; j++) {
		const __m256 w = _mm256_broadcast_ss(weight + j);
		for (int i = 0; i < stretch / 8; i++)
			a[i] = _mm256_fmadd_ps(w, _mm256_load_ps(values + j * dim + 8 * i), a[i]);
	}
	for (int i = 0; i < stretch / 8; i++)
		_mm256_store_ps(acc + 8 * i, a[i]);
}

// add takes a block of positions into account. A position without weight is
// left out altogether: its value may be anything.
static inline void add(struct query *s, __m256 x, const float *values, int dim) {
	const float most = largest(x);
	if (most == -INFINITY)
		return;
	if (most > s->most)
		rescale(s, most, dim);
	const __m256 w = exp8(_mm256_sub_ps(x, _mm256_set1_ps(s->most)));
	s->sum += total(w);
	float weight[block];
	_mm256_storeu_ps(weight, w);
	if (_mm256_movemask_ps(_mm256_cmp_ps(w, _mm256_setzero_ps(), _CMP_NEQ_UQ)) == 0xff) {
		int d = 0;
		for (; d + stretch <= dim; d += stretch)
			weigh(s->acc + d, weight, values + d, dim);
		for (; d < dim; d += 8) {
			__m256 a = _mm256_load_ps(s->acc + d);
			for (int j = 0; j < block; j++)
				a = _mm256_fmadd_ps(_mm256_broadcast_ss(weight + j), _mm256_load_ps(values + j * dim + d), a);
			_mm256_store_ps(s->acc + d, a);
		}
		return;
	}
	for (int j = 0; j < block; j++) {
		if (weight[j] == 0)
			continue;
		const __m256 b = _mm256_set1_ps(weight[j]);
		for (int d = 0; d < dim; d += 8)
			_mm256_store_ps(s->acc + d, _mm256_fmadd_ps(b, _mm256_load_ps(values + j * dim + d), _mm256_load_ps(s->acc + d)));
	}
}

static void begin(struct query *s, int dim) {
	s->most = -INFINITY;
	s->sum = 0;
	for (int d = 0; d < dim; d++)
		s->acc[d] = 0;
}

static void finish(struct query *s, int dim) {
	const __m256 by = _mm256_set1_ps(s->sum == 0 ? 0 : 1 / s->sum);
	for (int d = 0; d < dim; d += 8)
		_mm256_storeu_ps(s->out + d, _mm256_mul_ps(_mm256_load_ps(s->acc + d), by));
}

// group computes some rows of all query heads that share one head of keys and
// values.
static void group(struct tensor *dst, int64_t kv, int64_t row, int64_t rows) {
	const struct tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *mask = dst->src[3];
	const int dim = (int)k->ne[0];
	const int64_t share = q->ne[2] / k->ne[2], held = k->ne[1];
	float keys[block * most_dim] __attribute__((aligned(32)));
	float values[block * most_dim] __attribute__((aligned(32)));
	struct query state[most_queries];
	int n = 0;
	for (int64_t r = row; r < row + rows; r++) {
		for (int64_t h = kv * share; h < (kv + 1) * share; h++, n++) {
			begin(&state[n], dim);
			state[n].q = (const float *)(q->data + r * q->nb[1] + h * q->nb[2]);
			state[n].mask = mask ? (const uint16_t *)(mask->data + r * mask->nb[1]) : NULL;
			state[n].out = (float *)(dst->data + (h + r * dst->ne[1]) * dst->nb[1]);
		}
	}
	for (int64_t at = 0; at < held; at += block) {
		const int here = (int)(held - at < block ? held - at : block);
		unpack(keys, k->data + kv * k->nb[2] + at * k->nb[1], k->nb[1], dim, here);
		unpack(values, v->data + kv * v->nb[2] + at * v->nb[1], v->nb[1], dim, here);
		for (int i = 0; i < n; i++)
			if (!hidden(&state[i], at, here))
				add(&state[i], scores(&state[i], keys, dim, dst->op_params.f[0], at, here), values, dim);
	}
	for (int i = 0; i < n; i++)
		finish(&state[i], dim);
}

// suits says whether a case is one of those computed here.
static bool suits(const struct tensor *dst) {
	const struct tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *mask = dst->src[3];
	const bool types = q->type == type_f32 && k->type == type_f16 && v->type == type_f16 && (!mask || mask->type == type_f16);
	const bool plain = dst->op_params.f[1] == 0 && dst->op_params.f[2] == 0 && dst->src[4] == NULL;
	const bool dims = k->ne[0] == v->ne[0] && k->ne[0] % 8 == 0 && k->ne[0] <= most_dim && q->ne[3] == 1;
	const bool heads = k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0 && q->ne[2] / k->ne[2] <= most_queries;
	const bool masks = !mask || (mask->ne[2] == 1 && mask->ne[3] == 1);
	return same_layout() && types && plain && dims && heads && masks;
}

void __wrap_ggml_compute_forward_flash_attn_ext(const struct params *p, struct tensor *dst) {
	if (!suits(dst)) {
		__real_ggml_compute_forward_flash_attn_ext(p, dst);
		return;
	}
	if (p->ith == 0)
		atomic_fetch_add(&calls, 1);
	const struct tensor *q = dst->src[0], *k = dst->src[1];
	const int64_t share = q->ne[2] / k->ne[2], step = most_queries / share;
	const int64_t parts = (q->ne[1] + step - 1) / step, all = parts * k->ne[2];
	for (int64_t i = p->ith; i < all; i += p->nth) {
		const int64_t row = i % parts * step;
		group(dst, i / parts, row, row + step <= q->ne[1] ? step : q->ne[1] - row);
	}
}

#else

void __wrap_ggml_compute_forward_flash_attn_ext(const struct params *p, struct tensor *dst) {
	__real_ggml_compute_forward_flash_attn_ext(p, dst);
}

#endif
