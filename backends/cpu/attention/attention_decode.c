/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on the CPU. A task is a sequence, some heads and rows, and a part of the keys, of fixed length; the
 * query heads of a group and the tokens are a head's rows, which share each key that is read (attention_stream.h). Its
 * result, sums of weighted values by the part's own maxima, is merged with the other parts' in their order by the rows'
 * last step. So a sequence's result depends neither on the threads nor on its batch, nor on which heads are together.
 *
 * Keys that are not there, and those behind the end, are read by no one: where a row does not see a key of a block, its
 * weight is left out, and is not a zero, which NaN would not respect. */
#include "attention_stream.h"
#include "spec/places/attention_decode.h"

typedef struct decode {
    const trine_call *call;
    const trine_tensor *q, *k, *v, *table, *lengths, *sinks, *k_scale, *v_scale; /* v: the keys' own if absent */
    int64_t b, sq, hk, group, rows, d, dv, pages, page, columns, window;
    stream_shares t;
    float scale, softcap;
    bool latent; /* the values are the keys' first columns */
    trine_dtype T, C;
} decode;

static stream stream_for(const decode *a, int64_t heads, int64_t rows) {
    const int64_t size = (int64_t)trine_dtype_size(a->C);
    return stream_of((stream){ .T = a->T,
                               .C = a->C,
                               .heads = heads,
                               .rows = rows,
                               .all = a->rows,
                               .d = a->d,
                               .dv = a->dv,
                               .k_head = a->k->stride[2] * size,
                               .v_head = a->v->stride[2] * size,
                               .softcap = a->softcap,
                               .latent = a->latent });
}

static decode decode_of(const trine_call *call) {
    const trine_attention_decode_args *args = call->args;
    const int64_t *dim = call->dim;
    decode a = { .call = call, .scale = args->scale, .softcap = args->softcap, .window = args->window_left };
    a.q = &call->tensor[ATTENTION_DECODE_Q], a.k = &call->tensor[ATTENTION_DECODE_K_CACHE];
    a.v = trine_call_given(call, ATTENTION_DECODE_V_CACHE), a.latent = a.v == NULL;
    if (a.latent) a.v = a.k;
    a.table = &call->tensor[ATTENTION_DECODE_BLOCK_TABLE], a.lengths = &call->tensor[ATTENTION_DECODE_LENGTHS];
    a.sinks = trine_call_given(call, ATTENTION_DECODE_SINKS),
    a.k_scale = trine_call_given(call, ATTENTION_DECODE_K_SCALE);
    a.v_scale = a.latent ? a.k_scale : trine_call_given(call, ATTENTION_DECODE_V_SCALE);
    a.b = dim[ATTENTION_DECODE_DIM_B], a.sq = dim[ATTENTION_DECODE_DIM_SQ], a.hk = dim[ATTENTION_DECODE_DIM_HK];
    a.group = dim[ATTENTION_DECODE_DIM_H] / a.hk, a.rows = a.sq * a.group;
    a.d = dim[ATTENTION_DECODE_DIM_D], a.dv = dim[ATTENTION_DECODE_DIM_DV];
    a.pages = dim[ATTENTION_DECODE_DIM_PAGES], a.page = dim[ATTENTION_DECODE_DIM_PAGE];
    a.columns = dim[ATTENTION_DECODE_DIM_MAXPAGES];
    if (a.scale == 0) a.scale = (float)(1 / sqrt((double)a.d));
    a.T = a.q->dtype, a.C = a.k->dtype;
    a.t = stream_share(call, a.T, a.b, a.hk, a.rows, a.columns * a.page, a.window, a.d, a.dv);
    return a;
}

static float scale_of(const trine_tensor *scales, int64_t g) {
    return scales ? ((const float *)scales->data)[g * scales->stride[0]] : 1;
}

static int64_t length_of(const decode *a, int64_t n) {
    const int64_t length = ((const int32_t *)a->lengths->data)[n], most = a->columns * a->page;
    return length < 0 ? 0 : length < most ? length : most;
}

/* The keys [first, last) that query i of a sequence of `length` sees, as far as they are there; both grow with i. */
static void visible(const decode *a, int64_t length, int64_t i, int64_t *first, int64_t *last) {
    const int64_t at = length - a->sq + i;
    *last = at < 0 ? 0 : at + 1;
    *first = a->window > 0 && at >= a->window ? at - a->window + 1 : 0;
}

