/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of recurrences whose state is a matrix. */
#include "mutant.h"

/* Packed sequences are one. */
static void one_sequence(trine_ref *ref, void *args) {
    (void)args;
    double *cu = V("cu_seqlens");
    for (int64_t i = 1; cu && i < D("nseq"); i++) cu[i] = cu[D("nseq")];
}

/* A step has what the step before it has of a tensor, `width` elements of each. */
static void late(trine_ref *ref, double *x, int64_t width) {
    const int64_t t = D("t");
    for (int64_t b = 0; x && b < D("b"); b++)
        for (int64_t i = t - 1; i > 0; i--)
            for (int64_t j = 0; j < width; j++) x[(b * t + i) * width + j] = x[(b * t + i - 1) * width + j];
}
static void gates_late(trine_ref *ref, void *args) {
    (void)args;
    late(ref, V("g"), D("h"));
}
static void rates_late(trine_ref *ref, void *args) {
    (void)args;
    late(ref, V("beta"), D("h"));
}
static void steps_late(trine_ref *ref, void *args) {
    (void)args;
    late(ref, V("dt"), D("h"));
}

/* The first two key heads change places. */
static void keys_in_turn(trine_ref *ref, void *args) {
    (void)args;
    const int64_t hk = D("hk"), d = D("d");
    for (int64_t row = 0; row < D("b") * D("t"); row++)
        for (int64_t r = 0; hk > 1 && r < d; r++) {
            double *k = V("k") + row * hk * d + r, first = k[0];
            k[0] = k[d], k[d] = first;
        }
}

/* b and c change places. */
static void b_for_c(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("b") * D("t") * D("g") * D("n"); i++) {
        const double b = V("b")[i];
        V("b")[i] = V("c")[i], V("c")[i] = b;
    }
}

/* The gradient of the last step of all is lost. */
static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = D("b") * D("t") * D("h") * D("e");
    for (int64_t j = 1; count > 0 && j <= D("h") * D("e"); j++) V("dout")[count - j] = 0;
}

/* Columns of states stand for rows. */
static void states_turned(trine_ref *ref) {
    const int64_t n = D("p") == D("n") ? D("n") : 0;
    for (int64_t i = 0; V("last") && n > 0 && i < D("s") * D("h"); i++)
        for (int64_t r = 0; r < n; r++)
            for (int64_t c = 0; c < r; c++) {
                double *s = V("last") + i * n * n, x = s[r * n + c];
                s[r * n + c] = s[c * n + r], s[c * n + r] = x;
            }
}

const mutant mutants_state[] = {
    { "gated_delta", "ignores_g", "states do not decay", .without = "g" },
    { "gated_delta", "ignores_beta", "there is no delta rule", .without = "beta" },
    { "gated_delta", "ignores_s0", "states begin with 0", .without = "s0" },
    { "gated_delta", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "gated_delta", "unscaled", "there is no scale", .param = "scale", .value = 1 },
    { "gated_delta", "gates_late", "a gate multiplies the next step's state", .before = gates_late },
    { "gated_delta", "rates_late", "a rate is the next step's", .before = rates_late },
    { "gated_delta", "keys_in_turn", "heads share other keys", .before = keys_in_turn },
    { "gated_delta", "doubled", "last is doubled", .output = "last", .factor = 2 },
    { "gated_delta_backward", "ignores_g", "states do not decay", .without = "g" },
    { "gated_delta_backward", "ignores_dlast", "the last state has no gradient", .without = "dlast" },
    { "gated_delta_backward", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "gated_delta_backward", "gates_late", "a gate multiplies the next step's state", .before = gates_late },
    { "gated_delta_backward", "rates_late", "a rate is the next step's", .before = rates_late },
    { "gated_delta_backward", "keys_in_turn", "heads share other keys", .before = keys_in_turn },
    { "gated_delta_backward", "last_lost", "the last step has no gradient", .before = last_lost },
    { "gated_delta_backward", "doubled", "dbeta is doubled", .output = "dbeta", .factor = 2 },
    { "gated_delta_backward", "negative", "dg has the other sign", .output = "dg", .factor = -1 },
    { "ssd", "ignores_softplus", "steps are as they are given", .param = "softplus" },
    { "ssd", "ignores_d", "nothing goes past the state", .without = "d" },
    { "ssd", "ignores_dt_bias", "the bias is not read", .without = "dt_bias" },
    { "ssd", "ignores_s0", "states begin with 0", .without = "s0" },
    { "ssd", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "ssd", "steps_late", "a step has the length of the one before", .before = steps_late },
    { "ssd", "b_for_c", "b is read for c", .before = b_for_c },
    { "ssd", "turned", "last's rows are columns", .after = states_turned, .dims = "p=16 n=16" },
    { "ssd_backward", "ignores_softplus", "steps are as they are given", .param = "softplus" },
    { "ssd_backward", "ignores_d", "nothing goes past the state", .without = "d" },
    { "ssd_backward", "ignores_dlast", "the last state has no gradient", .without = "dlast" },
    { "ssd_backward", "ignores_cu_seqlens", "packed sequences are one", .before = one_sequence },
    { "ssd_backward", "steps_late", "a step has the length of the one before", .before = steps_late },
    { "ssd_backward", "b_for_c", "b is read for c", .before = b_for_c },
    { "ssd_backward", "doubled", "dd is doubled", .output = "dd", .factor = 2 },
    { "ssd_backward", "halved", "da is halved", .output = "da", .factor = 0.5 },
    { 0 },
};
