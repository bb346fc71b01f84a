/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks by the tensor cores of sm_80 and later, with the products of attention_mma.h: each of a block's 4
 * warps has 16 of 64 rows of a list. Values of 64 keys are copied while their scores are found, and the next keys, be
 * they of one entry or of many, while values are multiplied.
 *
 * NOTES. Floors: 4 flops for each listed pair and column over the rate of mma.sync; 128 bytes a clock of shared memory,
 * of which 16 rows to a warp ask 1 for 16 flops. */
#ifndef TRINE_CUDA_ATTENTION_BLOCKS_MMA_H
#define TRINE_CUDA_ATTENTION_BLOCKS_MMA_H

#include "backends/cuda/attention/attention_mma.h"
#include "backends/simt/attention_blocks/lists.h"

/* Copies 64 rows of D columns to a panel, by their places; absent ones, and columns beyond the last, are 0. */
template <class T, int D> DEVICE void lists_copy(const lists_params &p, char *to, const lists_values &rows) {
    enum { PIECES = D < 128 ? D / 8 : 16, STEP = LISTS_MMA_THREADS / PIECES };
    using bits = typename T::bits;
#pragma unroll 1
    for (int row = thread_index() / PIECES; row < LISTS_SIDE; row += STEP) {
        const bool there = rows.at[row] != LISTS_ABSENT;
        const bits *const from = (const bits *)rows.data + (there ? rows.from + rows.at[row] : 0);
#pragma unroll
        for (int c = thread_index() % PIECES; c < D / 8; c += PIECES) {
            char *const piece = to + attention_piece<LISTS_SIDE>(row, c);
            const int left = there ? p.d - c * 8 : 0, elements = left < 0 ? 0 : left < 8 ? left : 8;
            if (p.wide)
                copy_bytes<16>(piece, elements > 0 ? from + c * 8 : from, elements * 2);
            else
#pragma unroll 1
                for (int e = 0; e < 8; e++) ((bits *)piece)[e] = e < elements ? from[c * 8 + e] : bits(0);
        }
    }
}

/* One row, by a warp, from what it sees alone: where a weight of 0 met a value that is not finite. */
template <class T, int D>
DEVICE void lists_redo(const lists_params &p, const lists_span &span, int64_t n, int32_t g, int32_t l, int32_t i,
                       int32_t head) {
    const int lane = thread_index() % WARP;
    const int32_t same = i + p.sk - p.sq, limit = p.causal && same < p.sk - 1 ? same : p.sk - 1;
    const int64_t from = n * p.q.batch + i * p.q.token + head * p.q.head,
                  to = n * p.o.batch + i * p.o.token + head * p.o.head;
    float q[D / WARP], o[D / WARP] = {}, top = -infinity(), sum = 0;
#pragma unroll
    for (int c = 0; c < D / WARP; c++)
        q[c] = lane + c * WARP < p.d ? load_one<T>(p.q.data, from + lane + c * WARP) : 0.0f;
#pragma unroll 1
    for (int32_t e = span.first; e < span.last; e++) {
        const int32_t first = lists_first_key(p, n, l, e);
#pragma unroll 1
        for (int32_t j = first; j <= limit && j - first < p.key_block; j++) {
            const int64_t k = n * p.k.batch + j * p.k.token + g * p.k.head,
                          v = n * p.v.batch + j * p.v.token + g * p.v.head;
            float z = 0;
#pragma unroll
            for (int c = 0; c < D / WARP; c++)
                if (lane + c * WARP < p.d) z = fused(q[c], load_one<T>(p.k.data, k + lane + c * WARP), z);
            z = group_sum<WARP>(z) * p.scale;
            if (p.softcap > 0) z = p.softcap * tanh_of(z / p.softcap);
            z = (z + lists_bias(p, n, l, e)) * LOG2E;
            const float now = larger(top, z), base = now == -infinity() ? 0.0f : now, factor = exp2_approx(top - base),
                        weight = exp2_approx(z - base);
            top = now, sum = fused(sum, factor, weight);
#pragma unroll
            for (int c = 0; c < D / WARP; c++)
                if (lane + c * WARP < p.d)
                    o[c] = fused(weight, load_one<T>(p.v.data, v + lane + c * WARP), o[c] * factor);
        }
    }
#pragma unroll
    for (int c = 0; c < D / WARP; c++)
        if (lane + c * WARP < p.d) store_one<T>(p.o.data, to + lane + c * WARP, sum == 0 ? 0.0f : o[c] / sum);
}

