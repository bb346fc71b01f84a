/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's rows as sums of tensor cores have them: thread t of a warp has rows t/4 and t/4 + 8 of 16, columns 8j +
 * t%4*2 and the next of the first in elements 4j and 4j + 1, of the second in 4j + 2 and 4j + 3.
 *
 * What a query must not see is hidden in its scores, but a weight of 0 still meets the value, and 0 times NaN or Inf is
 * NaN. So rows that come out as NaN or Inf, in a call that hides anything, are done again, one by one. So are rows with
 * scores so large that the rounding of a score times log2(e) would count more than their differences. */
#ifndef TRINE_CUDA_ATTENTION_ROWS_H
#define TRINE_CUDA_ATTENTION_ROWS_H

#include <tile/vote.h>

#include "attention_sight.h"

/* A thread's two rows, 8 apart. */
struct attention_rows {
    attention_sight sees[2];
    float top[2], sum[2]; /* sum: this thread's part */
    float reach[2];       /* the largest |top| so far, in powers of 2; for decoding */
};
DEVICE attention_rows attention_rows_none() {
    return { { { 0, 0 }, { 0, 0 } }, { -infinity(), -infinity() }, { 0, 0 }, { 0, 0 } };
}
DEVICE void attention_see(attention_rows &rows, const attention_problem &p, int batch, int row) {
#pragma unroll
    for (int r = 0; r < 2; r++)
        rows.sees[r] = row + r * 8 < p.sq ? attention_keys_of(p, batch, row + r * 8) : attention_sight{ 0, 0 };
}
/* Rows whose offsets make no sense come out as NaN. */
DEVICE void attention_spoil(attention_rows &rows) {
#pragma unroll
    for (int r = 0; r < 2; r++)
        if (rows.sees[r].bad()) rows.sum[r] = not_a_number();
}
DEVICE attention_rows attention_rows_of(const attention_problem &p, int batch, int row) {
    attention_rows rows = attention_rows_none();
#pragma unroll
    for (int r = 0; r < 2; r++) rows.sees[r] = attention_keys_of(p, batch, lesser(row + r * 8, p.sq - 1));
    attention_spoil(rows);
    return rows;
}

template <int N> DEVICE void attention_bend(float (&s)[N], float bend) {
#pragma unroll
    for (int i = 0; i < N; i++) s[i] = bend != 0 ? attention_tanh(s[i] * bend) : -s[i];
}

/* Is any of keys first .. end-1 hidden from one of the thread's rows? */
DEVICE bool attention_hides(const attention_rows &rows, int first, int end) {
    return first < greater(rows.sees[0].low, rows.sees[1].low) || end > lesser(rows.sees[0].high, rows.sees[1].high);
}
/* Of a row's elements in 128 columns a bit each: set if the column is below `end`, counted from the thread's first. */
DEVICE uint32_t attention_below(int end) {
    const int columns = greater(lesser(end, 128), 0);
    return (uint32_t)((1ull << (columns / 8 * 2 + lesser(columns % 8, 2))) - 1);
}
template <int N> DEVICE void attention_hide(float (&s)[N], const attention_rows &rows, int first) {
    const int column = first + thread_index() % 4 * 2;
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int c = 0; c < N / 4 * 8; c += 128) {
            const uint32_t seen =
                attention_below(rows.sees[r].high - column - c) & ~attention_below(rows.sees[r].low - column - c);
#pragma unroll
            for (int i = c / 2 + r * 2; i < N && i < c / 2 + 64; i += 4)
#pragma unroll
                for (int e = 0; e < 2; e++) s[i + e] = seen & 1u << ((i - c / 2) / 4 * 2 + e) ? s[i + e] : -infinity();
        }
}

/* Takes the largest scores into account: sums so far are to be multiplied by `factor_out`, and weights are powers of 2
 * of scores times `spread`, less `base_out`. */
template <int N>
DEVICE void attention_rise(const float (&s)[N], attention_rows &rows, float (&factor_out)[2], float (&base_out)[2],
                           float spread) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = rows.top[r], other = larger(s[r * 2], s[r * 2 + 1]);
#pragma unroll
        for (int i = r * 2 + 4; i < N; i += 8) {
            most = larger(most, larger(s[i], s[i + 1]));
            if (i + 4 < N) other = larger(other, larger(s[i + 4], s[i + 5]));
        }
        most = larger(most, other);
        most = larger(most, shuffle_xor(most, 1));
        most = larger(most, shuffle_xor(most, 2));
        const float base = most == -infinity() ? 0.0f : most * spread;
        factor_out[r] = exp2_approx(fused(rows.top[r], spread, -base));
        base_out[r] = base;
        rows.top[r] = most;
        rows.reach[r] = larger(rows.reach[r], magnitude(base));
        rows.sum[r] *= factor_out[r];
    }
}
/* The same where the base is raised only if a weight would be more than 2^8: then, and so if sums are to be multiplied,
 * the answer is yes. */
