/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks_backward on devices, without matrix units: D of each query; the lists the other way round, by a
 * counting sort in three launches; dq, and of each tile of rows its part of dbias, by lists; dk and dv by blocks of
 * keys, whose rows are gathered; dbias at last. Tiles are those of attention_blocks.
 *
 * NOTES. Floor: as the forward, and queries and dout once for each visit of a block of keys. In the sort a thread looks
 * at all entries of a chunk for one block of keys, in shared memory. */
#include "lists_turn.inl.h"

/* Of the rows of a tile, beside their limits. */
struct lists_statistics {
    float lse[LISTS_SIDE], delta[LISTS_SIDE]; /* lse in powers of 2 */
};

/* Rows whose lse is -Inf are as if they were not there. */
DEVICE void lists_measure(const lists_params &p, lists_lines &lines, lists_statistics &of, int64_t n) {
    const int t = thread_index();
    if (t >= LISTS_SIDE) return;
    const int64_t i = lines.query[t], head = lines.head[t];
    of.lse[t] = of.delta[t] = 0;
    if (i < 0) return;
    const float lse = ((const float *)p.lse.data)[n * p.lse.batch + i * p.lse.token + head * p.lse.head];
    of.lse[t] = lse * LOG2E, of.delta[t] = p.delta[(n * p.h + head) * p.sq + i];
    if (lse == -infinity()) lines.limit[t] = -1, lines.q_at[t] = lines.dout_at[t] = LISTS_ABSENT;
}

/* What both passes find of a tile: weights, ds, and without the derivative of the softcap dz. */
struct lists_change {
    float p[4][4], ds[4][4], dz[4][4];
};
template <bool BY_ROW>
DEVICE void lists_differ(const lists_params &p, const lists_lines &lines, const lists_statistics &of,
                         const lists_operands &x, lists_change &c, float *buffer, float *weights) {
    const int down = lists_down(), across = lists_across();
    float dp[4][4] = {}, slope[4][4];
#pragma unroll
    for (int i = 0; i < 16; i++) c.p[i / 4][i % 4] = 0, slope[i / 4][i % 4] = 1;
    lists_product(c.p, x.q, x.k, p.d, buffer);
    lists_product(dp, x.dout, x.v, p.d, buffer);
#pragma unroll
    for (int i = 0; i < 16; i++) c.p[i / 4][i % 4] *= p.scale;
    if (p.softcap > 0) lists_cap(c.p, slope, p.softcap, weights);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float z = p.bias.data ? c.p[i][j] + lines.bias[BY_ROW ? down + i : across + j] : c.p[i][j];
            const float difference = fused(z, LOG2E, -of.lse[down + i]);
            const bool sees = lines.key[across + j] <= lines.limit[down + i];
            /* of large scores lse has so little that the difference may be positive */
            const float weight = exp2_approx(difference > 0 ? 0.0f : difference);
            c.p[i][j] = sees ? weight : 0.0f;
            c.dz[i][j] = sees ? weight * (dp[i][j] - of.delta[down + i]) : 0.0f;
            c.ds[i][j] = sees ? c.dz[i][j] * slope[i][j] : 0.0f;
        }
}

/* The sums of dz over the tile's rows are added to what this block has of dbias: by the first key of each entry. */
DEVICE void lists_add_bias(const lists_lines &lines, const float (&dz)[4][4], float *partial, float *memory) {
    const int t = thread_index();
    float *const sums = memory + 16 * LISTS_SIDE;
#pragma unroll
    for (int j = 0; j < 4; j++)
        memory[t / 16 * LISTS_SIDE + lists_across() + j] = dz[0][j] + dz[1][j] + dz[2][j] + dz[3][j];
    sync_block();
    if (t < LISTS_SIDE) {
        float sum = 0;
        for (int i = 0; i < 16; i++) sum += memory[i * LISTS_SIDE + t];
        sums[t] = sum;
    }
    sync_block();
    if (t < LISTS_SIDE && lines.entry[t] >= 0 && (t == 0 || lines.entry[t - 1] != lines.entry[t])) {
        float sum = 0;
        for (int j = t; j < LISTS_SIDE && lines.entry[j] == lines.entry[t]; j++) sum += sums[j];
        partial[lines.entry[t]] += sum;
    }
    sync_block();
}

