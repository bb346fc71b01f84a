/* SPDX-License-Identifier: Apache-2.0 */
/* attention on the CPU with the same bits as on every device (spec/same.h): of each query all scores s = scale q k,
 * then e = exp(s - their largest), the sum of e by lanes from the first visible key on, and chains of e v over the
 * keys, divided by it; lse = largest + log(sum). */
#include "backends/cpu/core/same.h"

enum { ATTENTION_SAME_COLUMNS = 64 };

typedef struct attention_same {
    attention a;
    const trine_tensor *q, *k, *v, *o, *lse;
    float *scores; /* sk for each thread */
    int64_t pitch, heads;
} attention_same;

static const char *attention_same_refuse(const trine_call *call) {
    const attention a = ATTENTION_OF(call, (const trine_attention_args *)call->args, ATTENTION);
    if (a.cu_q || a.used_q || a.used_k) return "what is the same everywhere has no packed or shorter sequences";
    if (a.bias || a.slopes || a.sinks) return "what is the same everywhere has no bias, slopes or sinks";
    return a.softcap > 0 || a.drops ? "what is the same everywhere has no softcap and no dropout" : NULL;
}

/* sum q k of one row of each. */
INLINE float attention_same_dot(const void *q, const void *k, int64_t d, trine_dtype T) {
    vf lanes[SAME_DOT_LANES / VL] = { 0 };
    for (int64_t c = 0; c < d; c += VL)
        lanes[c / VL % (SAME_DOT_LANES / VL)] += vproduct(same_load(q, T, c, d, 0), same_load(k, T, c, d, 0));
    return same_total(lanes, SAME_DOT_LANES);
}

/* Columns `at` .. of o. */
INLINE void attention_same_output(const attention_same *s, const float *e, float sum, const char *v, char *o,
                                  int64_t keys, int64_t at, trine_dtype T) {
    enum { VECTORS = ATTENTION_SAME_COLUMNS / VL };
    const int64_t stride = s->v->stride[1] * (int64_t)vsize(T), d = s->a.d;
    vf total[VECTORS] = { 0 };
    for (int64_t from = 0; from < keys; from += SAME_CHAIN) {
        vf run[VECTORS] = { 0 };
        for (int64_t j = from; j < keys && j < from + SAME_CHAIN; j++)
            for (int c = 0; c < VECTORS && at + c * VL < d; c++)
                run[c] += vproduct(vset(e[j]), same_load(v + j * stride, T, at + c * VL, d, 0));
        for (int c = 0; c < VECTORS; c++) total[c] += run[c];
    }
    for (int c = 0; c < VECTORS && at + c * VL < d; c++)
        same_store(o, T, at + c * VL, d, sum == 0 ? vzero() : total[c] / vset(sum));
}

INLINE void attention_same_query(const attention_same *s, float *e, int64_t b, int64_t i, int64_t h, trine_dtype T) {
    const attention *a = &s->a;
    const sequence one = sequence_of(a, b);
    const int64_t size = (int64_t)vsize(T), g = h / a->group;
    int64_t first, last;
    visible(a, &one, i, &first, &last);
    const int64_t keys = last - first;
    const char *q = (const char *)s->q->data + (b * s->q->stride[0] + i * s->q->stride[1] + h * s->q->stride[2]) * size,
               *k = (const char *)s->k->data +
                    (b * s->k->stride[0] + first * s->k->stride[1] + g * s->k->stride[2]) * size,
               *v = (const char *)s->v->data +
                    (b * s->v->stride[0] + first * s->v->stride[1] + g * s->v->stride[2]) * size;
    char *o = (char *)s->o->data + (b * s->o->stride[0] + i * s->o->stride[1] + h * s->o->stride[2]) * size;
    float most = -INFINITY;
    same_lanes lanes = { 0 };
    for (int64_t j = 0; j < keys; j++) {
        e[j] = same_product(a->scale, attention_same_dot(q, k + j * s->k->stride[1] * size, a->d, T));
        most = e[j] > most ? e[j] : most;
    }
    if (most == -INFINITY) most = 0;
    for (int64_t j = 0; j < keys; j += VL) {
        const vf power = same_within(same_exp(same_load(e, TRINE_F32, j, keys, 0) - most), j, keys);
        same_store(e, TRINE_F32, j, keys, power);
        same_add(&lanes, j, power);
    }
    const float sum = same_total(lanes.v, SAME_LANES);
    for (int64_t at = 0; at < a->d; at += ATTENTION_SAME_COLUMNS) attention_same_output(s, e, sum, v, o, keys, at, T);
    if (s->lse)
        ((float *)s->lse->data)[b * s->lse->stride[0] + h * s->lse->stride[1] + i * s->lse->stride[2]] =
            sum > 0    ? most + same_log(sum)
            : sum == 0 ? -INFINITY
                       : sum;
}

INLINE void attention_same_queries(const attention_same *s, int64_t first, int64_t last, int thread, trine_dtype T) {
    for (int64_t t = first; t < last; t++)
        attention_same_query(s, s->scores + thread * s->pitch, t / s->heads / s->a.sq, t / s->heads % s->a.sq,
                             t % s->heads, T);
}
static void attention_same_part(const void *context, int64_t first, int64_t last, int thread) {
    const attention_same *s = context;
    FOR_TYPE(s->a.dtype, attention_same_queries, s, first, last, thread);
}

static int attention_same_team(const trine_call *call, int64_t queries) {
    const double work = (double)queries * (double)call->dim[ATTENTION_DIM_SK] * (double)call->dim[ATTENTION_DIM_D];
    return cpu_team(call, queries, work < 0x1p62 ? (int64_t)work : INT64_MAX);
}

static attention_same attention_same_of(const trine_call *call) {
    return (attention_same){ .a = ATTENTION_OF(call, (const trine_attention_args *)call->args, ATTENTION),
                             .q = &call->tensor[ATTENTION_Q],
                             .k = &call->tensor[ATTENTION_K],
                             .v = &call->tensor[ATTENTION_V],
                             .o = &call->tensor[ATTENTION_O],
                             .lse = trine_call_given(call, ATTENTION_LSE),
                             .scores = call->workspace,
                             .pitch = cpu_round_up(call->dim[ATTENTION_DIM_SK], VL),
                             .heads = call->dim[ATTENTION_DIM_H] };
}

static int64_t attention_same_rows(const trine_call *call) {
    return call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_SQ] * call->dim[ATTENTION_DIM_H];
}

static size_t attention_same_workspace(const trine_call *call) {
    return (size_t)(attention_same_team(call, attention_same_rows(call)) *
                    cpu_round_up(call->dim[ATTENTION_DIM_SK], VL)) *
           sizeof(float);
}

static trine_status attention_same_launch(const trine_call *call) {
    const attention_same s = attention_same_of(call);
    const int64_t rows = attention_same_rows(call),
                  fit = s.pitch ? (int64_t)(call->workspace_size / sizeof(float)) / s.pitch : rows;
    int team = attention_same_team(call, rows);
    if (fit < team) team = fit > 1 ? (int)fit : 1;
    cpu_tasks(call, team, rows, attention_same_part, &s);
    return TRINE_OK;
}
