/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of matmul. */
#include <string.h>

#include "mutant.h"

static void exchange(int32_t *activation) {
    if (*activation == TRINE_ACTIVATION_GELU_TANH)
        *activation = TRINE_ACTIVATION_GELU_ERF;
    else if (*activation == TRINE_ACTIVATION_GELU_ERF)
        *activation = TRINE_ACTIVATION_GELU_TANH;
}
static void gelus_exchanged(trine_ref *ref, void *args) {
    (void)ref;
    exchange(&((trine_matmul_args *)args)->activation);
}
static void gelus_exchanged_packed(trine_ref *ref, void *args) {
    (void)ref;
    exchange(&((trine_matmul_packed_args *)args)->activation);
}

static void cut(double *x, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (isfinite(x[k])) x[k] = trine_round(x[k], TRINE_F16, false);
}

/* f32 operands lose 13 bits whatever `precision` says. */
static void always_cut(trine_ref *ref, void *args) {
    (void)args;
    if (trine_ref_type(ref, "T") != TRINE_F32) return;
    cut(V("a"), D("ga") * D("m") * D("k"));
    cut(V("b"), D("gb") * D("k") * D("n"));
}

/* Scales of the rows are taken for all alike. */
static void scale_of_first(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("a_scale") && k < D("g") * D("m"); k++) V("a_scale")[k] = V("a_scale")[0];
}

/* Columns and the elements of k that are side by side are exchanged in each line. */
static void lines_turned(trine_ref *ref) {
    const int64_t deep = (int64_t)(4 / trine_dtype_size(trine_ref_type(ref, "T"))),
                  blocks = D("g") * ((D("n") + 15) / 16) * ((D("k") + 3) / 4);
    for (int64_t line = 0; line < blocks * 4 / deep; line++) {
        double *x = V("packed") + line * 16 * deep, turned[64] = { 0 };
        for (int64_t t = 0; t < 16; t++)
            for (int64_t i = 0; i < deep; i++) turned[i * 16 + t] = x[t * deep + i];
        memcpy(x, turned, sizeof *x * (size_t)(16 * deep));
    }
}

/* What is beyond n is the last column again. */
static void column_repeats(trine_ref *ref) {
    if (trine_ref_type(ref, "T") != TRINE_F32 && trine_ref_type(ref, "T") != TRINE_F64) return;
    const int64_t lines = (D("k") + 3) / 4 * 4, groups = (D("n") + 15) / 16, last = (D("n") + 15) % 16;
    for (int64_t g = 0; g < D("g"); g++)
        for (int64_t l = 0; groups > 0 && l < lines; l++) {
            double *x = V("packed") + (((g + 1) * groups - 1) * lines + l) * 16;
            for (int64_t t = last + 1; t < 16; t++) x[t] = x[last];
        }
}

/* The last column of each group is lost. */
static void column_lost(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("g") * D("k"); i++)
        for (int64_t j = 15; j < D("n"); j += 16) V("b")[i * D("n") + j] = 0;
}

/* Elements 0 and 1 of k, and 2 and 3, are exchanged. */
static void pairs_exchanged(trine_ref *ref, void *args) {
    (void)args;
    const int64_t deep = trine_dtype_size(trine_ref_type(ref, "U")) < 4
                             ? (int64_t)(4 / trine_dtype_size(trine_ref_type(ref, "U")))
                             : 1,
                  blocks = D("gb") * ((D("n") + 15) / 16) * ((D("k") + 3) / 4);
    for (int64_t at = 0; at < blocks * 64; at++) {
        const int64_t in = at % 64, p = in / (16 * deep) * deep + in % deep, apart = deep > 1 ? 1 : 16;
        if (p % 2 != 0) continue;
        double *x = V("packed") + at, y = x[apart];
        x[apart] = x[0], x[0] = y;
    }
}

/* The first line of each block is lost. */
static void line_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t blocks = D("gb") * ((D("n") + 15) / 16) * ((D("k") + 3) / 4);
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t i = 0; i < 16; i++) V("packed")[block * 64 + i] = 0;
}

static double saturating_add(double sum, double x) { return fmax(fmin(sum + x, 2147483647), -2147483648.0); }

/* a + 128 without a sign times b, as one instruction has it, and 128 times the sum of b taken back: exact modulo 2^32,
 * but not where that instruction saturates. What saturates is `most` products at a time. */
