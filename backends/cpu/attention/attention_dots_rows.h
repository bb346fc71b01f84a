/* SPDX-License-Identifier: Apache-2.0 */
/* A block's rows of bf16 against keys, by dots: SIDE rows at a time. Weights are rounded to bf16 before they meet the
 * values, not in their sums. */
#ifndef TRINE_CPU_ATTENTION_DOTS_ROWS_H
#define TRINE_CPU_ATTENTION_DOTS_ROWS_H

#include "attention.h"
#include "attention_dots.h"

enum { DOTS_KEYS = 256, DOTS_LDS = DOTS_KEYS + 16 };

/* What a thread works on. */
typedef struct dots_buffers {
    float *o, *s, *top, *sum; /* rows x ld; SIDE x DOTS_LDS: scores, then bf16 weights; rows; rows x VL */
    char *q, *block;          /* rows; a packed block of keys */
    int64_t ld, pitch;        /* of o; bytes, of q */
    const char *shared;       /* NULL, or the sequence's packed blocks */
    int64_t step;             /* bytes between these */
} dots_buffers;

/* A packed block of keys: panels of keys, then panels of columns of values, then whether these are finite. */
typedef struct dots_block {
    int64_t k_panel, v_panel, v, finite, bytes;
} dots_block;

static dots_block dots_block_of(int64_t d) {
    const int64_t wide = cpu_round_up(d, SIDE), size = DOTS_KEYS * wide * 2;
    return (dots_block){ wide / 2 * LINE, DOTS_KEYS / 2 * LINE, size, 2 * size, 2 * size + 64 };
}

/* Packs keys `key` .. `key`+keys-1 of a sequence, at most DOTS_KEYS. */
static void dots_pack_block(const attention *a, const sequence *seq, int64_t head, int64_t key, int64_t keys,
                            char *to) {
    const trine_tensor *tk = &a->call->tensor[ATTENTION_K], *tv = &a->call->tensor[ATTENTION_V];
    const char *k = token_at(tk, seq->batch, seq->k + key, head), *v = token_at(tv, seq->batch, seq->k + key, head);
    const int64_t step = tk->stride[1] * 2;
    const dots_block at = dots_block_of(a->d);
    vhu seen = { 0 }, unused = { 0 };
    for (int64_t j = 0; j < keys; j += SIDE)
        dots_columns(k + j * step, step, keys - j, a->d, to + j / SIDE * at.k_panel, &unused);
    dots_pairs(v, tv->stride[1] * 2, keys, cpu_round_up(keys, SIDE), a->d, to + at.v, at.v_panel, &seen);
    to[at.finite] = dots_finite(seen);
}

static int64_t dots_floats(int64_t rows, int64_t d) {
    const int64_t wide = cpu_round_up(d, SIDE);
    return rows * leading(wide) + SIDE * DOTS_LDS + rows * (VL + 16) + rows * dots_pitch(d) / 4 +
           dots_block_of(d).bytes / 4;
}

static dots_buffers dots_buffers_at(float *at, int64_t rows, int64_t d) {
    const int64_t wide = cpu_round_up(d, SIDE);
    dots_buffers w = { .ld = leading(wide), .pitch = dots_pitch(d) };
    w.q = (char *)at;
    w.block = w.q + rows * w.pitch;
    w.o = (float *)(void *)(w.block + dots_block_of(d).bytes);
    w.s = w.o + rows * w.ld;
    w.sum = w.s + SIDE * DOTS_LDS;
    w.top = w.sum + rows * VL;
    return w;
}

/* How scores become exponents of 2 relative to the row's largest. */
typedef struct dots_scale {
    bool plain; /* the product of q and k alone, times what follows */
    float unit;
    float whole; /* what the largest score is to be multiplied by at the end */
} dots_scale;

