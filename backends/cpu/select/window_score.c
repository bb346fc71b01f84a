/* SPDX-License-Identifier: Apache-2.0 */
/* window_score on the CPU. The queries that have a head of keys in common lie side by side in vectors, those of each
 * output row by themselves: one pass over the keys finds what each query's exponentials add up to, and a second, which
 * computes the products again, adds up the probabilities of each key. Keys are taken by chunks of a fixed size, so that
 * the result does not depend on the number of threads. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "backends/cpu/core/vec_math.h"
#include "spec/places/window_score.h"

enum {
    CHUNK = 128, /* keys */
    KEYS = 8     /* whose products are computed at a time */
};

typedef struct layout {
    int64_t w, s, d, heads, outs, rows, vectors; /* of an output row: its queries, and the vectors that hold them */
    int64_t lanes;                               /* of all that share a head of keys */
    int64_t chunks, length;                      /* length: of an unpooled row, with neighbours at either end */
    int64_t query, state, partial, raw, own;     /* places in the workspace, in floats; own: of each thread */
    int64_t key_floats, pad;                     /* pad: neighbours at an end */
} layout;

static layout layout_of(const trine_call *call) {
    const trine_window_score_args *args = call->args;
    const int64_t *dim = call->dim, b = dim[WINDOW_SCORE_DIM_B], hk = dim[WINDOW_SCORE_DIM_HK],
                  o = dim[WINDOW_SCORE_DIM_O];
    layout l = { .w = dim[WINDOW_SCORE_DIM_W],
                 .s = dim[WINDOW_SCORE_DIM_S],
                 .d = dim[WINDOW_SCORE_DIM_D],
                 .heads = dim[WINDOW_SCORE_DIM_H] / o,
                 .outs = o / hk,
                 .pad = args->radius };
    l.rows = l.heads * l.w;
    l.vectors = (l.rows + VL - 1) / VL;
    l.lanes = l.outs * l.vectors * VL;
    l.chunks = (l.s + CHUNK - 1) / CHUNK;
    l.length = cpu_round_up(dim[WINDOW_SCORE_DIM_N] + 2 * l.pad, VL);
    l.key_floats = KEYS * l.d;
    l.state = b * hk * l.lanes * l.d;
    l.partial = l.state + 2 * b * hk * l.lanes;
    l.raw = l.partial + 2 * b * hk * l.chunks * l.lanes;
    l.own = l.raw + b * o * l.length;
    return l;
}

typedef struct job {
    const trine_call *call;
    layout l;
    float scale;
    int64_t hk;
    float *memory;
} job;

/* The queries of batch and head of keys `group`: of each vector the first column, then the next. */
INLINE void turn_queries(const job *j, int64_t group, trine_dtype T) {
    const trine_tensor *q = &j->call->tensor[WINDOW_SCORE_Q];
    const layout *l = &j->l;
    float *to = j->memory + group * l->lanes * l->d;
    memset(to, 0, (size_t)(l->lanes * l->d) * sizeof *to);
    for (int64_t u = 0; u < l->outs; u++)
        for (int64_t r = 0; r < l->rows; r++) {
            const int64_t head = (group % j->hk * l->outs + u) * l->heads + r / l->w;
            const char *from =
                (const char *)q->data +
                (group / j->hk * q->stride[0] + r % l->w * q->stride[1] + head * q->stride[2]) * (int64_t)vsize(T);
            float *lane = to + (u * l->vectors + r / VL) * l->d * VL + r % VL;
            for (int64_t c = 0; c < l->d; c++) lane[c * VL] = sload(from, T, c);
        }
}
static void queries(const void *context, int64_t first, int64_t last, int thread) {
    const job *j = context;
    (void)thread;
    for (int64_t g = first; g < last; g++) FOR_TYPE(j->call->type[WINDOW_SCORE_TYPE_T], turn_queries, j, g);
}

/* Keys first .. first+KEYS-1 as floats; those from `end` on are 0. */
INLINE void widen_keys(const job *j, int64_t group, int64_t first, int64_t end, float *to, trine_dtype T) {
    const trine_tensor *k = &j->call->tensor[WINDOW_SCORE_K];
    const int64_t d = j->l.d;
    for (int64_t t = 0; t < KEYS; t++) {
        const char *from = (const char *)k->data +
                           (group / j->hk * k->stride[0] + (first + t) * k->stride[1] + group % j->hk * k->stride[2]) *
                               (int64_t)vsize(T);
        int64_t c = 0;
        if (first + t >= end) {
            memset(to + t * d, 0, (size_t)d * sizeof *to);
            continue;
        }
        for (; c + VL <= d; c += VL) vstore(to + t * d, TRINE_F32, c, vload(from, T, c));
        if (c < d) vstoren(to + t * d, TRINE_F32, c, (int)(d - c), vloadn(from, T, c, (int)(d - c), 0));
    }
}
static void load_keys(const job *j, int64_t group, int64_t first, int64_t end, float *to) {
    FOR_TYPE(j->call->type[WINDOW_SCORE_TYPE_T], widen_keys, j, group, first, end, to);
}

