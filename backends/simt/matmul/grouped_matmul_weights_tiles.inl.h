/* SPDX-License-Identifier: Apache-2.0 */
/* What the device kernels of grouped_matmul_weights share: a block's tile, where its rows come from, and its end. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_WEIGHTS_TILES_INL_H
#define TRINE_SIMT_GROUPED_MATMUL_WEIGHTS_TILES_INL_H

#include "grouped_matmul_weights.h"
#include "backends/simt/core/simt.h"

/* A block's tile of a group's result, and the group's rows. Neighbouring blocks have the same columns of x. */
struct weights_tile {
    int32_t group, first, last;
    int64_t row, column;

    DEVICE explicit weights_tile(const weights_params &p) {
        const int64_t block = block_index(), of_group = p.down * p.right;
        group = (int32_t)(block / of_group);
        row = block % p.down * WEIGHTS_ROWS, column = block % of_group / p.down * WEIGHTS_COLUMNS;
        first = offset(p, group), last = offset(p, group + 1);
    }
    /* Whatever the offsets say, rows are those of dy. */
    static DEVICE int32_t offset(const weights_params &p, int32_t g) {
        const int32_t at = p.offsets[g];
        return at < 0 ? 0 : at < p.p ? at : p.p;
    }
    /* The row of x that belongs to row i of dy; -1: none, or i is beyond the group. */
    DEVICE int64_t source(const weights_params &p, int32_t i) const {
        if (i >= last) return -1;
        if (!p.gather) return i;
        const int64_t from = p.gather[i];
        return from < 0 || from >= p.r * p.divide ? -1 : from / p.divide;
    }
    /* Has the block a sum of rows of dy? */
    DEVICE bool sums(const weights_params &p) const { return p.dbias && column == 0; }
    template <class O> DEVICE void put_sum(const weights_params &p, float sum) const {
        const int64_t j = row + thread_index();
        if (thread_index() >= WEIGHTS_ROWS || j >= p.n) return;
        if (p.wide_bias)
            store_one<f32>(p.dbias, group * p.dbias_group + j, sum);
        else
            store_one<O>(p.dbias, group * p.dbias_group + j, sum);
    }
};

#endif
