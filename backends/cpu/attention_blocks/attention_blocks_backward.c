/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks_backward on the CPU, in two passes that find the weights anew: by lists of keys for dq and dbias, a
 * task for each list, and by blocks of keys for dk and dv, a task for up to 96 keys of a block, whose rows are gathered
 * by the lists the other way round. So each sum is one task's, in an order that no thread changes. */
#include "lists.h"

/* An entry, seen from its block of keys. */
typedef struct visit {
    int64_t list, entry;
} visit;

typedef struct plan {
    lists a;
    const trine_tensor *dout, *o, *lse, *dq, *dk, *dv, *dbias; /* dbias: NULL, not asked for */
    int64_t key_blocks;
    /* of each query D, dout . o; of each head of lists where the visits of a block of keys begin, and the visits */
    float *delta;
    int64_t *begins;
    visit *visits;
    float *buffers;
} plan;

/* What a thread works on: rows, their gradients, keys and values both ways; weights and derivatives of scores. */
typedef struct buffers {
    float *q, *dout, *k, *kt, *v, *vt, *p, *ds, *first, *second, *lse, *delta;
} buffers;

static int64_t buffer_floats(const lists *a) {
    return cpu_round_up((2 * ROWS + 4 * KEYS) * a->ld + 2 * cpu_round_up(a->d, VL) * LDS + 2 * ROWS * LDS + 2 * ROWS,
                        64);
}

static buffers buffers_of(const plan *p, int thread) {
    const lists *a = &p->a;
    buffers w = { .q = p->buffers + thread * buffer_floats(a) };
    w.dout = w.q + ROWS * a->ld;
    w.k = w.dout + ROWS * a->ld;
    w.v = w.k + KEYS * a->ld;
    w.first = w.v + KEYS * a->ld; /* dq, or dk */
    w.second = w.first + KEYS * a->ld;
    w.kt = w.second + KEYS * a->ld;
    w.vt = w.kt + cpu_round_up(a->d, VL) * LDS;
    w.p = w.vt + cpu_round_up(a->d, VL) * LDS;
    w.ds = w.p + ROWS * LDS;
    w.lse = w.ds + ROWS * LDS;
    w.delta = w.lse + ROWS;
    return w;
}

static size_t bytes_of(int64_t count, size_t size) { return (size_t)cpu_round_up(count * (int64_t)size, 256); }

static plan plan_of(const trine_call *call, size_t *bytes_out) {
    plan p = { .a = LISTS_OF(call, (const trine_attention_blocks_backward_args *)call->args,
                             ATTENTION_BLOCKS_BACKWARD) };
    const lists *a = &p.a;
    const trine_tensor *t = call->tensor;
    char *at = call->workspace;
    p.dout = &t[ATTENTION_BLOCKS_BACKWARD_DOUT], p.o = &t[ATTENTION_BLOCKS_BACKWARD_O];
    p.lse = &t[ATTENTION_BLOCKS_BACKWARD_LSE], p.dq = &t[ATTENTION_BLOCKS_BACKWARD_DQ];
    p.dk = &t[ATTENTION_BLOCKS_BACKWARD_DK], p.dv = &t[ATTENTION_BLOCKS_BACKWARD_DV];
    p.dbias = trine_call_given(call, ATTENTION_BLOCKS_BACKWARD_DBIAS);
    p.key_blocks = (a->sk + a->key_block - 1) / a->key_block;
    const size_t delta = bytes_of(a->b * a->h * a->sq, sizeof(float)),
                 begins = bytes_of(a->b * a->hl * (p.key_blocks + 1), sizeof(int64_t)),
                 visits = bytes_of(a->b * a->hl * a->entries, sizeof(visit));
    if (at) {
        p.delta = (float *)(void *)at, p.begins = (int64_t *)(void *)(at + delta);
        p.visits = (visit *)(void *)(at + delta + begins);
        p.buffers = (float *)(void *)(at + delta + begins + visits);
    }
    *bytes_out = delta + begins + visits;
    return p;
}

/* ---------------------------------------------------------------------------------------------------------- before */

INLINE void dot_row(const void *x, const void *y, int64_t n, float *sum_out, trine_dtype T) {
    vf sum = vzero();
    for (int64_t c = 0; c < n; c += VL) sum = vfma(load_part(x, T, c, n - c), load_part(y, T, c, n - c), sum);
    *sum_out = vhsum(sum);
}

static void delta_rows(const void *context, int64_t begin, int64_t end, int thread) {
    const plan *p = context;
    const lists *a = &p->a;
    (void)thread;
    for (int64_t row = begin; row < end; row++) {
        const int64_t i = row % a->sq, head = row / a->sq % a->h, n = row / a->sq / a->h;
        FOR_TYPE(a->T, dot_row, token_at(p->dout, n, i, head), token_at(p->o, n, i, head), a->d, p->delta + row);
    }
}