/* The products of KEYS keys with the queries of vector v, scaled: the same bits in both passes, so that no exponent is
 * above 0. */
INLINE void products(const job *j, int64_t group, int64_t v, const float *keys, vf *z) {
    const float *q = j->memory + group * j->l.lanes * j->l.d + v * j->l.d * VL;
    vf sum[KEYS] = { { 0 } };
    for (int64_t c = 0; c < j->l.d; c++) {
        const vf x = vload(q, TRINE_F32, c * VL);
        for (int t = 0; t < KEYS; t++) sum[t] = vfma(x, vset(keys[t * j->l.d + c]), sum[t]);
    }
    for (int t = 0; t < KEYS; t++) z[t] = vproduct(sum[t], vset(j->scale));
}

/* What exponents are told from: the largest, or 0 if it is -Inf, where all are. */
INLINE vf base_of(vf most) { return vsel(most == vset(-INFINITY), vzero(), most); }

/* A sum of exponentials that were told from the largest so far, now from `base`. */
INLINE vf shrunk(vf sum, vf most, vf base) { return vsel(most == vset(-INFINITY), vzero(), sum * vexp(most - base)); }

/* Which of a vector's queries are there, and see key `key`: the first row of the vector among its output's is `row`. */
INLINE vi sees(const layout *l, int64_t row, const float *seat, int64_t key) {
    const int64_t ahead = key - (l->s - l->w);
    const vi there = viota() < viset((int32_t)(l->rows - row < VL ? l->rows - row : VL));
    return ahead <= 0 ? there : there & (vload(seat, TRINE_F32, row) >= vset((float)ahead));
}

/* The largest product and the sum of exponentials of a chunk's keys, of each query. */
static void sum_chunk(const job *j, int64_t task, float *own) {
    const layout *l = &j->l;
    const int64_t group = task / l->chunks, from = task % l->chunks * CHUNK,
                  end = from + CHUNK < l->s ? from + CHUNK : l->s;
    float *most = j->memory + l->partial + 2 * task * l->lanes, *sums = most + l->lanes, *seat = own + l->key_floats;
    for (int64_t r = 0; r < l->rows; r++) seat[r] = (float)(r % l->w);
    for (int64_t v = 0; v < l->lanes; v += VL)
        vstore(most, TRINE_F32, v, vset(-INFINITY)), vstore(sums, TRINE_F32, v, vzero());
    for (int64_t first = from; first < end; first += KEYS) {
        load_keys(j, group, first, end, own);
        for (int64_t v = 0; v < l->outs * l->vectors; v++) {
            vf z[KEYS], top = vload(most, TRINE_F32, v * VL);
            products(j, group, v, own, z);
            const vf before = top;
            for (int t = 0; t < KEYS; t++) {
                if (first + t < end)
                    z[t] = vsel(sees(l, v % l->vectors * VL, seat, first + t), z[t], vset(-INFINITY));
                else
                    z[t] = vset(-INFINITY);
                top = vmax(z[t], top);
            }
            const vf base = base_of(top);
            vf sum = shrunk(vload(sums, TRINE_F32, v * VL), before, base);
            for (int t = 0; t < KEYS; t++) sum += vexp(z[t] - base);
            vstore(most, TRINE_F32, v * VL, top), vstore(sums, TRINE_F32, v * VL, sum);
        }
    }
}
static void sum_chunks(const void *context, int64_t first, int64_t last, int thread) {
    const job *j = context;
    float *own = j->memory + j->l.own + thread * (j->l.key_floats + j->l.vectors * VL);
    for (int64_t task = first; task < last; task++) sum_chunk(j, task, own);
}

/* Of all chunks: what exponents are told from, and what exponentials are multiplied by; 0 if there are none. */
static void add_chunks(const void *context, int64_t first, int64_t last, int thread) {
    const job *j = context;
    const layout *l = &j->l;
    (void)thread;
    for (int64_t group = first; group < last; group++)
        for (int64_t v = 0; v < l->lanes; v += VL) {
            const float *part = j->memory + l->partial + 2 * group * l->chunks * l->lanes + v;
            vf top = vset(-INFINITY), sum = vzero();
            for (int64_t c = 0; c < l->chunks; c++) top = vmax(vload(part, TRINE_F32, 2 * c * l->lanes), top);
            const vf base = base_of(top);
            for (int64_t c = 0; c < l->chunks; c++) {
                const vf most = vload(part, TRINE_F32, 2 * c * l->lanes);
                sum += shrunk(vload(part, TRINE_F32, (2 * c + 1) * l->lanes), most, base);
            }
            float *state = j->memory + l->state + 2 * group * l->lanes + v;
            vstore(state, TRINE_F32, 0, base);
            vstore(state, TRINE_F32, l->lanes, vsel(sum == vzero(), vzero(), vset(1) / sum));
        }
}