template <int N>
DEVICE bool attention_rise_if_far(const float (&s)[N], attention_rows &rows, float (&factor_out)[2],
                                  float (&base_out)[2], float spread) {
    const float ROOM = 8.0f;
    float most[2];
    bool far = false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float other = larger(s[r * 2 + 4], s[r * 2 + 5]);
        most[r] = larger(s[r * 2], s[r * 2 + 1]);
#pragma unroll
        for (int i = r * 2 + 8; i < N; i += 8) {
            most[r] = larger(most[r], larger(s[i], s[i + 1]));
            if (i + 4 < N) other = larger(other, larger(s[i + 4], s[i + 5]));
        }
        most[r] = larger(most[r], other);
        base_out[r] = rows.top[r] == -infinity() ? 0.0f : rows.top[r] * spread;
        factor_out[r] = 1.0f;
        far |= most[r] * spread > rows.top[r] * spread + ROOM;
    }
    if (!any_of_warp(far)) return false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        most[r] = larger(most[r], shuffle_xor(most[r], 1));
        most[r] = larger(most[r], shuffle_xor(most[r], 2));
        if (!(most[r] * spread > rows.top[r] * spread + ROOM)) continue;
        const float base = most[r] * spread;
        factor_out[r] = exp2_approx(fused(rows.top[r], spread, -base));
        base_out[r] = base;
        rows.top[r] = most[r];
        rows.sum[r] *= factor_out[r];
    }
    return true;
}
/* Scores FROM to below TO become weights. */
template <int FROM, int TO, int N>
DEVICE void attention_weights(float (&s)[N], attention_rows &rows, const float (&base)[2], float spread) {
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int i = FROM + r * 2; i < TO; i += 4)
#pragma unroll
            for (int e = 0; e < 2; e++) rows.sum[r] += s[i + e] = exp2_approx(fused(s[i + e], spread, -base[r]));
}
template <int N>
DEVICE void attention_soften(float (&s)[N], attention_rows &rows, float (&factor_out)[2], float spread) {
    float base[2];
    attention_rise(s, rows, factor_out, base, spread);
    attention_weights<0, N>(s, rows, base, spread);
}

template <class T, int FROM, int TO, int N> DEVICE void attention_pack(uint32_t (&w)[N / 2], const float (&s)[N]) {
#pragma unroll
    for (int i = FROM / 2; i < TO / 2; i++) w[i] = T::pair(s[2 * i], s[2 * i + 1]);
}
template <class T, int N> DEVICE void attention_pack(uint32_t (&w)[N / 2], const float (&s)[N]) {
    attention_pack<T, 0, N>(w, s);
}

template <int N> DEVICE void attention_scale(float (&o)[N], const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < N; i++) o[i] *= factor[i / 2 % 2];
}

/* -------------------------------------------------------------------------------------------------------------- end */

/* Lane l of four has pair l of four vectors of 16 bytes, and gets vector l. */
DEVICE void attention_turn_4(uint32_t (&x)[4]) {
    const int lane = thread_index() % 4;
    const bool odd = lane % 2, high = lane / 2;
    const uint32_t a = shuffle_xor(odd ? x[0] : x[1], 1), b = shuffle_xor(odd ? x[2] : x[3], 1);
    const uint32_t u0 = odd ? a : x[0], u1 = odd ? x[1] : a, v0 = odd ? b : x[2], v1 = odd ? x[3] : b;
    const uint32_t c = shuffle_xor(high ? u0 : v0, 2), d = shuffle_xor(high ? u1 : v1, 2);
    x[0] = high ? c : u0, x[1] = high ? d : u1, x[2] = high ? v0 : c, x[3] = high ? v1 : d;
}

/* Of one row's sums times `factor`, or of zeros, the thread's vector in columns 32 i and on: every thread has its
 * columns of blocks of 8, and the four of a row exchange them. */
template <class T, int N>
DEVICE void attention_vector(uint32_t (&x)[4], const float (&o)[N], int i, int half, float factor, bool none) {
#pragma unroll
    for (int b = 0; b < 4; b++)
        x[b] = none ? 0 : T::pair(o[16 * i + 4 * b + 2 * half] * factor, o[16 * i + 4 * b + 2 * half + 1] * factor);
    attention_turn_4(x);
}