/* A thread's two rows of a warp's 16, 8 apart, and their sums. */
template <class T, int D> struct lists_warp {
    float o[1][D / 2], top[2], sum[2];
    int32_t limit[2];
    int row; /* the first, of 64 */

    DEVICE lists_warp(const lists_lines &lines) : o{}, row(thread_index() / WARP * 16 + thread_index() % WARP / 4) {
#pragma unroll
        for (int r = 0; r < 2; r++) top[r] = -infinity(), sum[r] = 0, limit[r] = lines.limit[row + r * 8];
    }

    /* From products to weights by the new maxima. */
    DEVICE void soften(const lists_params &p, const lists_lines &lines, float (&s)[LISTS_SIDE / 2]) {
        const int column = thread_index() % 4 * 2;
        float factor[2];
#pragma unroll
        for (int i = 0; i < LISTS_SIDE / 2; i++) {
            const int key = column + i / 4 * 8 + i % 2;
            const float z = p.softcap > 0 ? p.softcap * attention_tanh(s[i] * p.scale / p.softcap) : s[i] * p.scale;
            s[i] = lines.key[key] <= limit[i / 2 % 2] ? (z + lines.bias[key]) * LOG2E : -infinity();
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float most = top[r];
#pragma unroll
            for (int i = r * 2; i < LISTS_SIDE / 2; i += 4) most = larger(most, larger(s[i], s[i + 1]));
            most = larger(most, shuffle_xor(most, 1));
            most = larger(most, shuffle_xor(most, 2));
            const float base = most == -infinity() ? 0.0f : most;
            factor[r] = exp2_approx(top[r] - base);
            top[r] = most, sum[r] *= factor[r];
#pragma unroll
            for (int i = r * 2; i < LISTS_SIDE / 2; i += 4)
#pragma unroll
                for (int e = 0; e < 2; e++) sum[r] += s[i + e] = exp2_approx(s[i + e] - base);
        }
        attention_scale(o[0], factor);
    }

    DEVICE void end(const lists_params &p, const lists_lines &lines, const lists_span &span, int64_t n, int32_t g,
                    int32_t l) {
        bool again[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int at = row + r * 8;
            const int32_t i = lines.query[at], head = lines.head[at];
            const bool exists = i >= 0;
            float spoilt = 0;
            sum[r] += shuffle_xor(sum[r], 1);
            sum[r] += shuffle_xor(sum[r], 2);
            if (p.causal)
#pragma unroll
                for (int c = 2 * r; c < D / 2; c += 4) spoilt += o[0][c] * 0.0f + o[0][c + 1] * 0.0f;
            const bool none = sum[r] == 0 && !span.bad;
            typename T::bits *const to =
                (typename T::bits *)p.o.data + (exists ? n * p.o.batch + i * p.o.token + head * p.o.head : 0);
            attention_write_row<T, D>(to, o[0], r, span.bad ? not_a_number() : 1.0f / sum[r], none, p.d, exists,
                                      p.wide);
            if (p.lse.data && exists && thread_index() % 4 == 0)
                ((float *)p.lse.data)[n * p.lse.batch + i * p.lse.token + head * p.lse.head] =
                    span.bad ? not_a_number()
                    : none   ? -infinity()
                             : fused(top[r], LN2, log_of(sum[r]));
            again[r] = exists && !none && !span.bad && spoilt != 0;
        }
        if (!any_of_warp(again[0] || again[1])) return;
        sync_warp(); /* what is written now was written before, by other lanes */
        const int lane = thread_index() % WARP;
#pragma unroll 1
        for (int r = 0; r < 16; r++) {
            const int at = row - lane / 4 + r;
            if (any_of_warp(lane / 4 == r % 8 && (r < 8 ? again[0] : again[1])))
                lists_redo<T, D>(p, span, n, g, l, lines.query[at], lines.head[at]);
        }
    }
};

/* The first tile of keys from number `first` on that one of the rows sees; they go to `lines`. */
DEVICE int64_t lists_next(const lists_params &p, lists_lines &lines, int64_t n, int32_t l, const lists_span &span,
                          int32_t most, int64_t first) {
    const int64_t count = (int64_t)(span.last - span.first) * p.key_block;
    for (; first < count; first += LISTS_SIDE) {
        sync_block();
        lists_keys_of(p, lines, n, l, span, first);
        sync_block();
        if (lists_extent<LISTS_MMA_THREADS>(lines.key).least <= most) break;
    }
    return first < count ? first : -1;
}

template <class T, int D> DEVICE void attention_blocks_mma(const lists_params &p) {
    enum { PANEL = LISTS_SIDE * 2 * D };
    SHARED lists_lines lines[2];
    static_assert(sizeof lines <= LISTS_MMA_LINES, "the host counts on it");
    char *const q = launch_memory(), *const k = q + PANEL, *const v = k + PANEL;
    const int64_t list = block_index() / p.tiles, problem = list / p.lists, n = problem / p.bundles;
    const int32_t tile = (int32_t)(block_index() - list * p.tiles), r = (int32_t)(list - problem * p.lists),
                  bundle = (int32_t)(problem - n * p.bundles), g = bundle / p.key_bundles, l = bundle / p.list_bundles;
    const lists_span span(p, n, l, r);
    lists_rows_of(p, lines[0], n, bundle, r, (int64_t)tile * LISTS_SIDE);
    sync_block();
    const int32_t most = lists_extent<LISTS_MMA_THREADS>(lines[0].limit).most;
    lists_warp<T, D> warp(lines[0]);
    attention_left_operand<D, LISTS_SIDE, 1, D == 64> left(q);
    int slot = 0;
    int64_t now = lists_next(p, lines[0], n, l, span, most, 0);
    bool begun = false;
    if (now >= 0) {
        const lists_operands of(p, lines[0], n, g);
        lists_copy<T, D>(p, q, of.q);
        lists_copy<T, D>(p, k, of.k);
        copy_commit();
    }
#pragma unroll 1
    while (now >= 0) {
        float s[1][LISTS_SIDE / 2];
        copy_wait<0>();
        sync_block(); /* keys are there, and nobody reads the values before any more */
        lists_copy<T, D>(p, v, lists_operands(p, lines[slot], n, g).v);
        copy_commit();
        if (!begun) left.hold();
        begun = true;
        attention_mma_scores<T, D, LISTS_SIDE>(s, left, k);
        warp.soften(p, lines[slot], s[0]);
        const int64_t then = lists_next(p, lines[slot ^ 1], n, l, span, most, now + LISTS_SIDE);
        copy_wait<0>();
        sync_block(); /* the other way round */
        if (then >= 0) lists_copy<T, D>(p, k, lists_operands(p, lines[slot ^ 1], n, g).k);
        copy_commit();
        attention_mma_values<T, D, LISTS_SIDE>(
            warp.o, [&](int, int i) { return T::pair(s[0][2 * i], s[0][2 * i + 1]); }, v);
        now = then, slot ^= 1;
    }
    warp.end(p, lines[0], span, n, g, l);
}

#endif
