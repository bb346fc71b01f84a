/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of layers of which few neurons count, and of updates of few elements. */
#include "mutant.h"

#include <math.h>

static void last_unlisted(trine_ref *ref) {
    const int64_t n = D("n");
    for (int64_t i = 0; V("columns") && i < D("r"); i++)
        if (n > 0 && V("columns")[(i + 1) * n - 1] >= 0) V("columns")[(i + 1) * n - 1] = -1;
}

/* The first row's thresholds alone count. */
static void one_threshold(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t j = 1; V("thresholds") && j < D("n"); j++) V("thresholds")[j] = V("thresholds")[0];
}

static void nan_left_out(trine_ref *ref) {
    for (int64_t i = 0; i < D("r") * D("n"); i++)
        if (isnan(V("y")[i])) V("y")[i] = 0;
}

/* A gate that is shut for one row shuts it for all. */
static void all_or_none(trine_ref *ref, void *args) {
    (void)args;
    const int64_t r = D("r"), n = D("n");
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 1; i < r; i++)
            if (V("gate")[j] == 0) V("gate")[i * n + j] = 0;
}

/* A gate is open or not. */
static void gate_of_one(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("r") * D("n"); i++)
        if (V("gate")[i] != 0) V("gate")[i] = 1;
}

/* A gate of 0 multiplies like any: 0 times Inf is NaN. */
static void gate_multiplies(trine_ref *ref) {
    const int64_t n = D("n"), k = D("k");
    for (int64_t at = 0; at < D("r") * n; at++)
        for (int64_t l = 0; l < k; l++)
            if (V("gate")[at] == 0 && !isfinite(V("x")[at / n * k + l] * V("w")[at % n * k + l])) V("y")[at] = NAN;
}

static void zero_multiplies(trine_ref *ref) {
    const int64_t n = D("n"), k = D("k");
    for (int64_t at = 0; at < D("r") * k; at++)
        for (int64_t j = 0; j < n; j++)
            if (V("h")[at / k * n + j] == 0 && !isfinite(V("w")[j * k + at % k])) V("y")[at] = NAN;
}

static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t n = D("n");
    for (int64_t i = 0; n > 0 && i < D("r"); i++) V("h")[(i + 1) * n - 1] = 0;
}

/* Negative elements are taken for zeros. */
static void positive_alone(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("r") * D("n"); i++)
        if (V("h")[i] < 0) V("h")[i] = 0;
}

static void clamped(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t") * D("r"); i++)
        if (V("rows")[i] >= (double)D("m") && D("m") > 0) V("rows")[i] = (double)(D("m") - 1);
}

static void first_list(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = D("r"); i < D("t") * D("r"); i++) V("rows")[i] = V("rows")[i - D("r")];
}

static void narrow_rows(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("t") * D("r"); i++) V("rows")[i] = (double)(int32_t)(int64_t)V("rows")[i];
}

/* An index that repeats the one before it is passed over. */
static void once_each(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = D("p") - 1; i > 0; i--)
        if (V("index")[i] == V("index")[i - 1]) V("index")[i] = -1;
}

/* What is out of order counts where it stands: the list is taken for sorted. */
static void order_unseen(trine_ref *ref, void *args) {
    const trine_scatter_axpy_args *a = args;
    const int64_t all = D("m") * D("n");
    double reached = -1;
    for (int64_t i = 0; i < D("p"); i++) {
        const double at = V("index")[i];
        if (at >= 0 && at < (double)all && at < reached)
            V("w")[(int64_t)at] = a->put ? V("d")[i] : V("w")[(int64_t)at] + V("d")[i];
        if (at < (double)all) reached = fmax(reached, at);
    }
}

/* An index beyond the matrix makes all that follow come too late. */
static void stray_reaches(trine_ref *ref, void *args) {
    (void)args;
    bool beyond = false;
    for (int64_t i = 0; i < D("p"); i++) {
        beyond |= V("index")[i] >= (double)D("m") * (double)D("n");
        if (beyond) V("index")[i] = -1;
    }
}

/* Of repeats saved has what the one before it left. */
static void saved_between(trine_ref *ref) {
    for (int64_t i = 1; V("saved") && i < D("p"); i++)
        if (V("index")[i] == V("index")[i - 1] && V("index")[i] >= 0) V("saved")[i] = V("saved")[i] + V("d")[i - 1];
}

static void keep(trine_ref *ref, int64_t at, int from, int to) {
    if (V("y")) V("y")[at + to] = V("x")[at + to], V("y")[at + from] = 0;
    if (V("mask")) V("mask")[at + to] = 1, V("mask")[at + from] = 0;
}

/* Of equals the last is kept. */
static void last_of_equals(trine_ref *ref) {
    for (int64_t at = 0; at < D("r") * D("n"); at += 4) {
        const double *x = V("x") + at;
        if (fabs(x[0]) == fabs(x[3]) && fabs(x[1]) == fabs(x[3]) && fabs(x[2]) == fabs(x[3])) keep(ref, at, 0, 3);
    }
}

/* NaN is less than a number. */
static void nan_least(trine_ref *ref) {
    for (int64_t at = 0; at < D("r") * D("n"); at += 4) {
        const double *x = V("x") + at;
        if (isnan(x[0]) && !isnan(x[1]) && !isnan(x[2]) && !isnan(x[3]))
            keep(ref, at, 0, V("y") && V("y")[at + 1] != 0 ? 2 : 1);
    }
}

