/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the special functions. */
#include "mutant.h"

static int64_t elements(const trine_ref *ref) { return D("p") * D("q") * D("r") * D("n"); }

static void next_order(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < elements(ref); i++) V("v")[i] += 1;
}

static void whole_order(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < elements(ref); i++) V("v")[i] = trunc(V("v")[i]);
}

/* The order's first element for all. */
static void first_order(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 1; i < elements(ref); i++) V("v")[i] = V("v")[0];
}

/* The ratio of neighbours alone: v/x is left out, or has the other sign. */
static void without_order(trine_ref *ref) {
    const double *dy = V("dy"), *v = V("v"), *x = V("x");
    double *dx = V("dx");
    for (int64_t i = 0; i < elements(ref); i++)
        if (isfinite(dx[i])) dx[i] -= dy[i] * (v[i] / x[i]);
}

static void from_exponents(trine_ref *ref) { /* of scaled functions, as libraries have them */
    for (int64_t i = 0; i < elements(ref); i++) V("y")[i] -= V("x")[i];
}

static void other_sign(trine_ref *ref) {
    for (int64_t i = 0; i < elements(ref); i++) V("dkappa")[i] = -V("dkappa")[i];
}

/* As if unit vectors had one element more. */
static void dimension_off(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_vmf_log_norm_args *)args)->dimension++;
}

static void backward_dimension_off(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_vmf_log_norm_backward_args *)args)->dimension++;
}

static void area_left_out(trine_ref *ref) {
    const double half = (double)((const trine_vmf_log_norm_args *)ref->args)->dimension / 2;
    for (int64_t i = 0; i < elements(ref); i++) V("y")[i] += half * 1.8378770664093453;
}

const mutant mutants_special[] = {
    { "log_iv", "next_order", "of order v + 1", .before = next_order },
    { "log_iv", "whole_order", "orders are whole numbers", .before = whole_order },
    { "log_iv", "first_order", "one order for all elements", .before = first_order },
    { "log_iv", "scaled", "exp(-x) I_v(x)", .after = from_exponents },
    { "log_iv_backward", "next_order", "of order v + 1", .before = next_order },
    { "log_iv_backward", "without_order", "v/x is left out", .after = without_order },
    { "log_iv_backward", "first_order", "one order for all elements", .before = first_order },
    { "log_kv", "next_order", "of order v + 1", .before = next_order },
    { "log_kv", "whole_order", "orders are whole numbers", .before = whole_order },
    { "log_kv", "scaled", "exp(-x) K_v(x)", .after = from_exponents },
    { "log_kv_backward", "next_order", "of order v + 1", .before = next_order },
    { "log_kv_backward", "without_order", "v/x counts twice", .after = without_order },
    { "log_kv_backward", "first_order", "one order for all elements", .before = first_order },
    { "vmf_log_norm", "dimension_off", "a dimension more", .before = dimension_off },
    { "vmf_log_norm", "area_left_out", "powers of 2 pi are left out", .after = area_left_out },
    { "vmf_log_norm", "twice", "twice that", .output = "y", .factor = 2 },
    { "vmf_log_norm_backward", "dimension_off", "a dimension more", .before = backward_dimension_off },
    { "vmf_log_norm_backward", "other_sign", "the other sign", .after = other_sign },
    { "vmf_log_norm_backward", "half", "half of it", .output = "dkappa", .factor = 0.5 },
    { 0 },
};
