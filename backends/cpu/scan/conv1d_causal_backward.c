/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal_backward on the CPU. The rows of all batches fall into parts of a fixed number. A task has a block of
 * channels of a part: it finds dz step by step, holds the last of them for dx, and adds up what the part's own steps
 * give to dweight and dbias; parts are added in their order at the end. dx0 is found by tasks of its own. */
#include "conv1d.h"
#include "spec/places/conv1d_causal_backward.h"

enum {
    PART = 256, /* rows */
    WIDE = 512  /* channels of a block */
};

typedef struct gradient {
    conv c;
    const trine_tensor *dy;
    int64_t parts;
    float *sums; /* of each part k + 1 rows of n */
} gradient;

static int64_t parts_of(const trine_call *call) {
    const int64_t *dim = call->dim;
    return (dim[CONV1D_CAUSAL_BACKWARD_DIM_B] * dim[CONV1D_CAUSAL_BACKWARD_DIM_T] + PART - 1) / PART;
}

static gradient job_of(const trine_call *call) {
    const trine_conv1d_causal_backward_args *args = call->args;
    const int64_t *dim = call->dim;
    return (gradient){ .c = { .all = scan_of(call, trine_call_given(call, CONV1D_CAUSAL_BACKWARD_CU_SEQLENS),
                                             dim[CONV1D_CAUSAL_BACKWARD_DIM_B], dim[CONV1D_CAUSAL_BACKWARD_DIM_T],
                                             dim[CONV1D_CAUSAL_BACKWARD_DIM_N], dim[CONV1D_CAUSAL_BACKWARD_DIM_NSEQ],
                                             WIDE, false),
                              .k = dim[CONV1D_CAUSAL_BACKWARD_DIM_K],
                              .x = &call->tensor[CONV1D_CAUSAL_BACKWARD_X],
                              .weight = &call->tensor[CONV1D_CAUSAL_BACKWARD_WEIGHT],
                              .bias = trine_call_given(call, CONV1D_CAUSAL_BACKWARD_BIAS),
                              .x0 = trine_call_given(call, CONV1D_CAUSAL_BACKWARD_X0),
                              .silu = args->silu },
                       .dy = &call->tensor[CONV1D_CAUSAL_BACKWARD_DY],
                       .parts = parts_of(call),
                       .sums = call->workspace };
}

static size_t workspace(const trine_call *call) {
    return (size_t)(parts_of(call) * (call->dim[CONV1D_CAUSAL_BACKWARD_DIM_K] + 1) *
                    call->dim[CONV1D_CAUSAL_BACKWARD_DIM_N]) *
           sizeof(float);
}

/* What a task holds. */
typedef struct held {
    conv_taps taps;
    float weight[CONV_MOST * WIDE] __attribute__((aligned(64))), bias[WIDE] __attribute__((aligned(64)));
    float dz[CONV_MOST][WIDE] __attribute__((aligned(64))); /* of step t at t modulo CONV_MOST */
    float sum[CONV_MOST + 1][WIDE] __attribute__((aligned(64)));
} held;

static void begin(held *h) {
    memset(h, 0, sizeof *h);
    h->taps.weight = h->weight, h->taps.bias = h->bias;
}

INLINE void add_slope(const conv *c, const scan_task *a, held *h, const conv_window *w, const char *dy, float *to,
                      bool own, trine_dtype T, int64_t from, int64_t k) {
    SCAN_EACH(a, j, m, {
        vf dz = scan_get(dy, T, j, m);
        if (c->silu) {
            const vf z = conv_sum(&h->taps, w, from, k, j, m, T);
            dz *= vsigmoid(z) * vfma(z, vsigmoid(-z), vset(1.0f));
        }
        *(vf *)(to + j) = dz;
        if (own) {
            *(vf *)(h->sum[k] + j) += dz;
            for (int64_t i = from; i < k; i++)
                *(vf *)(h->sum[i] + j) = vfma(dz, scan_get(w->row[i], T, j, m), *(vf *)(h->sum[i] + j));
        }
    });
}