/* The parts [first, last) that a sequence has. */
static void parts_of(const decode *a, int64_t length, int64_t *first, int64_t *last) {
    int64_t unused;
    visible(a, length, 0, first, &unused);
    visible(a, length, a->sq - 1, &unused, last);
    *first /= a->t.part;
    *last = (*last + a->t.part - 1) / a->t.part;
}

/* The workspace: sums of all problems and parts, then the threads' memory. */
static int64_t sums_floats(const decode *a) { return a->b * a->hk * a->t.parts * a->t.floats; }
static int64_t buffer_floats(const decode *a) {
    const stream s = stream_for(a, a->t.heads, a->t.rows);
    const int64_t floats = stream_floats(&s);
    return cpu_round_up(floats > a->t.ldo ? floats : a->t.ldo, 16);
}
static float *buffer_at(const decode *a, int thread) {
    return (float *)a->call->workspace + sums_floats(a) + thread * buffer_floats(a);
}

/* ----------------------------------------------------------------------------------------------------------- a part */

/* Where keys and values of a part are. */
typedef struct slots {
    const char *k[STREAM_LONG], *v[STREAM_LONG];
    _Alignas(64) int32_t there[STREAM_LONG];
    bool all;
} slots;

/* Of sequence n and head g, `keys` from `start` on. */
static void find_slots(const decode *a, int64_t n, int64_t g, int64_t start, int keys, slots *to) {
    const int32_t *table = (const int32_t *)a->table->data + n * a->table->stride[0];
    const int64_t size = (int64_t)trine_dtype_size(a->C);
    const char *k = (const char *)a->k->data + g * a->k->stride[2] * size,
               *v = (const char *)a->v->data + g * a->v->stride[2] * size;
    int64_t number = start / a->page, place = start % a->page;
    to->all = true;
    for (int j = 0; j < keys; j++) {
        const int64_t at = table[number];
        const bool there = at >= 0 && at < a->pages;
        to->k[j] = there ? k + (at * a->k->stride[0] + place * a->k->stride[1]) * size : NULL;
        to->v[j] = there ? v + (at * a->v->stride[0] + place * a->v->stride[1]) * size : NULL;
        to->there[j] = there ? -1 : 0;
        to->all &= there;
        if (++place == a->page) number++, place = 0;
    }
    for (int64_t j = keys; j < cpu_round_up(keys, STREAM_BLOCK); j++) to->there[j] = 0;
}

/* A task's rows against its part. */
static void attend(const decode *a, const stream_task *x, float *buffer) {
    const int64_t length = length_of(a, x->n), start = x->part * a->t.part, size = (int64_t)vsize(a->T);
    const stream s = stream_for(a, x->heads, x->rows);
    const stream_buffers w = stream_buffers_at(&s, buffer);
    int low[STREAM_ROWS], high[STREAM_ROWS];
    float factor[STREAM_ROWS];
    stream_sums sums[STREAM_ROWS];
    slots slots;
    int keys = 0;
    for (int64_t r = 0; r < x->rows; r++) {
        int64_t first, last;
        visible(a, length, (x->row + r) / a->group, &first, &last);
        stream_clip(first, last, start, a->t.part, &low[r], &high[r]);
        keys = high[r];
    }
    find_slots(a, x->n, x->head, start, keys, &slots);
    for (int64_t h = 0; h < x->heads; h++) {
        const int64_t g = x->head + h;
        factor[h] = a->scale * scale_of(a->k_scale, g);
        sums[h] = stream_sums_at(&a->t, a->call->workspace, x->n * a->hk + g, x->part, a->rows, x->row);
        for (int64_t r = 0; r < s.padded; r++) {
            const int64_t row = x->row + r, head = g * a->group + row % a->group;
            const char *q = (const char *)a->q->data +
                            (x->n * a->q->stride[0] + row / a->group * a->q->stride[1] + head * a->q->stride[2]) * size;
            stream_put_query(&s, &w, h, r, r < x->rows ? q : NULL);
        }
    }
    const stream_part p = { keys, slots.k, slots.v, slots.all ? NULL : slots.there, low, high };
    stream_attend(&s, &w, &p, factor, sums);
}

