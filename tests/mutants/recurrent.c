/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the recurrent cells and of their gradients. */
#include "mutant.h"

/* Of a head. */
static int64_t matrices_of(const trine_ref *ref) {
    const char first = ref->plan->spec->name[0];
    return first == 'e' ? 1 : first == 'g' ? 3 : 4;
}

/* r is transposed. */
static void turned(trine_ref *ref, void *args) {
    (void)args;
    const int64_t d = D("d");
    for (int64_t m = 0; m < D("h") * matrices_of(ref); m++)
        for (int64_t j = 0; j < d; j++)
            for (int64_t k = 0; k < j; k++) {
                double *a = &V("r")[(m * d + j) * d + k], *b = &V("r")[(m * d + k) * d + j], x = *a;
                *a = *b, *b = x;
            }
}

static void first_head_for_all(trine_ref *ref, void *args) {
    (void)args;
    const int64_t size = matrices_of(ref) * D("d") * D("d");
    for (int64_t at = size; at < D("h") * size; at++) V("r")[at] = V("r")[at % size];
}

/* Two gates of a step change places. */
static void exchange(double *x, int64_t steps, int64_t gates, int64_t width, int64_t a, int64_t b) {
    for (int64_t t = 0; x && t < steps; t++)
        for (int64_t k = 0; k < width; k++) {
            double *p = &x[(t * gates + a) * width + k], *q = &x[(t * gates + b) * width + k], y = *p;
            *p = *q, *q = y;
        }
}

/* The order i, f, o, z of others. */
static void outputs_early(trine_ref *ref, void *args) {
    (void)args;
    const bool back = trine_plan_find_tensor(ref->plan, "wx") < 0;
    exchange(V(back ? "gates" : "wx"), D("b") * D("t"), 4, D("h") * D("d"), 2, 3);
}

/* The order z, r, n of others. */
static void update_first(trine_ref *ref, void *args) {
    (void)args;
    const bool back = trine_plan_find_tensor(ref->plan, "wx") < 0;
    exchange(V(back ? "gates" : "wx"), D("b") * D("t"), back ? 4 : 3, D("h") * D("d"), 0, 1);
}

/* The bias inside the reset gate's product is beside it. */
static void inner_bias_outside(trine_ref *ref, void *args) {
    (void)args;
    const int64_t width = D("h") * D("d");
    for (int64_t k = 0; V("bias") && k < width; k++) {
        V("bias")[2 * width + k] += V("bias")[3 * width + k];
        V("bias")[3 * width + k] = 0;
    }
}

static void dr_diagonal(trine_ref *ref) {
    for (int64_t j = 0; D("h") > 0 && j < D("d"); j++) V("dr")[j * D("d") + j] *= 1.25;
}

const mutant mutants_recurrent[] = {
    { "lstm", "r_turned", "r is transposed", .before = turned },
    { "lstm", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "lstm", "ignores_bias", "biases are not added", .without = "bias" },
    { "lstm", "ignores_h0", "start states are 0", .without = "h0" },
    { "lstm_backward", "r_turned", "r is transposed", .before = turned },
    { "lstm_backward", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "lstm_backward", "ignores_dlast", "the last states have no gradient", .without = "dlast_h" },
    { "lstm_backward", "dr_diagonal", "the first diagonal of dr is off", .after = dr_diagonal },
    { "lstm", "outputs_early", "gates are in the order i, f, o, z", .before = outputs_early },
    { "lstm", "ignores_c0", "start cells are 0", .without = "c0" },
    { "lstm_backward", "outputs_early", "gates are in the order i, f, o, z", .before = outputs_early },
    { "gru", "r_turned", "r is transposed", .before = turned },
    { "gru", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "gru", "ignores_bias", "biases are not added", .without = "bias" },
    { "gru", "ignores_h0", "start states are 0", .without = "h0" },
    { "gru_backward", "r_turned", "r is transposed", .before = turned },
    { "gru_backward", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "gru_backward", "ignores_dlast", "the last states have no gradient", .without = "dlast_h" },
    { "gru_backward", "dr_diagonal", "the first diagonal of dr is off", .after = dr_diagonal },
    { "gru", "update_first", "gates are in the order z, r, n", .before = update_first },
    { "gru", "inner_bias_outside", "the reset gate acts in front of the bias", .before = inner_bias_outside },
    { "gru_backward", "update_first", "gates are in the order z, r, n", .before = update_first },
    { "slstm", "r_turned", "r is transposed", .before = turned },
    { "slstm", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "slstm", "ignores_bias", "biases are not added", .without = "bias" },
    { "slstm", "ignores_h0", "start states are 0", .without = "h0" },
    { "slstm_backward", "r_turned", "r is transposed", .before = turned },
    { "slstm_backward", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "slstm_backward", "ignores_dlast", "the last states have no gradient", .without = "dlast_h" },
    { "slstm_backward", "dr_diagonal", "the first diagonal of dr is off", .after = dr_diagonal },
    { "slstm", "outputs_early", "gates are in the order i, f, o, z", .before = outputs_early },
    { "slstm", "ignores_c0", "start cells are 0", .without = "c0" },
    { "slstm_backward", "outputs_early", "gates are in the order i, f, o, z", .before = outputs_early },
    { "elman", "r_turned", "r is transposed", .before = turned },
    { "elman", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "elman", "ignores_bias", "biases are not added", .without = "bias" },
    { "elman", "ignores_h0", "start states are 0", .without = "h0" },
    { "elman_backward", "r_turned", "r is transposed", .before = turned },
    { "elman_backward", "first_head_for_all", "all heads have the first one's matrices", .before = first_head_for_all },
    { "elman_backward", "ignores_dlast", "the last states have no gradient", .without = "dlast_h" },
    { "elman_backward", "dr_diagonal", "the first diagonal of dr is off", .after = dr_diagonal },
    { 0 },
};
