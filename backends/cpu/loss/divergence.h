/* SPDX-License-Identifier: Apache-2.0 */
/* What kl_div, jsd and their gradients share on the CPU: a thread has whole rows. Of logits it takes the largest of a
 * row first, then the sum of exponentials, then what is asked for: three passes, of which the cache gives two. */
#ifndef TRINE_CPU_DIVERGENCE_H
#define TRINE_CPU_DIVERGENCE_H

#include "backends/cpu/core/cpu.h"
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

/* Does a step for each vector of a row: elements j .. j+m-1, m being VL but in the last. */
#define DIVERGENCE_EACH(n, j, m, ...) \
    do { \
        int64_t j = 0; \
        for (; j + VL <= (n); j += VL) { \
            const int m = VL; \
            __VA_ARGS__; \
        } \
        if (j < (n)) { \
            const int m = (int)((n) - j); \
            __VA_ARGS__; \
        } \
    } while (0)

INLINE vf divergence_get(const void *x, trine_dtype T, int64_t j, int m) {
    return m == VL ? vload(x, T, j) : vloadn(x, T, j, m, 0);
}
INLINE vf divergence_mask(vf x, int m, float rest) { return m == VL ? x : vsel(viota() < m, x, vset(rest)); }

INLINE vf divergence_distance(const divergence_row *r, vf x) { return (x * 0.5f - r->half) * r->twice; }

INLINE divergence_row divergence_row_of(const trine_tensor *t, int64_t i, row_kind kind, int64_t v, float twice,
                                        trine_dtype T) {
    divergence_row r = { .x = (const char *)t->data + i * t->stride[0] * (int64_t)vsize(T),
                         .kind = kind,
                         .twice = twice };
    if (kind != ROW_LOGITS) return r;
    vf most = vset(-INFINITY), sum = vzero();
    DIVERGENCE_EACH(v, j, m, { most = vmax(divergence_mask(divergence_get(r.x, T, j, m), m, -INFINITY), most); });
    r.half = vhmax(most) * 0.5f;
    DIVERGENCE_EACH(v, j, m,
                    { sum += divergence_mask(vexp(divergence_distance(&r, divergence_get(r.x, T, j, m))), m, 0); });
    r.log_sum = vlog(vset(vhsum(sum)))[0];
    return r;
}

/* The logarithms and the probabilities of a row's classes. */
typedef struct class_vector {
    vf log, p;
} class_vector;

INLINE class_vector divergence_class(const divergence_row *r, trine_dtype T, int64_t j, int m) {
    class_vector c;
    const vf x = divergence_get(r->x, T, j, m);
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

INLINE float divergence_loss(const divergence *a, int64_t i, trine_dtype T) {
    const divergence_row input = divergence_row_of(a->input, i, a->of_input, a->v, a->twice, T),
                         target = divergence_row_of(a->target, i, a->of_target, a->v, a->twice, T);
    vf sum = vzero();
    DIVERGENCE_EACH(a->v, j, m, {
        const class_vector q = divergence_class(&input, T, j, m), p = divergence_class(&target, T, j, m);
        sum += divergence_mask(divergence_term(a, &p, &q), m, 0);
    });
    return vhsum(sum);
}

/* What the gradient of a row has for a sum: of p, or of q rho, or of beta 1 and logarithms -1. */
INLINE float divergence_sum(const divergence *a, const divergence_row *input, const divergence_row *target,
                            trine_dtype T) {
    if (input->kind != ROW_LOGITS) return a->beta == 1 ? -1.0f : 0.0f;
    if (a->beta == 0 && target->kind == ROW_LOGITS) return 1.0f;
    vf sum = vzero();
    DIVERGENCE_EACH(a->v, j, m, {
        const class_vector q = divergence_class(input, T, j, m), p = divergence_class(target, T, j, m);
        sum += divergence_mask(a->beta == 0 ? p.p : q.p * divergence_rho(a, &p, &q), m, 0);
    });
    return vhsum(sum);
}

INLINE void divergence_gradient(const divergence *a, int64_t i, float gain, trine_dtype T) {
    const divergence_row input = divergence_row_of(a->input, i, a->of_input, a->v, a->twice, T),
                         target = divergence_row_of(a->target, i, a->of_target, a->v, a->twice, T);
    const float sum = divergence_sum(a, &input, &target, T);
    char *const to = (char *)a->dinput->data + i * a->dinput->stride[0] * (int64_t)vsize(T);
    DIVERGENCE_EACH(a->v, j, m, {
        const class_vector q = divergence_class(&input, T, j, m), p = divergence_class(&target, T, j, m);
        vf g;
        if (a->beta > 0)
            g = q.p * (divergence_rho(a, &p, &q) - sum);
        else if (input.kind == ROW_LOGITS)
            g = divergence_part(q.p, vset(sum)) - p.p;
        else
            g = -p.p;
        if (m == VL)
            vstore(to, T, j, g * gain);
        else
            vstoren(to, T, j, m, g * gain);
    });
}

INLINE void divergence_row_do(const divergence *a, int64_t i, trine_dtype T) {
    const float w = a->weight ? a->weight[i] : 1.0f;
    if (a->loss)
        a->loss[i] = w == 0 ? 0.0f : w * divergence_loss(a, i, T);
    else if (w == 0)
        memset((char *)a->dinput->data + i * a->dinput->stride[0] * (int64_t)vsize(T), 0, (size_t)a->v * vsize(T));
    else
        divergence_gradient(a, i, (float)((double)a->dloss[i] * w * a->factor), T);
}

static void divergence_rows(const void *context, int64_t first, int64_t last, int thread) {
    const divergence *a = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) FOR_TYPE(a->input->dtype, divergence_row_do, a, i);
}

static inline void divergence_run(const trine_call *call, const divergence *a) {
    const int64_t bytes = a->rows * a->v * 2 * (int64_t)vsize(a->input->dtype);
    cpu_shares(call, cpu_team(call, a->rows, 4 * bytes), a->rows, divergence_rows, a);
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
