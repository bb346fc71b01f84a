/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on the CPU. A task is a sequence, a head of keys and a part of the keys, of fixed length; the query
 * heads of the group and the tokens are its rows, which share each key that is read. Its result, sums of weighted
 * values by the part's own maxima, is merged with the other parts' in their order by the rows' last step. So a
 * sequence's result depends neither on the threads nor on its batch.
 *
 * Keys that are not there, and those behind the end, are read by no one: where a row does not see a key of a block, its
 * weight is left out, and is not a zero, which NaN would not respect. */
#include "attention_tile.h"
#include "backends/cpu/core/float8.h"
#include "spec/places/attention_decode.h"

/* Keys of a block, and the distance of rows of scores; keys of a part, of few rows and of many. */
enum { BK = 32, LDS = BK + 16, FEW = 16, SHORT = 256, LONG = 1024, ROWS = 4, AHEAD = 8 };
enum { COLUMNS = 4 * VL }; /* that a single row's values go by */

typedef struct decode {
    const trine_call *call;
    const trine_tensor *q, *k, *v, *table, *lengths, *sinks, *k_scale, *v_scale; /* v: the keys' own if absent */
    int64_t b, sq, hk, group, rows, d, dv, pages, page, columns, window;
    int64_t part, parts; /* length and number */
    int64_t ldk, ldv;    /* of a row in buffers */
    float scale, softcap;
    bool latent; /* the values are the keys' first columns */
    trine_dtype T, C;
} decode;

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
    a.part = a.rows <= FEW ? SHORT : LONG, a.parts = (a.columns * a.page + a.part - 1) / a.part;
    a.ldk = leading(cpu_round_up(a.d, COLUMNS)), a.ldv = cpu_round_up(a.dv, COLUMNS);
    if (a.scale == 0) a.scale = (float)(1 / sqrt((double)a.d));
    a.T = a.q->dtype, a.C = a.k->dtype;
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
    *first /= a->part;
    *last = (*last + a->part - 1) / a->part;
}

/* Sums of weighted values, rows x ldv, then maxima and sums of weights. */
static int64_t partial_floats(const decode *a) { return cpu_round_up(a->rows * (a->ldv + 2), 16); }
static float *partial_at(const decode *a, int64_t problem, int64_t part) {
    return (float *)a->call->workspace + (problem * a->parts + part) * partial_floats(a);
}

/* A row's block: which of its keys it sees, and what its sums are to be multiplied by before they are added to. */
typedef struct span {
    int low, high;
    float factor;
} span;

/* A thread's memory: queries, keys and values of a block, scores; a row of values; a span for each row. */
typedef struct buffers {
    float *q, *k, *v, *s, *o;
    span *spans;
} buffers;

static int64_t buffer_floats(const decode *a) {
    const int64_t spans = a->rows * (int64_t)(sizeof(span) / sizeof(float));
    return cpu_round_up(a->rows * (a->ldk + LDS) + BK * (a->ldk + (a->latent ? 0 : a->ldv)) + a->ldv + spans, 16);
}
static buffers buffers_of(const decode *a, int thread) {
    float *at = (float *)a->call->workspace + a->b * a->hk * a->parts * partial_floats(a) + thread * buffer_floats(a);
    buffers w = { .q = at, .k = at + a->rows * a->ldk };
    w.v = a->latent ? w.k : w.k + BK * a->ldk;
    w.s = w.v + BK * (a->latent ? a->ldk : a->ldv);
    w.o = w.s + a->rows * LDS;
    w.spans = (span *)(void *)(w.o + a->ldv);
    return w;
}

/* --------------------------------------------------------------------------------------------------------- packing */

INLINE vf cache_load(const char *from, int64_t c, int n, trine_dtype C) {
    if (C != TRINE_E4M3 && C != TRINE_I8) return n == VL ? vload(from, C, c) : vloadn(from, C, c, n, 0);
    vb bytes = { 0 };
    memcpy(&bytes, from + c, (size_t)n);
    return C == TRINE_E4M3 ? vf_from_float8(bytes, TRINE_E4M3)
                           : __builtin_convertvector((vb_widen(bytes) ^ 0x80) - 0x80, vf);
}

