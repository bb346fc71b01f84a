/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks on devices, without matrix units: a block of threads has a tile of 64 rows of a list, and takes 64
 * keys of the list at a time, be they of one entry or of many.
 *
 * NOTES. Floor: keys and values of a list once for each tile of its rows. Products are made in f32 whatever the
 * type. */
#include "lists.inl.h"

/* Scores of the tile become weights by the new maxima; what was summed before is multiplied by `factor`. */
DEVICE void lists_soften(float (&s)[4][4], float (&top)[4], float (&sum)[4], float (&factor)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float most = top[i];
#pragma unroll
        for (int j = 0; j < 4; j++) most = larger(most, s[i][j]);
#pragma unroll
        for (int mask = 8; mask > 0; mask /= 2) most = larger(most, shuffle_xor(most, mask));
        const float base = most == -infinity() ? 0.0f : most;
        factor[i] = exp2_approx(top[i] - base);
        top[i] = most, sum[i] *= factor[i];
#pragma unroll
        for (int j = 0; j < 4; j++) s[i][j] = exp2_approx(s[i][j] - base), sum[i] += s[i][j];
    }
}

template <int D> struct lists_state {
    float o[D / 64][4][4], top[4], sum[4];

    DEVICE lists_state() : o{} {
#pragma unroll
        for (int i = 0; i < 4; i++) top[i] = -infinity(), sum[i] = 0;
    }

    /* A tile of keys, of which the rows see all if it is `whole`. */
    DEVICE void step(const lists_params &p, const lists_lines &lines, const lists_operands &of, bool whole,
                     float *buffer, float *weights) {
        const int down = lists_down(), across = lists_across();
        float s[4][4] = {}, slope[4][4], factor[4];
        int32_t limit[4];
        lists_product(s, of.q, of.k, p.d, buffer);
#pragma unroll
        for (int i = 0; i < 16; i++) s[i / 4][i % 4] *= p.scale;
        if (p.softcap > 0) lists_cap(s, slope, p.softcap, weights);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            limit[i] = lines.limit[down + i];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float z = p.bias.data ? s[i][j] + lines.bias[across + j] : s[i][j];
                s[i][j] = lines.key[across + j] <= limit[i] ? z * LOG2E : -infinity();
            }
        }
        lists_soften(s, top, sum, factor);
        lists_put<true>(weights, s);
#pragma unroll
        for (int i = 0; i < D / 4; i++) o[i / 16][i / 4 % 4][i % 4] *= factor[i / 4 % 4];
        lists_gather<D>(o, weights, of.v, whole, [&](int i, int key) { return lines.key[key] <= limit[i]; }, buffer);
    }

    DEVICE void end(const lists_params &p, const lists_lines &lines, int64_t n, bool bad) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = lists_down() + i;
#pragma unroll
            for (int mask = 8; mask > 0; mask /= 2) sum[i] += shuffle_xor(sum[i], mask);
            if (lines.query[row] < 0) continue;
            const int64_t at = n * p.o.batch + lines.query[row] * p.o.token + lines.head[row] * p.o.head;
            const bool none = sum[i] == 0;
#pragma unroll
            for (int c = 0; c < D / 64; c++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const int column = c * 64 + lists_across() + j;
                    if (column < p.d)
                        lists_store(p, p.o.data, at + column, bad ? not_a_number() : none ? 0.0f : o[c][i][j] / sum[i]);
                }
            if (p.lse.data && thread_index() % 16 == 0)
                ((float *)p.lse.data)[n * p.lse.batch + lines.query[row] * p.lse.token + lines.head[row] * p.lse.head] =
                    bad    ? not_a_number()
                    : none ? -infinity()
                           : fused(top[i], LN2, log_of(sum[i]));
        }
    }
};

template <int D> DEVICE void attention_blocks(const lists_params &p) {
    SHARED packed<float, 4> buffer_memory[LISTS_BUFFER / 4], weights_memory[LISTS_WEIGHTS / 4];
    float *const buffer = (float *)buffer_memory, *const weights = (float *)weights_memory;
    SHARED lists_lines lines;
    const int64_t list = block_index() / p.tiles, problem = list / p.lists, n = problem / p.bundles;
    const int32_t tile = (int32_t)(block_index() - list * p.tiles), r = (int32_t)(list - problem * p.lists),
                  bundle = (int32_t)(problem - n * p.bundles), g = bundle / p.key_bundles, l = bundle / p.list_bundles;
    const lists_span span(p, n, l, r);
    lists_rows_of(p, lines, n, bundle, r, (int64_t)tile * LISTS_SIDE);
    sync_block();
    const least_and_most limits = lists_extent(lines.limit);
    const int64_t count = (int64_t)(span.last - span.first) * p.key_block;
    const lists_operands of(p, lines, n, g);
    lists_state<D> state;
#pragma unroll 1
    for (int64_t first = 0; first < count; first += LISTS_SIDE) {
        lists_keys_of(p, lines, n, l, span, first);
        sync_block();
        const least_and_most keys = lists_extent(lines.key);
        if (keys.least > limits.most) continue;
        state.step(p, lines, of, keys.most <= limits.least, buffer, weights);
    }
    state.end(p, lines, n, span.bad);
}

ENTRY(attention_blocks_64, SIMT_THREADS, lists_params) { attention_blocks<64>(p); }
ENTRY(attention_blocks_128, SIMT_THREADS, lists_params) { attention_blocks<128>(p); }
ENTRY(attention_blocks_256, SIMT_THREADS, lists_params) { attention_blocks<256>(p); }
