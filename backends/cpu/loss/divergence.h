/* SPDX-License-Identifier: Apache-2.0 */
/* What kl_div, jsd and their gradients share on the CPU. Of logits the largest and the sum of exponentials come first,
 * of each piece of a row by itself; then what is asked for. */
#ifndef TRINE_CPU_DIVERGENCE_H
#define TRINE_CPU_DIVERGENCE_H

#include "backends/cpu/core/parts.h"
#include "backends/cpu/core/vec_math.h"

#define NOTHING 0x1p-100f /* the terms of mixtures below are left out */

/* What a row's elements are. */
typedef enum row_kind { ROW_LOGS, ROW_LOGITS, ROW_PROBABILITIES } row_kind;

typedef struct divergence {
    const trine_tensor *input, *target, *dinput;
    const float *weight, *dloss;
    float *loss;
    int64_t rows, v;
    row_kind of_input, of_target;
    float beta;
    float twice;   /* the scale of logits, which are halved so that their differences do not overflow */
    double factor; /* of the gradient */
} divergence;

/* A row: of a logit x the logarithm is (x/2 - half) twice - log_sum. */
typedef struct divergence_row {
    const void *x;
    row_kind kind;
    float half, twice, log_sum;
} divergence_row;

INLINE vf divergence_distance(const divergence_row *r, vf x) { return (x * 0.5f - r->half) * r->twice; }

/* The logarithms and the probabilities of a row's classes. */
typedef struct class_vector {
    vf log, p;
} class_vector;

INLINE class_vector divergence_class(const divergence_row *r, trine_dtype T, int64_t j, int m) {
    class_vector c;
    const vf x = row_get(r->x, T, j, m);
    if (r->kind == ROW_PROBABILITIES) {
        c.p = x;
        c.log = vlog(x);
        return c;
    }
    c.log = r->kind == ROW_LOGITS ? divergence_distance(r, x) - r->log_sum : x;
    c.p = vexp(c.log);
    return c;
}

/* A probability that is 0 leaves the other factor out. */
INLINE vf divergence_part(vf p, vf l) { return vsel(p == vzero(), vzero(), p * l); }

INLINE vf divergence_mixture(const divergence *a, const class_vector *p, const class_vector *q) {
    return a->beta * p->p + (1.0f - a->beta) * q->p;
}

INLINE vf divergence_term(const divergence *a, const class_vector *p, const class_vector *q) {
    if (a->beta == 0) return divergence_part(p->p, p->log - q->log);
    if (a->beta == 1) return divergence_part(q->p, q->log - p->log);
    const vf mix = divergence_mixture(a, p, q), log_m = vlog(mix);
    const vf sum =
        a->beta * divergence_part(p->p, p->log - log_m) + (1.0f - a->beta) * divergence_part(q->p, q->log - log_m);
    return vsel(mix < vset(NOTHING), vzero(), sum);
}

/* log q - log m, or with beta 1 log q - log p; 0 where q is. */
INLINE vf divergence_rho(const divergence *a, const class_vector *p, const class_vector *q) {
    if (a->beta == 1) return vsel(q->p == vzero(), vzero(), q->log - p->log);
    const vf mix = divergence_mixture(a, p, q);
    return vsel((mix < vset(NOTHING)) | (q->p == vzero()), vzero(), q->log - vlog(mix));
}

/* Passes over a row: for the largest logits and sums of exponentials; for what the gradient has for a sum; the last. */
enum { DIVERGENCE_FIND, DIVERGENCE_SUM, DIVERGENCE_LAST };
/* Numbers of a row: half of the largest logit and the sum, of the input and of the target; the pass's sum. */
enum { DIVERGENCE_HALF, DIVERGENCE_EXP, DIVERGENCE_OF_TARGET, DIVERGENCE_TOTAL = 4 };

INLINE divergence_row divergence_row_of(const divergence *a, const parts_row *row, bool target) {
    const trine_tensor *t = target ? a->target : a->input;
    const double *number = row->number + (target ? DIVERGENCE_OF_TARGET : 0);
    divergence_row r = { .x = row_at(t, row->i), .kind = target ? a->of_target : a->of_input, .twice = a->twice };
    if (r.kind != ROW_LOGITS || row->pass == DIVERGENCE_FIND) return r;
    r.half = (float)number[DIVERGENCE_HALF];
    r.log_sum = (float)log(number[DIVERGENCE_EXP]);
    return r;
}

