/* SPDX-License-Identifier: Apache-2.0 */
/* Few rows against many keys, which are read once for all of them: by vectors of floats, or by AMX where queries are
 * bf16. The keys of all heads are gone through in blocks, in the order in which memory has them, first for the scores
 * of a part, then for its weighted values; so the largest score is known before the first weight. Weights that meet
 * tiles are rounded to bf16, not in their sums. */
#ifndef TRINE_CPU_ATTENTION_STREAM_H
#define TRINE_CPU_ATTENTION_STREAM_H

#include "attention_stream_floats.h"
#include "attention_stream_tiles.h"

/* ----------------------------------------------------------------------------------------------------------- a part */

/* Row r of head h of the queries; NULL, one that only pads a tile. */
static void stream_put_query(const stream *s, const stream_buffers *w, int64_t h, int64_t r, const char *from) {
    if (HAVE_TILES && s->tiles)
        stream_query_tile(s, w, h, r, from);
    else
        stream_widen(from, s->d, w->q + (h * s->rows + r) * s->ldq, s->T);
}

/* Scores of a row become weights relative to the largest, bf16 if `tiles`, where it sees keys, and zeros elsewhere. */
INLINE void stream_weigh(const stream *s, float *x, const stream_part *part, int low, int high, int first, int last,
                         float factor, float *top, float *sum) {
    vf most = vset(-INFINITY), all = vzero();
    for (int j = first; j < last; j += VL) {
        vf y = get(x + j) * factor;
        if (s->softcap > 0) y = s->softcap * vtanh(y / s->softcap);
        if (j < low || j + VL > high) y = vsel((viota() + j >= low) & (viota() + j < high), y, vset(-INFINITY));
        if (part->there) y = vsel((vi) * (const vi_any *)(part->there + j), y, vset(-INFINITY));
        most = vmax(y, most);
        put(x + j, y);
    }
    const float now = vhmax(most), base = now == -INFINITY ? 0 : now;
    for (int j = first; j < last; j += 4 * VL) {
        vf y[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) y[i] = get(x + j + i * VL) - base;
        exp_negative(y, 4);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) all += y[i];
        if (HAVE_TILES && s->tiles) {
            unit_store((char *)x + j * 2, dots_round(y[0], y[1]));
            unit_store((char *)x + (j + 2 * VL) * 2, dots_round(y[2], y[3]));
        } else {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) put(x + j + i * VL, y[i]);
        }
    }
    *top = now;
    *sum = vhsum(all);
}

/* Of the keys first .. last-1 those of a part of `keys` from `start` on. */
INLINE void stream_clip(int64_t first, int64_t last, int64_t start, int64_t keys, int *low, int *high) {
    first = first > start ? first - start : 0, last = last > start ? last - start : 0;
    *low = (int)(first < keys ? first : keys), *high = (int)(last < keys ? last : keys);
    if (*high < *low) *high = *low;
}

/* The blocks of a part that any row sees, from first to last; and their keys' end. */
typedef struct stream_range {
    int first, last, end;
} stream_range;

static void stream_all_scores(const stream *s, const stream_buffers *w, const stream_part *part, stream_range range) {
    if (HAVE_TILES && s->tiles) stream_tiles_for_keys(s);
    for (int start = range.first; start < range.end; start += STREAM_BLOCK) {
        const int left = range.end - start, keys = left < STREAM_BLOCK ? left : STREAM_BLOCK,
                  next = start + STREAM_BLOCK;
        stream_ahead ahead = { 0 };
        if (next < range.end)
            ahead = stream_ahead_of(s, part->k + next, range.end - next, s->k_head, s->d);
        else if (!s->latent)
            ahead = stream_ahead_of(s, part->v + range.first, range.end - range.first, s->v_head, s->dv);
        for (int64_t h = 0; h < s->heads; h++)
            if (HAVE_TILES && s->tiles)
                stream_scores_by_tiles(s, w, part, start, keys, h, &ahead);
            else
                stream_scores(s, w, part, start, keys, h, &ahead);
        if (HAVE_TILES && s->tiles) stream_turn(s, w, start);
    }
}

static void stream_all_values(const stream *s, const stream_buffers *w, const stream_part *part, stream_range range,
                              const stream_sums *sums) {
    if (HAVE_TILES && s->tiles) stream_tiles_for_values(s);
    for (int64_t h = 0; h < s->heads; h++) memset(sums[h].o, 0, (size_t)(s->padded * s->ldo) * sizeof(float));
    for (int start = range.first; start < range.end; start += STREAM_BLOCK) {
        const int left = range.end - start, keys = left < STREAM_BLOCK ? left : STREAM_BLOCK,
                  next = start + STREAM_BLOCK;
        stream_ahead ahead = { 0 };
        if (next < range.end && !s->latent)
            ahead = stream_ahead_of(s, part->v + next, range.end - next, s->v_head, s->dv);
        for (int64_t h = 0; h < s->heads; h++)
            if (HAVE_TILES && s->tiles)
                stream_values_by_tiles(s, w, part, start, keys, h, sums[h].o, &ahead);
            else
                stream_values(s, w, part, start, keys, h, sums[h].o, &ahead);
    }
    for (int64_t h = 0; HAVE_TILES && s->tiles && h < s->heads; h++) stream_columns_in_order(s, sums[h].o);
}

