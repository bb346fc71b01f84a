/* SPDX-License-Identifier: Apache-2.0 */
/* Attention without tensor cores: any type, size and stride, in f32.
 *
 * A block has 64 queries of a head, and up to 128 columns of o: with more, several blocks find the same weights. Keys
 * come in tiles of 64. A thread has 4 x 4 scores and 4 rows of o, 4 columns of each 64; the 16 threads of the same rows
 * are neighbours.
 *
 * NOTES. Floors: 4 flops for each visible pair and column over 67 TFLOP/s (H200, f32, datasheet); bytes do not count.
 * Scores read two vectors of shared memory for 16 multiply-adds, so about a third of that is the most there can be. */
#ifndef TRINE_CUDA_ATTENTION_SIMT_H
#define TRINE_CUDA_ATTENTION_SIMT_H

#include "attention_tile.h"

/* The softmax so far of the thread's rows. */
struct attention_softmax {
    float top[4], sum[4]; /* sum: this thread's part */

    /* Scores, -Inf where masked, become weights; o's rows are to be multiplied by `factor_out`. */
    DEVICE void step(float (&z)[4][4], float (&factor_out)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float most = group_max<16>(
                larger(larger(-infinity(), z[i][0]),
                       larger(larger(-infinity(), z[i][1]), larger(larger(-infinity(), z[i][2]), z[i][3]))));
            const float now = larger(top[i], most), base = now == -infinity() ? 0.0f : now;
            factor_out[i] = attention_weight(top[i], base);
            sum[i] *= factor_out[i];
            top[i] = now;
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i] += z[i][j] = attention_weight(z[i][j], base);
        }
    }
};

template <class T, int D>
DEVICE void attention_simt_end(const attention_params &p, const attention_place &at, attention_softmax &soft,
                               float (&o)[D / 64][4][4], const attention_sight (&sees)[4]) {
    const int row0 = at.first + thread_index() / 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float sum = group_sum<16>(soft.sum[i]);
        if (row0 + i >= p.at.sq) continue;
        const float raised =
            attention_add_sink(attention_sink<T>(p.at, at.batch, at.head, row0 + i), soft.top[i], sum) *
            p.at.options.keeps;
        const float factor = sees[i].bad() ? not_a_number() : sum == 0 ? 0.0f : raised / sum;
        typename T::bits *const to = attention_row<T>(p.o, at.batch, row0 + i, at.head);
#pragma unroll
        for (int c = 0; c < D / 64; c++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int column = at.column + c * 64 + thread_index() % 16 * 4 + j;
                if (column < p.at.d) to[column] = T::put(sum == 0 && !sees[i].bad() ? 0.0f : o[c][i][j] * factor);
            }
        if (p.lse.data && at.column == 0 && thread_index() % 16 == 0)
            *attention_row<f32>(p.lse, at.batch, row0 + i, at.head) = f32::put(sees[i].bad() ? not_a_number()
                                                                               : sum == 0    ? -infinity()
                                                                                          : soft.top[i] + log_of(sum));
    }
}

template <class T, int D, bool OPTIONS> DEVICE void attention_simt(const attention_params &p) {
    SHARED float buffer[ATTENTION_BUFFER], weights[ATTENTION_WEIGHTS];
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, ATTENTION_SIDE, D, p.at.h);
    const int row0 = at.first + thread_index() / 16 * 4, head = at.head / p.at.group,
              rows = lesser(ATTENTION_SIDE, p.at.sq - at.first);
    attention_sight sees[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        sees[i] = row0 + i < p.at.sq ? attention_keys_of(p.at, at.batch, row0 + i) : attention_sight{ 0, 0 };
    const attention_span span = attention_span_over(sees, row0, p.at.sq);
    const simt_dropout dropout = attention_dropout_of<OPTIONS>(p.at.options);
    attention_softmax soft;
    float o[D / 64][4][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) soft.top[i] = -infinity(), soft.sum[i] = 0;
    for (int key = span.any.low; key < span.any.high; key += ATTENTION_SIDE) {
        const int keys = lesser(ATTENTION_SIDE, span.any.high - key);
        const attention_lanes<T> q(p.q, at.batch, at.first, rows, at.head), k(p.k, at.batch, key, keys, head),
            v(p.v, at.batch, key, keys, head);
        float z[4][4] = {}, factor[4];
        attention_product(z, q, k, p.at.d, buffer);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const auto terms = attention_terms_of<T, OPTIONS>(p.at, at.batch, at.head, lesser(row0 + i, p.at.sq - 1));
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int column = key + thread_index() % 16 * 4 + j;
                z[i][j] = sees[i].has(column) ? attention_score_of(p.at, terms, column, z[i][j]).z : -infinity();
            }
        }
        soft.step(z, factor);
        if constexpr (OPTIONS) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const auto terms = attention_terms_of<T, true>(p.at, at.batch, at.head, lesser(row0 + i, p.at.sq - 1));
                const uint32_t keeps = terms.template keeps_run<4>(dropout, key + thread_index() % 16 * 4);
#pragma unroll
                for (int j = 0; j < 4; j++) z[i][j] = keeps >> j & 1 ? z[i][j] : 0.0f;
            }
        }
        attention_put<true>(weights, z);
#pragma unroll
        for (int c = 0; c < D / 64; c++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) o[c][i][j] *= factor[i];
        const bool whole = span.all.low <= key && key + ATTENTION_SIDE <= span.all.high;
        attention_gather<D>(o, weights, v, key, whole, sees, at.column, p.at.d, buffer);
    }
    attention_simt_end<T, D>(p, at, soft, o, sees);
}

#endif