/* n elements as floats, and zeros up to `padded`. */
INLINE void pack_as(const char *from, int64_t n, int64_t padded, float *to, trine_dtype C) {
    int64_t c = 0;
    for (; c + VL <= n; c += VL) put(to + c, cache_load(from, c, VL, C));
    if (c < n) put(to + c, cache_load(from, c, (int)(n - c), C)), c += VL;
    for (; c < padded; c += VL) put(to + c, vzero());
}
static void pack(const char *from, int64_t n, int64_t padded, float *to, trine_dtype C) {
    switch (C) {
    case TRINE_E4M3: pack_as(from, n, padded, to, TRINE_E4M3); break;
    case TRINE_I8: pack_as(from, n, padded, to, TRINE_I8); break;
    default: FOR_TYPE(C, pack_as, from, n, padded, to);
    }
}

/* Where a key is: a page, or -1 if that is not there, and a place on it. */
typedef struct slot {
    int64_t page, place;
} slot;

/* Of sequence n's keys from `start` to `end`. */
static void find_slots(const decode *a, int64_t n, int64_t start, int64_t end, slot *to) {
    const int32_t *table = (const int32_t *)a->table->data + n * a->table->stride[0];
    int64_t number = start / a->page, place = start % a->page;
    for (int64_t j = start; j < end; j++) {
        const int64_t at = table[number];
        *to++ = (slot){ at < 0 || at >= a->pages ? -1 : at, place };
        if (++place == a->page) number++, place = 0;
    }
}

/* Of a head that begins at `from`, the key or value of a slot; NULL if it is not there. */
INLINE const char *slot_at(const trine_tensor *cache, const char *from, slot s, int64_t size) {
    return s.page < 0 ? NULL : from + (s.page * cache->stride[0] + s.place * cache->stride[1]) * size;
}

/* The first `keys` of `slots`, or their values; of those that are not there zeros. The slots go on to `last`. */
static void pack_block(const decode *a, const trine_tensor *cache, int64_t g, const slot *slots, int64_t keys,
                       int64_t last, int64_t width, int64_t ld, float *to) {
    const int64_t size = (int64_t)trine_dtype_size(a->C), bytes = width * size;
    const char *head = (const char *)cache->data + g * cache->stride[2] * size;
    for (int64_t j = 0; j < keys; j++, to += ld) {
        const char *from = slot_at(cache, head, slots[j], size),
                   *next = j + AHEAD < last ? slot_at(cache, head, slots[j + AHEAD], size) : NULL;
        for (int64_t line = 0; next && line < bytes; line += 64) __builtin_prefetch(next + line);
        if (from)
            pack(from, width, cpu_round_up(width, COLUMNS), to, a->C);
        else
            memset(to, 0, (size_t)ld * sizeof *to);
    }
    for (int64_t j = keys; j < BK; j++, to += ld) memset(to, 0, (size_t)ld * sizeof *to);
}

static void pack_queries(const decode *a, int64_t n, int64_t g, float *to) {
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t head = g * a->group + r % a->group;
        pack((const char *)a->q->data +
                 (n * a->q->stride[0] + r / a->group * a->q->stride[1] + head * a->q->stride[2]) * (int64_t)vsize(a->T),
             a->d, a->ldk, to + r * a->ldk, a->T);
    }
}

/* ----------------------------------------------------------------------------------------------------------- a part */

/* The scores of a row with a block's keys, VL keys at a time: one accumulator for each, transposed at the end. */
static void dots(const float *q, const float *k, int64_t d, int64_t ld, int keys, float *s) {
    for (int j = 0; j < keys; j += VL) {
        vf sum[VL] = { 0 };
        for (int64_t c = 0; c < d; c += VL) {
            const vf x = get(q + c);
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) sum[i] = vfma(x, get(k + (j + i) * ld + c), sum[i]);
        }
        transpose(sum);
#pragma GCC unroll 16
        for (int i = 1; i < VL; i++) sum[0] += sum[i];
        put(s + j, sum[0]);
    }
}

/* Scores become weights by the new maximum; *top and *sum are the row's so far. */
static void weigh(const decode *a, float *s, const int32_t *there, span *k, float factor, float *top, float *sum) {
    vf most = vset(-INFINITY), all = vzero();
    for (int j = 0; j < BK; j += VL) {
        vf x = get(s + j) * factor;
        if (a->softcap > 0) x = a->softcap * vtanh(x / a->softcap);
        const vi sees = (viota() + j >= k->low) & (viota() + j < k->high) & *(const vi_any *)(there + j);
        x = vsel(sees, x, vset(-INFINITY));
        most = vmax(x, most);
        put(s + j, x);
    }
    const float now = vhmax(vmax(most, vset(*top))), base = now == -INFINITY ? 0 : now;
    k->factor = vexp(vset(*top - base))[0];
    for (int j = 0; j < BK; j += VL) {
        vf x = get(s + j) - base;
        exp_negative(&x, 1);
        put(s + j, x);
        all += x;
    }
    *top = now;
    *sum = *sum * k->factor + vhsum(all);
}

