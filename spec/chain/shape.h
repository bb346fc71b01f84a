/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels walk a chain's tensors: as rows, all of which have their last dimension in common. */
#ifndef TRINE_SPEC_CHAIN_SHAPE_H
#define TRINE_SPEC_CHAIN_SHAPE_H

#include <stdbool.h>

#include <trine/base.h>

#include "program.h"

enum {
    CHAIN_ROW_TENSORS = CHAIN_INPUTS + CHAIN_OUTPUTS,      /* outputs of a row begin here */
    CHAIN_TENSORS = CHAIN_ROW_TENSORS + CHAIN_ROW_OUTPUTS, /* inputs, outputs, those of a row */
    CHAIN_OUTER = 3                                        /* dimensions around a row */
};

/* Is all computed in f64? It is if one of the tensors is. */
static inline bool chain_is_wide(const trine_tensor *tensor, uint32_t present) {
    for (int t = 0; t < CHAIN_TENSORS; t++)
        if (present >> t & 1 && tensor[t].dtype == TRINE_F64) return true;
    return false;
}

/* Strides are in elements; along a row they are 1, or 0 where a tensor is `still`, as outputs of a row are. */
typedef struct chain_shape {
    int64_t outer[CHAIN_OUTER], n;
    int64_t stride[CHAIN_TENSORS][CHAIN_OUTER];
    bool still[CHAIN_TENSORS];
} chain_shape;

/* Can dimension d of all tensors of `present` go on along the row, of which each has `step`? */
static inline bool chain_merges(const trine_tensor *tensor, uint32_t present, const int64_t *step, int d, int64_t n) {
    for (int t = 0; t < CHAIN_TENSORS; t++)
        if (present >> t & 1 && tensor[t].stride[d] != step[t] * n) return false;
    return true;
}

/* Of tensors of full rank and the same shape, outputs of a row without the last dimension. `merge`: dimensions are put
 * together wherever all tensors allow, for programs that do not ask where a row ends. */
static inline chain_shape chain_shape_of(const trine_tensor *tensor, uint32_t present, bool merge) {
    const int64_t *shape = tensor[CHAIN_INPUTS].shape;
    chain_shape s = { .n = shape[CHAIN_OUTER] };
    int64_t step[CHAIN_TENSORS] = { 0 };
    int left = CHAIN_OUTER;
    for (int t = 0; t < CHAIN_ROW_TENSORS; t++)
        if (present >> t & 1) step[t] = tensor[t].stride[CHAIN_OUTER];
    for (; merge && left > 0; left--) {
        if (shape[left - 1] == 1) continue;
        /* of one element a row's stride says nothing */
        for (int t = 0; s.n == 1 && t < CHAIN_TENSORS; t++)
            if (present >> t & 1) step[t] = tensor[t].stride[left - 1] != 0;
        if (!chain_merges(tensor, present, step, left - 1, s.n)) break;
        s.n *= shape[left - 1];
    }
    for (int d = 0; d < CHAIN_OUTER; d++) s.outer[d] = d < left ? shape[d] : 1;
    for (int t = 0; t < CHAIN_TENSORS; t++) {
        s.still[t] = step[t] == 0;
        for (int d = 0; d < left && present >> t & 1; d++) s.stride[t][d] = tensor[t].stride[d];
    }
    return s;
}

#endif
