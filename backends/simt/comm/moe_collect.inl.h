/* SPDX-License-Identifier: Apache-2.0 */
/* moe_collect on devices: ranks exchange places, a block for each rank lists which of its slots have a row here, rows
 * go to the slots that want them, and these are added up as moe_combine does.
 *
 * NOTES. Floor: the rows that go across, once. They are written and read once more, in the workspace. */
#include "moe_collect.h"
#include "backends/simt/core/simt.h"
#include "rows.inl.h"

ENTRY(moe_collect_pack, SIMT_THREADS, collect_params) {
    const int64_t slot = block_index() * SIMT_THREADS + thread_index();
    if (slot >= p.slots) return;
    const int64_t token = (int64_t)quotient((uint32_t)slot, p.k);
    const int32_t place = ((const int32_t *)p.places.data)[token * p.places.row + slot - token * p.k.by];
    p.own[slot] = place >= 0 && place < (int64_t)p.ranks * p.p ? place : -1;
}

EXCHANGE_ENTRY(moe_collect_gather_4, copy_rows<uint32_t>)

/* A block has the slots of one rank; those with a row here keep their order. */
ENTRY(moe_collect_list, SIMT_THREADS, collect_params) {
    SHARED int32_t owner[SIMT_THREADS];
    const int thread = thread_index();
    const int32_t to = (int32_t)block_index();
    const int64_t first = (int64_t)to * p.slots;
    moved_row *const list = (moved_row *)(p.moves + 1) + first;
    int32_t count = 0, of_rank = 0;
    for (int64_t from = 0; from < p.slots; from += SIMT_THREADS) {
        const int64_t slot = from + thread;
        const int32_t place = slot < p.slots ? p.all[first + slot] : -1;
        /* places that did not come, since the group has failed, are anything */
        owner[thread] = place >= 0 && place < (int64_t)p.ranks * p.p ? place / p.p : -1;
        sync_block();
        int32_t before = 0, here = 0;
        for (int i = 0; i < SIMT_THREADS; i++) {
            here += owner[i] == p.rank;
            before += owner[i] == p.rank && i < thread;
            of_rank += owner[i] == thread;
        }
        if (owner[thread] == p.rank) list[count + before] = moved_row{ place % p.p, (int32_t)slot };
        count += here;
        sync_block();
    }
    if (thread < p.ranks) p.pairs[thread * p.ranks + to] = of_rank;
    if (thread != 0) return;
    p.moves->count[to] = count;
    p.moves->first[to] = first;
}

ENTRY(moe_collect_most, SIMT_THREADS, collect_params) {
    SHARED int32_t most[SIMT_THREADS];
    const int thread = thread_index();
    int32_t largest = 0;
    for (int i = thread; i < p.ranks * p.ranks; i += SIMT_THREADS)
        largest = p.pairs[i] > largest ? p.pairs[i] : largest;
    most[thread] = largest;
    sync_block();
    if (thread != 0) return;
    for (int i = 1; i < SIMT_THREADS; i++) largest = most[i] > largest ? most[i] : largest;
    p.moves->most = largest;
    p.moves->clear = p.moves->end = 0;
}

EXCHANGE_ENTRY(moe_collect_2, move_rows<uint16_t>)
EXCHANGE_ENTRY(moe_collect_4, move_rows<uint32_t>)

template <class T, class O> DEVICE void collect_sum(const collect_params &p) {
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= p.units) return;
    const int64_t token = divides_fast(p.units) ? (int64_t)quotient((uint32_t)unit, p.row_units)
                                                : (int64_t)quotient((uint64_t)unit, p.row_units);
    const lane l = { (unit - token * p.row_units.by) * VECTOR, p.n, p.aligned };
    const float *const weights = p.weights.data ? (const float *)p.weights.data + token * p.weights.row : nullptr;
    const int32_t k = (int32_t)p.k.by;
    float sum[VECTOR] = {};
    for (int32_t a = 0; a < k && p.slots > 0; a++) {
        const int64_t slot = token * k + a;
        if (p.own[slot] < 0) continue;
        float x[VECTOR];
        load<T>(x, (const typename T::bits *)p.rows.data + slot * p.rows.row, l);
        const float weight = weights ? weights[a] : 1.0f;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) sum[i] = fused(weight, x[i], sum[i]);
    }
    store<O>(sum, (typename O::bits *)p.y.data + token * p.y.row, l);
}

ENTRY(moe_collect_sum_f32_f32, SIMT_THREADS, collect_params) { collect_sum<f32, f32>(p); }
ENTRY(moe_collect_sum_bf16_bf16, SIMT_THREADS, collect_params) { collect_sum<bf16, bf16>(p); }
ENTRY(moe_collect_sum_bf16_f32, SIMT_THREADS, collect_params) { collect_sum<bf16, f32>(p); }
ENTRY(moe_collect_sum_f16_f16, SIMT_THREADS, collect_params) { collect_sum<f16, f16>(p); }
ENTRY(moe_collect_sum_f16_f32, SIMT_THREADS, collect_params) { collect_sum<f16, f32>(p); }
