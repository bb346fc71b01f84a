/* SPDX-License-Identifier: Apache-2.0 */
/* quantize: the table and the reference. */
#include <trine/quantize.h>

#include "codes.h"

#define ARGS trine_quantize_args

/* Arithmetic is that of the formula, in f32: a quotient, a sum or a difference is rounded once, and no product is
 * fused to another operation. So all outputs are exact. */

typedef struct rounding {
    bool by_chance;
    int32_t ties;
    uint64_t seed, stream;
} rounding;

/* Of element `index`: (w + 1/2) 2^-23. */
static float chance(const rounding *g, uint64_t index) {
    uint32_t word[4];
    trine_philox(g->seed, g->stream, index / 8, word);
    const uint32_t even = word[index / 2 % 4], w = index % 2 ? even << 16 | even >> 16 : even;
    return ((float)(w >> 9) + 0.5f) * 0x1p-23f;
}

/* The nearest whole number; from the middle away from 0, or toward it. */
static float round_half(float x, bool away) {
    const float size = fabsf(x), whole = floorf(size), part = size - whole;
    return copysignf(whole + (part > 0.5f || (away && part == 0.5f) ? 1.0f : 0.0f), x);
}

static float round_code(float x, const rounding *g, uint64_t index) {
    if (g->by_chance) return floorf(x) + (chance(g, index) < x - floorf(x) ? 1.0f : 0.0f);
    return g->ties == TRINE_TIES_EVEN ? rintf(x) : round_half(x, g->ties == TRINE_TIES_AWAY);
}

/* Codes of e2m1 are whole numbers in steps of 0.5 below 2, of 1 below 4 and of 2 above, even values being even codes.
 * */
static int code_e2m1(float x, const rounding *g, uint64_t index) {
    const float size = fabsf(x);
    const int code = size < 2   ? (int)round_code(2 * size, g, index)
                     : size < 4 ? (int)round_code(size, g, index) + 2
                                : (int)round_code(size / 2, g, index) + 4;
    return x < 0 && code > 0 ? code | 8 : code;
}

/* A float8 is a whole number of steps: of 2^-fraction times the power of two below it, or below the smallest normal. */
static double code_float8(float x, trine_dtype type, const rounding *g, uint64_t index) {
    if (!g->by_chance && g->ties == TRINE_TIES_EVEN) return trine_round(x, type, true);
    const int fraction = type == TRINE_E4M3 ? 3 : 2;
    const float power = fmaxf(fabsf(x), (float)trine_smallest_normal(type)), step = ldexpf(1, ilogbf(power) - fraction);
    return copysign(round_code(fabsf(x) / step, g, index) * step, x);
}

static float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* The largest and the smallest of n numbers and 0; both NaN if there is NaN or Inf. */
static void range_of(const double *x, int64_t n, float *min_out, float *max_out) {
    *min_out = *max_out = 0;
    for (int64_t j = 0; j < n; j++) {
        if (!isfinite(x[j])) *min_out = *max_out = NAN;
        if (x[j] < *min_out) *min_out = (float)x[j];
        if (x[j] > *max_out) *max_out = (float)x[j];
    }
}

/* The sum of 32 parts by neighbours. */
static double by_pairs(double part[32]) {
    for (int step = 1; step < 32; step *= 2)
        for (int i = 0; i < 32; i += 2 * step) part[i] += part[i + step];
    return part[0];
}

/* QuEST's scale of n finite numbers: a power of two. What is rounded to f32 has squares and products that f64 has. */
static float fitted(const double *x, int64_t n, float ratio) {
    double sum[32] = { 0 }, squares[32] = { 0 };
    for (int64_t j = 0; j < n; j++) {
        sum[j % 32] += x[j];
        squares[j % 32] += x[j] * x[j];
    }
    const double count = n > 0 ? (double)n : 1, mean = (float)(by_pairs(sum) / count),
                 variance = by_pairs(squares) / count - mean * mean, std = (float)(variance > 0 ? sqrt(variance) : 0);
    const int exponent = ilogb((double)ratio * std + 1e-8);
    return ldexpf(1, exponent < -127 ? -127 : exponent > 127 ? 127 : exponent);
}

typedef struct grid {
    float scale, zero;
} grid;

static grid grid_of(const trine_ref *ref, const codes *c, const double *x, int64_t n, bool symmetric) {
    const ARGS *args = ref->args;
    const trine_dtype S = trine_ref_type(ref, "S");
    const float low = (float)(c->low - args->offset), high = (float)(c->high - args->offset);
    grid g = { 0 };
    float min, max;
    range_of(x, n, &min, &max);
    const float levels = high - low, size = -min > max ? -min : max, most = fmaxf(1, high),
                scale = symmetric ? size / most : max / levels - min / levels;
    g.scale = args->powers == TRINE_POWERS_FITTED && symmetric && isfinite(size)
                  ? codes_power_within(fitted(x, n, args->deviations / most), S)
                  : codes_scale(S, args->powers != TRINE_POWERS_E8M0, size, most, scale, args->upward || !symmetric);
    if (!symmetric) g.zero = clamp(low - rintf(g.scale > 0 ? min / g.scale : 0), low, high);
    g.zero = (float)trine_round(g.zero, trine_ref_type(ref, "Z"), false);
    return g;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), k = trine_ref_dim(ref, "k"), groups = trine_ref_dim(ref, "groups"),
                  bytes = trine_ref_dim(ref, "bytes"), n = groups > 0 ? k / groups : 0;
    const double *x = trine_ref_value(ref, "x");
    double *out = trine_ref_value(ref, "codes"), *scales = trine_ref_value(ref, "scales"),
           *zeros = trine_ref_value(ref, "zeros");
    const codes c = codes_of(ref, args->format);
    rounding chances = { args->stochastic, args->ties, args->seed, args->stream };
    trine_ref_philox(ref, &chances.seed, &chances.stream);
    const uint64_t first = k > 0 ? ref->first / (uint64_t)(groups * bytes) * (uint64_t)k : 0;

    for (int64_t i = 0; i < r * groups; i++) {
        const grid g = grid_of(ref, &c, x + i * n, n, zeros == NULL);
        const float base = (float)args->offset + g.zero, low = (float)c.low - base, high = (float)c.high - base;
        for (int64_t b = 0; b < bytes; b++) out[i * bytes + b] = 0;
        for (int64_t j = 0; j < n; j++) {
            const uint64_t index = first + (uint64_t)(i * n + j);
            const float q = clamp(g.scale > 0 ? (float)x[i * n + j] / g.scale : 0, low, high);
            if (c.float8) {
                out[i * bytes + j] = code_float8(q + base, c.float8, &chances, index);
                continue;
            }
            const int code =
                c.e2m1 ? code_e2m1(q + base, &chances, index) : (int)round_code(q, &chances, index) + (int)base;
            codes_put(&c, out + i * bytes, j, code);
        }
        scales[i] = g.scale;
        if (zeros) zeros[i] = g.zero;
    }
}

