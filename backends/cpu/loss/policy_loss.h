/* SPDX-License-Identifier: Apache-2.0 */
/* What policy_loss and its gradient share on the CPU: a thread has whole sequences. */
#ifndef TRINE_CPU_POLICY_LOSS_H
#define TRINE_CPU_POLICY_LOSS_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_math.h"

typedef struct policy {
    const trine_call *call;
    const trine_tensor *logp, *old_logp, *ref_logp, *advantages, *mask, *dlogp;
    const float *returns, *dloss;
    float *loss;
    const int32_t *cu;
    int64_t t, sequences;
    float low, high, kl_weight;
    bool one_ratio, mean;
} policy;

/* The tokens of a sequence; pointers to the first of them, NULL where a tensor is absent. */
typedef struct policy_row {
    const float *logp, *old_logp, *ref_logp, *advantages;
    const uint8_t *mask;
    float *dlogp;
    int64_t steps;
    float returns, kl_weight, low, high;
    float shared; /* the ratio of all tokens, if there is one */
    bool one_ratio;
} policy_row;

/* Does a step for each vector of a sequence's tokens: j .. j+m-1, m being VL but in the last. */
#define POLICY_EACH(n, j, m, ...) \
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

static inline void *policy_at(const policy *a, const trine_tensor *t, int64_t i, int64_t size) {
    if (t == NULL) return NULL;
    return (char *)t->data + (a->cu ? a->cu[i] : i * t->stride[0]) * size;
}

static inline policy_row policy_row_of(const policy *a, int64_t i) {
    return (policy_row){ .logp = policy_at(a, a->logp, i, 4),
                         .old_logp = policy_at(a, a->old_logp, i, 4),
                         .ref_logp = a->kl_weight > 0 ? policy_at(a, a->ref_logp, i, 4) : NULL,
                         .advantages = policy_at(a, a->advantages, i, 4),
                         .mask = policy_at(a, a->mask, i, 1),
                         .dlogp = policy_at(a, a->dlogp, i, 4),
                         .steps = a->cu ? a->cu[i + 1] - a->cu[i] : a->t,
                         .returns = a->returns ? a->returns[i] : 0.0f,
                         .kl_weight = a->kl_weight,
                         .low = a->low,
                         .high = a->high,
                         .one_ratio = a->one_ratio };
}

INLINE vf policy_get(const float *x, int64_t j, int m) {
    return m == VL ? vload(x, TRINE_F32, j) : vloadn(x, TRINE_F32, j, m, 0);
}

/* Which of the tokens count? */
INLINE vi policy_counts(const policy_row *r, int64_t j, int m) {
    uint8_t part[VL] = { 0 };
    if (r->mask == NULL) return viota() < m;
    if (m == VL) return vload_u8(r->mask + j) != 0;
    memcpy(part, r->mask + j, (size_t)m);
    return vload_u8(part) != 0;
}
INLINE vf policy_where(vi mask, vf x) { return vsel(mask, x, vzero()); }

INLINE vf policy_exponent(const policy_row *r, int64_t j, int m) {
    return r->old_logp ? policy_get(r->logp, j, m) - policy_get(r->old_logp, j, m) : vzero();
}

/* How many tokens count; and the ratio of all of them. */
INLINE int64_t policy_count(policy_row *r) {
    int64_t count = 0;
    vf sum = vzero();
    POLICY_EACH(r->steps, j, m, {
        const vi counts = policy_counts(r, j, m);
        for (int k = 0; k < VL; k++) count -= counts[k];
        if (r->one_ratio) sum += policy_where(counts, policy_exponent(r, j, m));
    });
    r->shared = count > 0 ? vexp(vset(vhsum(sum) / (float)count))[0] : 1.0f;
    return count;
}

typedef struct policy_vector {
    vf ratio, advantage;
    vi above, below; /* is it clipped? */
} policy_vector;