/* The visits of each block of keys, in the order of the lists; and dbias, which is 0 where there are none. */
static void turn_lists(const void *context, int64_t begin, int64_t end, int thread) {
    const plan *p = context;
    const lists *a = &p->a;
    (void)thread;
    for (int64_t problem = begin; problem < end; problem++) {
        const int64_t n = problem / a->hl, l = problem % a->hl;
        const int32_t *starts = starts_of(a, n, l), *indices = indices_of(a, n, l);
        int64_t *begins = p->begins + problem * (p->key_blocks + 1);
        visit *visits = p->visits + problem * a->entries;
        for (int64_t j = 0; j <= p->key_blocks; j++) begins[j] = 0;
        if (p->dbias && a->entries > 0)
            memset((float *)p->dbias->data + n * p->dbias->stride[0] + l * p->dbias->stride[1], 0,
                   (size_t)a->entries * sizeof(float));
        const int64_t all = lists_least(a->lists, a->blocks), low = starts[0], high = starts[all];
        for (int64_t e = low; e < high; e++)
            if (indices[e] >= 0 && indices[e] < p->key_blocks) begins[indices[e] + 1]++;
        for (int64_t j = 0; j < p->key_blocks; j++) begins[j + 1] += begins[j];
        for (int64_t r = 0; r < all; r++)
            for (int64_t e = starts[r]; e < starts[r + 1]; e++)
                if (indices[e] >= 0 && indices[e] < p->key_blocks) visits[begins[indices[e]]++] = (visit){ r, e };
        for (int64_t j = p->key_blocks; j > 0; j--) begins[j] = begins[j - 1];
        begins[0] = 0;
    }
}

/* ------------------------------------------------------------------------------------------------------------ a
 * tile */

/* Rows that give nothing, by lse = -Inf or as padding, are zero and see nothing. All finite? */
static bool pack_rows_of(const plan *p, int64_t n, tile_rows *rows, const buffers *w) {
    const lists *a = &p->a;
    bool finite = true;
    for (int r = 0; r < ROWS; r++) {
        const bool there = r < rows->count;
        w->lse[r] = there ? *statistic_at(p->lse, n, rows->head[r], rows->query[r]) : -INFINITY;
        w->delta[r] = there ? p->delta[(n * a->h + rows->head[r]) * a->sq + rows->query[r]] : 0;
        float *q = w->q + r * a->ld, *dout = w->dout + r * a->ld;
        if (w->lse[r] == -INFINITY) {
            memset(q, 0, (size_t)a->ld * sizeof *q);
            memset(dout, 0, (size_t)a->ld * sizeof *dout);
            rows->limit[r] = INT32_MIN;
        } else {
            finite &= pack_scaled(token_at(a->q, n, rows->query[r], rows->head[r]), a->d, a->scale, q, a->T);
            finite &= pack_scaled(token_at(p->dout, n, rows->query[r], rows->head[r]), a->d, 1, dout, a->T);
        }
    }
    return finite;
}

/* Row r of products becomes p and ds; `sums`, if not NULL, gets what the row adds to the sums over dz of each key. */
static void weigh(const plan *p, const buffers *w, const tile_rows *rows, const tile_keys *keys, int r, float *sums) {
    const lists *a = &p->a;
    float *s = w->p + r * LDS, *ds = w->ds + r * LDS;
    int j = 0;
    for (; j < keys->count; j += VL) {
        vf slope, x = capped(get(s + j), a->softcap, &slope);
        if (a->bias) x += get(keys->bias + j) + rows->bias[r];
        const vi sees = *(const vi_any *)(keys->at + j) <= rows->limit[r];
        /* of large scores lse has so little that the difference may be positive */
        const vf weight = vexp(vmin(vzero(), x - w->lse[r])), change = weight * (get(ds + j) - w->delta[r]);
        if (sums) put(sums + j, get(sums + j) + vsel(sees, change, vzero()));
        put(s + j, vsel(sees, weight, vzero()));
        put(ds + j, vsel(sees, change * slope, vzero()));
    }
    for (; j < KEYS; j += VL) put(s + j, vzero()), put(ds + j, vzero());
}

static void weigh_tile(const plan *p, const buffers *w, const tile_rows *rows, const tile_keys *keys, float *sums) {
    products(&p->a, rows, keys, w->q, w->kt, w->p);
    products(&p->a, rows, keys, w->dout, w->vt, w->ds);
    for (int r = 0; r < cpu_round_up(rows->count, MR); r++) weigh(p, w, rows, keys, r, sums);
}

