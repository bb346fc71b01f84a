/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks on the CPU. A task is a tile of rows of a list and a bundle of heads; it gathers the keys of its
 * list that one of its rows sees, 96 at a time and from several entries, in the order of the list. */
#include "lists.h"

/* What a thread works on: rows and their sums of values; keys, both ways, and values; scores; maxima and sums. */
typedef struct buffers {
    float *q, *o, *k, *kt, *v, *s, *top, *sum;
} buffers;

static int64_t buffer_floats(const lists *a) {
    return 2 * ROWS * a->ld + 2 * KEYS * a->ld + cpu_round_up(a->d, VL) * LDS + ROWS * LDS + 2 * ROWS;
}

static buffers buffers_of(const lists *a, int thread) {
    buffers w = { .q = (float *)a->call->workspace + thread * cpu_round_up(buffer_floats(a), 64) };
    w.o = w.q + ROWS * a->ld;
    w.k = w.o + ROWS * a->ld;
    w.v = w.k + KEYS * a->ld;
    w.kt = w.v + KEYS * a->ld;
    w.s = w.kt + cpu_round_up(a->d, VL) * LDS;
    w.top = w.s + ROWS * LDS;
    w.sum = w.top + ROWS;
    return w;
}

/* Scores of row r become weights by the new maximum; returns what its sums so far are to be multiplied by. */
static float weigh(const lists *a, const buffers *w, const tile_rows *rows, const tile_keys *keys, int r) {
    float *s = w->s + r * LDS;
    vf most = vset(-INFINITY), all = vzero();
    for (int j = 0; j < keys->count; j += VL) {
        vf slope, x = capped(get(s + j), a->softcap, &slope);
        if (a->bias) x += get(keys->bias + j);
        x = vsel(*(const vi_any *)(keys->at + j) <= rows->limit[r], x, vset(-INFINITY));
        most = vmax(x, most);
        put(s + j, x);
    }
    const float now = vhmax(vmax(most, vset(w->top[r]))), base = now == -INFINITY ? 0 : now,
                factor = vexp(vset(w->top[r] - base))[0];
    for (int j = 0; j < keys->count; j += VL) {
        vf x = get(s + j) - base;
        exp_negative(&x, 1);
        put(s + j, x);
        all += x;
    }
    w->top[r] = now;
    w->sum[r] = w->sum[r] * factor + vhsum(all);
    return factor;
}

/* The values of a tile are added. Where one is not finite it must not meet the zero of a row that does not see it. */
static void add_values(const lists *a, const buffers *w, const tile_rows *rows, const tile_keys *keys, bool finite,
                       const float *factor) {
    for (int r = 0; r < rows->count && finite; r += MR)
        gather(MR, a->d, keys->count, w->s + r * LDS, LDS, 1, w->v, w->o + r * a->ld, a->ld, SCALE, factor + r);
    for (int r = 0; r < rows->count && !finite; r++) {
        float *o = w->o + r * a->ld;
        for (int64_t c = 0; c < a->d; c += VL) put(o + c, get(o + c) * factor[r]);
        for (int j = 0; j < keys->count; j++)
            if (keys->at[j] <= rows->limit[r])
                gather(1, a->d, 1, w->s + r * LDS + j, LDS, 1, w->v + j * a->ld, o, a->ld, ADD, NULL);
    }
}

static void attend(const lists *a, int64_t n, int64_t bundle, int64_t r, int64_t first, const buffers *w) {
    const int64_t head = bundle * a->bundle, l = head / (a->h / a->hl), g = head / (a->h / a->hk);
    const trine_tensor *o = &a->call->tensor[ATTENTION_BLOCKS_O],
                       *lse = trine_call_given(a->call, ATTENTION_BLOCKS_LSE);
    tile_rows rows;
    tile_keys keys;
    cursor c = cursor_of(a, n, l, r);
    float factor[ROWS];
    rows_of(a, r, bundle, first, &rows);
    if (rows.count == 0) return;
    pack_queries(a, a->q, n, &rows, a->scale, w->q);
    memset(w->o, 0, (size_t)(ROWS * a->ld) * sizeof *w->o);
    for (int i = 0; i < ROWS; i++) w->top[i] = -INFINITY, w->sum[i] = 0;
    while (next_keys(a, n, l, &rows, &c, &keys)) {
        pack_keys(a, a->k, n, g, &keys, w->k, w->kt);
        const bool finite = pack_keys(a, a->v, n, g, &keys, w->v, NULL);
        products(a, &rows, &keys, w->q, w->kt, w->s);
        for (int i = 0; i < cpu_round_up(rows.count, MR); i++) factor[i] = weigh(a, w, &rows, &keys, i);
        add_values(a, w, &rows, &keys, finite, factor);
    }
    for (int i = 0; i < rows.count; i++) {
        const bool none = w->sum[i] == 0;
        if (none) memset(w->o + i * a->ld, 0, (size_t)a->ld * sizeof *w->o);
        store_scaled(w->o + i * a->ld, a->d, none ? 1 : 1 / w->sum[i], token_at(o, n, rows.query[i], rows.head[i]),
                     a->T);
        if (lse)
            *statistic_at(lse, n, rows.head[i], rows.query[i]) =
                none ? -INFINITY : w->top[i] + vlog(vset(w->sum[i]))[0];
    }
}

static int64_t tiles_of(const lists *a) { return (a->query_block * a->bundle + ROWS - 1) / ROWS; }
static int64_t tasks_of(const lists *a) { return a->b * (a->h / a->bundle) * a->lists * tiles_of(a); }

static void attend_tasks(const void *context, int64_t begin, int64_t end, int thread) {
    const lists *a = context;
    const buffers w = buffers_of(a, thread);
    const int64_t tiles = tiles_of(a), bundles = a->h / a->bundle;
    for (int64_t task = begin; task < end; task++) {
        const int64_t list = task / tiles, problem = list / a->lists;
        attend(a, problem / bundles, problem % bundles, list % a->lists, task % tiles * ROWS, &w);
    }
}

static int team_of(const lists *a) {
    const int64_t tasks = tasks_of(a);
    return cpu_team(a->call, tasks, tasks * ROWS * a->d * (int64_t)sizeof(float));
}

static size_t workspace(const trine_call *call) {
    const lists a = LISTS_OF(call, (const trine_attention_blocks_args *)call->args, ATTENTION_BLOCKS);
    return (size_t)(team_of(&a) * cpu_round_up(buffer_floats(&a), 64)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const lists a = LISTS_OF(call, (const trine_attention_blocks_args *)call->args, ATTENTION_BLOCKS);
    const trine_status status = lists_check(&a);
    if (status == TRINE_OK) cpu_tasks(call, team_of(&a), tasks_of(&a), attend_tasks, &a);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const lists a = LISTS_OF(call, (const trine_attention_blocks_args *)call->args, ATTENTION_BLOCKS);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_D, VL);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_D, NR);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SK, NR);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SK, KEYS);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SQ, MR / a.bundle);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SQ, ROWS / a.bundle);
}

CPU_KERNELS(attention_blocks) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