INLINE policy_vector policy_vector_of(const policy_row *r, int64_t j, int m) {
    policy_vector x = { .ratio = r->one_ratio ? vset(r->shared) : vexp(policy_exponent(r, j, m)) };
    x.advantage = (r->advantages ? policy_get(r->advantages, j, m) : vzero()) + r->returns;
    x.above = (x.advantage > vzero()) & (x.ratio > vset(r->high));
    x.below = (x.advantage < vzero()) & (x.ratio < vset(r->low));
    return x;
}
INLINE vf policy_surrogate(const policy_row *r, const policy_vector *x) {
    return -(vsel(x->above, vset(r->high), vsel(x->below, vset(r->low), x->ratio)) * x->advantage);
}
INLINE vf policy_slope(const policy_vector *x) {
    return vsel(x->above | x->below, vzero(), -(x->ratio * x->advantage));
}

/* The divergence, if there is one, and its derivative. */
INLINE vf policy_divergence(const policy_row *r, int64_t j, int m) {
    if (r->ref_logp == NULL) return vzero();
    const vf d = policy_get(r->ref_logp, j, m) - policy_get(r->logp, j, m);
    return r->kl_weight * ((vexp(d) - 1.0f) - d); /* in this order infinite d give NaN, fused or not */
}
INLINE vf policy_divergence_slope(const policy_row *r, int64_t j, int m) {
    if (r->ref_logp == NULL) return vzero();
    return r->kl_weight * (1.0f - vexp(policy_get(r->ref_logp, j, m) - policy_get(r->logp, j, m)));
}

/* Offsets that are none are told of before anything is written. */
static inline trine_status policy_check(const policy *a) {
    const char *op = a->call->plan->spec->name;
    if (a->cu == NULL) return TRINE_OK;
    if (a->cu[0] != 0)
        return a->call->host->error(TRINE_ERR_ARGUMENT, "%s: cu_seqlens[0] is %d, but must be 0", op, (int)a->cu[0]);
    for (int64_t i = 0; i < a->sequences; i++)
        if (a->cu[i + 1] < a->cu[i])
            return a->call->host->error(TRINE_ERR_ARGUMENT,
                                        "%s: cu_seqlens[%" PRId64 "] is %d, below cu_seqlens[%" PRId64 "] = %d", op,
                                        i + 1, (int)a->cu[i + 1], i, (int)a->cu[i]);
    if (a->cu[a->sequences] <= a->t) return TRINE_OK;
    return a->call->host->error(TRINE_ERR_ARGUMENT,
                                "%s: cu_seqlens[%" PRId64 "] is %d, but there are %" PRId64 " tokens", op, a->sequences,
                                (int)a->cu[a->sequences], a->t);
}

static inline trine_status policy_run(const policy *a, cpu_body *body) {
    const trine_status status = policy_check(a);
    const int64_t bytes = (int64_t)trine_plan_bytes(a->call->plan, a->call->dim, a->call->type, a->call->present);
    if (status == TRINE_OK) cpu_tasks(a->call, cpu_team(a->call, a->sequences, bytes), a->sequences, body, a);
    return status;
}

#define POLICY_FIELDS(call, args, OP) \
    .call = (call), .logp = &(call)->tensor[OP##_LOGP], .old_logp = trine_call_given(call, OP##_OLD_LOGP), \
    .ref_logp = trine_call_given(call, OP##_REF_LOGP), .advantages = trine_call_given(call, OP##_ADVANTAGES), \
    .mask = trine_call_given(call, OP##_MASK), \
    .returns = trine_call_given(call, OP##_RETURNS) ? (call)->tensor[OP##_RETURNS].data : NULL, \
    .cu = trine_call_given(call, OP##_CU_SEQLENS) ? (call)->tensor[OP##_CU_SEQLENS].data : NULL, \
    .t = (call)->dim[OP##_DIM_T], .sequences = (call)->dim[OP##_DIM_S], .low = 1.0f - (args)->clip_low, \
    .high = 1.0f + (args)->clip_high, .kl_weight = (args)->kl_weight, .one_ratio = (args)->sequence_ratio, \
    .mean = (args)->mean

#endif
