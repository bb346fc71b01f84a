/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of bf16 by dots: a block of keys against the rows that see it, DOTS_ROWS at a time. p and ds are rounded
 * to bf16 before they are multiplied. Those of dk and dv are summed as columns, dk^T = q^T ds, so that nothing but
 * inputs has to be transposed. */
#ifndef TRINE_CPU_ATTENTION_DOTS_GRADIENT_H
#define TRINE_CPU_ATTENTION_DOTS_GRADIENT_H

#include "attention_dots.h"
#include "attention_weigh.h"

enum { DOTS_ROWS = 128, DOTS_KEYS = 256, DOTS_LDS = DOTS_KEYS + 16 }; /* multiples of SIDE, and one of 64 bytes */

/* What a thread works on. */
typedef struct dots_buffers {
    char *kt, *vt, *k;        /* panels: keys and values by columns of keys, and keys by columns of d */
    char *q, *dout;           /* rows of d */
    char *qt, *doutt;         /* rows of columns */
    char *p, *dst;            /* panels of keys, pairs of rows */
    char *ds;                 /* rows of keys */
    float *s, *dp;            /* SIDE x DOTS_LDS */
    float *dk, *dv;           /* transposed: d x DOTS_LDS */
    float *lse, *delta;       /* DOTS_ROWS */
    int64_t wide;             /* d padded */
    int64_t pitch, turned;    /* bytes, of rows and of turned ones */
    int64_t by_keys, by_rows; /* bytes: a panel of d/2 units; of DOTS_ROWS/2 */
} dots_buffers;

static int64_t dots_floats(int64_t d) {
    const int64_t wide = cpu_round_up(d, SIDE);
    return 3 * DOTS_KEYS * wide / 2 + 2 * DOTS_ROWS * dots_pitch(d) / 4 + 2 * wide * dots_pitch(DOTS_ROWS) / 4 +
           DOTS_KEYS * DOTS_ROWS + DOTS_ROWS * dots_pitch(DOTS_KEYS) / 4 + 2 * (SIDE + wide) * DOTS_LDS + 2 * DOTS_ROWS;
}

static char *dots_take(char **at, int64_t bytes) {
    char *taken = *at;
    *at += bytes;
    return taken;
}

static dots_buffers dots_buffers_at(float *memory, int64_t d) {
    const int64_t wide = cpu_round_up(d, SIDE), keys = DOTS_KEYS * wide * 2;
    char *at = (char *)memory;
    dots_buffers w = { .wide = wide,
                       .pitch = dots_pitch(d),
                       .turned = dots_pitch(DOTS_ROWS),
                       .by_keys = wide / 2 * LINE,
                       .by_rows = DOTS_ROWS / 2 * LINE };
    w.kt = dots_take(&at, keys), w.vt = dots_take(&at, keys), w.k = dots_take(&at, keys);
    w.q = dots_take(&at, DOTS_ROWS * w.pitch), w.dout = dots_take(&at, DOTS_ROWS * w.pitch);
    w.qt = dots_take(&at, wide * w.turned), w.doutt = dots_take(&at, wide * w.turned);
    w.p = dots_take(&at, DOTS_KEYS / SIDE * w.by_rows), w.dst = dots_take(&at, DOTS_KEYS / SIDE * w.by_rows);
    w.ds = dots_take(&at, DOTS_ROWS * dots_pitch(DOTS_KEYS));
    w.s = (float *)(void *)at;
    w.dp = w.s + SIDE * DOTS_LDS;
    w.dk = w.dp + SIDE * DOTS_LDS;
    w.dv = w.dk + wide * DOTS_LDS;
    w.lse = w.dv + wide * DOTS_LDS;
    w.delta = w.lse + DOTS_ROWS;
    return w;
}

/* ------------------------------------------------------------------------------------------------------------- keys */

/* A block of keys, whose gradients begin at zero. */
typedef struct dots_keys {
    int64_t start; /* of the sequence's */
    const char *k; /* the first key */
    int64_t step;  /* bytes */
    bool finite;   /* are the keys? */
} dots_keys;

