/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on devices with the same bits as on every other (spec/same.h): a row by a block of 64 threads, a column by
 * a thread. */
#include "backends/simt/core/same.h"

template <class T> DEVICE void reduce_sum_same_rows(const reduce_same_params &p) {
    float sum = 0;
    for (int64_t j = thread_index(); j < p.n; j += SAME_LANES)
        sum += load_one<T>(p.x, block_index() * p.row + j * p.step);
    sum = same_total(sum);
    if (thread_index() == 0) same_store<T>(p.out, p.wide, block_index(), sum);
}

template <class T> DEVICE void reduce_sum_same_columns(const reduce_same_params &p) {
    const int64_t j = block_index() * SAME_LANES + thread_index();
    float total = 0;
    if (j >= p.n) return;
    for (int64_t start = 0; start < p.rows; start += SAME_CHAIN) {
        float run = 0;
        for (int64_t i = start; i < p.rows && i < start + SAME_CHAIN; i++)
            run += load_one<T>(p.x, i * p.row + j * p.step);
        total += run;
    }
    same_store<T>(p.out, p.wide, j, total);
}

#define REDUCE_SAME(T) \
    ENTRY(reduce_sum_same_rows_##T, SAME_LANES, reduce_same_params) { reduce_sum_same_rows<T>(p); } \
    ENTRY(reduce_sum_same_columns_##T, SAME_LANES, reduce_same_params) { reduce_sum_same_columns<T>(p); }
REDUCE_SAME(f32)
REDUCE_SAME(bf16)
REDUCE_SAME(f16)
