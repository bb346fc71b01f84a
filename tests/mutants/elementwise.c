/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of elementwise ops. */
#include "mutant.h"

/* Elements of a tensor, which all of an op but broadcast ones have alike. */
static int64_t count_of(const trine_ref *ref, const char *name) {
    int64_t shape[TRINE_MAX_RANK], count = 1;
    const int index = trine_plan_find_tensor(ref->plan, name);
    trine_plan_shape(ref->plan, index, ref->dim, shape);
    for (int d = 0; d < ref->plan->tensor[index].rank; d++) count *= shape[d];
    return count;
}

/* ------------------------------------------------------------------------------------------------------ activations */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* The cubic's constant in two digits. */
static void gelu_constant(trine_ref *ref) {
    for (int64_t k = 0; ((const trine_gelu_args *)ref->args)->form == TRINE_GELU_TANH && k < count_of(ref, "x"); k++) {
        const double x = V("x")[k];
        V("y")[k] = x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.0447 * x * x * x)));
    }
}

static void gelu_tail(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (V("x")[k] < -3) V("y")[k] = 0;
}

static void gelu_dx_tail(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (V("x")[k] > 3) V("dx")[k] = V("dy")[k];
}

static void other_form(trine_ref *ref, void *args) {
    const trine_plan *plan = ref->plan;
    int32_t *form = (int32_t *)((char *)args + plan->spec->params[trine_plan_find_param(plan, "form")].offset);
    *form = *form == TRINE_GELU_TANH ? TRINE_GELU_ERF : TRINE_GELU_TANH;
}

/* x sigmoid(1.702 x), that other approximation. */
static void gelu_quick(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++) V("y")[k] = V("x")[k] * sigmoid(1.702 * V("x")[k]);
}

static void gelu_dx_without_slope(trine_ref *ref) {
    for (int64_t k = 0; ((const trine_gelu_backward_args *)ref->args)->form == TRINE_GELU_ERF && k < count_of(ref, "x");
         k++)
        V("dx")[k] = V("dy")[k] * 0.5 * (1 + erf(V("x")[k] * sqrt(0.5)));
}

/* max(x, 0), and its gradient. */
static void relu2_unsquared(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (V("x")[k] > 0) V("y")[k] = V("x")[k];
}

/* The square of x, whatever its sign, which spares the maximum. */
static void relu2_square(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++) V("y")[k] = V("x")[k] * V("x")[k];
}

/* A maximum that prefers numbers, as fmaxf and x > 0 ? x : 0 do. */
static void relu2_nan_is_zero(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (isnan(V("x")[k])) V("y")[k] = 0;
}

/* max(x, 0) max(x, 1). */
static void relu2_linear_below_1(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (V("x")[k] > 0 && V("x")[k] < 1) V("y")[k] = V("x")[k];
}

/* That of max(x, 0). */
static void relu2_dx_of_relu(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++) V("dx")[k] = V("x")[k] > 0 ? V("dy")[k] : 0 * V("dy")[k];
}

/* That of x^2. */
static void relu2_dx_everywhere(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++) V("dx")[k] = 2 * V("x")[k] * V("dy")[k];
}

static void relu2_dx_nan_is_zero(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (isnan(V("x")[k])) V("dx")[k] = 0;
}

/* 2 max(x, 0) in f32, which overflows where dx does not. */
static void relu2_dx_doubled_first(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (V("x")[k] > 0) V("dx")[k] = trine_round(2 * V("x")[k], TRINE_F32, false) * V("dy")[k];
}

static void swap(trine_ref *ref, const char *a, const char *b) {
    double *const x = V(a), *const y = V(b);
    for (int64_t k = 0; k < count_of(ref, a); k++) {
        const double kept = x[k];
        x[k] = y[k];
        y[k] = kept;
    }
}

static void gate_is_up(trine_ref *ref, void *args) {
    (void)args;
    swap(ref, "gate", "up");
}

static void outputs_exchanged(trine_ref *ref) { swap(ref, "dgate", "dup"); }

static void gate_tail(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "gate"); k++)
        if (V("gate")[k] < -3.5) V("y")[k] = 0;
}

