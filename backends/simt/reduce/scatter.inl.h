/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are added where an index says, on devices: the tokens, which have a row each, are sorted by where it goes,
 * then what goes to one row of the table is summed in the order of the tokens; of rows that several chunks of sorted
 * tokens share, the sums of each chunk. An id out of range is left out, and so is the padding.
 *
 * NOTES. Two launches for each 8 bits of a row's number, then chunks, then sums: four for 255 rows, six for 65,535, of
 * 4 us or so each on an H200. One block that sorted by itself, and one warp for all tokens of a row, took 285 us for
 * 16,384 tokens of 256 rows and 512 columns of f32, where this takes 44. */
#include <count.h>

#include "scatter.h"
#include "backends/simt/core/before.h"
#include "backends/simt/core/row.h"

/* The table row of a token; v, behind all rows, if there is none, or nothing is added to it. */
DEVICE int64_t row_of(const scatter_params &p, int64_t token) {
    const int64_t id = load_integer(p.ids, p.long_ids, token);
    return id >= 0 && id < p.v && id != p.padding ? id : p.v;
}

enum { SORT_GROUP = 32, SORT_GROUPS = 16, SORT_TILE = SORT_GROUP * SORT_GROUPS };
static_assert(SORT_DIGITS == (int)SIMT_THREADS && SORT_TILE % SIMT_THREADS == 0, "a thread has a digit");

/* Token number i of the pass, and its digit. */
struct sort_token {
    uint32_t token;
    int digit;

    DEVICE sort_token(const scatter_params &p, int64_t i) {
        token = p.pass == 0 ? (uint32_t)i : p.token[(p.pass + 1) % 2][i];
        digit = (int)((uint32_t)(row_of(p, token) >> (SORT_BITS * p.pass)) % SORT_DIGITS);
    }
};

/* The tokens of a block are first to end - 1. */
struct sort_range {
    int64_t first, end;

    DEVICE sort_range(const scatter_params &p) {
        first = block_index() * p.block_tokens;
        end = first + p.block_tokens < p.t ? first + p.block_tokens : p.t;
    }
};

/* Body(token, place) for each token of the block: where it goes if those of a digit go one behind the other in their
 * order, digit thread_index() from `next` on. Of 32 tokens at a time a word for each digit says which of them have it:
 * each adds its bit. */
template <class Body> DEVICE void sort_block(const scatter_params &p, uint32_t next, const Body &body) {
    SHARED uint32_t seen[SORT_GROUPS][SORT_DIGITS], begin[SORT_DIGITS];
    SHARED uint16_t before[SORT_GROUPS][SORT_DIGITS]; /* of a digit, in the groups before */
    const int thread = thread_index(), lane = thread % SORT_GROUP;
    const sort_range range(p);
    for (int g = 0; g < SORT_GROUPS; g++) seen[g][thread] = 0;
    for (int64_t tile = range.first; tile < range.end; tile += SORT_TILE) {
        constexpr int EACH = SORT_TILE / SIMT_THREADS;
        uint32_t token[EACH];
        int digit[EACH];
        sync_block();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int number = k * SIMT_THREADS + thread;
            if (tile + number >= range.end) continue;
            const sort_token own(p, tile + number);
            token[k] = own.token, digit[k] = own.digit;
            add_shared(&seen[number / SORT_GROUP][digit[k]], (uint32_t)1 << lane);
        }
        sync_block();
        uint32_t count = 0;
#pragma unroll
        for (int g = 0; g < SORT_GROUPS; g++) {
            before[g][thread] = (uint16_t)count;
            count += ones_of(seen[g][thread]);
        }
        begin[thread] = next, next += count;
        sync_block();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int number = k * SIMT_THREADS + thread, g = number / SORT_GROUP;
            if (tile + number >= range.end) continue;
            const uint32_t own = seen[g][digit[k]] & (((uint32_t)1 << lane) - 1);
            body(token[k], begin[digit[k]] + before[g][digit[k]] + ones_of(own));
        }
        sync_block();
#pragma unroll
        for (int g = 0; g < SORT_GROUPS; g++) seen[g][thread] = 0;
    }
}

DEVICE void scatter_count(const scatter_params &p) {
    SHARED uint32_t count[SORT_DIGITS];
    const int64_t thread = block_index() * SIMT_THREADS + thread_index();
    for (int64_t row = thread; p.pass == 0 && row < p.v; row += p.blocks * SIMT_THREADS) p.first[row] = p.end[row] = 0;
    const sort_range range(p);
    count[thread_index()] = 0;
    sync_block();
    for (int64_t i = range.first + thread_index(); i < range.end; i += SIMT_THREADS)
        add_shared(&count[sort_token(p, i).digit], 1);
    sync_block();
    p.count[thread] = count[thread_index()];
}

/* Stable: behind all tokens of lower digits, and those of the same in the blocks before. */
DEVICE void scatter_sort(const scatter_params &p) {
    uint32_t before = 0, all = 0;
#pragma unroll 16
    for (int64_t block = 0; block < p.blocks; block++) {
        const uint32_t count = p.count[block * SORT_DIGITS + thread_index()];
        all += count;
        before += block < block_index() ? count : 0;
    }
    uint32_t *to = p.token[p.pass % 2];
    sort_block(p, sum_before(all) + before, [&](uint32_t token, uint32_t place) { to[place] = token; });
}