static bool alike(const span *k, int64_t rows) {
    bool same = true;
    for (int64_t r = 1; r < rows; r++) same &= k[r].low == k[0].low && k[r].high == k[0].high;
    return same;
}

/* The weighted values of a block are added to the sums, for as many rows at a time as see the same keys. */
static void add_values(const decode *a, const float *s, const float *v, const span *k, float *o) {
    const int64_t ld = a->latent ? a->ldk : a->ldv;
    int64_t r = 0;
    for (; r < a->rows;) {
        const bool many = r + ROWS <= a->rows && alike(k + r, ROWS);
        const int low = k[r].low, high = k[r].high;
        float factor[ROWS];
        for (int i = 0; i < (many ? ROWS : 1); i++) factor[i] = k[r + i].factor;
        const float *p = s + r * LDS + low, *from = v + low * ld;
        for (int64_t c = 0; many && c < a->ldv; c += NR)
            tile(ROWS, 2, high - low, p, LDS, 1, from + c, ld, o + r * a->ldv + c, a->ldv, SCALE, factor);
        for (int64_t c = 0; !many && c < a->ldv; c += COLUMNS)
            tile(1, 4, high - low, p, LDS, 1, from + c, ld, o + r * a->ldv + c, a->ldv, SCALE, factor);
        r += many ? ROWS : 1;
    }
}

/* The rows of sequence n and head g against the keys of a part. */
static void attend(const decode *a, int64_t n, int64_t g, int64_t part, const buffers *w) {
    const int64_t length = length_of(a, n);
    float *o = partial_at(a, n * a->hk + g, part), *top = o + a->rows * a->ldv, *sum = top + a->rows;
    const float factor = a->scale * scale_of(a->k_scale, g);
    span *k = w->spans;
    int64_t first, last, unused;
    visible(a, length, 0, &first, &unused);
    visible(a, length, a->sq - 1, &unused, &last);
    const int64_t end = last < (part + 1) * a->part ? last : (part + 1) * a->part;
    memset(o, 0, (size_t)(a->rows * a->ldv) * sizeof *o);
    for (int64_t r = 0; r < a->rows; r++) top[r] = -INFINITY, sum[r] = 0;
    pack_queries(a, n, g, w->q);
    for (int64_t start = part * a->part; start < end; start += BK) {
        const int64_t stop = start + BK < end ? start + BK : end;
        const int64_t keys = stop - start, slots = keys + AHEAD < end - start ? keys + AHEAD : end - start;
        int32_t there[BK];
        slot slot[BK + AHEAD];
        if (stop <= first) continue;
        find_slots(a, n, start, start + slots, slot);
        for (int j = 0; j < BK; j++) there[j] = j < keys && slot[j].page >= 0 ? -1 : 0;
        pack_block(a, a->k, g, slot, keys, slots, a->d, a->ldk, w->k);
        if (!a->latent) pack_block(a, a->v, g, slot, keys, slots, a->dv, a->ldv, w->v);
        for (int64_t r = 0; r < a->rows; r++) {
            int64_t low, high;
            visible(a, length, r / a->group, &low, &high);
            low = low > start ? low - start : 0, high = (high < stop ? high : stop) - start;
            k[r] = (span){ .low = low < BK ? (int)low : BK, .high = high > 0 ? (int)high : 0 };
            if (k[r].high < k[r].low) k[r].high = k[r].low;
            dots(w->q + r * a->ldk, w->k, a->d, a->ldk, (int)(stop - start), w->s + r * LDS);
            weigh(a, w->s + r * LDS, there, &k[r], factor, &top[r], &sum[r]);
        }
        add_values(a, w->s, w->v, k, o);
    }
}

static void parts_tasks(const void *context, int64_t begin, int64_t end, int thread) {
    const decode *a = context;
    const buffers w = buffers_of(a, thread);
    for (int64_t task = begin; task < end; task++) {
        const int64_t problem = task / a->parts, part = task % a->parts;
        int64_t first, last;
        parts_of(a, length_of(a, problem / a->hk), &first, &last);
        if (part >= first && part < last) attend(a, problem / a->hk, problem % a->hk, part, &w);
    }
}

/* --------------------------------------------------------------------------------------------------------- merging */