template <int D> DEVICE void lists_queries(const lists_params &p) {
    SHARED packed<float, 4> buffer_memory[LISTS_BUFFER / 4], weights_memory[LISTS_WEIGHTS / 4];
    float *const buffer = (float *)buffer_memory, *const weights = (float *)weights_memory;
    SHARED lists_lines lines;
    SHARED lists_statistics of;
    const int64_t list = block_index() / p.tiles, problem = list / p.lists, n = problem / p.bundles;
    const int32_t tile = (int32_t)(block_index() - list * p.tiles), r = (int32_t)(list - problem * p.lists),
                  bundle = (int32_t)(problem - n * p.bundles), g = bundle / p.key_bundles, l = bundle / p.list_bundles;
    const lists_span span(p, n, l, r);
    float *const partial = p.partial + (problem * p.tiles + tile) * p.entries;
    for (int32_t e = span.first + thread_index(); p.dbias.data && e < span.last; e += SIMT_THREADS) partial[e] = 0;
    lists_rows_of(p, lines, n, bundle, r, (int64_t)tile * LISTS_SIDE);
    lists_measure(p, lines, of, n);
    sync_block();
    const least_and_most limits = lists_extent(lines.limit);
    const int64_t count = (int64_t)(span.last - span.first) * p.key_block;
    const lists_operands x(p, lines, n, g);
    float dq[D / 64][4][4] = {};
#pragma unroll 1
    for (int64_t first = 0; first < count; first += LISTS_SIDE) {
        lists_keys_of(p, lines, n, l, span, first);
        sync_block();
        const least_and_most keys = lists_extent(lines.key);
        if (keys.least > limits.most) continue;
        lists_change c;
        lists_differ<false>(p, lines, of, x, c, buffer, weights);
        sync_block();
        if (p.dbias.data) lists_add_bias(lines, c.dz, partial, buffer);
        lists_put<true>(weights, c.ds);
        int32_t limit[4];
#pragma unroll
        for (int i = 0; i < 4; i++) limit[i] = lines.limit[lists_down() + i];
        lists_gather<D>(
            dq, weights, x.k, keys.most <= limits.least, [&](int i, int key) { return lines.key[key] <= limit[i]; },
            buffer);
    }
#pragma unroll
    for (int i = 0; i < 4 * D / 16; i++) {
        const int row = lists_down() + i % 4;
        const int64_t at = n * p.dq.batch + lines.query[row] * p.dq.token + lines.head[row] * p.dq.head;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int column = i / 4 * 64 + lists_across() + j;
            if (lines.query[row] >= 0 && column < p.d)
                lists_store(p, p.dq.data, at + column, span.bad ? not_a_number() : dq[i / 4][i % 4][j] * p.scale);
        }
    }
}

/* Row number `first` + t of those that visit a block of keys, the rows of a visit behind each other. */
DEVICE void lists_visitors(const lists_params &p, lists_lines &lines, int64_t n, int32_t bundle, int32_t l,
                           const lists_visit *visits, int32_t count, int64_t first) {
    const int t = thread_index();
    if (t >= LISTS_SIDE) return;
    const int64_t rows = (int64_t)p.query_block * p.bundle, number = first + t, before = number / rows,
                  row = number - before * rows;
    const lists_visit visit = before < count ? visits[before] : lists_visit{ 0, -1 };
    const int64_t i = (int64_t)visit.list * p.query_block + row / p.bundle;
    lines.set_row(p, t, visit.entry >= 0 && i < p.sq, n, (int32_t)i, bundle * p.bundle + (int32_t)(row % p.bundle));
    lines.bias[t] = visit.entry >= 0 ? lists_bias(p, n, l, visit.entry) : 0.0f;
}

template <int D> struct lists_key_sums {
    float dk[D / 64][4][4], dv[D / 64][4][4];
    DEVICE lists_key_sums() : dk{}, dv{} {}

    DEVICE void step(const lists_params &p, const lists_lines &lines, const lists_statistics &of,
                     const lists_operands &x, bool whole, float *buffer, float *weights) {
        lists_change c;
        lists_differ<true>(p, lines, of, x, c, buffer, weights);
        int32_t key[4];
#pragma unroll
        for (int i = 0; i < 4; i++) key[i] = lines.key[lists_down() + i];
        const auto sees = [&](int i, int row) { return key[i] <= lines.limit[row]; };
        sync_block();
        lists_put<false>(weights, c.ds);
        lists_gather<D>(dk, weights, x.q, whole, sees, buffer);
        lists_put<false>(weights, c.p);
        lists_gather<D>(dv, weights, x.dout, whole, sees, buffer);
    }

    static DEVICE void store(const lists_params &p, const lists_tensor &to, int64_t n, int32_t g,
                             const lists_lines &lines, const float (&sum)[D / 64][4][4], float scale) {
#pragma unroll
        for (int i = 0; i < 4 * D / 16; i++) {
            const int32_t key = lines.key[lists_down() + i % 4];
            const int64_t at = n * to.batch + key * to.token + g * to.head;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int column = i / 4 * 64 + lists_across() + j;
                if (key != LISTS_NOWHERE && column < p.d)
                    lists_store(p, to.data, at + column, sum[i / 4][i % 4][j] * scale);
            }
        }
    }
};