/* All rows against a part: the sums of each head. `factor`: what a head's scores are multiplied by. */
static void stream_attend(const stream *s, const stream_buffers *w, const stream_part *part, const float *factor,
                          const stream_sums *sums) {
    const int64_t rows = s->rows;
    const stream_range range = { part->low[0] / STREAM_BLOCK * STREAM_BLOCK,
                                 (int)cpu_round_up(part->high[rows - 1], STREAM_BLOCK), part->high[rows - 1] };
    stream_all_scores(s, w, part, range);
    for (int64_t h = 0; h < s->heads; h++)
        for (int64_t r = 0; r < rows; r++)
            stream_weigh(s, w->s + (h * s->padded + r) * STREAM_LDS, part, part->low[r], part->high[r], range.first,
                         range.last, factor[h], sums[h].top + r, sums[h].sum + r);
    stream_all_values(s, w, part, range, sums);
}

/* -------------------------------------------------------------------------------------------------- parts together */

/* How a problem, a head of a sequence, is shared out: parts of the keys, heads that go together, rows. */
typedef struct stream_shares {
    int64_t part, parts; /* keys; number */
    int64_t heads, head_tasks;
    int64_t rows, row_tasks; /* at most STREAM_ROWS */
    int64_t ldo, padded;     /* of a head's sums: floats of a row, rows */
    int64_t floats;          /* of a part's sums of a head: padded x ldo, then maxima, then sums of weights */
} stream_shares;

/* Of `b` sequences with `hk` heads of keys and `rows` rows each, which see `window` keys of `keys`, or all if it is 0.
 * Heads go together so that memory is read in its order, but not so that threads lack tasks. */
static stream_shares stream_share(const trine_call *call, trine_dtype T, int64_t b, int64_t hk, int64_t rows,
                                  int64_t keys, int64_t window, int64_t d, int64_t dv) {
    enum { BUSY = 3 }; /* tasks for each thread */
    const int64_t threads = ((const cpu_queue *)call->queue)->threads;
    stream_shares t = { .part = rows <= STREAM_TILE ? STREAM_SHORT : STREAM_LONG };
    t.parts = (keys + t.part - 1) / t.part;
    const int64_t seen = window > 0 && window / t.part + 2 < t.parts ? window / t.part + 2 : t.parts;
    t.rows = rows < STREAM_ROWS ? rows : STREAM_ROWS, t.row_tasks = (rows + STREAM_ROWS - 1) / STREAM_ROWS;
    t.heads = t.rows > 0 ? STREAM_ROWS / t.rows : 1;
    if (t.heads > hk) t.heads = hk;
    while (t.heads > 1 && b * seen * ((hk + t.heads - 1) / t.heads) < BUSY * threads) t.heads = (t.heads + 1) / 2;
    t.head_tasks = (hk + t.heads - 1) / t.heads;
    const stream s = stream_of((stream){ .T = T, .rows = rows, .all = rows, .d = d, .dv = dv });
    t.ldo = s.ldo, t.padded = s.padded, t.floats = cpu_round_up(t.padded * t.ldo + 2 * rows, 16);
    return t;
}

/* A task: rows from `row` on of `heads` heads from `head` on of sequence n, against a part. */
typedef struct stream_task {
    int64_t n, part, head, heads, row, rows;
} stream_task;
INLINE stream_task stream_task_of(const stream_shares *t, int64_t hk, int64_t rows, int64_t task) {
    const int64_t r = task % t->row_tasks, rest = task / t->row_tasks, h = rest % t->head_tasks,
                  number = rest / t->head_tasks;
    stream_task x = { number / t->parts, number % t->parts, h * t->heads, t->heads, r * STREAM_ROWS, t->rows };
    if (hk - x.head < x.heads) x.heads = hk - x.head;
    if (rows - x.row < x.rows) x.rows = rows - x.row;
    return x;
}

/* Where sums of a problem, head g of sequence n, with a part are: those of `rows` rows from `row` on. */
INLINE stream_sums stream_sums_at(const stream_shares *t, float *from, int64_t problem, int64_t part, int64_t rows,
                                  int64_t row) {
    float *o = from + (problem * t->parts + part) * t->floats, *top = o + t->padded * t->ldo;
    return (stream_sums){ o + row * t->ldo, top + row, top + rows + row };
}

/* A row's sums with all parts, in their order, and with a sink: o of them, relative to the largest score, which is
 * returned. `first` is of the first of the parts. */
static float stream_merge(const stream_shares *t, stream_sums first, int64_t parts, float sink, float *o, float *sum) {
    float top = sink;
    for (int64_t i = 0; i < parts; i++) top = first.top[i * t->floats] > top ? first.top[i * t->floats] : top;
    const float base = top == -INFINITY ? 0 : top;
    *sum = sink == -INFINITY ? 0 : vexp(vset(sink - base))[0];
    memset(o, 0, (size_t)t->ldo * sizeof *o);
    for (int64_t i = 0; i < parts; i++) {
        const float factor = vexp(vset(first.top[i * t->floats] - base))[0];
        *sum += factor * first.sum[i * t->floats];
        for (int64_t c = 0; c < t->ldo; c += VL)
            put(o + c, vfma(vset(factor), get(first.o + i * t->floats + c), get(o + c)));
    }
    return top;
}

#endif
