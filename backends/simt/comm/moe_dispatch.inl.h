/* SPDX-License-Identifier: Apache-2.0 */
/* moe_dispatch on devices: blocks rank the slots of chunks among those of the same expert, and add up the chunks; ranks
 * exchange how many slots name each expert; one block makes of these where every rank's slots stand; and then rows go.
 *
 * NOTES. Floor: the rows that go across, once. A packet is half data, and every pair of ranks takes the rounds of that
 * which has most rows. */
#include "moe_dispatch.h"
#include "rows.inl.h"

/* The expert of a slot; -1: none. */
DEVICE int32_t dispatch_expert(const dispatch_params &p, int32_t slot) {
    const int64_t row = (int64_t)quotient((uint32_t)slot, p.k);
    const int64_t id = load_integer(p.experts.data, p.long_experts, row * p.experts.row + slot - row * p.k.by);
    return id >= 0 && id < p.experts_of_all ? (int32_t)id : -1;
}

DEVICE int32_t *dispatch_place(const dispatch_params &p, int32_t slot) {
    const int64_t row = (int64_t)quotient((uint32_t)slot, p.k);
    return (int32_t *)p.places.data + row * p.places.row + slot - row * p.k.by;
}

/* The ranks within a chunk go to `places`. */
ENTRY(moe_dispatch_count, SIMT_THREADS, dispatch_params) {
    SHARED int32_t id[DISPATCH_CHUNK];
    const int thread = thread_index();
    const int32_t block = (int32_t)block_index(), first = block * DISPATCH_CHUNK,
                  count = p.slots - first < DISPATCH_CHUNK ? p.slots - first : DISPATCH_CHUNK;
    int32_t *const counts = p.table + (int64_t)block * p.experts_of_all;
    for (int32_t j = thread; j < p.experts_of_all; j += SIMT_THREADS) counts[j] = 0;
    for (int i = thread; i < count; i += SIMT_THREADS) id[i] = dispatch_expert(p, first + i);
    sync_block();
    int32_t own[DISPATCH_ITEMS], rank[DISPATCH_ITEMS] = {}, same[DISPATCH_ITEMS] = {};
#pragma unroll
    for (int v = 0; v < DISPATCH_ITEMS; v++)
        own[v] = thread + v * SIMT_THREADS < count ? id[thread + v * SIMT_THREADS] : -1;
    for (int i = 0; i < count; i++) {
        const int32_t other = id[i];
#pragma unroll
        for (int v = 0; v < DISPATCH_ITEMS; v++) {
            same[v] += other == own[v];
            rank[v] += other == own[v] && i < thread + v * SIMT_THREADS;
        }
    }
#pragma unroll
    for (int v = 0; v < DISPATCH_ITEMS; v++) {
        const int at = thread + v * SIMT_THREADS;
        if (at >= count) continue;
        *dispatch_place(p, first + at) = rank[v];
        if (own[v] >= 0 && rank[v] == 0) counts[own[v]] = same[v];
    }
}

ENTRY(moe_dispatch_add, SIMT_THREADS, dispatch_params) {
    const int64_t j = block_index() * SIMT_THREADS + thread_index();
    if (j >= p.experts_of_all) return;
    int32_t before = 0;
    for (int32_t c = 0; c < p.chunks; c++) {
        int32_t *const at = p.table + (int64_t)c * p.experts_of_all + j;
        const int32_t here = *at;
        *at = before;
        before += here;
    }
    p.own[j] = before;
}

EXCHANGE_ENTRY(moe_dispatch_gather_4, copy_rows<uint32_t>)

/* The experts of rank r: a thread has them all. */
DEVICE void dispatch_rank(const dispatch_params &p, int32_t r) {
    int64_t start = 0;
    for (int32_t s = 0; s < p.ranks; s++) p.pairs[s * p.ranks + r] = 0;
    if (r == p.rank) p.offsets[0] = 0;
    for (int32_t j = 0; j < p.e; j++) {
        const int64_t id = (int64_t)r * p.e + j;
        int64_t named = 0, taken = 0;
        for (int32_t s = 0; s < p.ranks; s++) {
            const int64_t here = p.all[(int64_t)s * p.experts_of_all + id], left = p.capacity - taken,
                          some = here < left ? here : left, room = p.p - start - taken,
                          put = some < room ? some
                                : room > 0  ? room
                                            : 0;
            int32_t *const pair = p.pairs + s * p.ranks + r;
            if (s == p.rank) {
                p.taken[id] = (int32_t)put;
                p.first[id] = (int32_t)(start + taken);
                p.before[id] = *pair;
            }
            *pair += (int32_t)put;
            named += here;
            taken += some;
        }
        start += taken;
        if (r == p.rank) {
            p.counts[j] = (int32_t)named;
            p.offsets[j + 1] = (int32_t)(start < p.p ? start : p.p);
        }
    }
    if (p.needed) p.needed[r] = (int32_t)start;
    /* numbers that did not come, since the group has failed, are anything */
    if (r == p.rank) p.moves->clear = (int32_t)(start < 0 ? 0 : start < p.p ? start : p.p), p.moves->end = p.p;
}

ENTRY(moe_dispatch_plan, SIMT_THREADS, dispatch_params) {
    SHARED int32_t most[EXCHANGE_RANKS];
    const int thread = thread_index();
    if (thread < p.ranks) dispatch_rank(p, thread);
    sync_block();
    if (thread < p.ranks) {
        int64_t first = 0;
        int32_t largest = 0;
        for (int s = 0; s < p.ranks; s++) {
            const int32_t rows = p.pairs[s * p.ranks + thread];
            largest = rows > largest ? rows : largest;
            if (s < thread) first += p.pairs[p.rank * p.ranks + s];
        }
        p.moves->first[thread] = first;
        p.moves->count[thread] = p.pairs[p.rank * p.ranks + thread];
        most[thread] = largest;
    }
    sync_block();
    if (thread != 0) return;
    int32_t largest = 0;
    for (int r = 0; r < p.ranks; r++) largest = most[r] > largest ? most[r] : largest;
    p.moves->most = largest;
}

ENTRY(moe_dispatch_put, SIMT_THREADS, dispatch_params) {
    moved_row *const list = (moved_row *)(p.moves + 1);
    const int32_t block = (int32_t)block_index();
    for (int v = 0; v < DISPATCH_ITEMS; v++) {
        const int32_t slot = block * DISPATCH_CHUNK + v * SIMT_THREADS + thread_index();
        if (slot >= p.slots) break;
        const int32_t id = dispatch_expert(p, slot);
        int32_t *const to = dispatch_place(p, slot);
        int32_t place = -1;
        if (id >= 0) {
            const int32_t nth = *to + p.table[(int64_t)block * p.experts_of_all + id], owner = id / p.e;
            if (nth < p.taken[id]) {
                place = owner * p.p + p.first[id] + nth;
                list[p.moves->first[owner] + p.before[id] + nth] =
                    moved_row{ (int32_t)quotient((uint32_t)slot, p.k), p.first[id] + nth };
            }
        }
        *to = place;
    }
}

COPY_ENTRIES(moe_dispatch, move_rows)
