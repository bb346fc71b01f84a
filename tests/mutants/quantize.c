/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of codes of few bits and of the Hadamard transform. */
#include "mutant.h"

#include <math.h>

static bool of_4_bits(const trine_ref *ref) {
    return D("k") > 0 && 2 * D("bytes") * D("groups") == D("k") && trine_ref_type(ref, "C") == TRINE_U8;
}

/* Of 4 bits the first code is the upper half of a byte. */
static void turn_halves(trine_ref *ref) {
    double *codes = V("codes");
    for (int64_t i = 0; of_4_bits(ref) && i < D("r") * D("groups") * D("bytes"); i++) {
        const int byte = (int)codes[i];
        codes[i] = byte >> 4 | (byte & 15) << 4;
    }
}
static void halves_turned(trine_ref *ref, void *args) {
    (void)args;
    turn_halves(ref);
}

/* NaN and Inf count as 0. */
static void wild_ignored(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("r") * D("k"); i++)
        if (!isfinite(V("x")[i])) V("x")[i] = 0;
}

/* A group's last number is not looked at. */
static void end_lost(trine_ref *ref, void *args) {
    const int64_t groups = D("groups"), n = groups > 0 ? D("k") / groups : 0;
    (void)args;
    for (int64_t i = 1; n > 1 && i <= D("r") * groups; i++) V("x")[i * n - 1] = V("x")[i * n - 2];
}

/* The scale of the row's first group for all. */
static void one_scale(trine_ref *ref, void *args) {
    const int64_t groups = D("groups");
    (void)args;
    for (int64_t i = 0; i < D("r") * groups; i++) V("scales")[i] = V("scales")[i / groups * groups];
}

/* What is before the codes counts as 1 per cent more. */
static void all_more(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t j = 0; V("weight") && j < D("k"); j++) V("weight")[j] *= 1.01;
}

/* Codes are one too many. */
static void one_more(trine_ref *ref) {
    for (int64_t i = 0; i < D("r") * D("k"); i++)
        if (V("codes")[i] == 1) V("codes")[i] = 2;
}

static void code_more(trine_ref *ref, void *args) {
    (void)args;
    one_more(ref);
}

/* Of all groups the scale of the row's first. */
static void first_scale(trine_ref *ref) {
    const int64_t groups = D("groups");
    for (int64_t i = 0; i < D("r") * groups; i++) V("scales")[i] = V("scales")[i / groups * groups];
}

static void scale_doubled(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("r") * D("groups"); i++) V("scales")[i] *= 2;
}

/* Where the second half of a row begins a sum should be a difference. */
static void sign_lost(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; n > 1 && i < D("r"); i++) V("y")[i * n + n / 2] = V("y")[i * n];
}

static void last_lost(trine_ref *ref, void *args) {
    const int64_t n = D("n");
    (void)args;
    for (int64_t i = 1; i <= D("r"); i++) V("x")[i * n - 1] = 0;
}

/* Codes of 3, 5, 6 and 7 bits end with their word. */
static void end_cut(trine_ref *ref) {
    const int64_t k = D("k"), words = D("words"), rows = D("p") * D("q"), bits = k > 0 ? 8 * words / k : 8;
    for (int64_t i = 0; 8 % bits != 0 && i < rows * k; i++) {
        const int64_t here = 8 - i % k * bits % 8;
        if (here < bits) V("codes")[i] = (int)V("codes")[i] & ((1 << here) - 1);
    }
}
static void end_cut_before(trine_ref *ref, void *args) {
    (void)args;
    end_cut(ref);
}

/* A row's last code is 0. */
static void last_code_more(trine_ref *ref) {
    for (int64_t i = 1; D("k") > 0 && i <= D("p") * D("q"); i++) V("codes")[i * D("k") - 1] = 0;
}
static void last_code_more_before(trine_ref *ref, void *args) {
    (void)args;
    last_code_more(ref);
}

/* Of all blocks the scale of the first. */
static void first_block(trine_ref *ref) {
    for (int64_t i = 0; i < D("rows") * D("columns"); i++) V("scales")[i] = V("scales")[0];
}
static void first_block_before(trine_ref *ref, void *args) {
    (void)args;
    first_block(ref);
}

static void fitted_to_largest(trine_ref *ref, void *args) {
    trine_quantize_args *a = args;
    (void)ref;
    if (a->powers == TRINE_POWERS_FITTED) a->powers = TRINE_POWERS_ALL;
}
static void ties_exchanged(trine_ref *ref, void *args) {
    trine_quantize_args *a = args;
    (void)ref;
    if (a->ties != TRINE_TIES_EVEN) a->ties = a->ties == TRINE_TIES_AWAY ? TRINE_TIES_ZERO : TRINE_TIES_AWAY;
}