static dots_keys dots_keys_begin(const attention *a, const sequence *seq, int64_t head, int64_t start, int64_t n,
                                 const dots_buffers *w) {
    const trine_tensor *tk = &a->call->tensor[ATTENTION_BACKWARD_K], *tv = &a->call->tensor[ATTENTION_BACKWARD_V];
    const int64_t step = tk->stride[1] * 2, v_step = tv->stride[1] * 2;
    const char *k = token_at(tk, seq->batch, seq->k + start, head), *v = token_at(tv, seq->batch, seq->k + start, head);
    vhu seen = { 0 }, unused = { 0 };
    for (int64_t j = 0; j < n; j += SIDE) {
        dots_columns(k + j * step, step, n - j, a->d, w->kt + j / SIDE * w->by_keys, &seen);
        dots_columns(v + j * v_step, v_step, n - j, a->d, w->vt + j / SIDE * w->by_keys, &unused);
    }
    dots_pairs(k, step, n, cpu_round_up(n, SIDE), a->d, w->k, DOTS_KEYS / 2 * LINE, &unused);
    memset(w->dk, 0, (size_t)(w->wide * DOTS_LDS) * sizeof *w->dk);
    memset(w->dv, 0, (size_t)(w->wide * DOTS_LDS) * sizeof *w->dv);
    return (dots_keys){ start, k, step, dots_finite(seen) };
}

/* Rows of n keys from sums of columns. */
static void dots_store(const float *from, int64_t n, int64_t d, float factor, char *to, int64_t step) {
    for (int64_t j = 0; j < n; j += VL)
        for (int64_t c = 0; c < d; c += VL) {
            vf x[VL];
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) x[i] = get(from + (c + i) * DOTS_LDS + j) * factor;
            transpose(x);
            for (int i = 0; i < VL && j + i < n; i++)
                vstoren(to + (j + i) * step, TRINE_BF16, c, d - c < VL ? (int)(d - c) : VL, x[i]);
        }
}

static void dots_keys_end(const attention *a, const sequence *seq, int64_t head, int64_t start, int64_t n,
                          const dots_buffers *w) {
    const trine_tensor *dk = &a->call->tensor[ATTENTION_BACKWARD_DK], *dv = &a->call->tensor[ATTENTION_BACKWARD_DV];
    dots_store(w->dk, n, a->d, a->scale, token_at(dk, seq->batch, seq->k + start, head), dk->stride[1] * 2);
    dots_store(w->dv, n, a->d, a->drops ? a->dropout.scale : 1, token_at(dv, seq->batch, seq->k + start, head),
               dv->stride[1] * 2);
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* SIDE packed rows of `wide` elements become columns. */
static void dots_turn(const char *rows, int64_t pitch, int64_t wide, char *to, int64_t turned, vhu *seen) {
    vhu all = *seen;
    for (int first = 0; first < SIDE; first += 2 * VL)
        for (int64_t c = 0; c < wide; c += VL) {
            vi x[VL];
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) {
                const char *at = rows + (first + 2 * i) * pitch + c * 2;
                x[i] = dots_halves(at, at + pitch);
            }
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) {
                all = dots_see(all, x[i]);
                x[i] = dots_zip(x[i]);
            }
            unit_transpose(x, UNIT_BF16);
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) unit_store(to + (c + i) * turned + first * 2, x[i]);
        }
    *seen = all;
}

/* Packs the rows of q and dout. Rows that give nothing, by lse = -Inf or as padding, are zero. All finite? */
static bool dots_pack(const block *b, const dots_buffers *w) {
    const attention *a = b->a;
    const trine_tensor *q = &a->call->tensor[ATTENTION_BACKWARD_Q], *dout = &a->call->tensor[ATTENTION_BACKWARD_DOUT];
    vhu seen = { 0 };
    for (int64_t r = 0; r < b->padded; r++) {
        char *to_q = w->q + r * w->pitch, *to_dout = w->dout + r * w->pitch;
        if (w->lse[r] == -INFINITY) {
            memset(to_q, 0, (size_t)w->pitch);
            memset(to_dout, 0, (size_t)w->pitch);
        } else {
            dots_row(row_at(b, q, r), a->d, to_q);
            dots_row(row_at(b, dout, r), a->d, to_dout);
        }
    }
    for (int64_t r = 0; r < b->padded; r += SIDE) {
        dots_turn(w->q + r * w->pitch, w->pitch, w->wide, w->qt + r * 2, w->turned, &seen);
        dots_turn(w->dout + r * w->pitch, w->pitch, w->wide, w->doutt + r * 2, w->turned, &seen);
    }
    return dots_finite(seen);
}