static void score_chunk(const job *j, int64_t task, float *own) {
    const layout *l = &j->l;
    const int64_t n = j->call->dim[WINDOW_SCORE_DIM_N], chunks = (n + CHUNK - 1) / CHUNK, group = task / chunks,
                  from = task % chunks * CHUNK, end = from + CHUNK < n ? from + CHUNK : n;
    const float *state = j->memory + l->state + 2 * group * l->lanes;
    for (int64_t first = from; first < end; first += KEYS) {
        load_keys(j, group, first, end, own);
        for (int64_t u = 0; u < l->outs; u++) {
            vf sum[KEYS] = { { 0 } };
            for (int64_t v = 0; v < l->vectors; v++) {
                const int64_t at = u * l->vectors + v;
                const vf base = vload(state, TRINE_F32, at * VL), share = vload(state, TRINE_F32, l->lanes + at * VL);
                const vi there = sees(l, v * VL, NULL, 0);
                vf z[KEYS];
                products(j, group, at, own, z);
                for (int t = 0; t < KEYS; t++) sum[t] += vsel(there, vexp(z[t] - base) * share, vzero());
            }
            float *to = j->memory + l->raw + (group * l->outs + u) * l->length + l->pad;
            for (int t = 0; t < KEYS && first + t < end; t++) to[first + t] = vhsum(sum[t]);
        }
    }
}
static void score_chunks(const void *context, int64_t first, int64_t last, int thread) {
    const job *j = context;
    float *own = j->memory + j->l.own + thread * (j->l.key_floats + j->l.vectors * VL);
    for (int64_t task = first; task < last; task++) score_chunk(j, task, own);
}

/* The larger; NaN if either is. */
INLINE vf larger(vf a, vf b) { return vsel((a > b) | (a != a), a, b); }

INLINE vf load_some(const float *from, int64_t i, int count) {
    return count == VL ? vload(from, TRINE_F32, i) : vloadn(from, TRINE_F32, i, count, 0);
}

static void pool_rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *j = context;
    const trine_window_score_args *args = j->call->args;
    const trine_tensor *scores = &j->call->tensor[WINDOW_SCORE_SCORES];
    const int64_t n = j->call->dim[WINDOW_SCORE_DIM_N], o = j->call->dim[WINDOW_SCORE_DIM_O], pad = j->l.pad;
    const bool max = args->pooling == TRINE_POOL_MAX;
    const float share = 1 / (float)(2 * pad + 1);
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        float *raw = j->memory + j->l.raw + row * j->l.length;
        float *to = (float *)scores->data + row / o * scores->stride[0] + row % o * scores->stride[1];
        for (int64_t i = 0; i < j->l.length; i++)
            if (i < pad || i >= pad + n) raw[i] = max ? -INFINITY : 0;
        for (int64_t i = 0; i < n; i += VL) {
            const int count = (int)(n - i < VL ? n - i : VL);
            vf x = load_some(raw, i, count);
            for (int64_t t = 1; t <= 2 * pad; t++) {
                const vf y = load_some(raw, i + t, count);
                x = max ? larger(x, y) : x + y;
            }
            vstoren(to, TRINE_F32, i, count, max || pad == 0 ? x : x * share);
        }
    }
}

static int team_of(const trine_call *call) {
    const layout l = layout_of(call);
    const int64_t groups = call->dim[WINDOW_SCORE_DIM_B] * call->dim[WINDOW_SCORE_DIM_HK];
    return cpu_team(call, groups * l.chunks, groups * l.s * l.d * (int64_t)sizeof(float));
}

static size_t workspace(const trine_call *call) {
    const layout l = layout_of(call);
    return (size_t)(l.own + team_of(call) * (l.key_floats + l.vectors * VL)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const trine_window_score_args *args = call->args;
    const int64_t *dim = call->dim, groups = dim[WINDOW_SCORE_DIM_B] * dim[WINDOW_SCORE_DIM_HK];
    const job j = { .call = call,
                    .l = layout_of(call),
                    .scale = args->scale != 0 ? args->scale : (float)(1 / sqrt((double)dim[WINDOW_SCORE_DIM_D])),
                    .hk = dim[WINDOW_SCORE_DIM_HK],
                    .memory = call->workspace };
    const int team = team_of(call);
    cpu_shares(call, team, groups, queries, &j);
    cpu_tasks(call, team, groups * j.l.chunks, sum_chunks, &j);
    cpu_shares(call, team, groups, add_chunks, &j);
    cpu_tasks(call, team, groups * ((dim[WINDOW_SCORE_DIM_N] + CHUNK - 1) / CHUNK), score_chunks, &j);
    cpu_shares(call, team, dim[WINDOW_SCORE_DIM_B] * dim[WINDOW_SCORE_DIM_O], pool_rows, &j);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_S, CHUNK);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_N, CHUNK);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_N, KEYS);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_W, VL);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_D, VL);
}

CPU_KERNELS(window_score) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
