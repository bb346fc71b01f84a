/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip on devices: squares summed in float64 by blocks of a fixed size, the sums by one block, then one
 * pass that scales. */
#include <fetch.h>
#include "global_norm_clip.h"
#include "backends/simt/core/list.inl.h"

template <class T, bool WHOLE> DEVICE double clip_sum(const clip_params &p, int64_t first, int64_t end) {
    double sum = 0;
#pragma unroll 4
    for (int64_t at = first + thread_index() * VECTOR; at < end; at += SIMT_THREADS * VECTOR) {
        float x[VECTOR];
        load_lane<T, WHOLE>(x, (const typename T::bits *)p.x, lane{ at, end, p.wide });
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum += (double)x[k] * x[k];
    }
    return sum;
}
template <class T> DEVICE void clip_squares(const clip_params &p, int64_t block, double *partial) {
    const int64_t first = block * CLIP_BLOCK, end = first + CLIP_BLOCK < p.n ? first + CLIP_BLOCK : p.n;
    const double sum = group_sum<SIMT_THREADS>(p.wide && end - first == CLIP_BLOCK ? clip_sum<T, true>(p, first, end)
                                                                                   : clip_sum<T, false>(p, first, end));
    if (thread_index() == 0) partial[block] = sum;
}

/* One block. NaN as norm gives NaN, unless there is no limit. */
DEVICE void clip_coefficient(const clip_sums &p) {
    double sum = 0, other = 0;
#pragma unroll 8
    for (int64_t b = thread_index(); b < p.blocks; b += SIMT_THREADS) sum += p.partial[b];
    for (int64_t j = thread_index(); p.other && j < p.g; j += SIMT_THREADS)
        other += p.double_squares ? ((const double *)p.other)[j] : (double)((const float *)p.other)[j];
    sum = group_sum<SIMT_THREADS>(sum);
    other = group_sum<SIMT_THREADS>(other);
    if (thread_index() != 0) return;
    const double norm = square_root(p.told ? other : sum + other), quotient = p.max_norm / norm;
    const float coefficient = p.max_norm == 0 || quotient >= 1 ? 1.0f : (float)quotient;
    if (p.sum_squares && p.double_squares) *(double *)p.sum_squares = sum;
    if (p.sum_squares && !p.double_squares) *(float *)p.sum_squares = (float)sum;
    if (p.norm) *(float *)p.norm = (float)norm;
    if (p.coefficient) *(float *)p.coefficient = coefficient;
    *p.workspace_coefficient = coefficient;
}

/* From the end on, of which L2 still holds a part. */
template <class T> DEVICE void clip_scale(const clip_params &p, int64_t number, float coefficient) {
    constexpr int N = CLIP_BYTES / sizeof(typename T::bits);
    const int64_t last = (p.n - 1) / (SIMT_THREADS * N), block = last - number;
    const lane l = { (block * SIMT_THREADS + thread_index()) * N, p.n, p.wide };
    float x[N];
    load<T>(x, p.x, l);
#pragma unroll
    for (int k = 0; k < N; k++) x[k] *= coefficient;
    store<T>(x, p.y, l);
}

ENTRY(global_norm_clip_coefficient, SIMT_THREADS, clip_params) { clip_coefficient(p.sums); }
#define CLIP(T) \
    ENTRY_ASKING(global_norm_clip_squares_##T, SIMT_THREADS, 1, clip_params) { \
        clip_squares<T>(p, block_index(), p.sums.partial); \
    } \
    ENTRY(global_norm_clip_scale_##T, SIMT_THREADS, clip_params) { \
        clip_scale<T>(p, block_index(), *p.sums.workspace_coefficient); \
    }
CLIP(f32)
CLIP(bf16)
CLIP(f16)

/* Lists: what each block does is the same. Squares have the registers of a launch of their own, which without being
 * asked the compiler would not use, to have as many loads on their way. */
ENTRY_HELD(global_norm_clip_list_squares, SIMT_THREADS, 1, clip_list_squares) {
    const clip_squares_item &item = p.item[list_place(p.item, p.count)];
    clip_params one = {};
    one.x = item.x;
    one.n = item.n;
    one.wide = item.wide;
    const int64_t block = block_index() - item.first;
    if (item.type == SIMT_LIST_F32)
        clip_squares<f32>(one, block, item.partial);
    else if (item.type == SIMT_LIST_BF16)
        clip_squares<bf16>(one, block, item.partial);
    else
        clip_squares<f16>(one, block, item.partial);
}
ENTRY(global_norm_clip_list_coefficient, SIMT_THREADS, clip_list_sums) { clip_coefficient(p.item[block_index()]); }
ENTRY(global_norm_clip_list_scale, SIMT_THREADS, clip_list_scale) {
    const clip_scale_item &item = p.item[list_place(p.item, p.count)];
    clip_params one = {};
    one.x = item.x;
    one.y = item.y;
    one.n = item.n;
    one.wide = item.wide;
    const int64_t block = block_index() - item.first;
    if (item.type == SIMT_LIST_F32)
        clip_scale<f32>(one, block, *item.coefficient);
    else if (item.type == SIMT_LIST_BF16)
        clip_scale<bf16>(one, block, *item.coefficient);
    else
        clip_scale<f16>(one, block, *item.coefficient);
}
