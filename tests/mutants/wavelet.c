/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of wavelet transforms and of what is done to their coefficients. */
#include "mutant.h"

/* Of images, detail along the height and along the width. */
static void exchange_bands(trine_ref *ref) {
    const int64_t band = D("p") * D("q");
    for (int64_t i = 0; D("k") == 4 && i < D("n") * band; i++) {
        double *own = V("y") + i / band * 4 * band + i % band, first = own[band];
        own[band] = own[2 * band], own[2 * band] = first;
    }
}
static void exchange_before(trine_ref *ref, void *args) {
    (void)args;
    exchange_bands(ref);
}

/* The last band has the other sign. */
static void negate_detail(trine_ref *ref) {
    const int64_t band = D("p") * D("q"), k = D("k");
    for (int64_t i = 0; i < D("n") * band; i++) V("y")[(i / band * k + k - 1) * band + i % band] *= -1;
}
static void negate_before(trine_ref *ref, void *args) {
    (void)args;
    negate_detail(ref);
}

/* Of each signal the first number is lost. */
static void first_lost(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; D("w") > 0 && i < D("n") * D("h"); i++) V("x")[i * D("w")] = 0;
}

static void first_for_all(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 1; i < D("b"); i++) V("threshold")[i] = V("threshold")[0];
}
static void first_candidate(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 1; i < D("g"); i++) V("threshold")[i] = V("threshold")[0];
}
static void without_threshold(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("b"); i++) V("threshold")[i] = 0;
}
static void without_sign(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("b") * D("h") * D("w"); i++) V("x")[i] = fabs(V("x")[i]);
}
static void last_lost(trine_ref *ref, void *args) {
    (void)args;
    const int64_t n = D("h") * D("w");
    for (int64_t i = 0; n > 0 && i < D("b"); i++) V("x")[(i + 1) * n - 1] = 0;
}

/* What is larger stays as it is. */
static void hard(trine_ref *ref) {
    for (int64_t i = 0; i < D("b") * D("h") * D("w"); i++)
        if (V("y")[i] != 0 && V("y")[i] == V("y")[i]) V("y")[i] = V("x")[i];
}

const mutant mutants_wavelet[] = {
    { "dwt", "ignores_edge", "all edges are symmetric", .param = "edge", .value = 0 },
    { "dwt", "always_haar", "filters have two taps", .param = "wavelet", .value = 0 },
    { "dwt", "bands_exchanged", "height and width are exchanged", .after = exchange_bands },
    { "dwt", "detail_negated", "the high-pass has the other sign", .after = negate_detail },
    { "dwt", "first_lost", "the first number of a row is not read", .before = first_lost },
    { "idwt", "ignores_edge", "nothing goes round", .param = "edge", .value = 0 },
    { "idwt", "always_haar", "filters have two taps", .param = "wavelet", .value = 0 },
    { "idwt", "bands_exchanged", "height and width are exchanged", .before = exchange_before },
    { "idwt", "detail_negated", "the high-pass has the other sign", .before = negate_before },
    { "soft_threshold", "first_for_all", "all bands have the first one's threshold", .before = first_for_all },
    { "soft_threshold", "hard", "what is larger stays as it is", .after = hard },
    { "soft_threshold", "without_sign", "results are not negative", .before = without_sign },
    { "soft_threshold_backward", "first_for_all", "all bands have the first one's threshold", .before = first_for_all },
    { "soft_threshold_backward", "without_threshold", "all elements pass", .before = without_threshold },
    { "soft_threshold_backward", "without_sign", "signs do not count", .before = without_sign },
    { "soft_threshold_backward", "negated", "dthreshold has the other sign", .output = "dthreshold", .factor = -1 },
    { "sure_risk", "ignores_sigma", "the noise has deviation 1", .param = "sigma", .value = 1 },
    { "sure_risk", "first_candidate", "all risks are the first threshold's", .before = first_candidate },
    { "sure_risk", "last_lost", "the last element counts as 0", .before = last_lost },
    { "sure_risk", "doubled", "risks are doubled", .output = "risk", .factor = 2 },
    { 0 },
};