INLINE void store_row(const float *from, int64_t n, float factor, float scale, char *to, trine_dtype T) {
    int64_t c = 0;
    for (; c + VL <= n; c += VL) vstore(to, T, c, get(from + c) * factor * scale);
    if (c < n) vstoren(to, T, c, (int)(n - c), get(from + c) * factor * scale);
}

/* The largest of a row's parts and its sink. */
static float top_of(const decode *a, int64_t problem, int64_t r, int64_t first, int64_t last, float sink) {
    float top = sink;
    for (int64_t part = first; part < last; part++) {
        const float other = partial_at(a, problem, part)[a->rows * a->ldv + r];
        top = other > top ? other : top;
    }
    return top;
}

/* Row r of a problem, whose parts are added in their order. */
static void merge_row(const decode *a, int64_t n, int64_t g, int64_t r, int64_t first, int64_t last, float *o) {
    const trine_tensor *out = &a->call->tensor[ATTENTION_DECODE_OUT],
                       *lse = trine_call_given(a->call, ATTENTION_DECODE_LSE);
    const int64_t i = r / a->group, head = g * a->group + r % a->group, problem = n * a->hk + g;
    const float sink = a->sinks ? sload(a->sinks->data, a->sinks->dtype, head) : -INFINITY,
                top = top_of(a, problem, r, first, last, sink), base = top == -INFINITY ? 0 : top;
    float sum = a->sinks ? vexp(vset(sink - base))[0] : 0;
    memset(o, 0, (size_t)a->ldv * sizeof *o);
    for (int64_t part = first; part < last; part++) {
        const float *from = partial_at(a, problem, part), *tops = from + a->rows * a->ldv;
        const float factor = vexp(vset(tops[r] - base))[0];
        sum += factor * tops[a->rows + r];
        for (int64_t c = 0; c < a->ldv; c += VL) put(o + c, vfma(vset(factor), get(from + r * a->ldv + c), get(o + c)));
    }
    const bool none = sum == 0;
    char *to =
        (char *)out->data + (n * out->stride[0] + i * out->stride[1] + head * out->stride[2]) * (int64_t)vsize(a->T);
    if (none) memset(o, 0, (size_t)a->ldv * sizeof *o);
    FOR_TYPE(a->T, store_row, o, a->dv, none ? 1 : 1 / sum, none ? 1 : scale_of(a->v_scale, g), to);
    if (lse)
        ((float *)lse->data)[n * lse->stride[0] + head * lse->stride[1] + i * lse->stride[2]] =
            none ? -INFINITY : base + vlog(vset(sum))[0];
}

static void merge_rows(const void *context, int64_t begin, int64_t end, int thread) {
    const decode *a = context;
    const buffers w = buffers_of(a, thread);
    for (int64_t row = begin; row < end; row++) {
        const int64_t problem = row / a->rows, n = problem / a->hk;
        int64_t first, last;
        parts_of(a, length_of(a, n), &first, &last);
        merge_row(a, n, problem % a->hk, row % a->rows, first, last, w.o);
    }
}

/* ---------------------------------------------------------------------------------------------------------- launch */

/* Bytes of the keys and values of a problem, as floats. */
static int64_t problem_bytes(const decode *a) {
    return a->columns * a->page * (a->d + (a->latent ? 0 : a->dv)) * (int64_t)sizeof(float);
}
static int team_of(const decode *a) {
    const int64_t problems = a->b * a->hk;
    return cpu_team(a->call, problems * (a->parts > a->rows ? a->parts : a->rows), problems * problem_bytes(a));
}

static size_t workspace(const trine_call *call) {
    const decode a = decode_of(call);
    return (size_t)(a.b * a.hk * a.parts * partial_floats(&a) + team_of(&a) * buffer_floats(&a)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const decode a = decode_of(call);
    const int64_t problems = a.b * a.hk;
    const int team = team_of(&a);
    cpu_tasks(call, team, problems * a.parts, parts_tasks, &a);
    cpu_shares(call, team, problems * a.rows, merge_rows, &a);
    return TRINE_OK;
}

/* A part more, a block more, vectors, and as many rows as go together or make parts long. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const decode a = decode_of(call);
    const int64_t page = a.page > 0 ? a.page : 1;
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_D, VL);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_DV, VL);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_D, COLUMNS);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_DV, COLUMNS);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, BK / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, SHORT / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_MAXPAGES, LONG / page);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_PAGE, BK);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ, ROWS / a.group);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ, FEW / a.group);
}

CPU_KERNELS(attention_decode) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