/* Adds the rows of the sorted tokens from `first` on. */
template <class T, bool WHOLE>
DEVICE void add_tokens(float (&sum)[VECTOR], const scatter_params &p, const lane &l, int64_t first, int64_t end) {
    const uint32_t *token = p.token[p.pass % 2];
#pragma unroll 4
    for (int64_t i = first; i < end; i++) {
        float x[VECTOR];
        load_lane<T, WHOLE>(x, row_at<T>(p.x, token[i]), l);
        const float weight = p.weight ? p.weight[token[i]] : 1;
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum[k] = fused(x[k], weight, sum[k]);
    }
}
template <class T>
DEVICE void add_tokens(float (&sum)[VECTOR], const scatter_params &p, const lane &l, int64_t first, int64_t end) {
    if (whole(l))
        add_tokens<T, true>(sum, p, l, first, end);
    else
        add_tokens<T, false>(sum, p, l, first, end);
}

using tile_group = group<32, 1, false>;

/* The lane of a warp's task, tile `task % tiles` of thing `task / tiles`. */
DEVICE lane tile_lane(const scatter_params &p, int64_t task, int64_t tiles) {
    return { task % tiles * SUM_COLUMNS + tile_group::rank() * VECTOR, p.n, p.wide };
}

/* Where rows begin and end; and the sums of the chunk's first row if it began before or ends later, and of its last if
 * that is another and ends later. */
template <class T> DEVICE void scatter_chunks(const scatter_params &p) {
    const int64_t tiles = (p.n + SUM_COLUMNS - 1) / SUM_COLUMNS, task = tile_group::row(), chunk = task / tiles;
    if (chunk >= p.chunks) return;
    const uint32_t *token = p.token[p.pass % 2];
    const int64_t first = chunk * SUM_CHUNK, end = first + SUM_CHUNK < p.t ? first + SUM_CHUNK : p.t,
                  i = first + tile_group::rank();
    const int64_t before = first > 0 ? row_of(p, token[first - 1]) : -1, after = end < p.t ? row_of(p, token[end]) : -1;
    const int64_t head = row_of(p, token[first]), tail = row_of(p, token[end - 1]),
                  own = i < end ? row_of(p, token[i]) : -1;
    if (task == chunk * tiles && own >= 0 && own < p.v) {
        if (i == 0 || row_of(p, token[i - 1]) != own) p.first[own] = (uint32_t)i;
        if (i + 1 == p.t || row_of(p, token[i + 1]) != own) p.end[own] = (uint32_t)(i + 1);
    }
    const int heads = group_sum<32>((int)(own == head)), tails = group_sum<32>((int)(own == tail));
    const lane l = tile_lane(p, task, tiles);
    if (!within(l, 0)) return;
    float *to = p.partial + 2 * chunk * p.n;
    if (head < p.v && (before == head || (head == tail && after == tail))) {
        float sum[VECTOR] = {};
        add_tokens<T>(sum, p, l, first, first + heads);
        store<f32>(sum, to, l);
    }
    if (tail < p.v && tail != head && after == tail) {
        float sum[VECTOR] = {};
        add_tokens<T>(sum, p, l, end - tails, end);
        store<f32>(sum, to + p.n, l);
    }
}

template <class T, class W> DEVICE void scatter_sum(const scatter_params &p) {
    const int64_t tiles = (p.n + SUM_COLUMNS - 1) / SUM_COLUMNS, task = tile_group::row(), row = task / tiles;
    if (row >= p.v) return;
    const lane l = tile_lane(p, task, tiles);
    const int64_t first = p.first[row], end = p.end[row];
    typename W::bits *to = row_at<W>(p.y, row);
    if ((first == end && p.accumulate) || !within(l, 0)) return;
    float sum[VECTOR] = {};
    if (p.accumulate) load<W>(sum, to, l);
    if (first / SUM_CHUNK == (end - 1) / SUM_CHUNK) {
        add_tokens<T>(sum, p, l, first, end);
    } else {
#pragma unroll 8
        for (int64_t chunk = first / SUM_CHUNK; chunk * SUM_CHUNK < end; chunk++) {
            float part[VECTOR];
            load<f32>(part, p.partial + (2 * chunk + (chunk * SUM_CHUNK < first)) * p.n, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum[k] += part[k];
        }
    }
    store<W>(sum, to, l);
}

#define SCATTER_CHUNKS(op, T) \
    ENTRY(op##_chunks_##T, SIMT_THREADS, scatter_params) { scatter_chunks<T>(p); }
#define SCATTER_SUM(op, T, W) \
    ENTRY(op##_sum_##T##_##W, SIMT_THREADS, scatter_params) { scatter_sum<T, W>(p); }
#define SCATTER_ENTRIES(op) \
    ENTRY(op##_count, SIMT_THREADS, scatter_params) { scatter_count(p); } \
    ENTRY(op##_sort, SIMT_THREADS, scatter_params) { scatter_sort(p); } \
    SCATTER_CHUNKS(op, f32) \
    SCATTER_CHUNKS(op, bf16) \
    SCATTER_CHUNKS(op, f16) \
    SCATTER_SUM(op, f32, f32) \
    SCATTER_SUM(op, bf16, f32) \
    SCATTER_SUM(op, bf16, bf16) \
    SCATTER_SUM(op, f16, f32) \
    SCATTER_SUM(op, f16, f16)
