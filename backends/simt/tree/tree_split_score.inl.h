/* SPDX-License-Identifier: Apache-2.0 */
/* tree_split_score on devices: a thread has a node and a bin of a feature, and looks for its samples in a chunk, whose
 * keys the block has in shared memory: each sum is in the order of the samples, without atomics. A second launch adds
 * up the chunks; in a third one a thread has a split, and adds up the bins on either side.
 *
 * NOTES. Floor: bins and gradients once. As it is: each key of a sample is compared with each of a feature's. */
#include "tree_split_score.h"
#include "backends/simt/core/simt.h"

/* The thread of a tile that has a sample's key, or -1. */
DEVICE int32_t split_place(const split_params &p, int64_t sample, int64_t feature, int64_t tile) {
    const int64_t node = p.nodes ? p.nodes[sample] : 0, at = sample * p.bins_row + feature;
    const int64_t bin = p.wide ? ((const int32_t *)p.bins)[at] : ((const uint8_t *)p.bins)[at];
    if (node < 0 || node >= p.m) return -1;
    const int64_t place = node * (p.b + 1) + (bin < 0 || bin >= p.b ? p.b : bin) - tile * SIMT_THREADS;
    return place < 0 || place >= SIMT_THREADS ? -1 : (int32_t)place;
}

ENTRY(tree_split_score_add, SIMT_THREADS, split_params) {
    SHARED int32_t place[SIMT_THREADS];
    const int thread = thread_index();
    int64_t rest = block_index();
    const int64_t part = rest % p.parts, tile = rest / p.parts % p.tiles;
    rest = rest / p.parts / p.tiles;
    const int64_t feature = rest % p.f, chunk = rest / p.f, begin = chunk * p.chunk,
                  end = begin + p.chunk < p.s ? begin + p.chunk : p.s, key = tile * SIMT_THREADS + thread;
    const int64_t d = part * SPLIT_SUMS, room = p.d - d;
    float sum[SPLIT_SUMS] = {}, weight = 0;
    int32_t count = 0;
    for (int64_t first = begin; first < end; first += SIMT_THREADS) {
        const int64_t sample = first + thread;
        place[thread] = sample < end ? split_place(p, sample, feature, tile) : -1;
        sync_block();
        for (int i = 0; i < SIMT_THREADS; i++) {
            if (place[i] != thread) continue;
            const float *const g = (const float *)p.gradients.data + (first + i) * p.gradients.row + d;
#pragma unroll
            for (int q = 0; q < SPLIT_SUMS; q++)
                if (q < room) sum[q] += g[q];
            if (p.hessians) weight += p.hessians[first + i];
            count++;
        }
        sync_block();
    }
    if (key >= p.keys) return;
    const int64_t at = (chunk * p.f + feature) * p.keys + key;
    float *const to = p.sums + at * (p.d + 1);
#pragma unroll
    for (int q = 0; q < SPLIT_SUMS; q++)
        if (q < room) to[d + q] = sum[q];
    if (part > 0) return;
    to[p.d] = weight;
    p.counts[at] = count;
}

ENTRY(tree_split_score_total, SIMT_THREADS, split_params) {
    const int64_t at = block_index() * SIMT_THREADS + thread_index(), counts = p.f * p.keys, sums = counts * (p.d + 1);
    if (at < sums) {
        float sum = p.sums[at];
        for (int64_t chunk = 1; chunk < p.chunks; chunk++) sum += p.sums[chunk * sums + at];
        p.sums[at] = sum;
    } else if (at < sums + counts) {
        int32_t sum = 0;
        for (int64_t chunk = 0; chunk < p.chunks; chunk++) sum += p.counts[chunk * counts + at - sums];
        p.counts[at - sums] = sum;
    }
}

/* What lies left and right of split k, of one of the sums or of the counts: bins `step` apart. */
template <class Value> struct sides {
    Value left, right;
    DEVICE sides(const split_params &p, const Value *bin, int64_t step, int64_t k, bool one) : left(0), right(0) {
        for (int64_t i = 0; i < p.b; i++) {
            if (one ? i == k : i <= k)
                left += bin[i * step];
            else
                right += bin[i * step];
        }
        (p.missing_left ? left : right) += bin[p.b * step];
    }
};

DEVICE float split_root(const split_params &p, float x) { return p.cosine ? square_root(x) : x; }

ENTRY(tree_split_score_score, SIMT_THREADS, split_params) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.m * p.f * p.b) return;
    const int64_t k = number % p.b, feature = number / p.b % p.f, node = number / p.b / p.f,
                  at = feature * p.keys + node * (p.b + 1), width = p.d + 1;
    const bool one = p.categorical && p.categorical[feature] & 1;
    const float *const sums = p.sums + at * width;
    const sides<int32_t> count(p, p.counts + at, 1, k, one);
    const sides<float> weight(p, sums + p.d, width, k, one);
    const float left = p.hessians ? weight.left : (float)count.left,
                right = p.hessians ? weight.right : (float)count.right,
                whole = p.hessians ? left + right : (float)(count.left + count.right);
    float left_squares = 0, right_squares = 0, squares = 0;
    for (int64_t q = 0; q < p.d; q++) {
        const sides<float> g(p, sums + q, width, k, one);
        left_squares += g.left * g.left;
        right_squares += g.right * g.right;
        squares += (g.left + g.right) * (g.left + g.right);
        if (p.left_sums)
            ((float *)p.left_sums)[node * p.sums_stride[0] + feature * p.sums_stride[1] + k * p.sums_stride[2] + q] =
                g.left;
    }
    float score = split_root(p, left_squares / (left + p.regularization) + right_squares / (right + p.regularization));
    if (p.gain) score -= split_root(p, squares / (whole + p.regularization));
    if (p.feature_weights) score *= p.feature_weights[feature];
    if (count.left < p.min_count || count.right < p.min_count) score = -infinity();
    ((float *)p.scores)[node * p.scores_stride[0] + feature * p.scores_stride[1] + k] = score;
    if (p.left_weights)
        ((float *)p.left_weights)[node * p.weights_stride[0] + feature * p.weights_stride[1] + k] = left;
    if (p.left_counts)
        ((int32_t *)p.left_counts)[node * p.counts_stride[0] + feature * p.counts_stride[1] + k] = count.left;
}