/* ------------------------------------------------------------------------------------------------------- dq and
 * dbias */

/* dq += ds k. A zero of a row that does not see a key must not meet it if it is not finite. */
static void add_queries(const lists *a, const buffers *w, const tile_rows *rows, const tile_keys *keys, bool finite) {
    for (int r = 0; r < rows->count && finite; r += MR)
        gather(MR, a->d, keys->count, w->ds + r * LDS, LDS, 1, w->k, w->first + r * a->ld, a->ld, ADD, NULL);
    for (int r = 0; r < rows->count && !finite; r++)
        for (int j = 0; j < keys->count; j++)
            if (keys->at[j] <= rows->limit[r])
                gather(1, a->d, 1, w->ds + r * LDS + j, LDS, 1, w->k + j * a->ld, w->first + r * a->ld, a->ld, ADD,
                       NULL);
}

static void run_rows(const plan *p, int64_t n, int64_t l, int64_t r, int64_t bundle, int64_t first, const buffers *w) {
    const lists *a = &p->a;
    const int64_t g = bundle * a->bundle / (a->h / a->hk);
    float *dbias = p->dbias ? (float *)p->dbias->data + n * p->dbias->stride[0] + l * p->dbias->stride[1] : NULL;
    float sums[KEYS];
    tile_rows rows;
    tile_keys keys;
    cursor c = cursor_of(a, n, l, r);
    rows_of(a, r, bundle, first, &rows);
    if (rows.count == 0) return;
    pack_rows_of(p, n, &rows, w);
    memset(w->first, 0, (size_t)(ROWS * a->ld) * sizeof *w->first);
    while (next_keys(a, n, l, &rows, &c, &keys)) {
        const bool finite = pack_keys(a, a->k, n, g, &keys, w->k, w->kt);
        pack_keys(a, a->v, n, g, &keys, w->v, w->vt);
        memset(sums, 0, sizeof sums);
        weigh_tile(p, w, &rows, &keys, dbias ? sums : NULL);
        add_queries(a, w, &rows, &keys, finite);
        for (int j = 0; dbias && j < keys.count; j++) dbias[keys.entry[j]] += sums[j];
    }
    for (int i = 0; i < rows.count; i++)
        store_scaled(w->first + i * a->ld, a->d, a->scale, token_at(p->dq, n, rows.query[i], rows.head[i]), a->T);
}

static void list_tasks(const void *context, int64_t begin, int64_t end, int thread) {
    const plan *p = context;
    const lists *a = &p->a;
    const buffers w = buffers_of(p, thread);
    const int64_t bundles = a->h / a->hl / a->bundle;
    for (int64_t task = begin; task < end; task++) {
        const int64_t r = task % a->lists, l = task / a->lists % a->hl, n = task / a->lists / a->hl;
        for (int64_t i = 0; i < bundles; i++)
            for (int64_t first = 0; first < a->query_block * a->bundle; first += ROWS)
                run_rows(p, n, l, r, l * bundles + i, first, &w);
    }
}

/* --------------------------------------------------------------------------------------------------------- dk and
 * dv */

/* dk += ds^T q, dv += p^T dout; likewise of rows that are not finite. */
static void add_keys(const lists *a, const buffers *w, const tile_rows *rows, const tile_keys *keys, bool finite) {
    for (int j = 0; j < keys->count && finite; j += MR) {
        gather(MR, a->d, rows->count, w->ds + j, 1, LDS, w->q, w->first + j * a->ld, a->ld, ADD, NULL);
        gather(MR, a->d, rows->count, w->p + j, 1, LDS, w->dout, w->second + j * a->ld, a->ld, ADD, NULL);
    }
    for (int j = 0; j < keys->count && !finite; j++)
        for (int r = 0; r < rows->count; r++) {
            if (keys->at[j] > rows->limit[r]) continue;
            const int64_t from = r * a->ld, to = j * a->ld;
            gather(1, a->d, 1, w->ds + r * LDS + j, 1, 1, w->q + from, w->first + to, a->ld, ADD, NULL);
            gather(1, a->d, 1, w->p + r * LDS + j, 1, 1, w->dout + from, w->second + to, a->ld, ADD, NULL);
        }
}

static void run_gathered(const plan *p, int64_t n, tile_rows *rows, const tile_keys *keys, const buffers *w) {
    if (rows->count == 0) return;
    limit_rows(&p->a, rows, keys->key[0]);
    const bool finite = pack_rows_of(p, n, rows, w);
    weigh_tile(p, w, rows, keys, NULL);
    add_keys(&p->a, w, rows, keys, finite);
    rows->count = 0;
}

