/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine_backward on devices: each slot puts its number at its place; 32 threads of each slot multiply the rows of
 * its weight, and mark the place if another slot has it. Where any place is marked slots are sorted by their places, as
 * embedding_backward's tokens are. Each place's row is then that of its slot, or, where it is marked, the sum over all
 * slots that name it, in their order.
 *
 * NOTES. Floor: dy once for each slot, dx once, and x once for dweights. What is at a place that no slot names is any
 * number, which a look at that slot's place tells. Launches that sort nothing end at once. */
#include "moe_combine_backward.h"
#include "backends/simt/core/simt.h"
#include "backends/simt/reduce/scatter.inl.h"

struct combine_slot {
    int64_t token;
    int32_t a;
};
DEVICE combine_slot combine_slot_of(const combine_backward_params &p, int32_t slot) {
    const int32_t token = (int32_t)quotient((uint32_t)slot, p.k);
    return { token, slot - token * (int32_t)p.k.by };
}

/* The place of a slot; -1: none. */
DEVICE int64_t combine_place(const combine_backward_params &p, int32_t slot) {
    const combine_slot at = combine_slot_of(p, slot);
    const int64_t place = ((const int32_t *)p.places.data)[at.token * p.places.row + at.a];
    return place >= 0 && place < p.p ? place : -1;
}

ENTRY(moe_combine_backward_own, SIMT_THREADS, combine_backward_params) {
    const int64_t slot = block_index() * SIMT_THREADS + thread_index();
    const int64_t place = slot < p.slots ? combine_place(p, (int32_t)slot) : -1;
    if (slot == 0) *p.any = 0;
    if (slot < p.slots) p.place[slot] = (int32_t)place;
    if (place >= 0) p.owner[place] = (int32_t)slot, p.several[place] = 0;
}

ENTRY(moe_combine_backward_count, SIMT_THREADS, combine_backward_params) {
    if (*p.any) scatter_count(p.sort);
}
ENTRY(moe_combine_backward_sort, SIMT_THREADS, combine_backward_params) {
    if (*p.any) scatter_sort(p.sort);
}

/* Where each place's slots begin and end. */
ENTRY(moe_combine_backward_ends, SIMT_THREADS, combine_backward_params) {
    const uint32_t *slot = p.sort.token[p.sort.pass % 2];
    const int64_t i = block_index() * SIMT_THREADS + thread_index();
    if (!*p.any || i >= p.slots) return;
    const int32_t own = p.place[slot[i]];
    if (own < 0) return;
    if (i == 0 || p.place[slot[i - 1]] != own) p.sort.first[own] = (uint32_t)i;
    if (i + 1 == p.slots || p.place[slot[i + 1]] != own) p.sort.end[own] = (uint32_t)(i + 1);
}

template <class T, class O> DEVICE void combine_slots(const combine_backward_params &p) {
    const int64_t slot = block_index() * (SIMT_THREADS / COMBINE_LANES) + thread_index() / COMBINE_LANES;
    const int lane_index = thread_index() % COMBINE_LANES;
    const int64_t place = slot < p.slots ? combine_place(p, (int32_t)slot) : -1;
    const combine_slot at = combine_slot_of(p, slot < p.slots ? (int32_t)slot : 0);
    if (place >= 0 && lane_index == 0 && p.owner[place] != slot) p.several[place] = *p.any = 1;
    if (!p.dweights.data) return;
    float sum = 0;
    for (int64_t j = lane_index * VECTOR; place >= 0 && j < p.n; j += COMBINE_LANES * VECTOR) {
        const lane l = { j, p.n, p.aligned };
        float a[VECTOR], b[VECTOR];
        load<O>(a, (const typename O::bits *)p.dy.data + at.token * p.dy.row, l);
        load<T>(b, (const typename T::bits *)p.x.data + place * p.x.row, l);
#pragma unroll
        for (int i = 0; i < VECTOR; i++) sum = fused(a[i], b[i], sum);
    }
    sum = group_sum<COMBINE_LANES>(sum);
    if (slot < p.slots && lane_index == 0) ((float *)p.dweights.data)[at.token * p.dweights.row + at.a] = sum;
}

template <class O>
DEVICE void combine_add(float (&sum)[VECTOR], const combine_backward_params &p, int32_t slot, const lane &l) {
    const combine_slot at = combine_slot_of(p, slot);
    const float weight = p.weights.data ? ((const float *)p.weights.data)[at.token * p.weights.row + at.a] : 1.0f;
    float dy[VECTOR];
    load<O>(dy, (const typename O::bits *)p.dy.data + at.token * p.dy.row, l);
#pragma unroll
    for (int i = 0; i < VECTOR; i++) sum[i] = fused(weight, dy[i], sum[i]);
}

template <class T, class O> DEVICE void combine_rows(const combine_backward_params &p) {
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= p.units) return;
    const int64_t place = divides_fast(p.units) ? (int64_t)quotient((uint32_t)unit, p.row_units)
                                                : (int64_t)quotient((uint64_t)unit, p.row_units);
    const lane l = { (unit - place * p.row_units.by) * VECTOR, p.n, p.aligned };
    const int32_t owner = p.owner[place];
    const bool there = owner >= 0 && owner < p.slots && combine_place(p, owner) == place;
    float sum[VECTOR] = {};
    if (there && !p.several[place]) {
        combine_add<O>(sum, p, owner, l);
    } else if (there) {
        const uint32_t *slot = p.sort.token[p.sort.pass % 2], end = p.sort.end[place];
        for (uint32_t i = p.sort.first[place]; i < end; i++) combine_add<O>(sum, p, (int32_t)slot[i], l);
    }
    store<T>(sum, (typename T::bits *)p.dx.data + place * p.dx.row, l);
}

#define COMBINE_ENTRIES(T, O) \
    ENTRY(moe_combine_backward_slots_##T##_##O, SIMT_THREADS, combine_backward_params) { combine_slots<T, O>(p); } \
    ENTRY(moe_combine_backward_rows_##T##_##O, SIMT_THREADS, combine_backward_params) { combine_rows<T, O>(p); }
COMBINE_ENTRIES(f32, f32)
COMBINE_ENTRIES(bf16, bf16)
COMBINE_ENTRIES(bf16, f32)
COMBINE_ENTRIES(f16, f16)
COMBINE_ENTRIES(f16, f32)
