/* SPDX-License-Identifier: Apache-2.0 */
/* The peak loops. Accumulators are enough to cover latency times throughput of any core (Zen 4: 4 cycles x 2 pipes,
 * Golden Cove: 4 x 2). */
#include "peak.h"

#include <string.h>

#include "bench.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static volatile double sink;

static bool always(void) { return true; }

/* a[k] = a[k] x + y over `count` vectors of `bytes`; x < 1, so that the values stay normal. */
#define FMA_LOOP(name, target, type, bytes, count) \
    target __attribute__((noinline)) static void name(int64_t rounds) { \
        typedef type vec __attribute__((vector_size(bytes))); \
        vec a[count], x = { 0 }, y = { 0 }; \
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = (type)0.9999, y[i] = (type)0.0001 * (type)(i + 1); \
        for (int k = 0; k < count; k++) a[k] = y * (type)(k + 1); \
        __asm__ volatile("" : "+m"(x), "+m"(y)); \
        for (int64_t r = 0; r < rounds; r++) { \
            _Pragma("GCC unroll 32") \
            for (int k = 0; k < count; k++) a[k] = a[k] * x + y; \
        } \
        for (int k = 1; k < count; k++) a[0] += a[k]; \
        sink = (double)a[0][0]; \
    }

#define NOTHING

FMA_LOOP(fma_f32, NOTHING, float, 16, 12)
FMA_LOOP(fma_f64, NOTHING, double, 16, 12)

#if defined(__x86_64__)

FMA_LOOP(fma_f32_avx2, __attribute__((target("avx2,fma"))), float, 32, 12)
FMA_LOOP(fma_f64_avx2, __attribute__((target("avx2,fma"))), double, 32, 12)
FMA_LOOP(fma_f32_avx512, __attribute__((target("avx512f"))), float, 64, 24)
FMA_LOOP(fma_f64_avx512, __attribute__((target("avx512f"))), double, 64, 24)

static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool has_avx512(void) { return __builtin_cpu_supports("avx512f"); }
static bool has_avx512_bf16(void) { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }
static bool has_avx512_vnni(void) { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

/* The exact int8 product without VNNI: int16 pairs to int32, then an addition. */
__attribute__((target("avx2"), noinline)) static void madd_i16(int64_t rounds) {
    __m256i a[8];
    __m256i x = _mm256_set1_epi16(3);
    __asm__ volatile("" : "+m"(x));
    for (int k = 0; k < 8; k++) a[k] = _mm256_set1_epi32(k + 1);
    for (int64_t r = 0; r < rounds; r++) {
        _Pragma("GCC unroll 32")
        for (int k = 0; k < 8; k++) a[k] = _mm256_add_epi32(a[k], _mm256_madd_epi16(a[k], x));
    }
    for (int k = 1; k < 8; k++) a[0] = _mm256_add_epi32(a[0], a[k]);
    sink = _mm256_extract_epi32(a[0], 0);
}

__attribute__((target("avx512f,avx512bf16"), noinline)) static void dot_bf16(int64_t rounds) {
    __m512 a[24];
    __m512bh x;
    memset(&x, 0, sizeof x);
    __asm__ volatile("" : "+m"(x));
    for (int k = 0; k < 24; k++) a[k] = _mm512_set1_ps((float)k);
    for (int64_t r = 0; r < rounds; r++) {
        _Pragma("GCC unroll 32")
        for (int k = 0; k < 24; k++) a[k] = _mm512_dpbf16_ps(a[k], x, x);
    }
    for (int k = 1; k < 24; k++) a[0] = _mm512_add_ps(a[0], a[k]);
    sink = (double)_mm512_cvtss_f32(a[0]);
}

__attribute__((target("avx512f,avx512vnni"), noinline)) static void dot_i8(int64_t rounds) {
    __m512i a[24];
    __m512i x = _mm512_set1_epi8(1);
    __asm__ volatile("" : "+m"(x));
    for (int k = 0; k < 24; k++) a[k] = _mm512_set1_epi32(k);
    for (int64_t r = 0; r < rounds; r++) {
        _Pragma("GCC unroll 32")
        for (int k = 0; k < 24; k++) a[k] = _mm512_dpbusd_epi32(a[k], x, x);
    }
    for (int k = 1; k < 24; k++) a[0] = _mm512_add_epi32(a[0], a[k]);
    sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(a[0]));
}

/* AMX: CPUID 7.0 EDX 22 (bf16), 24 (tiles), 25 (int8); Linux grants the tile state on request (arch_prctl
 * ARCH_REQ_XCOMP_PERM, feature 18). */
