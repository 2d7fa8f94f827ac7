// One kernel of products_linux_amd64.c, for processors with TARGET. DOT adds to
// each of eight 32-bit lanes the products of four unsigned and four signed
// bytes; without it there is AVX2 only.

#define ALWAYS static inline __attribute__((always_inline)) TARGET

// four broadcasts four bytes of activations.
ALWAYS __m256i NAME(four)(const int8_t *q) {
	int32_t v;
	memcpy(&v, q, sizeof v);
	return _mm256_set1_epi32(v);
}

// sums are a block's sums of products, for each activation row: with the
// pieces of interleaved weights that begin at w.
#ifdef DOT
ALWAYS void NAME(sums)(int type, const int wide, const uint8_t *w, const int8_t *q, const int32_t *correction, __m256i *sum) {
	const __m256i low = _mm256_set1_epi8(15);
	#pragma GCC unroll 8
	for (int c = 0; c < wide; c++)
		sum[c] = _mm256_set1_epi32(correction[c]);
	if (type == type_q8_0) {
		#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) {
			const __m256i u = _mm256_loadu_si256((const __m256i *)(w + 32 * i));
			#pragma GCC unroll 8
			for (int c = 0; c < wide; c++)
				sum[c] = DOT(sum[c], u, NAME(four)(q + c * in_block + 4 * i));
		}
		return;
	}
	#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		const __m256i both = _mm256_loadu_si256((const __m256i *)(w + 32 * i));
		const __m256i u = _mm256_and_si256(both, low), v = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
		#pragma GCC unroll 8
		for (int c = 0; c < wide; c++)
			sum[c] = DOT(DOT(sum[c], u, NAME(four)(q + c * in_block + 4 * i)), v, NAME(four)(q + c * in_block + 16 + 4 * i));
	}
}
#else
// plus adds 16-bit numbers, in this order: compilers that reorder sums run out of
// registers.
ALWAYS __m256i NAME(plus)(__m256i sum, __m256i v) {
	sum = _mm256_add_epi16(sum, v);
	__asm__("" : "+x"(sum));
	return sum;
}

// Halves of bytes: 8 x 2 x 15 x 128 fits into 16 bits, so that the widening is
// done once per block.
ALWAYS void NAME(sums)(int type, const int wide, const uint8_t *w, const int8_t *q, const int32_t *correction, __m256i *sum) {
	const __m256i half = _mm256_set1_epi8(15);
	__m256i low[most_wide], high[most_wide];
	#pragma GCC unroll 8
	for (int c = 0; c < wide; c++)
		low[c] = high[c] = _mm256_setzero_si256();
	if (type == type_q8_0) {
		#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) {
			const __m256i both = _mm256_loadu_si256((const __m256i *)(w + 32 * i));
			const __m256i u = _mm256_and_si256(both, half), v = _mm256_and_si256(_mm256_srli_epi16(both, 4), half);
			#pragma GCC unroll 8
			for (int c = 0; c < wide; c++) {
				const __m256i s = NAME(four)(q + c * in_block + 4 * i);
				low[c] = NAME(plus)(low[c], _mm256_maddubs_epi16(u, s));
				high[c] = NAME(plus)(high[c], _mm256_maddubs_epi16(v, s));
			}
		}
	} else {
		#pragma GCC unroll 4
		for (int i = 0; i < 4; i++) {
			const __m256i both = _mm256_loadu_si256((const __m256i *)(w + 32 * i));
			const __m256i u = _mm256_and_si256(both, half), v = _mm256_and_si256(_mm256_srli_epi16(both, 4), half);
			#pragma GCC unroll 8
			for (int c = 0; c < wide; c++) {
				low[c] = NAME(plus)(low[c], _mm256_maddubs_epi16(u, NAME(four)(q + c * in_block + 4 * i)));
				low[c] = NAME(plus)(low[c], _mm256_maddubs_epi16(v, NAME(four)(q + c * in_block + 16 + 4 * i)));
			}
		}
	}
	#pragma GCC unroll 8
	for (int c = 0; c < wide; c++) {
		sum[c] = _mm256_add_epi32(_mm256_madd_epi16(low[c], _mm256_set1_epi16(1)), _mm256_set1_epi32(correction[c]));
		if (type == type_q8_0)
			sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(high[c], _mm256_set1_epi16(16)));
	}
}
#endif

// tile multiplies eight weight rows with a tile of activation rows.
ALWAYS void NAME(tile)(int type, const int wide, const char *group, int64_t blocks, struct tile t, float *to, size_t stride) {
	const int64_t pieces = type == type_q8_0 ? 256 : 128;
	const uint8_t *w = (const uint8_t *)group + blocks * lanes * 2;
	__m256 total[most_wide];
	#pragma GCC unroll 8
	for (int c = 0; c < wide; c++)
		total[c] = _mm256_setzero_ps();
	for (int64_t l = 0; l < blocks; l++) {
		__m256i sum[most_wide];
		for (int64_t i = 0; i < pieces; i += 64)
			__builtin_prefetch(w + l * pieces + i + ahead);
		NAME(sums)(type, wide, w + l * pieces, t.q + l * wide * in_block, t.correction + l * wide, sum);
		const __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(group + l * lanes * 2)));
		#pragma GCC unroll 8
		for (int c = 0; c < wide; c++)
			total[c] = _mm256_fmadd_ps(_mm256_mul_ps(scale, _mm256_set1_ps(t.scale[l * wide + c])), _mm256_cvtepi32_ps(sum[c]), total[c]);
	}
	#pragma GCC unroll 8
	for (int c = 0; c < wide; c++)
		_mm256_storeu_ps((float *)((char *)to + c * stride), total[c]);
}

// multiply is tile with the numbers that are constants to the compiler.
TARGET static void NAME(multiply)(int type, const char *group, int64_t blocks, struct tile t, float *to, size_t stride) {
#define WIDE(n) \
	case n: \
		if (type == type_q8_0) \
			NAME(tile)(type_q8_0, n, group, blocks, t, to, stride); \
		else \
			NAME(tile)(type_q4_0, n, group, blocks, t, to, stride); \
		break
	switch (t.wide) {
		WIDE(1);
		WIDE(2);
		WIDE(3);
		WIDE(4);
		WIDE(5);
		WIDE(6);
		WIDE(7);
		WIDE(8);
	}
#undef WIDE
}

#undef ALWAYS