/* dz of step t; and what it gives to the sums, if it is one of the part's own. */
INLINE void find_slope(const gradient *g, const scan_task *a, held *h, int64_t t, bool own, trine_dtype T) {
    const conv *c = &g->c;
    const conv_window w = conv_window_of(c, a, t, T);
    const char *dy = scan_row(&c->all, a, g->dy, t, T);
    scan_prefetch(&c->all, a, g->dy, t, true, false, T);
    scan_prefetch(&c->all, a, c->x, t, true, false, T);
    CONV_EACH(&w, c->k, add_slope, c, a, h, &w, dy, h->dz[t % CONV_MOST], own, T);
}

INLINE void add_input(const scan_task *a, const held *h, const conv_window *w, void *to, trine_dtype T, int64_t from,
                      int64_t k) {
    SCAN_EACH(a, j, m, {
        vf sum = vzero();
        for (int64_t i = from; i < k; i++)
            sum = vfma(*(const vf *)(h->taps.weight + i * h->taps.pitch + j),
                       *(const vf *)(w->row[i] + j * (int64_t)sizeof(float)), sum);
        scan_put(to, T, j, m, sum);
    });
}

/* dx of step t, which may be negative, from the slopes of steps t .. t+k-1 of those that there are: a window of them,
 * whose taps begin with the newest. */
INLINE void put_input(const conv *c, const scan_task *a, const held *h, int64_t t, void *to, trine_dtype T) {
    const int64_t newest = t + c->k - 1, end = newest < c->k - 1 ? newest + 1 : c->k;
    conv_window w = { .from = newest < a->steps ? 0 : newest - a->steps + 1 };
    for (int64_t i = w.from; i < end; i++) w.row[i] = (const char *)h->dz[(newest - i) % CONV_MOST];
    CONV_EACH(&w, end, add_input, a, h, &w, to, T);
}

/* Steps first .. end-1 of a sequence. */
INLINE void steps(const gradient *g, const scan_task *a, held *h, int64_t first, int64_t end, trine_dtype T) {
    const conv *c = &g->c;
    const trine_tensor *dx = &c->all.call->tensor[CONV1D_CAUSAL_BACKWARD_DX];
    const int64_t stop = end + c->k - 1 < a->steps ? end + c->k - 1 : a->steps;
    int64_t done = first;
    for (int64_t t = first; t < stop; t++) {
        find_slope(g, a, h, t, t < end, T);
        if (t - done < c->k - 1) continue;
        put_input(c, a, h, done, scan_row(&c->all, a, dx, done, T), T);
        done++;
    }
    for (; done < end; done++) put_input(c, a, h, done, scan_row(&c->all, a, dx, done, T), T);
}

/* The sequence of row `row` of all batches; the count behind the last. */
static scan_task sequence_at(const scan *s, int64_t row, int64_t block) {
    int64_t low = 0, high = s->count;
    if (s->cu == NULL) return scan_task_of(s, row / s->t * s->blocks + block);
    if (row >= s->cu[s->count]) return scan_task_of(s, s->count * s->blocks + block);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(s->cu[middle] <= row ? &low : &high) = middle;
    }
    return scan_task_of(s, low * s->blocks + block);
}

static void part(const gradient *g, int64_t number, int64_t block) {
    const scan *s = &g->c.all;
    const int64_t end = (number + 1) * PART < s->steps ? (number + 1) * PART : s->steps;
    scan_task a = scan_task_of(s, block);
    held h;
    begin(&h);
    conv_taps_of(&g->c, &a, &h.taps);
    for (int64_t row = number * PART; row < end;) {
        a = sequence_at(s, row, block);
        const int64_t from = s->cu ? a.first : a.sequence * s->t, to = from + a.steps < end ? from + a.steps : end;
        if (a.sequence == s->count) {
            a.first = row, a.steps = to - row;
            scan_clear(s, &a, &s->call->tensor[CONV1D_CAUSAL_BACKWARD_DX]);
        } else {
            FOR_TYPE(g->dy->dtype, steps, g, &a, &h, row - from, to - from);
        }
        row = to;
    }
    for (int64_t i = 0; i <= g->c.k; i++)
        memcpy(g->sums + (number * (g->c.k + 1) + i) * s->n + a.channel, h.sum[i], (size_t)a.channels * sizeof(float));
}
static void parts(const void *context, int64_t first, int64_t last, int thread) {
    const gradient *g = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) part(g, i / g->c.all.blocks, i % g->c.all.blocks);
}