/* ---------------------------------------------------------------------------------------------------------- weights */

/* VL columns of two rows of p and ds, from key j on, go where they are multiplied from. */
INLINE void dots_put_weights(const dots_buffers *w, int64_t r, int j, vf p, vf p_next, vf ds, vf ds_next) {
    const int64_t at = j / SIDE * w->by_rows + r / 2 * LINE + j % SIDE * 4, pitch = dots_pitch(DOTS_KEYS);
    const vi both = dots_round(ds, ds_next);
    char *to = w->ds + r * pitch + j * 2;
    unit_store(w->p + at, dots_zip(dots_round(p, p_next)));
    unit_store(w->dst + at, dots_zip(both));
    memcpy(to, &both, sizeof both / 2);
    memcpy(to + pitch, (const char *)&both + sizeof both / 2, sizeof both / 2);
}

/* p and ds of a vector of scores and dp. */
INLINE vf dots_weigh(vf s, vf dp, float unit, float lse, float delta, int j, int low, int high, vf *ds_out) {
    vf p = dots_power(vmin(vzero(), vfma(s, vset(unit), vset(-lse)))), ds = p * (dp - delta);
    if (j < low || j + VL > high) {
        const vi seen = (viota() + j >= low) & (viota() + j < high);
        p = vsel(seen, p, vzero());
        ds = vsel(seen, ds, vzero());
    }
    *ds_out = ds;
    return p;
}

/* The weights of SIDE rows with SIDE keys from j on, whose scores and dp are at s and dp. */
static void dots_weigh_square(const dots_buffers *w, const span *k, float unit, int64_t r, int j, const float *s,
                              const float *dp) {
    for (int i = 0; i < SIDE; i += 2) {
        float lse[2], delta[2];
        int low[2], high[2];
        for (int e = 0; e < 2; e++) {
            const bool none = w->lse[r + i + e] == -INFINITY;
            lse[e] = none ? 0 : w->lse[r + i + e] * 1.44269504f, delta[e] = w->delta[r + i + e];
            low[e] = none ? 0 : k->low[r + i + e], high[e] = none ? 0 : k->high[r + i + e];
        }
        for (int c = 0; c < SIDE; c += VL) {
            const float *at = s + i * DOTS_LDS + c, *dp_at = dp + i * DOTS_LDS + c;
            vf ds[2];
            const vf p = dots_weigh(get(at), get(dp_at), unit, lse[0], delta[0], j + c, low[0], high[0], &ds[0]),
                     p_next = dots_weigh(get(at + DOTS_LDS), get(dp_at + DOTS_LDS), unit, lse[1], delta[1], j + c,
                                         low[1], high[1], &ds[1]);
            dots_put_weights(w, r + i, j + c, p, p_next, ds[0], ds[1]);
        }
    }
}

/* Likewise of SIDE rows with all keys first .. last-1, one row after the other, with all options. */
static void dots_weigh_rows(const block *b, const dots_buffers *w, const span *k, int64_t start, int64_t r, int first,
                            int last) {
    const attention *a = b->a;
    for (int i = 0; i < SIDE; i++) {
        const weigh_row row = { w->s + i * DOTS_LDS, w->dp + i * DOTS_LDS, w->lse[r + i], w->delta[r + i] };
        for (int j = first; j < last; j += VL) put(row.p + j, get(row.p + j) * a->scale);
        if (r + i < b->rows && (adds(a) || a->drops))
            weigh_with_options(b, &row, r + i, k, start);
        else
            weigh(&row, k->n, k->low[r + i], k->high[r + i], a->softcap, NULL, NULL, 1, NULL);
    }
    for (int i = 0; i < SIDE; i += 2)
        for (int j = first; j < last; j += VL) {
            const float *p = w->s + i * DOTS_LDS + j, *ds = w->dp + i * DOTS_LDS + j;
            dots_put_weights(w, r + i, j, get(p), get(p + DOTS_LDS), get(ds), get(ds + DOTS_LDS));
        }
}

/* ------------------------------------------------------------------------------------------------ sums of products */

/* The keys that SIDE rows from r on see, in whole squares. */
INLINE int dots_first(const span *k, int64_t r) { return k->low[r] / SIDE * SIDE; }
INLINE int dots_last(const span *k, int64_t r) { return (int)cpu_round_up(k->high[r + SIDE - 1], SIDE); }
INLINE bool dots_sees(const span *k, int64_t r, int j) {
    return span_any(k, r, SIDE) && dots_first(k, r) <= j && dots_last(k, r) > j;
}

