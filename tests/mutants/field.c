/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the hash encoding, of small networks, and of their gradients. */
#include "mutant.h"

/* The place of corners is not moved by half a cell: as if x were that much less. */
static void no_half(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t at = 0; at < D("n") * D("d"); at++) V("x")[at] -= 0.05;
}

/* The axes are taken in the other order. */
static void axes_reversed(trine_ref *ref, void *args) {
    (void)args;
    const int64_t d = D("d");
    for (int64_t i = 0; i < D("n"); i++)
        for (int64_t k = 0; k < d / 2; k++) {
            double *a = &V("x")[i * d + k], *b = &V("x")[i * d + d - 1 - k], x = *a;
            *a = *b, *b = x;
        }
}

/* Levels begin a row late. */
static void rows_late(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t l = 0; l < D("l"); l++)
        if (V("offsets")[l] < V("offsets")[l + 1]) V("offsets")[l]++;
}

/* Places outside are as far inside. */
static void mirrored(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t at = 0; at < D("n") * D("d"); at++)
        if (V("x")[at] < 0) V("x")[at] = -V("x")[at];
}

/* The last place adds nothing to the table. */
static void last_place_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t size = D("l") * D("f");
    for (int64_t at = 0; D("n") > 0 && at < size; at++) V("dy")[(D("n") - 1) * size + at] = 0;
}

/* Weights of the first layer are transposed, as far as they are square. */
static void turned(trine_ref *ref, void *args) {
    (void)args;
    const int64_t k = D("k"), size = k < D("h") ? k : D("h");
    for (int64_t j = 0; j < size; j++)
        for (int64_t i = 0; i < j; i++) {
            double *a = &V("w_in")[j * k + i], *b = &V("w_in")[i * k + j], x = *a;
            *a = *b, *b = x;
        }
}

/* All layers behind the first have the weights of the second. */
static void second_for_all(trine_ref *ref, void *args) {
    (void)args;
    const int64_t size = D("h") * D("h");
    for (int64_t at = size; V("w") && at < D("m") * size; at++) V("w")[at] = V("w")[at % size];
}

/* The last row is not among the sums. */
static void last_row_lost(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t j = 0; D("r") > 0 && j < D("o"); j++) V("dy")[(D("r") - 1) * D("o") + j] = 0;
}

const mutant mutants_field[] = {
    { "hash_encode", "no_half", "places are off", .before = no_half },
    { "hash_encode", "axes_reversed", "axes are in the other order", .before = axes_reversed },
    { "hash_encode", "rows_late", "levels begin a row late", .before = rows_late },
    { "hash_encode", "mirrored", "places below 0 are mirrored", .before = mirrored },
    { "hash_encode", "linear", "interpolation is always linear", .param = "interpolation", .value = 0 },
    { "hash_encode", "doubles", "the resolution always doubles", .param = "per_level_scale", .value = 2 },
    { "hash_encode", "from_16", "the first resolution is always 16", .param = "base_resolution", .value = 16 },
    { "hash_encode_backward", "axes_reversed", "axes are in the other order", .before = axes_reversed },
    { "hash_encode_backward", "rows_late", "levels begin a row late", .before = rows_late },
    { "hash_encode_backward", "mirrored", "places below 0 are mirrored", .before = mirrored },
    { "hash_encode_backward", "linear", "interpolation is always linear", .param = "interpolation", .value = 0 },
    { "hash_encode_backward", "last_place_lost", "the last place adds nothing", .before = last_place_lost },
    { "hash_encode_backward", "dx_scale", "dx is per cell, not per unit", .output = "dx", .factor = 0.5 },
    { "mlp_fused", "turned", "weights are transposed", .before = turned },
    { "mlp_fused", "second_for_all", "layers share their weights", .before = second_for_all },
    { "mlp_fused", "ignores_b_in", "the first layer has no bias", .without = "b_in" },
    { "mlp_fused", "ignores_b", "layers behind the first have no bias", .without = "b" },
    { "mlp_fused", "ignores_b_out", "the output has no bias", .without = "b_out" },
    { "mlp_fused", "always_relu", "hidden layers have relu", .param = "activation", .value = TRINE_MLP_RELU },
    { "mlp_fused", "no_output", "the output has no activation", .param = "output_activation", .value = TRINE_MLP_NONE },
    { "mlp_fused_backward", "turned", "weights are transposed", .before = turned },
    { "mlp_fused_backward", "second_for_all", "layers share their weights", .before = second_for_all },
    { "mlp_fused_backward", "last_row_lost", "the last row adds nothing", .before = last_row_lost },
    { "mlp_fused_backward", "always_relu", "hidden layers have relu", .param = "activation", .value = TRINE_MLP_RELU },
    { "mlp_fused_backward", "no_output", "the output has no activation", .param = "output_activation",
      .value = TRINE_MLP_NONE },
    { "mlp_fused_backward", "db_half", "biases of a layer have half of their gradient", .output = "db_in",
      .factor = 0.5 },
    { 0 },
};
