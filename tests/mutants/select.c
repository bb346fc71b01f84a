/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of what chooses keys. */
#include "mutant.h"

#include <math.h>
#include <string.h>

/* The window's own keys are hidden from all of its queries. */
static void window_hidden(trine_ref *ref, void *args) {
    (void)args;
    const int64_t w = D("w"), s = D("s"), row = D("hk") * D("d");
    for (int64_t b = 0; b < D("b"); b++) memset(V("k") + (b * s + s - w) * row, 0, (size_t)(w * row) * sizeof(double));
}

/* A mean at an end is of those that are there. */
static void ends_alone(trine_ref *ref) {
    const trine_window_score_args *args = ref->args;
    const int64_t n = D("n"), radius = args->radius;
    for (int64_t i = 0; args->pooling == TRINE_POOL_AVG && i < D("b") * D("o"); i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t before = j < radius ? j : radius, behind = n - 1 - j < radius ? n - 1 - j : radius;
            V("scores")[i * n + j] *= (double)(2 * radius + 1) / (double)(before + 1 + behind);
        }
}

static void last_query_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t w = D("w"), row = D("h") * D("d");
    for (int64_t b = 0; w > 1 && b < D("b"); b++)
        memcpy(V("q") + (b * w + w - 1) * row, V("q") + (b * w + w - 2) * row, (size_t)row * sizeof(double));
}

const mutant mutants_select[] = {
    { "window_score", "ignores_scale", "the scale is 1/sqrt(d)", .param = "scale" },
    { "window_score", "mean_in_any_case", "the largest is a mean too", .param = "pooling" },
    { "window_score", "ignores_radius", "nothing is pooled", .param = "radius" },
    { "window_score", "window_hidden", "the window's own keys count as 0", .before = window_hidden },
    { "window_score", "ends_alone", "a mean at an end is of those that are there", .after = ends_alone },
    { "window_score", "last_query", "the last query is the one before it", .before = last_query_lost },
    { "window_score", "doubled", "scores are doubled", .output = "scores", .factor = 2 },
    { 0 },
};