const mutant mutants_quantize[] = {
    { "quantize", "ignores_offset", "0 is code 0", .param = "offset" },
    { "quantize", "ignores_stochastic", "to the nearest in any case", .param = "stochastic" },
    { "quantize", "ignores_seed", "the key is 0", .param = "seed" },
    { "quantize", "ignores_stream", "the stream is 0", .param = "stream" },
    { "quantize", "ignores_philox", "the key is the parameter's", .without = "philox" },
    { "quantize", "ignores_format", "e2m1 is taken for integers", .param = "format", .types = "C=u8",
      .dims = "k=32 groups=1 bytes=16" },
    { "quantize", "ignores_upward", "powers of two are those below", .param = "upward", .types = "S=e8m0" },
    { "quantize", "ignores_powers", "scales are powers of two of e8m0 alone", .param = "powers" },
    { "quantize", "fitted_to_largest", "a fitted scale is that of the largest", .before = fitted_to_largest,
      .types = "S=e8m0" },
    { "quantize", "ignores_deviations", "a fitted scale is that of 2.92 deviations", .param = "deviations",
      .value = 2.92247856 },
    { "quantize", "ignores_ties", "from the middle to even in any case", .param = "ties", .types = "T=bf16 S=e8m0" },
    { "quantize", "ties_exchanged", "away from 0 is toward it", .before = ties_exchanged, .types = "T=bf16 S=e8m0" },
    { "quantize", "float8_by_chance", "float8 goes to the nearest in any case", .param = "stochastic",
      .types = "C=e4m3" },
    { "quantize", "halves_turned", "of 4 bits the first code is the upper half", .after = turn_halves },
    { "quantize", "wild_ignored", "NaN and Inf count as 0", .before = wild_ignored },
    { "quantize", "end_lost", "a group's last number is not looked at", .before = end_lost },
    { "quantize", "scale_off", "scales are off by the last bit", .output = "scales", .factor = 1 + 0x1p-23,
      .types = "S=f32" },
    { "dequantize", "ignores_offset", "0 is code 0", .param = "offset" },
    { "dequantize", "ignores_format", "e2m1 is taken for integers", .param = "format", .types = "C=u8",
      .dims = "k=32 groups=1 bytes=16" },
    { "dequantize", "ignores_zeros", "zeros are not taken away", .without = "zeros" },
    { "dequantize", "ignores_mins", "mins are not added", .without = "mins" },
    { "dequantize", "halves_turned", "of 4 bits the first code is the upper half", .before = halves_turned },
    { "dequantize", "scale_doubled", "a power of two is one more", .before = scale_doubled, .types = "C=e4m3 S=e8m0" },
    { "dequantize", "one_scale", "all groups have the scale of the row's first", .before = one_scale },
    { "rms_norm_quantize", "ignores_weight", "the weight is 1", .without = "weight" },
    { "rms_norm_quantize", "ignores_residual", "the residual is not added", .without = "residual" },
    { "rms_norm_quantize", "ignores_eps", "eps is 0", .param = "eps" },
    { "rms_norm_quantize", "ignores_weight_offset", "nothing is added to the weight", .param = "weight_offset" },
    { "rms_norm_quantize", "ignores_upward", "powers of two are those below", .param = "upward", .types = "S=e8m0" },
    { "rms_norm_quantize", "ignores_powers", "scales are powers of two of e8m0 alone", .param = "powers" },
    { "rms_norm_quantize", "all_more", "the weight is 1 % more", .before = all_more },
    { "rms_norm_quantize", "one_more", "codes 1 are 2", .after = one_more, .types = "C=i8" },
    { "rms_norm_quantize", "first_scale", "all groups have the scale of the row's first", .after = first_scale },
    { "rms_norm_quantize", "scale_off", "scales are off by the last bit", .output = "scales", .factor = 1 + 0x1p-23,
      .types = "S=f32" },
    { "swiglu_quantize", "ignores_activation", "geglu is swiglu", .param = "activation" },
    { "swiglu_quantize", "ignores_factor", "the factor is 1", .without = "factor" },
    { "swiglu_quantize", "ignores_upward", "powers of two are those below", .param = "upward", .types = "S=e8m0" },
    { "swiglu_quantize", "ignores_powers", "scales are powers of two of e8m0 alone", .param = "powers" },
    { "swiglu_quantize", "one_more", "codes 1 are 2", .after = one_more, .types = "C=i8" },
    { "swiglu_quantize", "first_scale", "all groups have the scale of the row's first", .after = first_scale },
    { "swiglu_quantize", "scale_off", "scales are off by the last bit", .output = "scales", .factor = 1 + 0x1p-23,
      .types = "S=f32" },
    { "hadamard", "ignores_scale", "sums are not scaled", .param = "scale", .value = 1 },
    { "hadamard", "ignores_transposed", "by the matrix in any case", .param = "transposed", .dims = "n=40" },
    { "hadamard", "sign_lost", "a difference is a sum", .after = sign_lost },
    { "hadamard", "last_lost", "a row's last element is not looked at", .before = last_lost },
    { "pack_codes", "ignores_order", "codes ascend in any case", .param = "order", .dims = "k=64 words=32" },
    { "pack_codes", "end_cut", "a code ends with its word", .before = end_cut_before, .types = "C=u8 P=u8" },
    { "pack_codes", "last_code_more", "a row's last code is 0", .before = last_code_more_before },
    { "unpack_codes", "ignores_order", "codes ascend in any case", .param = "order", .dims = "k=64 words=32" },
    { "unpack_codes", "end_cut", "a code ends with its word", .after = end_cut, .types = "C=u8 P=u8" },
    { "unpack_codes", "last_code_more", "a row's last code is 0", .after = last_code_more },
    { "quantize_blocks", "ignores_upward", "powers of two are those below", .param = "upward", .types = "S=e8m0" },
    { "quantize_blocks", "ignores_powers", "scales are powers of two of e8m0 alone", .param = "powers" },
    { "quantize_blocks", "one_more", "codes 1 are 2", .after = one_more, .types = "C=i8" },
    { "quantize_blocks", "first_block", "all blocks have the scale of the first", .after = first_block },
    { "quantize_blocks", "scale_off", "scales are off by the last bit", .output = "scales", .factor = 1 + 0x1p-23,
      .types = "S=f32" },
    { "dequantize_blocks", "first_block", "all blocks have the scale of the first", .before = first_block_before },
    { "dequantize_blocks", "code_more", "codes 1 are 2", .before = code_more, .types = "C=i8" },
    { "dequantize_blocks", "off", "numbers are off by the last bit", .output = "y", .factor = 1 + 0x1p-23,
      .types = "T=f32" },
    { 0 },
};