template <class T, int D>
DEVICE void attention_write_row(typename T::bits *to, const float (&o)[D / 2], int half, float factor, bool none,
                                int columns, bool exists, bool wide) {
    uint32_t x[4];
    if (wide && columns % 8 == 0) {
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            attention_vector<T>(x, o, i, half, factor, none);
            const int column = (4 * i + thread_index() % 4) * 8;
            if (exists && column < columns) store_words(to + column, x[0], x[1], x[2], x[3]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
        attention_vector<T>(x, o, i, half, factor, none);
        const int column = (4 * i + thread_index() % 4) * 8;
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (exists && column + e < columns) to[column + e] = (typename T::bits)(x[e / 2] >> 16 * (e % 2));
    }
}

/* One row, by a warp, from what it sees alone. */
template <class T, int D, bool OPTIONS>
DEVICE void attention_redo(const attention_params &p, int batch, int head, int token) {
    const int lane = thread_index() % WARP;
    const attention_sight sees = attention_keys_of(p.at, batch, token);
    if (sees.bad()) return;
    const auto terms = attention_terms_of<T, OPTIONS>(p.at, batch, head, token);
    const simt_dropout dropout = attention_dropout_of<OPTIONS>(p.at.options);
    const typename T::bits *const from = attention_row<T>(p.q, batch, token, head);
    float q[D / WARP], o[D / WARP] = {}, top = -infinity(), sum = 0;
#pragma unroll
    for (int i = 0; i < D / WARP; i++) q[i] = lane + i * WARP < p.at.d ? T::get(from[lane + i * WARP]) : 0.0f;
#pragma unroll 1
    for (int key = sees.low; key < sees.high; key++) {
        const typename T::bits *const k = attention_row<T>(p.k, batch, key, head / p.at.group),
                                      *const v = attention_row<T>(p.v, batch, key, head / p.at.group);
        float product = 0;
#pragma unroll
        for (int i = 0; i < D / WARP; i++)
            if (lane + i * WARP < p.at.d) product = fused(q[i], T::get(k[lane + i * WARP]), product);
        const float z = attention_score_of(p.at, terms, key, group_sum<WARP>(product)).z, now = larger(top, z),
                    base = now == -infinity() ? 0.0f : now;
        const float factor = attention_weight(top, base), weight = attention_weight(z, base),
                    left = terms.keeps(dropout, key) ? weight : 0.0f;
        top = now, sum = fused(sum, factor, weight);
#pragma unroll
        for (int i = 0; i < D / WARP; i++)
            if (lane + i * WARP < p.at.d) o[i] = fused(left, T::get(v[lane + i * WARP]), o[i] * factor);
    }
    const float raised = attention_add_sink(attention_sink<T>(p.at, batch, head, token), top, sum) * p.at.options.keeps;
    typename T::bits *const to = attention_row<T>(p.o, batch, token, head);
    sync_warp(); /* what is written here was written before, by other lanes */
#pragma unroll
    for (int i = 0; i < D / WARP; i++)
        if (lane + i * WARP < p.at.d) to[lane + i * WARP] = T::put(sum == 0 ? 0.0f : o[i] * (raised / sum));
    if (p.lse.data && lane == 0)
        *attention_row<f32>(p.lse, batch, token, head) = f32::put(sum == 0 ? -infinity() : top + log_of(sum));
}

/* Of a base that is far below 2^18 nothing is left of what came before by one that was further from 0. */
#define ATTENTION_FAR (0x1p18f - 256)

/* A row's sum of weights, by its largest product, with that of its sink. */
template <class T>
DEVICE attention_total attention_row_total(const attention_params &p, float top, float sum, int batch, int head,
                                           int token, bool exists) {
    const float sink = exists ? attention_sink<T>(p.at, batch, head, token) : -infinity(),
                base = top == -infinity() ? top : top * p.spread;
    attention_total total = attention_total_of(top * p.unit, base, sum, sink);
    if (sink == -infinity()) total.lse = fused(top, p.unit, log_of(sum));
    total.factor *= p.at.options.keeps;
    return total;
}

/* Ends the thread's rows, `row` and row + 8 of a head, and those that came out as NaN or Inf in a call that hides
 * anything. What they see does not count any more. */
template <class T, int D, bool OPTIONS = false>
DEVICE void attention_end(const attention_params &p, int batch, int head, int row, const float (&o)[D / 2],
                          const attention_rows &rows) {
    const int lane = thread_index() % WARP;
    typename T::bits *const to = attention_row<T>(p.o, batch, row, head);
    bool again[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float spoilt = 0, sum = rows.sum[r];
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        const bool exists = row + r * 8 < p.at.sq;
        const attention_total total = attention_row_total<T>(p, rows.top[r], sum, batch, head, row + r * 8, exists);
        const bool none = total.sum == 0;
        if (p.hides)
#pragma unroll
            for (int i = 2 * r; i < D / 2; i += 4) spoilt += o[i] * 0.0f + o[i + 1] * 0.0f;
        attention_write_row<T, D>(to + r * 8 * p.o.token, o, r, total.factor * reciprocal(total.sum), none, p.at.d,
                                  exists, p.wide);
        if (p.lse.data && exists && lane % 4 == 0)
            *attention_row<f32>(p.lse, batch, row + r * 8, head) = f32::put(none ? -infinity() : total.lse);
        const bool far = rows.top[r] != -infinity() && magnitude(rows.top[r] * p.spread) > ATTENTION_FAR;
        again[r] = exists && (far || total.far || (!none && spoilt != 0));
    }
    if (!any_of_warp(again[0] || again[1])) return;
    sync_warp();
#pragma unroll 1
    for (int r = 0; r < 16; r++)
        if (any_of_warp(lane / 4 == r % 8 && (r < 8 ? again[0] : again[1])))
            attention_redo<T, D, OPTIONS>(p, batch, head, row - lane / 4 + r);
}

#endif
