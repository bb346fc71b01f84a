/* SPDX-License-Identifier: Apache-2.0 */
/* moe_align on devices: a counting sort in three launches. A block ranks the slots of a chunk among those of the same
 * expert, one block adds up the chunks' counts, and the last launch puts the slots in their places.
 *
 * NOTES. Floor: experts once, rows and places once. A slot looks at the others of its chunk, in shared memory. */
#include "moe_align.h"
#include "backends/simt/core/simt.h"

/* The expert of a slot; -1: none. */
DEVICE int32_t align_expert(const align_params &p, int32_t slot) {
    const int64_t row = (int64_t)quotient((uint32_t)slot, p.k);
    const int64_t id = load_integer(p.experts.data, p.long_experts, row * p.experts.row + slot - row * p.k.by);
    return id >= 0 && id < p.e ? (int32_t)id : -1;
}

DEVICE int32_t *align_row(const align_params &p, int32_t place) {
    const int64_t row = (int64_t)quotient((uint32_t)place, p.b);
    return (int32_t *)p.rows.data + row * p.rows.row + place - row * p.b.by;
}

DEVICE int32_t *align_place(const align_params &p, int32_t slot) {
    const int64_t row = (int64_t)quotient((uint32_t)slot, p.k);
    return (int32_t *)p.places.data + row * p.places.row + slot - row * p.k.by;
}

/* The ranks go to `places`. Rows are made empty beside. */
ENTRY(moe_align_count, SIMT_THREADS, align_params) {
    SHARED int32_t id[ALIGN_CHUNK];
    const int thread = thread_index();
    const int32_t block = (int32_t)block_index(), first = block * ALIGN_CHUNK,
                  count = p.slots - first < ALIGN_CHUNK ? p.slots - first : ALIGN_CHUNK;
    for (int64_t i = (int64_t)block * SIMT_THREADS + thread; i < p.room; i += (int64_t)p.blocks * SIMT_THREADS)
        *align_row(p, (int32_t)i) = -1;
    int32_t *const counts = p.table + (int64_t)block * p.e;
    for (int32_t j = thread; count > 0 && j < p.e; j += SIMT_THREADS) counts[j] = 0;
    for (int i = thread; i < count; i += SIMT_THREADS) id[i] = align_expert(p, first + i);
    sync_block();
    int32_t own[ALIGN_ITEMS], rank[ALIGN_ITEMS] = {}, same[ALIGN_ITEMS] = {};
#pragma unroll
    for (int v = 0; v < ALIGN_ITEMS; v++)
        own[v] = thread + v * SIMT_THREADS < count ? id[thread + v * SIMT_THREADS] : -1;
    for (int i = 0; i < count; i++) {
        const int32_t other = id[i];
#pragma unroll
        for (int v = 0; v < ALIGN_ITEMS; v++) {
            same[v] += other == own[v];
            rank[v] += other == own[v] && i < thread + v * SIMT_THREADS;
        }
    }
#pragma unroll
    for (int v = 0; v < ALIGN_ITEMS; v++) {
        const int at = thread + v * SIMT_THREADS;
        if (at >= count) continue;
        *align_place(p, first + at) = rank[v];
        if (own[v] >= 0 && rank[v] == 0) counts[own[v]] = same[v];
    }
}

ENTRY(moe_align_add, SIMT_THREADS, align_params) {
    SHARED int32_t part[SIMT_THREADS];
    const int thread = thread_index();
    const int32_t b = (int32_t)p.b.by;
    int32_t base = 0;
    if (thread == 0) p.offsets[0] = 0;
    for (int32_t from = 0; from < p.e; from += SIMT_THREADS) {
        const int32_t j = from + thread;
        int32_t before = 0, padded = 0;
        if (j < p.e) {
#pragma unroll 8
            for (int32_t c = 0; c < p.chunks; c++) {
                const int64_t at = (int64_t)c * p.e + j;
                const int32_t here = p.table[at];
                p.table[at] = before;
                before += here;
            }
            p.counts[j] = before;
            const uint32_t kept = (uint32_t)(before < p.capacity ? before : p.capacity);
            padded = (int32_t)quotient(kept + (uint32_t)b - 1, p.b) * b;
        }
        part[thread] = padded;
        sync_block();
        int32_t end = base;
        for (int i = 0; i <= thread; i++) end += part[i];
        if (j < p.e) p.offsets[j + 1] = end;
        for (int i = 0; i < SIMT_THREADS; i++) base += part[i];
        sync_block();
    }
}

/* The last expert whose places begin at `place` or before it, and which has some. */
DEVICE int32_t align_owner(const align_params &p, int32_t place) {
    int32_t low = 0, high = p.e; /* offsets[low] <= place < offsets[high] */
    if (place >= p.offsets[p.e]) return -1;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (p.offsets[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

ENTRY(moe_align_put, SIMT_THREADS, align_params) {
    const int32_t block = (int32_t)block_index(), thread = thread_index(), b = (int32_t)p.b.by;
    for (int v = 0; v < ALIGN_ITEMS; v++) {
        const int32_t slot = block * ALIGN_CHUNK + v * SIMT_THREADS + thread;
        if (slot >= p.slots) break;
        const int32_t id = align_expert(p, slot);
        int32_t *const place = align_place(p, slot);
        const int64_t rank = id < 0 ? p.capacity : (int64_t)*place + p.table[(int64_t)block * p.e + id];
        const int32_t at = rank < p.capacity ? p.offsets[id] + (int32_t)rank : -1;
        *place = at;
        if (at >= 0) *align_row(p, at) = slot;
    }
    for (int64_t q = (int64_t)block * SIMT_THREADS + thread; p.block_experts && q * b < p.room;
         q += (int64_t)p.blocks * SIMT_THREADS)
        p.block_experts[q] = align_owner(p, (int32_t)(q * b));
}