/* Of a piece of logits: half of the largest, and the sum of exponentials from there; of nothing but -Inf from 0. */
INLINE void divergence_find(divergence_row r, int64_t at, int count, double *result, trine_dtype T) {
    vf most[ROW_ACC], acc[ROW_ACC] = { { 0 } };
    for (int k = 0; k < ROW_ACC; k++) most[k] = vset(-INFINITY);
    ROW_EACH(count, j, k, m, most[k] = vmax(row_mask(row_get(r.x, T, at + j, m), m, -INFINITY), most[k]));
    for (int k = 1; k < ROW_ACC; k++) most[0] = vmax(most[k], most[0]);
    const float half = vhmax(most[0]) * 0.5f;
    r.half = half == -INFINITY ? 0 : half;
    ROW_EACH(count, j, k, m, acc[k] += row_mask(vexp(divergence_distance(&r, row_get(r.x, T, at + j, m))), m, 0));
    result[DIVERGENCE_HALF] = half;
    result[DIVERGENCE_EXP] = row_total(acc);
}

/* A sum from a smaller logit becomes less. */
static inline void divergence_join(double twice, double *number, const double *result) {
    const double old = number[DIVERGENCE_HALF], its = result[DIVERGENCE_HALF], half = its > old ? its : old;
    const double down = half > old && old != -INFINITY ? exp((old - half) * twice) : 1,
                 its_down = half > its && its != -INFINITY ? exp((its - half) * twice) : 1;
    number[DIVERGENCE_EXP] = number[DIVERGENCE_EXP] * down + result[DIVERGENCE_EXP] * its_down;
    number[DIVERGENCE_HALF] = half;
}

/* What the gradient of a row has for a sum, of p or of q rho: is it summed, or else this number? */
static inline bool divergence_sums(const divergence *a, double *otherwise_out) {
    *otherwise_out = a->of_input != ROW_LOGITS ? (a->beta == 1 ? -1 : 0) : 1;
    return a->loss == NULL && a->of_input == ROW_LOGITS && !(a->beta == 0 && a->of_target == ROW_LOGITS);
}

INLINE void divergence_add_up(const divergence *a, const divergence_row *input, const divergence_row *target,
                              int64_t at, int count, double *result, trine_dtype T) {
    vf acc[ROW_ACC] = { { 0 } };
    ROW_EACH(count, j, k, m, {
        const class_vector q = divergence_class(input, T, at + j, m), p = divergence_class(target, T, at + j, m);
        const vf term = a->loss ? divergence_term(a, &p, &q) : a->beta == 0 ? p.p : q.p * divergence_rho(a, &p, &q);
        acc[k] += row_mask(term, m, 0);
    });
    result[0] = row_total(acc);
}

INLINE void divergence_gradient(const divergence *a, const divergence_row *input, const divergence_row *target,
                                int64_t i, int64_t at, int count, float sum, trine_dtype T) {
    const float w = a->weight ? a->weight[i] : 1.0f, gain = (float)((double)a->dloss[i] * w * a->factor);
    const row_sink to = row_sink_of(a->dinput, i, at, false);
    ROW_EACH(count, j, k, m, {
        const class_vector q = divergence_class(input, T, at + j, m), p = divergence_class(target, T, at + j, m);
        vf g;
        if (a->beta > 0)
            g = q.p * (divergence_rho(a, &p, &q) - sum);
        else if (input->kind == ROW_LOGITS)
            g = divergence_part(q.p, vset(sum)) - p.p;
        else
            g = -p.p;
        row_put(to, T, j, m, g * gain);
    });
}

