/* SPDX-License-Identifier: Apache-2.0 */
/* muon, made of other ops: a step of sgd for the moment, a clipping by the norm whose limit is eps, symmetric and other
 * products, and a step of sgd for the parameter. x, s and the polynomial of s are in the workspace. */
#include <math.h>

#include "backends/composed/nested.h"
#include "spec/places/muon.h"

enum { ALIGNMENT = 256 };
#define LONGEST ((int64_t)1 << 28) /* dimension: no size overflows */

/* The parts of the workspace, in bytes from its beginning; x has two places by turns. */
typedef struct layer {
    const trine_call *call;
    const trine_muon_args *args;
    int64_t m, n, least;
    trine_dtype type; /* of x and s */
    struct {
        size_t update, x[2], s, polynomial, nested;
    } at;
    size_t nested_size, size;
} layer;

static size_t place(layer *l, int64_t count, trine_dtype type) {
    const size_t at = l->size;
    l->size += ((size_t)count * trine_dtype_size(type) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static layer layer_of(const trine_call *call) {
    layer l = { .call = call, .args = call->args, .m = call->dim[MUON_DIM_M], .n = call->dim[MUON_DIM_N] };
    l.least = l.m < l.n ? l.m : l.n;
    l.type = l.args->precision == TRINE_MUON_BF16 ? TRINE_BF16 : TRINE_F32;
    l.at.update = place(&l, l.m * l.n, TRINE_F32);
    l.at.x[0] = place(&l, l.m * l.n, l.type);
    l.at.x[1] = place(&l, l.m * l.n, l.type);
    l.at.s = place(&l, l.least * l.least, l.type);
    l.at.polynomial = place(&l, l.least * l.least, l.type);
    l.at.nested = l.size;
    return l;
}

/* Where a place of the workspace is; NULL while there is none, when sizes are asked for. */
static void *memory(const layer *l, size_t at) { return l->call->workspace ? (char *)l->call->workspace + at : NULL; }

static trine_status step(layer *l, bool run, trine_op op, const void *args) {
    return nested_step(l->call, run, op, args, l->at.nested, &l->nested_size);
}

#define TRY(call) \
    do { \
        const trine_status status_ = (call); \
        if (status_ != TRINE_OK) return status_; \
    } while (0)

/* A factor as ops take it, for which 0 stands for 1. */
static float factor(double x) { return (float)x == 0 ? -0.0f : (float)x; }

static trine_status scale(layer *l, bool run, double alpha, const trine_tensor *x, const trine_tensor *y) {
    const trine_scale_args args = { .struct_size = sizeof args, .x = x, .y = y, .alpha = factor(alpha) };
    return step(l, run, TRINE_OP_SCALE, &args);
}

/* x before the first step. min(1, eps/|u|) u / eps is u/max(|u|, eps). */
static trine_status begin(layer *l, bool run, const trine_tensor *x) {
    const trine_call *call = l->call;
    const trine_tensor update = trine_tensor_2d(memory(l, l->at.update), TRINE_F32, l->m, l->n),
                       line = trine_tensor_1d(memory(l, l->at.update), TRINE_F32, l->m * l->n);
    const trine_sgd_args first = { .struct_size = sizeof first,
                                   .grad = &call->tensor[MUON_GRAD],
                                   .moment = &call->tensor[MUON_MOMENT],
                                   .update = &update,
                                   .grad_scale = trine_call_given(call, MUON_GRAD_SCALE),
                                   .found_inf = trine_call_given(call, MUON_FOUND_INF),
                                   .momentum = l->args->momentum,
                                   .dampening = l->args->momentum,
                                   .nesterov = l->args->update == TRINE_MUON_NESTEROV };
    const trine_global_norm_clip_args clip = {
        .struct_size = sizeof clip, .x = &line, .y = &line, .max_norm = l->args->eps
    };
    TRY(step(l, run, TRINE_OP_SGD, &first));
    TRY(step(l, run, TRINE_OP_GLOBAL_NORM_CLIP, &clip));
    return scale(l, run, 1 / (double)l->args->eps, &update, x);
}

/* to = ns_a x + (ns_b s + ns_c s^2) x, with s = x x^T; of more rows than columns from the other side. */
static trine_status iterate(layer *l, bool run, const trine_tensor *x, const trine_tensor *to) {
    const bool turned = l->m > l->n;
    const trine_tensor s = trine_tensor_2d(memory(l, l->at.s), l->type, l->least, l->least),
                       polynomial = trine_tensor_2d(memory(l, l->at.polynomial), l->type, l->least, l->least),
                       across = trine_tensor_transpose(x);
    const trine_matmul_symmetric_args square = { .struct_size = sizeof square, .a = turned ? &across : x, .d = &s };
    const trine_matmul_symmetric_args both = { .struct_size = sizeof both,
                                               .a = &s,
                                               .c = &s,
                                               .d = &polynomial,
                                               .alpha = factor((double)l->args->ns_c),
                                               .beta = factor((double)l->args->ns_b) };
    const trine_matmul_args multiply = { .struct_size = sizeof multiply,
                                         .a = turned ? x : &polynomial,
                                         .b = turned ? &polynomial : x,
                                         .c = x,
                                         .d = to,
                                         .beta = factor((double)l->args->ns_a) };
    TRY(step(l, run, TRINE_OP_MATMUL_SYMMETRIC, &square));
    TRY(step(l, run, TRINE_OP_MATMUL_SYMMETRIC, &both));
    return step(l, run, TRINE_OP_MATMUL, &multiply);
}

static trine_status end(layer *l, bool run, const trine_tensor *x) {
    const trine_call *call = l->call;
    const trine_muon_args *args = l->args;
    const double m = (double)l->m, n = (double)l->n;
    const double adjusted = args->adjust == TRINE_MUON_UNSCALED    ? 1
                            : args->adjust == TRINE_MUON_MATCH_RMS ? 0.2 * sqrt(fmax(m, n))
                                                                   : sqrt(fmax(1, m / n));
    const trine_sgd_args last = { .struct_size = sizeof last,
                                  .param = &call->tensor[MUON_PARAM],
                                  .grad = x,
                                  .copy = trine_call_given(call, MUON_COPY),
                                  .lr_tensor = trine_call_given(call, MUON_LR_TENSOR),
                                  .found_inf = trine_call_given(call, MUON_FOUND_INF),
                                  .philox = trine_call_given(call, MUON_PHILOX),
                                  .lr = args->lr,
                                  .weight_decay = args->weight_decay,
                                  .scale = (float)adjusted,
                                  .seed = args->seed,
                                  .stream = args->stream,
                                  .stochastic = args->stochastic };
    return step(l, run, TRINE_OP_SGD, &last);
}

/* All steps in turn, run or sized; of the iteration's one is sized for all. */
static trine_status walk(layer *l, bool run) {
    const int32_t steps = run ? l->args->ns_steps : 1;
    trine_tensor x[2];
    for (int i = 0; i < 2; i++) x[i] = trine_tensor_2d(memory(l, l->at.x[i]), l->type, l->m, l->n);
    TRY(begin(l, run, &x[0]));
    for (int32_t i = 0; i < steps; i++) TRY(iterate(l, run, &x[i % 2], &x[(i + 1) % 2]));
    return end(l, run, &x[steps % 2]);
}

static bool too_large(const trine_call *call) {
    return call->dim[MUON_DIM_M] > LONGEST || call->dim[MUON_DIM_N] > LONGEST;
}

static const char *refuse(const trine_call *call) {
    if (call->empty) return NULL;
    if (too_large(call)) return "more than 2^28 rows or columns";
    layer l = layer_of(call);
    return walk(&l, false) == TRINE_OK ? NULL : "one of its parts has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    if (call->empty || too_large(call)) return 0;
    layer l = layer_of(call);
    return walk(&l, false) == TRINE_OK ? l.at.nested + l.nested_size : 0;
}

static trine_status launch(const trine_call *call) {
    layer l = layer_of(call);
    TRY(walk(&l, false));
    return walk(&l, true);
}

/* As many rows as columns, and one more. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MUON_DIM_M, call->dim[MUON_DIM_N]);
}

extern const trine_kernel trine_muon_composed[];
const trine_kernel trine_muon_composed[] = {
    { .name = "composed", .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