static dots_scale dots_scale_of(const attention *a) {
    const float to_base_2 = 1.44269504f;
    if (a->softcap > 0 || adds(a) || !(a->scale > 0x1p-100f && a->scale < 0x1p100f))
        return (dots_scale){ false, to_base_2, 1 };
    return (dots_scale){ true, a->scale * to_base_2, a->scale };
}

/* The scores of row r, after softcap, with what is added to them. */
static void dots_bend(const block *b, float *s, int64_t r, int64_t key, int first, int last) {
    const attention *a = b->a;
    const bool added = adds(a) && r < b->rows;
    const addend t = added ? addend_of(b, r, key) : (addend){ 0 };
    for (int j = first; j < last; j += VL) {
        vf x = get(s + j) * a->scale;
        if (a->softcap > 0) x = a->softcap * vtanh(x / a->softcap);
        put(s + j, added ? addend_add(&t, j, x) : x);
    }
}

/* Without the keys that row r must not see; the largest of the others, by lanes. */
INLINE vf dots_most(float *s, int first, int last, int low, int high) {
    vf most = vset(-INFINITY);
    for (int j = first; j < last; j += VL) {
        vf x = get(s + j);
        if (j < low || j + VL > high) {
            x = vsel((viota() + j >= low) & (viota() + j < high), x, vset(-INFINITY));
            put(s + j, x);
        }
        most = vmax(x, most);
    }
    return most;
}

/* Scores of a row become weights in bf16, in place; `sum` is added to. */
INLINE vf dots_weights(float *s, int first, int last, float base, float unit, vf sum) {
    char *to = (char *)s;
    for (int j = first; j < last; j += 2 * VL) {
        const vf x = dots_power((get(s + j) - base) * unit), y = dots_power((get(s + j + VL) - base) * unit);
        sum += x;
        sum += y;
        unit_store(to + j * 2, dots_round(x, y));
    }
    return sum;
}

static void dots_drop(const block *b, float *s, int64_t r, int64_t key, int first, int last, int n) {
    int32_t buffer[DROPOUT_BUFFER];
    const int32_t *keep = kept_keys(b, r, key, n, buffer);
    uint16_t *p = (uint16_t *)(void *)s;
    for (int j = first; j < last; j += VL) {
        const vh mask = __builtin_convertvector(*(const vi_any *)(keep + j), vh);
        *(vh_any *)(p + j) &= mask;
    }
}

/* Softmax of VL rows of a group from row r on, whose scores begin at s. The rows of o are scaled to what is to be added
 * to them. */
INLINE void dots_normalize(const block *b, const dots_buffers *w, const span *k, const dots_scale *scale, int64_t key,
                           float *s, int64_t r, int first, int last) {
    vf most[VL];
    for (int i = 0; i < VL; i++) {
        float *row = s + i * DOTS_LDS;
        if (!scale->plain) dots_bend(b, row, r + i, key, first, last);
        most[i] = dots_most(row, first, last, k->low[r + i], k->high[r + i]);
    }
    transpose(most);
    const vf before = get(w->top + r);
    vf now = before;
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) now = vmax(most[i], now);
    const vf base = vsel(now == vset(-INFINITY), vzero(), now), factor = dots_power((before - base) * scale->unit);
    float factors[VL], bases[VL];
    put(w->top + r, now);
    put(factors, factor);
    put(bases, base);
    for (int i = 0; i < VL; i++) {
        float *o = w->o + (r + i) * w->ld, *sum = w->sum + (r + i) * VL;
        for (int64_t c = 0; factors[i] != 1 && c < b->a->d; c += VL) put(o + c, get(o + c) * factors[i]);
        put(sum, dots_weights(s + i * DOTS_LDS, first, last, bases[i], scale->unit, get(sum) * factors[i]));
        if (b->a->drops && r + i < b->rows) dots_drop(b, s + i * DOTS_LDS, r + i, key, first, last, k->n);
    }
}