static void gate_clamped(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < count_of(ref, "gate"); k++) V("gate")[k] = fmin(V("gate")[k], 20);
}

static void dgate_without_slope(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "gate"); k++) V("dgate")[k] = V("dy")[k] * V("up")[k] * sigmoid(V("gate")[k]);
}

static void dup_of_sigmoid(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "gate"); k++) V("dup")[k] = V("dy")[k] * sigmoid(V("gate")[k]);
}

static void gate_quick(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "gate"); k++)
        V("y")[k] = V("gate")[k] * sigmoid(1.702 * V("gate")[k]) * V("up")[k];
}

/* The derivative is taken to be the distribution function alone. */
static void geglu_dgate_without_slope(trine_ref *ref) {
    for (int64_t k = 0;
         ((const trine_geglu_backward_args *)ref->args)->form == TRINE_GELU_ERF && k < count_of(ref, "gate"); k++)
        V("dgate")[k] = V("dy")[k] * V("up")[k] * 0.5 * (1 + erf(V("gate")[k] * sqrt(0.5)));
}

/* dup by the gate's derivative instead of its value, as if both gradients had one factor. */
static void dup_without_gate(trine_ref *ref) {
    for (int64_t k = 0;
         ((const trine_geglu_backward_args *)ref->args)->form == TRINE_GELU_ERF && k < count_of(ref, "gate"); k++)
        V("dup")[k] = V("dy")[k] * 0.5 * (1 + erf(V("gate")[k] * sqrt(0.5)));
}

/* ----------------------------------------------------------------------------------- add, mul, scale, cast, dropout */

static void factors_exchanged(trine_ref *ref, void *args) {
    (void)ref;
    trine_add_args *a = args;
    const float alpha = a->alpha;
    a->alpha = a->beta, a->beta = alpha;
}

/* The last element of b is the one before. */
static void last_of_b(trine_ref *ref, void *args) {
    (void)args;
    const int64_t count = count_of(ref, "b");
    if (count > 1) V("b")[count - 1] = V("b")[count - 2];
}

static void alpha_squared(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_mul_args *)args)->alpha *= ((trine_mul_args *)args)->alpha;
}

static void shift_scaled(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_scale_args *)args)->shift *= ((trine_scale_args *)args)->alpha;
}

static void shift_before_last(trine_ref *ref) {
    const int64_t count = count_of(ref, "y");
    if (count > 0) V("y")[count - 1] -= (double)((const trine_scale_args *)ref->args)->shift;
}

static void ties_away(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < count_of(ref, "x"); k++) {
        const double x = V("x")[k], up = nextafter(x, copysign(INFINITY, x));
        if (isfinite(x)) V("x")
        [k] = trine_round(up, trine_ref_type(ref, "T"), false) != trine_round(x, trine_ref_type(ref, "T"), false) ? up
                                                                                                                  : x;
    }
}

static void by_way_of_f32(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < count_of(ref, "x"); k++)
        if (fabs(V("x")[k]) <= trine_largest(TRINE_F32)) V("x")[k] = trine_round(V("x")[k], TRINE_F32, false);
}

/* Subnormal results are zeros. */
static void cast_flushes(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "y"); k++)
        if (fabs(V("y")[k]) < trine_smallest_normal(trine_ref_type(ref, "T"))) V("y")[k] = copysign(0, V("y")[k]);
}

static void dropout_unscaled(trine_ref *ref) {
    for (int64_t k = 0; k < count_of(ref, "y"); k++)
        V("y")[k] /= (double)trine_dropout_scale(((const trine_dropout_args *)ref->args)->p);
}

static void replaces_offset(trine_ref *ref, void *args) {
    if (V("philox")) ((trine_dropout_args *)args)->offset = 0;
}

static void keeps_some(trine_ref *ref) {
    const int64_t count = D("s") * D("q") * D("r") * D("n");
    for (int64_t i = 0; ((const trine_dropout_args *)ref->args)->p == 1 && i < count; i++) {
        V("y")[i] = V("x")[i] * 0;
        if (V("mask")) V("mask")[i] = 1;
    }
}