/* dq += ds k. */
static void dots_add_queries(const dots_buffers *w, const span *k, int64_t r, float *dq, int64_t width) {
    const int first = dots_first(k, r), last = dots_last(k, r);
    const int64_t pitch = dots_pitch(DOTS_KEYS);
    for (int64_t c = 0; c < w->wide; c += SIDE)
        dots_product(dq + c, width, w->ds + r * pitch + first * 2, pitch,
                     w->k + c / SIDE * (DOTS_KEYS / 2 * LINE) + first / 2 * LINE, (last - first) / 2, true);
}

/* dk^T += q^T ds, dv^T += dout^T p, over the rows that see one of the keys. */
static void dots_add_keys(const block *b, const dots_buffers *w, const span *k) {
    for (int j = 0; j < k->n; j += SIDE) {
        int64_t first = 0, last = b->padded;
        while (first < last && !dots_sees(k, first, j)) first += SIDE;
        while (last > first && !dots_sees(k, last - SIDE, j)) last -= SIDE;
        const int64_t at = j / SIDE * w->by_rows + first / 2 * LINE;
        for (int64_t c = 0; first < last && c < w->wide; c += SIDE) {
            dots_product(w->dk + c * DOTS_LDS + j, DOTS_LDS, w->qt + c * w->turned + first * 2, w->turned, w->dst + at,
                         (last - first) / 2, true);
            dots_product(w->dv + c * DOTS_LDS + j, DOTS_LDS, w->doutt + c * w->turned + first * 2, w->turned, w->p + at,
                         (last - first) / 2, true);
        }
    }
}

/* The same where a zero would meet what is not finite: pair by pair of those that see each other. */
static void dots_add_apart(const block *b, const dots_buffers *w, const dots_keys *keys, const span *k, float *dq,
                           int64_t width) {
    const int64_t d = b->a->d;
    for (int64_t r = 0; r < b->rows; r++)
        for (int j = k->low[r]; w->lse[r] != -INFINITY && j < k->high[r]; j++) {
            const int64_t at = j / SIDE * w->by_rows + r / 2 * LINE + j % SIDE * 4;
            const float p = sload(w->p + at, TRINE_BF16, r % 2), ds = sload(w->dst + at, TRINE_BF16, r % 2);
            for (int64_t c = 0; c < d; c++) {
                dq[r * width + c] += ds * sload(keys->k + j * keys->step, TRINE_BF16, c);
                w->dk[c * DOTS_LDS + j] += ds * sload(w->q + r * w->pitch, TRINE_BF16, c);
                w->dv[c * DOTS_LDS + j] += p * sload(w->dout + r * w->pitch, TRINE_BF16, c);
            }
        }
}

/* A block of rows, whose lse and delta are there, against a block of keys. */
static void dots_block(const block *b, const dots_buffers *w, const dots_keys *keys, const span *k, float *dq,
                       int64_t width) {
    const attention *a = b->a;
    const bool finite = dots_pack(b, w) && keys->finite,
               plain = !(a->softcap > 0 || adds(a) || a->drops) && fabsf(a->scale) < 0x1p100f;
    for (int64_t r = 0; r < b->padded; r += SIDE) {
        const int first = dots_first(k, r), last = dots_last(k, r);
        if (!span_any(k, r, SIDE)) continue;
        for (int j = first; j < last; j += SIDE) {
            float *s = w->s + (plain ? 0 : j), *dp = w->dp + (plain ? 0 : j);
            dots_product(s, DOTS_LDS, w->q + r * w->pitch, w->pitch, w->kt + j / SIDE * w->by_keys, w->wide / 2, false);
            dots_product(dp, DOTS_LDS, w->dout + r * w->pitch, w->pitch, w->vt + j / SIDE * w->by_keys, w->wide / 2,
                         false);
            if (plain) dots_weigh_square(w, k, a->scale * 1.44269504f, r, j, s, dp);
        }
        if (!plain) dots_weigh_rows(b, w, k, keys->start, r, first, last);
        if (finite) dots_add_queries(w, k, r, dq + r * width, width);
    }
    if (finite)
        dots_add_keys(b, w, k);
    else
        dots_add_apart(b, w, keys, k, dq, width);
}

#endif