static void i8_saturating(trine_ref *ref, int64_t most, double low, double high) {
    const trine_matmul_args *args = ref->args;
    const int64_t m = D("m"), n = D("n"), k = D("k");
    if (trine_ref_type(ref, "T") != TRINE_I8 || args->activation != TRINE_ACTIVATION_NONE) return;
    for (int64_t at = 0; at < D("g") * m * n; at++) {
        const double *a = V("a") + ((D("ga") > 1 ? at / (m * n) : 0) * m + at / n % m) * k,
                     *b = V("b") + (D("gb") > 1 ? at / (m * n) : 0) * k * n + at % n;
        double all = 0, kept = 0, part = 0;
        for (int64_t p = 0; p < k; p++) {
            const double product = (a[p] + 128) * b[p * n];
            all += product;
            part += product;
            if ((p + 1) % most != 0 && p + 1 < k) continue;
            kept = saturating_add(kept, fmax(fmin(part, high), low));
            part = 0;
        }
        V("d")[at] += (double)args->alpha * (kept - all);
    }
}

static void pair_saturates(trine_ref *ref) { i8_saturating(ref, 2, -32768, 32767); }

/* The instruction whose sum saturates, beside the one whose sum wraps. */
static void sum_saturates(trine_ref *ref) { i8_saturating(ref, 4, -INFINITY, INFINITY); }

/* The scale of a row goes into the activation. */
static void scaled_before(trine_ref *ref, void *args) {
    (void)args;
    if (!V("row_scale") || V("gather")) return;
    for (int64_t i = 0; i < D("r"); i++)
        for (int64_t q = 0; q < D("k"); q++) V("x")[i * D("k") + q] *= V("row_scale")[i];
    for (int64_t i = 0; i < D("p"); i++) V("row_scale")[i] = 1;
}

static void last_group_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t e = D("e");
    if (e > 1) V("offsets")[e] = V("offsets")[e - 1];
}

/* Rows are gathered in their order. */
static void in_order(trine_ref *ref, void *args) {
    const trine_grouped_matmul_weights_args *a = args;
    for (int64_t i = 0; V("gather") && i < D("p"); i++)
        if (i < D("r")) V("gather")[i] = (double)(i * a->divide);
}

/* Groups but the last end a row later. */
static void next_row_too(trine_ref *ref) {
    const int64_t e = D("e"), n = D("n"), k = D("k");
    const double *offsets = V("offsets");
    if (V("gather") || e < 2 || offsets[1] == offsets[2]) return;
    for (int64_t j = 0; j < n; j++)
        for (int64_t q = 0; q < k; q++)
            V("dw")[j * k + q] += V("dy")[(int64_t)offsets[1] * n + j] * V("x")[(int64_t)offsets[1] * k + q];
}

/* Rows that are gathered from nowhere count in the bias all the same. */
static void dbias_of_nothing(trine_ref *ref) {
    for (int64_t i = (int64_t)V("offsets")[0]; V("gather") && V("dbias") && D("e") == 1 && i < (int64_t)V("offsets")[1];
         i++)
        for (int64_t j = 0; V("gather")[i] < 0 && j < D("n"); j++) V("dbias")[j] += V("dy")[i * D("n") + j];
}

/* What is gathered from nowhere has a bias all the same. */
static void bias_of_nothing(trine_ref *ref) {
    const int64_t e = D("e"), n = D("n");
    for (int64_t i = 0; V("gather") && V("bias") && e == 1 && i < (int64_t)V("offsets")[1]; i++)
        for (int64_t j = 0; V("gather")[i] < 0 && j < n; j++) V("y")[i * n + j] = V("bias")[j];
}

/* Rows of codes, of all experts if there are some. */
static int64_t rows_of(const trine_ref *ref) {
    return trine_plan_find_symbol(ref->plan, "e") < 0 ? D("n") : D("e") * D("n");
}

/* Of each byte the halves are exchanged. */
static void halves_exchanged(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t b = 0; b < rows_of(ref) * D("groups") * D("bytes"); b++) {
        const unsigned byte = (unsigned)(int)V("codes")[b] & 0xff, other = (byte << 4 | byte >> 4) & 0xff;
        V("codes")[b] = trine_ref_type(ref, "C") == TRINE_I8 ? (double)(int8_t)other : (double)other;
    }
}

/* All groups of a row have its first one's scale. */
static void first_scale(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < rows_of(ref) * D("groups"); i++) V("scales")[i] = V("scales")[i - i % D("groups")];
}

/* A minimum is multiplied by the scale. */
static void scaled_minimum(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("mins") && i < rows_of(ref) * D("groups"); i++) V("mins")[i] *= V("scales")[i];
}

/* All experts have the first one's scales. */
static void scales_of_first(trine_ref *ref, void *args) {
    (void)args;
    const int64_t each = D("n") * D("groups");
    for (int64_t i = each; i < D("e") * each; i++) V("scales")[i] = V("scales")[i - each];
}

