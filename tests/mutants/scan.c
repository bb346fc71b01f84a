/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of scans along time. */
#include "mutant.h"

/* Packed sequences are one. */
static void one_sequence(trine_ref *ref, void *args) {
    (void)args;
    double *cu = V("cu_seqlens");
    for (int64_t i = 1; cu && i < D("nseq"); i++) cu[i] = cu[D("nseq")];
}

/* A step's gate multiplies the next one's state. */
static void gates_late(trine_ref *ref, void *args) {
    (void)args;
    const int64_t t = D("t"), n = D("n");
    for (int64_t b = 0; b < D("b"); b++)
        for (int64_t i = t - 1; i > 0; i--)
            for (int64_t j = 0; j < n; j++) V("g")[(b * t + i) * n + j] = V("g")[(b * t + i - 1) * n + j];
}

/* The first step of all is lost. */
static void first_lost(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t j = 0; D("b") * D("t") > 0 && j < D("n"); j++) V("x")[j] = 0;
}

/* What states were, each step has of itself. */
static void state_of_own_step(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("b") * D("t") * D("n");
    for (int64_t i = 0; i + D("n") < count; i++) V("y")[i] = V("y")[i + D("n")];
}

/* Taps are of the newest step first. */
static void taps_turned(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k");
    for (int64_t j = 0; j < D("n"); j++)
        for (int64_t i = 0; i < k / 2; i++) {
            double *a = V("weight") + j * k + i, *b = V("weight") + j * k + k - 1 - i, first = *a;
            *a = *b, *b = first;
        }
}

/* What was before the first step ends one step earlier. */
static void start_early(trine_ref *ref, void *args) {
    (void)args;
    const int64_t n = D("n"), rows = D("k") - 1;
    for (int64_t s = 0; V("x0") && rows > 0 && s < D("s"); s++)
        for (int64_t q = 0; q < rows; q++)
            for (int64_t j = 0; j < n; j++)
                V("x0")[(s * rows + q) * n + j] = q + 1 < rows ? V("x0")[(s * rows + q + 1) * n + j] : 0;
}

/* The last step's gradient is lost. */
static void last_gradient_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("b") * D("t") * D("n");
    for (int64_t j = 1; count > 0 && j <= D("n"); j++) V("dy")[count - j] = 0;
}

const mutant mutants_scan[] = {
    { "linear_scan", "ignores_reverse", "time never runs backwards", .param = "reverse" },
    { "linear_scan", "ignores_h0", "states begin with 0", .without = "h0" },
    { "linear_scan", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "linear_scan", "gates_late", "a gate multiplies the next step's state", .before = gates_late },
    { "linear_scan", "first_lost", "the first step is 0", .before = first_lost },
    { "linear_scan", "doubled", "last is doubled", .output = "last", .factor = 2 },
    { "linear_scan_backward", "ignores_reverse", "time never runs backwards", .param = "reverse" },
    { "linear_scan_backward", "ignores_dlast", "the last state has no gradient", .without = "dlast" },
    { "linear_scan_backward", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "linear_scan_backward", "gates_late", "a gate multiplies the next step's state", .before = gates_late },
    { "linear_scan_backward", "own_state", "a gate's gradient has the step's own state", .before = state_of_own_step },
    { "linear_scan_backward", "doubled", "dh0 is doubled", .output = "dh0", .factor = 2 },
    { "conv1d_causal", "ignores_silu", "there is no activation", .param = "silu" },
    { "conv1d_causal", "ignores_bias", "the bias is not read", .without = "bias" },
    { "conv1d_causal", "ignores_x0", "nothing is before the first step", .without = "x0" },
    { "conv1d_causal", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "conv1d_causal", "taps_turned", "taps are of the newest step first", .before = taps_turned },
    { "conv1d_causal", "start_early", "x0 ends one step earlier", .before = start_early },
    { "conv1d_causal_backward", "ignores_silu", "there is no activation", .param = "silu" },
    { "conv1d_causal_backward", "ignores_bias", "the bias is not read", .without = "bias" },
    { "conv1d_causal_backward", "ignores_x0", "nothing is before the first step", .without = "x0" },
    { "conv1d_causal_backward", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "conv1d_causal_backward", "taps_turned", "taps are of the newest step first", .before = taps_turned },
    { "conv1d_causal_backward", "last_lost", "the last step has no gradient", .before = last_gradient_lost },
    { "conv1d_causal_backward", "doubled", "dbias is doubled", .output = "dbias", .factor = 2 },
    { 0 },
};