/* The sign counts. */
static void signed_size(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("r") * D("n"); i++) V("x")[i] = V("x")[i] < 0 ? 0 : V("x")[i];
}

/* The first group of a byte has its upper half. */
static void exchange_halves(trine_ref *ref, int64_t rows) {
    for (int64_t i = 0; i < rows * D("q"); i++)
        V("indices")[i] = (double)(((int)V("indices")[i] >> 4 | (int)V("indices")[i] << 4) & 255);
}
static void halves_exchanged(trine_ref *ref) { exchange_halves(ref, D("r")); }
static void exchanged_in_rows(trine_ref *ref, void *args) {
    (void)args;
    exchange_halves(ref, D("r"));
}
static void exchanged_in_weights(trine_ref *ref, void *args) {
    (void)args;
    exchange_halves(ref, D("n"));
}
static void places_exchanged(trine_ref *ref) {
    for (int64_t i = 0; i < D("r") * D("q"); i++) {
        const int x = (int)V("indices")[i];
        V("indices")[i] = (double)((x & 0x33) << 2 | (x >> 2 & 0x33));
    }
}
static void last_value_lost(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 1; i <= D("r") && D("h") > 0; i++) V("values")[i * D("h") - 1] = 0;
}
/* Where both places are the same values are added up. */
static void values_added(trine_ref *ref) {
    for (int64_t g = 0; g < D("r") * D("h") / 2; g++) {
        const int half = (int)V("indices")[g / 2] >> (g % 2 ? 4 : 0) & 15;
        if ((half & 3) == half >> 2) V("y")[4 * g + (half & 3)] += V("values")[2 * g];
    }
}

const mutant mutants_sparse[] = {
    { "gated_threshold", "ignores_thresholds", "the parameter counts in any case", .without = "thresholds" },
    { "gated_threshold", "ignores_activation", "what is compared is x", .param = "activation" },
    { "gated_threshold", "ignores_threshold", "all is kept but 0", .param = "threshold" },
    { "gated_threshold", "one_threshold", "the first threshold is that of all columns", .before = one_threshold },
    { "gated_threshold", "last_unlisted", "a list has room for all but one", .after = last_unlisted },
    { "gated_threshold", "nan_left_out", "NaN is below the threshold", .after = nan_left_out },
    { "matvec_masked", "all_or_none", "the first row's gates shut those of all", .before = all_or_none },
    { "matvec_masked", "gate_of_one", "an open gate is 1", .before = gate_of_one },
    { "matvec_masked", "gate_multiplies", "a gate of 0 times Inf is NaN", .after = gate_multiplies },
    { "matvec_sparse", "zero_multiplies", "0 times Inf is NaN", .after = zero_multiplies },
    { "matvec_sparse", "last_lost", "the last row of w is never read", .before = last_lost },
    { "matvec_sparse", "positive_alone", "negative elements are taken for 0", .before = positive_alone },
    { "matvec_rows", "ignores_bias", "there is no bias", .without = "bias" },
    { "matvec_rows", "ignores_pad", "-1 gives NaN in any case", .param = "pad" },
    { "matvec_rows", "clamped", "a place beyond the last is the last", .before = clamped },
    { "matvec_rows", "first_list", "all rows of x have the first list", .before = first_list },
    { "matvec_rows", "narrow_rows", "only the low 32 bits of a place are read", .before = narrow_rows },
    { "scatter_axpy", "ignores_put", "d is added in any case", .param = "put" },
    { "scatter_axpy", "ignores_alpha", "d is not scaled", .param = "alpha", .value = 1 },
    { "scatter_axpy", "once_each", "a place that is named again is passed over", .before = once_each },
    { "scatter_axpy", "order_unseen", "what is out of order counts too", .before = order_unseen },
    { "scatter_axpy", "stray_reaches", "what follows an index beyond the matrix is passed over",
      .before = stray_reaches },
    { "scatter_axpy", "saved_between", "saved has what repeats left", .after = saved_between },
    { "prune24", "last_of_equals", "of equals the last is kept", .after = last_of_equals },
    { "prune24", "nan_least", "NaN is less than a number", .after = nan_least, .types = "T=f32" },
    { "prune24", "signed_size", "negative elements are small", .before = signed_size },
    { "pack24", "never_prunes", "what is too many is NaN", .param = "prune", .value = 0, .types = "T=f32" },
    { "pack24", "halves_exchanged", "groups are exchanged in a byte", .after = halves_exchanged },
    { "pack24", "places_exchanged", "places are exchanged in a group", .after = places_exchanged },
    { "unpack24", "halves_exchanged", "groups are exchanged in a byte", .before = exchanged_in_rows },
    { "unpack24", "last_value_lost", "the last value of a row is lost", .before = last_value_lost },
    { "unpack24", "values_added", "values of the same place are added", .after = values_added, .types = "T=f32" },
    { "matmul_sparse24", "ignores_bias", "bias is not added", .without = "bias" },
    { "matmul_sparse24", "ignores_activation", "there is no activation", .param = "activation", .value = 0 },
    { "matmul_sparse24", "halves_exchanged", "groups are exchanged in a byte", .before = exchanged_in_weights },
    { 0 },
};