/* dx0 of a sequence's block of channels. */
INLINE void start(const gradient *g, const scan_task *a, const trine_tensor *dx0, held *h, trine_dtype T) {
    conv_taps_of(&g->c, a, &h->taps);
    for (int64_t t = 0; t < g->c.k - 1 && t < a->steps; t++) find_slope(g, a, h, t, false, T);
    for (int64_t q = 0; q < g->c.k - 1; q++) put_input(&g->c, a, h, q - g->c.k + 1, conv_state(a, dx0, q, T), T);
}
static void starts(const void *context, int64_t first, int64_t last, int thread) {
    const gradient *g = context;
    const trine_tensor *dx0 = trine_call_given(g->c.all.call, CONV1D_CAUSAL_BACKWARD_DX0);
    held h;
    begin(&h);
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const scan_task a = scan_task_of(&g->c.all, i);
        FOR_TYPE(g->dy->dtype, start, g, &a, dx0, &h);
    }
}

/* The sums of all parts, of a block of channels. */
static void finish(const void *context, int64_t first, int64_t last, int thread) {
    const gradient *g = context;
    const trine_call *call = g->c.all.call;
    const trine_tensor *dweight = &call->tensor[CONV1D_CAUSAL_BACKWARD_DWEIGHT],
                       *dbias = trine_call_given(call, CONV1D_CAUSAL_BACKWARD_DBIAS);
    (void)thread;
    for (int64_t block = first; block < last; block++) {
        const scan_task a = scan_task_of(&g->c.all, block);
        for (int64_t i = 0; i < g->c.k + (dbias != NULL); i++) {
            float sum[WIDE] = { 0 };
            for (int64_t p = 0; p < g->parts; p++) {
                const float *from = g->sums + (p * (g->c.k + 1) + i) * g->c.all.n + a.channel;
                for (int64_t j = 0; j < a.channels; j++) sum[j] += from[j];
            }
            for (int64_t j = 0; j < a.channels; j++) {
                if (i < g->c.k)
                    sstore(dweight->data, dweight->dtype, (a.channel + j) * dweight->stride[0] + i, sum[j]);
                else
                    sstore(dbias->data, dbias->dtype, a.channel + j, sum[j]);
            }
        }
    }
}

static trine_status launch(const trine_call *call) {
    const gradient g = job_of(call);
    const scan *s = &g.c.all;
    const trine_status status = scan_check(s);
    if (status != TRINE_OK) return status;
    const int64_t bytes = scan_bytes(call), tasks = g.parts * s->blocks, sequences = s->count * s->blocks;
    cpu_tasks(call, cpu_team(call, tasks, bytes), tasks, parts, &g);
    if (trine_call_given(call, CONV1D_CAUSAL_BACKWARD_DX0) && g.c.k > 1)
        cpu_tasks(call, cpu_team(call, sequences, bytes), sequences, starts, &g);
    cpu_tasks(call, cpu_team(call, s->blocks, (int64_t)workspace(call)), s->blocks, finish, &g);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    scan_edges(call, edges, CONV1D_CAUSAL_BACKWARD_DIM_N, WIDE);
    trine_kernel_edge(edges, CONV1D_CAUSAL_BACKWARD_DIM_T, PART);
}

CPU_KERNELS(conv1d_causal_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                        { 0 } };