INLINE void divergence_piece_as(const divergence *a, const parts_row *row, int64_t at, int count, double *result,
                                trine_dtype T) {
    const divergence_row input = divergence_row_of(a, row, false), target = divergence_row_of(a, row, true);
    if (row->pass == DIVERGENCE_FIND) {
        if (input.kind == ROW_LOGITS) divergence_find(input, at, count, result, T);
        if (target.kind == ROW_LOGITS) divergence_find(target, at, count, result + DIVERGENCE_OF_TARGET, T);
    } else if (row->pass == DIVERGENCE_SUM || a->loss) {
        divergence_add_up(a, &input, &target, at, count, result, T);
    } else {
        divergence_gradient(a, &input, &target, row->i, at, count, (float)row->number[DIVERGENCE_TOTAL], T);
    }
}
static void divergence_piece(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result) {
    const divergence *a = op;
    (void)h;
    FOR_TYPE(a->input->dtype, divergence_piece_as, a, row, at, count, result);
}

static void divergence_add(const void *op, parts_row *row, const double *result) {
    const divergence *a = op;
    if (row->pass != DIVERGENCE_FIND) {
        row->number[DIVERGENCE_TOTAL] += result[0];
        return;
    }
    if (a->of_input == ROW_LOGITS) divergence_join(a->twice, row->number, result);
    if (a->of_target == ROW_LOGITS)
        divergence_join(a->twice, row->number + DIVERGENCE_OF_TARGET, result + DIVERGENCE_OF_TARGET);
}

static void divergence_next(const divergence *a, parts_row *row) {
    double otherwise;
    if (row->pass == DIVERGENCE_FIND && divergence_sums(a, &otherwise)) {
        row->pass = DIVERGENCE_SUM;
        return;
    }
    if (row->pass == DIVERGENCE_FIND) row->number[DIVERGENCE_TOTAL] = a->loss ? 0 : otherwise;
    row->pass = DIVERGENCE_LAST;
    row->last = a->loss == NULL;
}

/* A row of weight 0 is not read. */
static void divergence_begin(const void *op, parts_row *row) {
    const divergence *a = op;
    row->number[DIVERGENCE_HALF] = row->number[DIVERGENCE_OF_TARGET + DIVERGENCE_HALF] = -INFINITY;
    if (a->weight && a->weight[row->i] == 0) row->length = 0;
    if (a->of_input != ROW_LOGITS && a->of_target != ROW_LOGITS) divergence_next(a, row);
}

static bool divergence_end(const void *op, parts_row *row) {
    const divergence *a = op;
    if (row->length > 0 && row->pass != DIVERGENCE_LAST) {
        divergence_next(a, row);
        return true;
    }
    if (a->loss)
        a->loss[row->i] = (a->weight ? a->weight[row->i] : 1.0f) * (float)row->number[DIVERGENCE_TOTAL];
    else if (row->length == 0)
        memset(row_at(a->dinput, row->i), 0, (size_t)a->v * vsize(a->dinput->dtype));
    return false;
}

enum { DIVERGENCE_TIME = 4 }; /* of an element, in times of what reading it takes */

static inline parts divergence_parts(const trine_call *call, const divergence *a) {
    return (parts){ .op = a,
                    .rows = call->dim[row_down(call)],
                    .n = call->dim[row_along(call)],
                    .bytes = DIVERGENCE_TIME * row_bytes(call),
                    .begin = divergence_begin,
                    .piece = divergence_piece,
                    .add = divergence_add,
                    .end = divergence_end };
}

static size_t divergence_workspace(const trine_call *call) {
    const parts job = divergence_parts(call, NULL);
    return parts_workspace(call, &job);
}

static inline void divergence_run(const trine_call *call, const divergence *a) {
    const parts job = divergence_parts(call, a);
    parts_run(call, &job, call->workspace);
}

static void divergence_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t elements = call->dim[row_down(call)] * call->dim[row_along(call)];
    row_edges(call, edges);
    if (elements > 0 && row_bytes(call) >= elements)
        parts_edges(call, edges, DIVERGENCE_TIME * (row_bytes(call) / elements));
}

static inline row_kind divergence_kind(bool logits, bool probabilities) {
    return probabilities ? ROW_PROBABILITIES : logits ? ROW_LOGITS : ROW_LOGS;
}
static inline double divergence_factor(bool logits, float logit_scale, float beta) {
    return (logits ? logit_scale : 1.0) * (beta < 1 ? 1.0 - beta : 1.0);
}
static inline const float *divergence_floats(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? t->data : NULL;
}

#endif
