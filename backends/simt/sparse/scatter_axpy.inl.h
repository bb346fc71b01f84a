/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_axpy on devices: a first launch finds how far each block's entries come, so that each knows how far the list
 * had come before it. An index beyond all before it has its element, and those that repeat it, up to the next such one:
 * no two threads are at the same.
 *
 * NOTES. Floor: index twice, d once, and of w 32 bytes for each entry, read and written. */
#include "scatter_axpy.h"
#include "backends/simt/core/before.h"

/* The place, or -1 if it is none. */
DEVICE int64_t scatter_place(const scatter_params &p, int64_t i) {
    const int64_t id = load_integer(p.index, p.long_ids, i);
    return id >= 0 && id < p.places ? id : -1;
}

DEVICE void scatter_reach(const scatter_params &p) {
    const int64_t first = block_index() * p.block, end = first + p.block < p.p ? first + p.block : p.p;
    int64_t most = -1;
#pragma unroll 4
    for (int64_t i = first + thread_index(); i < end; i += SIMT_THREADS) most = largest_of()(most, scatter_place(p, i));
    most = group_combine<SIMT_THREADS>(most, largest_of());
    if (thread_index() == 0) p.reached[block_index()] = most;
}

template <class W> DEVICE typename W::bits *scatter_element(const scatter_params &p, int64_t place) {
    const int64_t row =
        divides_fast(p.places) ? (int64_t)quotient((uint32_t)place, p.row) : (int64_t)quotient((uint64_t)place, p.row);
    return (typename W::bits *)p.w.data + row * p.w.row + (place - row * p.n);
}

template <class W> DEVICE float scatter_addend(const scatter_params &p, int64_t i) {
    return p.alike ? load_one<W>(p.d, i) : load_one<f32>(p.d, i);
}

/* Entry i, the first at its place, where w had `before`, and those that repeat it. */
template <class W> DEVICE void scatter_run(const scatter_params &p, int64_t i, int64_t place, typename W::bits before) {
    using bits = typename W::bits;
    bits *const w = scatter_element<W>(p, place), *const saved = (bits *)p.saved;
    float sum = W::get(before);
    int64_t last = i;
    for (int64_t e = i; e < p.p; e++) {
        const int64_t other = scatter_place(p, e);
        if (other > place) break;
        if (other < place) continue;
        last = e;
        if (saved) saved[e] = before;
        if (!p.put) sum = fused(p.alpha, scatter_addend<W>(p, e), sum);
    }
    if (p.put)
        *w = p.alike ? ((const bits *)p.d)[last] : W::put(scatter_addend<W>(p, last));
    else
        *w = W::put(sum);
}

template <class W>
DEVICE void scatter_tile(const scatter_params &p, const int64_t *place, int64_t at, int64_t reached) {
    using bits = typename W::bits;
    int64_t own[SCATTER_EACH];
    bits before[SCATTER_EACH];
#pragma unroll
    for (int u = 0; u < SCATTER_EACH; u++) {
        own[u] = place[u];
        const bool first = own[u] > reached;
        before[u] = 0;
        if (first)
            before[u] = *scatter_element<W>(p, own[u]);
        else if (p.saved && at + u < p.p && (own[u] < reached || own[u] < 0))
            ((bits *)p.saved)[at + u] = 0;
        reached = first ? own[u] : reached;
        if (!first) own[u] = -1;
    }
#pragma unroll
    for (int u = 0; u < SCATTER_EACH; u++)
        if (own[u] >= 0) scatter_run<W>(p, at + u, own[u], before[u]);
}

template <class W> DEVICE void scatter_entries(const scatter_params &p) {
    SHARED int64_t place[SCATTER_TILE];
    const int64_t first = block_index() * p.block, end = first + p.block < p.p ? first + p.block : p.p;
    int64_t reached = -1;
    for (int64_t i = thread_index(); i < block_index(); i += SIMT_THREADS)
        reached = largest_of()(reached, p.reached[i]);
    reached = group_combine<SIMT_THREADS>(reached, largest_of());
    for (int64_t tile = first; tile < end; tile += SCATTER_TILE) {
#pragma unroll
        for (int u = 0; u < SCATTER_EACH; u++) {
            const int64_t i = tile + u * SIMT_THREADS + thread_index();
            place[u * SIMT_THREADS + thread_index()] = i < end ? scatter_place(p, i) : -1;
        }
        sync_block();
        const int64_t *const own = place + thread_index() * SCATTER_EACH;
        int64_t most = -1, all;
#pragma unroll
        for (int u = 0; u < SCATTER_EACH; u++) most = largest_of()(most, own[u]);
        const int64_t before = before_thread(most, (int64_t)-1, largest_of(), &all);
        scatter_tile<W>(p, own, tile + thread_index() * SCATTER_EACH, largest_of()(reached, before));
        reached = largest_of()(reached, all);
        sync_block();
    }
}

ENTRY(scatter_axpy_reach, SIMT_THREADS, scatter_params) { scatter_reach(p); }
ENTRY(scatter_axpy_f32, SIMT_THREADS, scatter_params) { scatter_entries<f32>(p); }
ENTRY(scatter_axpy_bf16, SIMT_THREADS, scatter_params) { scatter_entries<bf16>(p); }
ENTRY(scatter_axpy_f16, SIMT_THREADS, scatter_params) { scatter_entries<f16>(p); }