static void low_seed(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_dropout_args *)args)->seed &= UINT32_MAX;
}

static void low_offset(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_dropout_args *)args)->offset &= UINT32_MAX;
}

static void mask_of_last(trine_ref *ref) {
    const int64_t count = count_of(ref, "x");
    if (V("mask") && count > 0) V("mask")[count - 1] = 1;
}

static void noise_low_seed(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_gaussian_axpy_args *)args)->seed &= UINT32_MAX;
}
static void noise_replaces_offset(trine_ref *ref, void *args) {
    if (V("philox")) ((trine_gaussian_axpy_args *)args)->offset = 0;
}

/* Cosines and sines in each other's place. */
static void noise_turned(trine_ref *ref) {
    const int64_t count = count_of(ref, "x");
    for (int64_t i = 0; i + 1 < count; i += 2) {
        const double first = V("y")[i] - V("x")[i], second = V("y")[i + 1] - V("x")[i + 1];
        V("y")[i] = V("x")[i] + second;
        V("y")[i + 1] = V("x")[i + 1] + first;
    }
}

/* One bit of f32. */
static void noise_nearly(trine_ref *ref) {
    const int64_t count = count_of(ref, "x");
    if (count > 0) V("y")[count - 1] *= 1 + 0x1p-23;
}

const mutant mutants_elementwise[] = {
    { "gelu", "constant", "0.0447 for 0.044715", .after = gelu_constant, .types = "T=f32" },
    { "gelu", "other_form", "tanh and erf are exchanged", .before = other_form },
    { "gelu", "quick", "x sigmoid(1.702 x)", .after = gelu_quick },
    { "gelu", "tail", "0 below -3", .after = gelu_tail },
    { "gelu_backward", "other_form", "tanh and erf are exchanged", .before = other_form },
    { "gelu_backward", "without_slope", "the density's term is left out of erf's", .after = gelu_dx_without_slope },
    { "gelu_backward", "tail", "dy above 3", .after = gelu_dx_tail },
    { "relu2", "unsquared", "max(x, 0)", .after = relu2_unsquared },
    { "relu2", "square", "x^2", .after = relu2_square },
    { "relu2", "nan_is_zero", "NaN gives 0", .after = relu2_nan_is_zero },
    { "relu2", "linear_below_1", "x in (0, 1)", .after = relu2_linear_below_1 },
    { "relu2_backward", "unscaled", "max(x, 0) dy", .output = "dx", .factor = 0.5 },
    { "relu2_backward", "of_relu", "dy where x > 0", .after = relu2_dx_of_relu },
    { "relu2_backward", "everywhere", "2 x dy", .after = relu2_dx_everywhere },
    { "relu2_backward", "nan_is_zero", "NaN of x gives 0", .after = relu2_dx_nan_is_zero },
    { "relu2_backward", "doubled_first", "2 max(x, 0) is rounded to f32", .after = relu2_dx_doubled_first },
    { "swiglu", "gate_is_up", "gate and up are exchanged", .before = gate_is_up },
    { "swiglu", "gate_clamped", "gate is at most 20", .before = gate_clamped },
    { "swiglu", "tail", "0 below -3.5", .after = gate_tail },
    { "swiglu_backward", "gate_is_up", "gate and up are exchanged", .before = gate_is_up },
    { "swiglu_backward", "outputs_exchanged", "dgate and dup are exchanged", .after = outputs_exchanged },
    { "swiglu_backward", "without_slope", "dgate lacks the sigmoid's own slope", .after = dgate_without_slope },
    { "swiglu_backward", "dup_of_sigmoid", "dup lacks the factor gate", .after = dup_of_sigmoid },
    { "geglu", "gate_is_up", "gate and up are exchanged", .before = gate_is_up },
    { "geglu", "other_form", "tanh and erf are exchanged", .before = other_form },
    { "geglu", "quick", "gelu is x sigmoid(1.702 x)", .after = gate_quick },
    { "geglu", "tail", "0 below -3.5", .after = gate_tail },
    { "geglu_backward", "gate_is_up", "gate and up are exchanged", .before = gate_is_up },
    { "geglu_backward", "other_form", "tanh and erf are exchanged", .before = other_form },
    { "geglu_backward", "outputs_exchanged", "dgate and dup are exchanged", .after = outputs_exchanged },
    { "geglu_backward", "without_slope", "the density's term is left out of erf's dgate",
      .after = geglu_dgate_without_slope },
    { "geglu_backward", "dup_without_gate", "dup lacks the factor gate of erf's", .after = dup_without_gate },
    { "add", "ignores_alpha", "alpha is taken to be 1", .param = "alpha", .value = 1 },
    { "add", "ignores_beta", "beta is taken to be 1", .param = "beta", .value = 1 },
    { "add", "factors_exchanged", "alpha is b's factor, beta a's", .before = factors_exchanged },
    { "add", "last_of_b", "the last element of b is read one early", .before = last_of_b },
    { "mul", "ignores_alpha", "alpha is taken to be 1", .param = "alpha", .value = 1 },
    { "mul", "last_streamed", "the last element of b is read one early, but in the cache", .before = last_of_b,
      .streams = true },
    { "mul", "alpha_squared", "alpha multiplies both", .before = alpha_squared },
    { "mul", "last_of_b", "the last element of b is read one early", .before = last_of_b },
    { "scale", "ignores_shift", "shift is not added", .param = "shift" },
    { "scale", "ignores_alpha", "alpha is taken to be 1", .param = "alpha", .value = 1 },
    { "scale", "shift_scaled", "shift is multiplied by alpha", .before = shift_scaled },
    { "scale", "last_unshifted", "the last element lacks shift", .after = shift_before_last },
    { "cast", "ignores_saturate", "saturate has no effect", .param = "saturate", .types = "T=e4m3", .cases = 4000 },
    { "cast", "ties_away", "ties are rounded away from zero", .before = ties_away },
    { "cast", "by_way_of_f32", "float64 is rounded to f32 first", .before = by_way_of_f32, .types = "X=f64,T=e4m3" },
    { "cast", "by_way_of_f32_e5m2", "float64 is rounded to f32 first", .before = by_way_of_f32,
      .types = "X=f64,T=e5m2" },
    { "cast", "flushes", "subnormal results are zero", .after = cast_flushes, .types = "T=f16" },
    { "dropout", "unscaled", "what is kept is not scaled", .after = dropout_unscaled },
    { "dropout", "ignores_philox", "the key is seed, whatever philox has", .without = "philox" },
    { "dropout", "replaces_offset", "philox's stream is taken without offset", .before = replaces_offset },
    { "dropout", "keeps_some", "of p = 1 every element is kept", .after = keeps_some },
    { "dropout", "low_seed", "the high half of seed is not used", .before = low_seed },
    { "dropout", "low_offset", "the high half of offset is not used", .before = low_offset },
    { "dropout", "ignores_offset", "offset is not used", .param = "offset" },
    { "dropout", "mask_of_last", "the mask always keeps the last element", .after = mask_of_last },
    { "gaussian_axpy", "ignores_alpha", "alpha is taken to be 1", .param = "alpha", .value = 1 },
    { "gaussian_axpy", "ignores_alpha_tensor", "alpha_tensor is not read", .without = "alpha_tensor" },
    { "gaussian_axpy", "ignores_philox", "the key is seed, whatever philox has", .without = "philox" },
    { "gaussian_axpy", "ignores_offset", "offset is not used", .param = "offset" },
    { "gaussian_axpy", "replaces_offset", "philox's stream is taken without offset", .before = noise_replaces_offset },
    { "gaussian_axpy", "low_seed", "the high half of seed is not used", .before = noise_low_seed },
    { "gaussian_axpy", "turned", "cosine and sine are exchanged", .after = noise_turned },
    { "gaussian_axpy", "nearly", "the last element is off by a bit", .after = noise_nearly, .types = "T=f32" },
    { "add", "narrow_places", "places in memory are counted in 32 bits", .narrow = true },
    { "dropout", "narrow_places", "places in memory are counted in 32 bits", .narrow = true },
    { 0 },
};