static void parts_tasks(const void *context, int64_t begin, int64_t end, int thread) {
    const decode *a = context;
    const stream s = stream_for(a, a->t.heads, a->t.rows);
    for (int64_t task = begin; task < end; task++) {
        const stream_task x = stream_task_of(&a->t, a->hk, a->rows, task);
        int64_t first, last;
        parts_of(a, length_of(a, x.n), &first, &last);
        if (x.part >= first && x.part < last) attend(a, &x, buffer_at(a, thread));
    }
    stream_end(&s);
}

/* --------------------------------------------------------------------------------------------------------- merging */

INLINE void store_row(const float *from, int64_t n, float factor, float scale, char *to, trine_dtype T) {
    int64_t c = 0;
    for (; c + VL <= n; c += VL) vstore(to, T, c, get(from + c) * factor * scale);
    if (c < n) vstoren(to, T, c, (int)(n - c), get(from + c) * factor * scale);
}

/* Row r of a problem, whose parts are added in their order. */
static void merge_row(const decode *a, int64_t n, int64_t g, int64_t r, int64_t first, int64_t last, float *o) {
    const trine_tensor *out = &a->call->tensor[ATTENTION_DECODE_OUT],
                       *lse = trine_call_given(a->call, ATTENTION_DECODE_LSE);
    const int64_t i = r / a->group, head = g * a->group + r % a->group;
    const float sink = a->sinks ? sload(a->sinks->data, a->sinks->dtype, head) : -INFINITY;
    float sum;
    const float top = stream_merge(&a->t, stream_sums_at(&a->t, a->call->workspace, n * a->hk + g, first, a->rows, r),
                                   last > first ? last - first : 0, sink, o, &sum);
    const bool none = sum == 0;
    char *to =
        (char *)out->data + (n * out->stride[0] + i * out->stride[1] + head * out->stride[2]) * (int64_t)vsize(a->T);
    if (none) memset(o, 0, (size_t)a->t.ldo * sizeof *o);
    FOR_TYPE(a->T, store_row, o, a->dv, none ? 1 : 1 / sum, none ? 1 : scale_of(a->v_scale, g), to);
    if (lse)
        ((float *)lse->data)[n * lse->stride[0] + head * lse->stride[1] + i * lse->stride[2]] =
            none ? -INFINITY : top + vlog(vset(sum))[0];
}

static void merge_rows(const void *context, int64_t begin, int64_t end, int thread) {
    const decode *a = context;
    float *o = buffer_at(a, thread);
    for (int64_t row = begin; row < end; row++) {
        const int64_t problem = row / a->rows, n = problem / a->hk;
        int64_t first, last;
        parts_of(a, length_of(a, n), &first, &last);
        merge_row(a, n, problem % a->hk, row % a->rows, first, last, o);
    }
}

/* ---------------------------------------------------------------------------------------------------------- launch */

/* Bytes of the keys and values of a problem, as floats. */
static int64_t problem_bytes(const decode *a) {
    return a->columns * a->page * (a->d + (a->latent ? 0 : a->dv)) * (int64_t)sizeof(float);
}
static int64_t tasks_of(const decode *a) { return a->b * a->t.parts * a->t.head_tasks * a->t.row_tasks; }
static int team_of(const decode *a) {
    const int64_t rows = a->b * a->hk * a->rows, tasks = tasks_of(a);
    return cpu_team(a->call, tasks > rows ? tasks : rows, a->b * a->hk * problem_bytes(a));
}

static size_t workspace(const trine_call *call) {
    const decode a = decode_of(call);
    return (size_t)(sums_floats(&a) + team_of(&a) * buffer_floats(&a)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const decode a = decode_of(call);
    const int team = team_of(&a);
    cpu_tasks(call, team, tasks_of(&a), parts_tasks, &a);
    cpu_shares(call, team, a.b * a.hk * a.rows, merge_rows, &a);
    return TRINE_OK;
}

/* A part more, a block more, vectors, and as many rows as go together or make parts long. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    static const int rows[] = { 2, 4, STREAM_TILE, STREAM_ROWS };
    const decode a = decode_of(call);
    const int64_t page = a.page > 0 ? a.page : 1;
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_D, VL);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_DV, VL);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_D, SIDE);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_DV, SIDE);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, STREAM_BLOCK / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, STREAM_SHORT / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, STREAM_LONG / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_PAGE, STREAM_TILE);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_PAGE, STREAM_BLOCK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ, rows[i] / a.group);
}

CPU_KERNELS(attention_decode) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