/* The rows of a bundle that visit a block of keys are gathered, and those that see one of the tile's keys are used. */
static void visit_rows(const plan *p, int64_t n, int64_t bundle, int64_t block, const tile_keys *keys, tile_rows *rows,
                       const buffers *w) {
    const lists *a = &p->a;
    const int64_t l = bundle * a->bundle / (a->h / a->hl), problem = n * a->hl + l;
    const int64_t *begins = p->begins + problem * (p->key_blocks + 1) + block;
    const float *bias = bias_of(a, n, l);
    for (int64_t at = begins[0]; at < begins[1]; at++) {
        const visit v = p->visits[problem * a->entries + at];
        const int64_t end = lists_least((v.list + 1) * a->query_block, a->sq),
                      first = a->causal ? lists_most(v.list * a->query_block, keys->key[0] - (a->sk - a->sq))
                                        : v.list * a->query_block;
        for (int64_t i = first; i < end; i++)
            for (int64_t head = 0; head < a->bundle; head++) {
                if (rows->count == ROWS) run_gathered(p, n, rows, keys, w);
                rows->query[rows->count] = i, rows->head[rows->count] = bundle * a->bundle + head;
                rows->bias[rows->count++] = bias ? bias[v.entry] : 0;
            }
    }
}

static int64_t key_tiles(const lists *a) { return (a->key_block + KEYS - 1) / KEYS; }

static void run_keys(const plan *p, int64_t n, int64_t g, int64_t block, int64_t from, const buffers *w) {
    const lists *a = &p->a;
    const int64_t bundles = a->h / a->hk / a->bundle, first = block * a->key_block + from,
                  last = lists_least(lists_least(first + KEYS, (block + 1) * a->key_block), a->sk);
    tile_keys keys = { 0 };
    tile_rows rows = { 0 };
    if (first >= last) return;
    for (int64_t j = first; j < last; j++) keys.key[keys.count++] = j;
    place_keys(&keys, first);
    pack_keys(a, a->k, n, g, &keys, w->k, w->kt);
    pack_keys(a, a->v, n, g, &keys, w->v, w->vt);
    memset(w->first, 0, (size_t)(2 * KEYS * a->ld) * sizeof *w->first);
    for (int64_t i = 0; i < bundles; i++) visit_rows(p, n, g * bundles + i, block, &keys, &rows, w);
    run_gathered(p, n, &rows, &keys, w);
    for (int j = 0; j < keys.count; j++) {
        store_scaled(w->first + j * a->ld, a->d, 1, token_at(p->dk, n, keys.key[j], g), a->T);
        store_scaled(w->second + j * a->ld, a->d, 1, token_at(p->dv, n, keys.key[j], g), a->T);
    }
}

static void key_tasks(const void *context, int64_t begin, int64_t end, int thread) {
    const plan *p = context;
    const lists *a = &p->a;
    const buffers w = buffers_of(p, thread);
    const int64_t tiles = key_tiles(a);
    for (int64_t task = begin; task < end; task++) {
        const int64_t block = task / tiles % p->key_blocks, problem = task / tiles / p->key_blocks;
        run_keys(p, problem / a->hk, problem % a->hk, block, task % tiles * KEYS, &w);
    }
}

/* ---------------------------------------------------------------------------------------------------------- launch */

static int64_t key_tasks_of(const plan *p) { return p->a.b * p->a.hk * p->key_blocks * key_tiles(&p->a); }
static int team_of(const plan *p) {
    const lists *a = &p->a;
    const int64_t tasks = lists_most(a->b * a->hl * a->lists, key_tasks_of(p));
    return cpu_team(a->call, tasks, (a->b * a->h * a->sq + a->b * a->hk * a->sk) * a->d * (int64_t)sizeof(float));
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    const plan p = plan_of(call, &bytes);
    return bytes + (size_t)(team_of(&p) * buffer_floats(&p.a)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    size_t bytes;
    const plan p = plan_of(call, &bytes);
    const lists *a = &p.a;
    const trine_status status = lists_check(a);
    const int team = team_of(&p);
    if (status != TRINE_OK) return status;
    cpu_shares(call, team, a->b * a->h * a->sq, delta_rows, &p);
    cpu_shares(call, team, a->b * a->hl, turn_lists, &p);
    cpu_tasks(call, team, a->b * a->hl * a->lists, list_tasks, &p);
    cpu_tasks(call, team, key_tasks_of(&p), key_tasks, &p);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const lists a = LISTS_OF(call, (const trine_attention_blocks_backward_args *)call->args, ATTENTION_BLOCKS_BACKWARD);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_D, VL);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_D, NR);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SK, NR);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SK, KEYS);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SQ, MR / a.bundle);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SQ, ROWS / a.bundle);
}

CPU_KERNELS(attention_blocks_backward) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