/* o += p v of one row, which must not meet what is not finite among the values that it does not see. */
static void dots_values_apart(const block *b, const dots_buffers *w, const span *k, int64_t key, const float *s,
                              int64_t r) {
    const attention *a = b->a;
    const trine_tensor *v = &a->call->tensor[ATTENTION_V];
    const uint16_t *p = (const uint16_t *)(const void *)s;
    float *o = w->o + r * w->ld;
    for (int j = k->low[r]; j < k->high[r]; j++) {
        const char *from = token_at(v, b->seq.batch, b->seq.k + key + j, b->head);
        const float weight = sload(p, TRINE_BF16, j);
        for (int64_t c = 0; c < a->d; c += VL)
            put(o + c, vfma(vset(weight), load_part(from, TRINE_BF16, c, a->d - c), get(o + c)));
    }
}

/* SIDE rows from row r on against a packed block of keys from `key` on. */
static void dots_group(const block *b, const dots_buffers *w, const span *k, const dots_scale *scale, int64_t key,
                       int64_t r, const char *block) {
    const int first = k->low[r] / SIDE * SIDE, last = (int)cpu_round_up(k->high[r + SIDE - 1], SIDE);
    const int64_t wide = cpu_round_up(b->a->d, SIDE);
    const dots_block at = dots_block_of(b->a->d);
    if (!span_any(k, r, SIDE)) return;
    for (int j = first; j < last; j += SIDE)
        dots_product(w->s + j, DOTS_LDS, w->q + r * w->pitch, w->pitch, block + j / SIDE * at.k_panel, wide / 2, false);
    for (int i = 0; i < SIDE; i += VL) dots_normalize(b, w, k, scale, key, w->s + i * DOTS_LDS, r + i, first, last);
    const bool finite = block[at.finite];
    for (int64_t c = 0; finite && c < wide; c += SIDE)
        dots_product(w->o + r * w->ld + c, w->ld, (const char *)w->s + first * 2, DOTS_LDS * 4,
                     block + at.v + c / SIDE * at.v_panel + first / 2 * LINE, (last - first) / 2, true);
    for (int i = 0; !finite && i < SIDE && r + i < b->rows; i++)
        dots_values_apart(b, w, k, key, w->s + i * DOTS_LDS, r + i);
}

/* The block's rows against keys from `start` to `end`: w->o, top and sum. */
static void dots_attend(const block *b, const dots_buffers *w, int64_t start, int64_t end) {
    const attention *a = b->a;
    const trine_tensor *tq = &a->call->tensor[ATTENTION_Q];
    const dots_scale scale = dots_scale_of(a);
    for (int64_t r = 0; r < b->padded; r++) {
        if (r < b->rows)
            dots_row(row_at(b, tq, r), a->d, w->q + r * w->pitch);
        else
            memset(w->q + r * w->pitch, 0, (size_t)w->pitch);
        w->top[r] = -INFINITY;
    }
    memset(w->o, 0, (size_t)(b->padded * w->ld) * sizeof *w->o);
    memset(w->sum, 0, (size_t)(b->padded * VL) * sizeof *w->sum);
    if (start < b->low[0]) start = b->low[0] / DOTS_KEYS * DOTS_KEYS;
    if (end > b->high[b->padded - 1]) end = b->high[b->padded - 1];
    for (int64_t key = start; key < end; key += DOTS_KEYS) {
        const int64_t keys = key + DOTS_KEYS < end ? DOTS_KEYS : end - key;
        const char *block = w->shared ? w->shared + key / DOTS_KEYS * w->step : w->block;
        span sees;
        span_init(&sees, b, key, key + keys);
        if (!w->shared) dots_pack_block(a, &b->seq, b->head, key, keys, w->block);
        for (int64_t r = 0; r < b->padded; r += SIDE) dots_group(b, w, &sees, &scale, key, r, block);
    }
    for (int64_t r = 0; r < b->rows; r++) {
        w->sum[r] = vhsum(get(w->sum + r * VL));
        w->top[r] *= scale.whole;
    }
}

#endif