const trine_spec trine_spec_quantize = {
    SPEC(quantize),
    .summary = "Rows as codes of few bits, with a scale for each group",
    .formula =
        "code = round(clamp(x/scale, low - base, high - base)) + base, base = offset + zero; low .. high are the "
        "codes of bits = 8 bytes groups/k bits; without zeros zero = 0 and scale = max |x| / max(1, high - offset) "
        "over a group, with them scale = max(x,0)/(high-low) - min(x,0)/(high-low) and zero = clamp(low - offset - "
        "round(min(x,0)/scale), low - offset, high - offset); round is to nearest, from the middle to even, away "
        "from 0 or toward it, or, if stochastic, up where (w + 1/2) 2^-23 is below what is above the whole number "
        "beneath, w the upper 23 bits of dropout's word; a scale of e8m0, or any if powers says so, is "
        "2^(floor(log2(max |x|)) - floor(log2(max(1, high - offset)))), or rounded up, or fitted: "
        "2^floor(log2(deviations/max(1, high - offset) std + 1e-8))",
    .source = "Jacob et al. 2018, section 2.1; Frantar et al. 2023 (GPTQ); OCP Microscaling Formats 1.0, section "
              "5.3.3; Gupta et al. 2015, section 3.1; Panferov et al. 2025 (QuEST)",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(philox, IN | OPTIONAL, "i64", "2"),
                 TENSOR(codes, OUT | EXACT, "C", "r groups bytes"), TENSOR(scales, OUT | EXACT, "S", "r groups"),
                 TENSOR(zeros, OUT | OPTIONAL | EXACT, "Z", "r groups") },
    .params = { PARAM(seed, U64, .values = "0 42 1234567890123456789", .doc = "key of the generator"),
                PARAM(stream, U64, .values = "0 7 4294967296",
                      .doc = "high half of its counter: another for every call"),
                PARAM(offset, I32, .values = "0 8 1 -3 128 -128 255", .min = -255, .max = 255,
                      .doc = "the code that stands for 0"),
                CODES_FORMATS,
                PARAM(stochastic, BOOL, .values = "0 1", .doc = "1: up or down by chance, right on average"),
                PARAM(upward, BOOL, .values = "0 1",
                      .doc = "1: powers of two are rounded up, so that no number is clamped"),
                PARAM(powers, ENUM, .values = "e8m0 all fitted", .doc = "which scales are powers of two"),
                PARAM(ties, ENUM, .values = "even away zero", .doc = "where a number in the middle of two codes goes"),
                PARAM(deviations, F32, .values = "2.92247856 1 4", .fallback = 2.92247856, .min = 0x1p-10,
                      .max = 0x1p10, .doc = "of a fitted scale: the largest code, in standard deviations") },
    .types = { "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=f32 Z=f32", "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=bf16 Z=bf16",
               "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=f16 Z=f16", "T=f32|bf16|f16 C=u8|i8|e4m3|e5m2 S=e8m0 Z=f32" },
    .require = { "philox instead of seed", CODES_REQUIRE, CODES_FLOAT8_REQUIRE },
    .flops = "8*r*k",
    .independent = "r",
    .sizes = { CODES_SIZES },
    .cases = { "weights 4 bits: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=32 bytes=64 offset=8",
               "weights 4 bits with zeros: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=32 bytes=64 +zeros",
               "activations 8 bits: T=bf16 C=i8 S=f32 r=8192 k=4096 groups=1 bytes=4096",
               "e2m1: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=128 bytes=16 format=e2m1",
               "e4m3: T=bf16 C=e4m3 S=f32 r=4096 k=4096 groups=32 bytes=128",
               "mxfp8: T=bf16 C=e4m3 S=e8m0 r=4096 k=4096 groups=128 bytes=32",
               "mxfp4: T=bf16 C=u8 S=e8m0 r=4096 k=4096 groups=128 bytes=16 format=e2m1",
               "mxfp4 fitted: T=bf16 C=u8 S=e8m0 r=4096 k=4096 groups=128 bytes=16 format=e2m1 powers=fitted ties=zero",
               "f32 to 8 bits: T=f32 C=i8 S=f32 r=4096 k=4096 groups=32 bytes=128",
               "3 bits: T=bf16 C=u8 S=bf16 r=4096 k=4096 groups=32 bytes=48 +zeros",
               "stochastic: T=bf16 C=i8 S=f32 r=4096 k=4096 groups=32 bytes=128 stochastic=1 seed=1" },
    .reference = reference,
};
