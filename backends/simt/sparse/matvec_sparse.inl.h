/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sparse on devices: a block has some columns of y and a part of the rows of w. It lists those that h names, 256
 * at a time; then each 32 of its threads take the next but seven, so that all have work whatever is 0. A second launch
 * adds up the parts.
 *
 * NOTES. Floor: the rows of w that are needed, once for each four rows of h. */
#include "matvec_sparse.h"
#include "backends/simt/core/before.h"

template <int R> struct sparse_list {
    float factor[SPARSE_PIECE][R];
    int32_t row[SPARSE_PIECE];
};

/* Lists those of a piece of w, from row `base` on, that a row of h names; how many they are. */
template <class T, int R>
DEVICE uint32_t sparse_names(sparse_list<R> &list, const sparse_params &p, int64_t first, int64_t base, int64_t end) {
    const int64_t j = base + thread_index();
    float h[R];
    bool named = false;
#pragma unroll
    for (int i = 0; i < R; i++) {
        h[i] = j < end && first + i < p.r ? load_one<T>(p.h.data, (first + i) * p.h.row + j) : 0.0f;
        named |= h[i] != 0;
    }
    uint32_t all;
    const uint32_t place = before_thread((uint32_t)named, 0u, of_all(), &all);
    if (named) {
        list.row[place] = thread_index();
#pragma unroll
        for (int i = 0; i < R; i++) list.factor[place][i] = h[i];
    }
    sync_block();
    return all;
}

template <class T, int R, bool WHOLE>
DEVICE void sparse_add(float (&sum)[R][VECTOR], const sparse_list<R> &list, uint32_t count, const sparse_params &p,
                       int64_t base, const lane &l) {
    [[maybe_unused]] constexpr int AHEAD = WHOLE ? 4 : 1;
#pragma unroll AHEAD
    for (uint32_t e = thread_index() / SPARSE_TEAM; e < count; e += SPARSE_TEAMS) {
        float w[VECTOR];
        load_lane<T, WHOLE>(w, (const typename T::bits *)p.w.data + (base + list.row[e]) * p.w.row, l);
#pragma unroll
        for (int i = 0; i < R; i++) {
            const float factor = list.factor[e][i];
            if (R > 1 && factor == 0) continue;
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum[i][k] = fused(factor, w[k], sum[i][k]);
        }
    }
}

/* The teams' sums of a row, in the order of the teams; a thread has a column. */
template <class T>
DEVICE void sparse_store(const sparse_params &p, const float (&team)[SPARSE_TEAMS][SPARSE_TILE], int64_t split,
                         int64_t row, int64_t column) {
    float total = 0;
#pragma unroll
    for (int t = 0; t < SPARSE_TEAMS; t++) total += team[t][thread_index()];
    if (column >= p.k || row >= p.r) return;
    if (p.partial)
        p.partial[(split * p.r + row) * p.k + column] = total;
    else
        store_one<T>(p.y.data, row * p.y.row + column, total);
}

template <class T, int R> DEVICE void sparse(const sparse_params &p) {
    SHARED sparse_list<R> list;
    SHARED float team[SPARSE_TEAMS][SPARSE_TILE];
    const int64_t tile = block_index() % p.tiles, group = block_index() / p.tiles, split = group % p.splits,
                  first = group / p.splits * R, begin = split * p.part,
                  end = begin + p.part < p.n ? begin + p.part : p.n;
    const lane l = { tile * SPARSE_TILE + thread_index() % SPARSE_TEAM * VECTOR, p.k, p.whole };
    float sum[R][VECTOR] = {};
    for (int64_t base = begin; base < end; base += SPARSE_PIECE) {
        const uint32_t count = sparse_names<T, R>(list, p, first, base, end);
        if (whole(l))
            sparse_add<T, R, true>(sum, list, count, p, base, l);
        else if (within(l, 0))
            sparse_add<T, R, false>(sum, list, count, p, base, l);
        sync_block();
    }
#pragma unroll
    for (int i = 0; i < R; i++) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            team[thread_index() / SPARSE_TEAM][thread_index() % SPARSE_TEAM * VECTOR + k] = sum[i][k];
        sync_block();
        sparse_store<T>(p, team, split, first + i, tile * SPARSE_TILE + thread_index());
        sync_block();
    }
}

template <class T> DEVICE void sparse_sum(const sparse_params &p) {
    const int64_t at = block_index() * SIMT_THREADS + thread_index();
    if (at >= p.r * p.k) return;
    float total = 0;
#pragma unroll 8
    for (int64_t split = 0; split < p.splits; split++) total += p.partial[split * p.r * p.k + at];
    store_one<T>(p.y.data, at / p.k * p.y.row + at % p.k, total);
}

#define SPARSE_ENTRIES(T) \
    ENTRY(matvec_sparse_##T##_1, SIMT_THREADS, sparse_params) { sparse<T, 1>(p); } \
    ENTRY(matvec_sparse_##T##_4, SIMT_THREADS, sparse_params) { sparse<T, SPARSE_ROWS>(p); } \
    ENTRY(matvec_sparse_sum_##T, SIMT_THREADS, sparse_params) { sparse_sum<T>(p); }
SPARSE_ENTRIES(f32)
SPARSE_ENTRIES(bf16)
SPARSE_ENTRIES(f16)
