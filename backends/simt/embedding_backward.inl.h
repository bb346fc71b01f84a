/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on devices: the tokens are sorted by row, then each row's gradients are summed in the order of the tokens. An id out of range is left
 * out. */
#include "embedding_backward.h"
#include "row.h"

/* The table row of a token; v, behind all rows, if there is none. */
DEVICE int64_t row_of(const embedding_backward_params &p, int64_t token) {
    const int64_t id = load_integer(p.ids, p.long_ids, token);
    return id >= 0 && id < p.v ? id : p.v;
}

/* The sums before each thread of the block, of the values of all. */
DEVICE uint32_t sum_before(uint32_t own) {
    SHARED uint32_t sum[2][SORT_THREADS];
    const int thread = thread_index();
    int from = 0;
    sum[0][thread] = own;
    sync_block();
    for (int distance = 1; distance < SORT_THREADS; distance *= 2, from = 1 - from) {
        sum[1 - from][thread] = sum[from][thread] + (thread >= distance ? sum[from][thread - distance] : 0);
        sync_block();
    }
    const uint32_t before = sum[from][thread] - own;
    sync_block();
    return before;
}

/* A stable sort by one digit after the other, lowest first, by one block: each thread has a contiguous part of the tokens. */
ENTRY(embedding_backward_sort, SORT_THREADS, embedding_backward_params) {
    enum { DIGITS = 1 << SORT_BITS };
    SHARED uint32_t place[DIGITS * SORT_THREADS]; /* by digit, then thread: a count, then where the next such token goes */
    const int thread = thread_index();
    const int64_t part = (p.t + SORT_THREADS - 1) / SORT_THREADS, first = thread * part, end = first + part < p.t ? first + part : p.t;
    for (int64_t i = first; i < end; i++) p.token[0][i] = i;
    for (int pass = 0; pass < p.passes; pass++) {
        const int64_t *from = p.token[pass % 2];
        int64_t *to = p.token[1 - pass % 2];
        for (int digit = 0; digit < DIGITS; digit++) place[digit * SORT_THREADS + thread] = 0;
        sync_block();
        for (int64_t i = first; i < end; i++) place[(row_of(p, from[i]) >> (SORT_BITS * pass)) % DIGITS * SORT_THREADS + thread]++;
        sync_block();
        uint32_t sum = 0;
        for (int i = 0; i < DIGITS; i++) sum += place[thread * DIGITS + i];
        sum = sum_before(sum);
        for (int i = 0; i < DIGITS; i++) {
            const uint32_t count = place[thread * DIGITS + i];
            place[thread * DIGITS + i] = sum;
            sum += count;
        }
        sync_block();
        for (int64_t i = first; i < end; i++) to[place[(row_of(p, from[i]) >> (SORT_BITS * pass)) % DIGITS * SORT_THREADS + thread]++] = from[i];
        sync_block();
    }
}

/* Where each table row begins among the sorted tokens. */
ENTRY(embedding_backward_start, SIMT_THREADS, embedding_backward_params) {
    const int64_t row = block_index() * SIMT_THREADS + thread_index();
    if (row > p.v) return;
    int64_t low = 0, high = p.t;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (row_of(p, p.token[0][middle]) < row)
            low = middle + 1;
        else
            high = middle;
    }
    p.start[row] = low;
}

template <class T, class W> DEVICE void embedding_backward_sum(const embedding_backward_params &p) {
    using warp = group<32, 1, false>;
    const int64_t tiles = (p.n + SUM_COLUMNS - 1) / SUM_COLUMNS, task = warp::row(), row = task / tiles;
    if (row >= p.v) return;
    const lane l = { (task - row * tiles) * SUM_COLUMNS + warp::rank() * VECTOR, p.n, p.wide };
    const int64_t first = p.start[row], end = p.start[row + 1];
    typename W::bits *to = row_at<W>(p.dtable, row);
    if (first == end && p.accumulate) return;
    float sum[VECTOR] = {};
    if (p.accumulate) load<W>(sum, to, l);
#pragma unroll 4
    for (int64_t i = first; i < end; i++) {
        float dy[VECTOR];
        load<T>(dy, row_at<T>(p.dy, p.token[0][i]), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum[k] += dy[k];
    }
    store<W>(sum, to, l);
}

#define SUM(T, W) \
    ENTRY(embedding_backward_sum_##T##_##W, SIMT_THREADS, embedding_backward_params) { embedding_backward_sum<T, W>(p); }
SUM(f32, f32)
SUM(bf16, f32)
SUM(bf16, bf16)
SUM(f16, f32)
SUM(f16, f16)
