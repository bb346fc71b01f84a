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
    { 0 },
};