static bool has_amx(unsigned bit) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1) || !(d >> bit & 1)) return false;
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
static bool has_amx_bf16(void) { return has_amx(22); }
static bool has_amx_i8(void) { return has_amx(25); }

/* Eight tiles of 16 rows of 64 bytes. */
static const struct {
    unsigned char palette, start, reserved[14];
    unsigned short columns[16];
    unsigned char rows[16];
} tiles = { .palette = 1, .columns = { 64, 64, 64, 64, 64, 64, 64, 64 }, .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

#define AMX_LOOP(name, target, instruction) \
    target __attribute__((noinline)) static void name(int64_t rounds) { \
        _tile_loadconfig(&tiles); \
        _tile_zero(0); \
        _tile_zero(1); \
        _tile_zero(2); \
        _tile_zero(3); \
        _tile_zero(4); \
        _tile_zero(5); \
        _tile_zero(6); \
        _tile_zero(7); \
        for (int64_t r = 0; r < rounds; r++) { \
            instruction(0, 4, 6); \
            instruction(1, 4, 7); \
            instruction(2, 5, 6); \
            instruction(3, 5, 7); \
        } \
        _tile_release(); \
    }
AMX_LOOP(amx_bf16, __attribute__((target("amx-tile,amx-bf16"))), _tile_dpbf16ps)
AMX_LOOP(amx_i8, __attribute__((target("amx-tile,amx-int8"))), _tile_dpbssd)

#endif

#define F8_KIND (1u << PEAK_BF16 | 1u << PEAK_F8) /* float8 is widened */
#define F32_KIND (1u << PEAK_F32 | 1u << PEAK_F16 | 1u << PEAK_TF32 | 1u << PEAK_I8 | F8_KIND)

const peak_loop peak_loops[] = {
    { "128-bit FMA", F32_KIND, 12 * 4 * 2, always, fma_f32 },
    { "128-bit FMA", 1u << PEAK_F64, 12 * 2 * 2, always, fma_f64 },
#if defined(__x86_64__)
    { "AVX2 FMA", F32_KIND, 12 * 8 * 2, has_avx2, fma_f32_avx2 },
    { "AVX2 FMA", 1u << PEAK_F64, 12 * 4 * 2, has_avx2, fma_f64_avx2 },
    { "AVX-512 FMA", F32_KIND, 24 * 16 * 2, has_avx512, fma_f32_avx512 },
    { "AVX-512 FMA", 1u << PEAK_F64, 24 * 8 * 2, has_avx512, fma_f64_avx512 },
    { "vpmaddwd + vpaddd", 1u << PEAK_I8, 8 * 16 * 2, has_avx2, madd_i16 },
    { "vdpbf16ps", F8_KIND, 24 * 32 * 2, has_avx512_bf16, dot_bf16 },
    { "vpdpbusd", 1u << PEAK_I8, 24 * 64 * 2, has_avx512_vnni, dot_i8 },
    { "tdpbf16ps", F8_KIND, 4 * 16 * 16 * 32 * 2, has_amx_bf16, amx_bf16 },
    { "tdpbssd", 1u << PEAK_I8, 4 * 16 * 16 * 64 * 2, has_amx_i8, amx_i8 },
#endif
    { 0 },
};

/* ---------------------------------------------------------------------------------------------------------- streams */

#if defined(__x86_64__)
void peak_stream_fill(void *to, size_t bytes) {
    __m128i *out = to;
    const __m128i value = _mm_set1_epi32(7);
    for (size_t i = 0; i < bytes / sizeof value; i++) _mm_stream_si128(out + i, value);
    _mm_sfence();
}

void peak_stream_copy(void *to, const void *from, size_t bytes) {
    __m128i *out = to;
    const __m128i *in = from;
    for (size_t i = 0; i < bytes / sizeof *in; i += 4) {
        const __m128i a = _mm_load_si128(in + i), b = _mm_load_si128(in + i + 1), c = _mm_load_si128(in + i + 2),
                      d = _mm_load_si128(in + i + 3);
        _mm_stream_si128(out + i, a);
        _mm_stream_si128(out + i + 1, b);
        _mm_stream_si128(out + i + 2, c);
        _mm_stream_si128(out + i + 3, d);
    }
    _mm_sfence();
}
#else
void peak_stream_fill(void *to, size_t bytes) { memset(to, 7, bytes); }
void peak_stream_copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
#endif