const mutant mutants_matmul[] = {
    { "grouped_matmul", "ignores_bias", "bias is not added", .without = "bias" },
    { "grouped_matmul", "ignores_row_scale", "rows are not scaled", .without = "row_scale" },
    { "grouped_matmul", "ignores_divide", "gather counts rows", .param = "divide", .value = 1 },
    { "grouped_matmul", "scaled_before", "rows are scaled before the activation", .before = scaled_before },
    { "grouped_matmul", "last_group_lost", "the last group has no rows", .before = last_group_lost },
    { "grouped_matmul", "ignores_counts", "all rows of a group are computed", .without = "counts" },
    { "grouped_matmul_weights", "ignores_divide", "gather counts rows", .param = "divide", .value = 1 },
    { "grouped_matmul_weights", "last_group_lost", "the last group has no rows", .before = last_group_lost },
    { "grouped_matmul_weights", "ignores_gather", "rows are their own", .before = in_order },
    { "grouped_matmul_weights", "next_group_too", "a group has the next one's first row too", .after = next_row_too },
    { "grouped_matmul_weights", "dbias_of_nothing", "rows of nothing count in the bias", .after = dbias_of_nothing },
    { "grouped_matmul", "bias_of_nothing", "rows of nothing are their bias", .after = bias_of_nothing },
    { "matmul", "gelus_exchanged", "gelu_tanh and gelu_erf are exchanged", .before = gelus_exchanged },
    { "matmul", "always_cut", "f32 operands are cut at full precision too", .before = always_cut, .types = "T=f32" },
    { "matmul", "ignores_bias", "bias is not added", .without = "bias" },
    { "matmul", "scale_of_first", "all rows have the first one's a_scale", .before = scale_of_first },
    { "matmul", "pair_saturates", "two products of i8 are summed in 16 bits that saturate", .after = pair_saturates,
      .types = "T=i8" },
    { "matmul", "sum_saturates", "sums of products of i8 saturate in 32 bits", .after = sum_saturates,
      .types = "T=i8" },
    { "matmul", "narrow_places", "places in memory are counted in 32 bits", .narrow = true },
    { "matmul_pack", "lines_turned", "lines are rows of k, not columns", .after = lines_turned, .types = "T=i8" },
    { "matmul_pack", "column_repeats", "what is beyond n is the last column", .after = column_repeats,
      .types = "T=f32" },
    { "matmul_pack", "column_lost", "the last column of each group is lost", .before = column_lost },
    { "matmul_packed", "gelus_exchanged", "gelu_tanh and gelu_erf are exchanged", .before = gelus_exchanged_packed },
    { "matmul_packed", "ignores_bias", "bias is not added", .without = "bias" },
    { "matmul_packed", "ignores_b_scale", "columns have no scales", .without = "b_scale" },
    { "matmul_packed", "line_lost", "the first elements of a block are lost", .before = line_lost },
    { "matmul_packed", "pairs_exchanged", "elements of k are exchanged in pairs", .before = pairs_exchanged },
    { "matmul_quantized", "halves_exchanged", "the halves of a byte are exchanged", .before = halves_exchanged },
    { "matmul_quantized", "first_scale", "the first scale of a row serves all of it", .before = first_scale },
    { "matmul_quantized", "scaled_minimum", "minima are multiplied by scales", .before = scaled_minimum },
    { "matmul_quantized", "ignores_offset", "the offset is not taken from codes", .param = "offset", .value = 0 },
    { "matmul_quantized", "ignores_zeros", "zeros are not taken from codes", .without = "zeros" },
    { "matmul_quantized", "ignores_bias", "bias is not added", .without = "bias" },
    { "grouped_matmul_quantized", "halves_exchanged", "the halves of a byte are exchanged",
      .before = halves_exchanged },
    { "grouped_matmul_quantized", "first_scale", "the first scale of a row serves all of it", .before = first_scale },
    { "grouped_matmul_quantized", "scales_of_first", "all experts have the first one's scales",
      .before = scales_of_first },
    { "grouped_matmul_quantized", "scaled_minimum", "minima are multiplied by scales", .before = scaled_minimum },
    { "grouped_matmul_quantized", "ignores_code_offset", "the offset is not taken from codes", .param = "code_offset",
      .value = 0 },
    { "grouped_matmul_quantized", "ignores_zeros", "zeros are not taken from codes", .without = "zeros" },
    { "grouped_matmul_quantized", "ignores_bias", "bias is not added", .without = "bias" },
    { "grouped_matmul_quantized", "ignores_row_scale", "rows are not scaled", .without = "row_scale" },
    { "grouped_matmul_quantized", "ignores_divide", "gather counts rows", .param = "divide", .value = 1 },
    { "grouped_matmul_quantized", "ignores_counts", "all rows of a group are computed", .without = "counts" },
    { "grouped_matmul_quantized", "scaled_before", "rows are scaled before the activation", .before = scaled_before },
    { "grouped_matmul_quantized", "last_group_lost", "the last group has no rows", .before = last_group_lost },
    { "grouped_matmul_quantized", "bias_of_nothing", "rows of nothing are their bias", .after = bias_of_nothing },
    { 0 },
};
