/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of diffusion and advection over a sphere. */
#include "mutant.h"

/* Each row of `x` begins a column later. */
static void turn(double *x, int64_t rows, int64_t p) {
    for (int64_t j = 0; j < rows && p > 1; j++) {
        const double first = x[j * p];
        for (int64_t k = 0; k < p - 1; k++) x[j * p + k] = x[j * p + k + 1];
        x[(j + 1) * p - 1] = first;
    }
}
static void corners_turned(trine_ref *ref, void *args) {
    (void)args;
    turn(V("nu"), D("t") - 1, D("p"));
}
static void sides_turned(trine_ref *ref, void *args) {
    (void)args;
    turn(V("v_phi"), D("t"), D("p"));
}

static void first_row_for_all(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = D("p"); i < (D("t") - 1) * D("p"); i++) V("nu")[i] = V("nu")[i % D("p")];
}
static void to_the_north(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < (D("t") - 1) * D("p"); i++) V("v_theta")[i] *= -1;
}

/* The poles stay as they are. */
static void poles_kept(trine_ref *ref) {
    const int64_t n = D("t") * D("p");
    for (int64_t i = 0; i < D("r") * n; i++)
        if (i % n / D("p") == 0 || i % n / D("p") == D("t") - 1) V("y")[i] = V("f")[i];
}

const mutant mutants_sphere[] = {
    { "sphere_diffuse", "always_three", "a step has three stages", .param = "stages", .value = 3 },
    { "sphere_diffuse", "ignores_theta", "rows are even", .without = "theta" },
    { "sphere_diffuse", "corners_turned", "corners are those to the east", .before = corners_turned },
    { "sphere_diffuse", "first_row_for_all", "all rows have the first one's nu", .before = first_row_for_all },
    { "sphere_diffuse", "poles_kept", "the poles stay as they are", .after = poles_kept },
    { "sphere_advect", "always_upwind", "fluxes are those upstream", .param = "flux", .value = 0 },
    { "sphere_advect", "always_three", "a step has three stages", .param = "steps", .value = 0 },
    { "sphere_advect", "ignores_theta", "rows are even", .without = "theta" },
    { "sphere_advect", "sides_turned", "sides are those to the east", .before = sides_turned },
    { "sphere_advect", "to_the_north", "v_theta has the other sign", .before = to_the_north },
    { "sphere_advect", "poles_kept", "the poles stay as they are", .after = poles_kept },
    { 0 },
};