template <int D> DEVICE void lists_keys(const lists_params &p) {
    SHARED packed<float, 4> buffer_memory[LISTS_BUFFER / 4], weights_memory[LISTS_WEIGHTS / 4];
    float *const buffer = (float *)buffer_memory, *const weights = (float *)weights_memory;
    SHARED lists_lines lines;
    SHARED lists_statistics of;
    const int64_t block = block_index() / p.key_tiles, problem = block / p.key_blocks, n = problem / p.hk;
    const int32_t tile = (int32_t)(block_index() - block * p.key_tiles), g = (int32_t)(problem - n * p.hk),
                  c = (int32_t)(block - problem * p.key_blocks), t = thread_index();
    if (t < LISTS_SIDE) {
        const int64_t in_block = (int64_t)tile * LISTS_SIDE + t, j = (int64_t)c * p.key_block + in_block;
        lines.set_key(p, t, in_block < p.key_block && j < p.sk ? (int32_t)j : (int32_t)LISTS_NOWHERE);
    }
    sync_block();
    int64_t all = 0; /* of the visits of the block: extents ask all threads together */
    for (int32_t bundle = g * p.key_bundles; bundle < (g + 1) * p.key_bundles; bundle++) {
        const int32_t *const begins = p.begins + (n * p.hl + bundle / p.list_bundles) * (p.key_blocks + 1) + c;
        all += begins[1] - begins[0];
    }
    const least_and_most keys = all > 0 ? lists_extent(lines.key) : least_and_most{ 0, 0 };
    const lists_operands x(p, lines, n, g);
    lists_key_sums<D> sums;
#pragma unroll 1
    for (int32_t bundle = g * p.key_bundles; bundle < (g + 1) * p.key_bundles; bundle++) {
        const int32_t l = bundle / p.list_bundles;
        const int64_t lists = n * p.hl + l;
        const int32_t *const begins = p.begins + lists * (p.key_blocks + 1) + c;
        const int32_t visits = begins[1] - begins[0];
        const int64_t rows = (int64_t)visits * p.query_block * p.bundle;
#pragma unroll 1
        for (int64_t first = 0; first < rows; first += LISTS_SIDE) {
            lists_visitors(p, lines, n, bundle, l, p.visits + lists * p.entries + begins[0], visits, first);
            lists_measure(p, lines, of, n);
            sync_block();
            const least_and_most limits = lists_extent(lines.limit);
            if (keys.least > limits.most) continue;
            sums.step(p, lines, of, x, keys.most <= limits.least, buffer, weights);
        }
    }
    sums.store(p, p.dk, n, g, lines, sums.dk, p.scale);
    sums.store(p, p.dv, n, g, lines, sums.dv, 1);
}

DEVICE void lists_delta(const lists_params &p) {
    enum { GROUP = 32 };
    const int64_t row = block_index() * (SIMT_THREADS / GROUP) + thread_index() / GROUP;
    if (row >= (int64_t)p.b * p.h * p.sq) return;
    const int64_t plane = row / p.sq, i = row - plane * p.sq, n = plane / p.h, head = plane - n * p.h;
    const int64_t dout = n * p.dout.batch + i * p.dout.token + head * p.dout.head,
                  o = n * p.o.batch + i * p.o.token + head * p.o.head;
    float sum = 0;
    for (int c = thread_index() % GROUP; c < p.d; c += GROUP)
        sum = fused(lists_load(p, p.dout.data, dout + c), lists_load(p, p.o.data, o + c), sum);
    sum = group_sum<GROUP>(sum);
    if (thread_index() % GROUP == 0) p.delta[row] = sum;
}

ENTRY(attention_blocks_backward_delta, SIMT_THREADS, lists_params) { lists_delta(p); }
ENTRY(attention_blocks_backward_queries_64, SIMT_THREADS, lists_params) { lists_queries<64>(p); }
ENTRY(attention_blocks_backward_queries_128, SIMT_THREADS, lists_params) { lists_queries<128>(p); }
ENTRY(attention_blocks_backward_queries_256, SIMT_THREADS, lists_params) { lists_queries<256>(p); }
ENTRY(attention_blocks_backward_keys_64, SIMT_THREADS, lists_params) { lists_keys<64>(p); }
ENTRY(attention_blocks_backward_keys_128, SIMT_THREADS, lists_params) { lists_keys<128>(p); }
ENTRY(attention_blocks_backward_keys_256, SIMT_THREADS, lists_params) { lists_keys<256>(p); }
