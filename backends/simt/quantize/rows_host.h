/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of groups of rows as codes. */
#ifndef TRINE_SIMT_QUANTIZE_ROWS_HOST_H
#define TRINE_SIMT_QUANTIZE_ROWS_HOST_H

#include "codes_host.h"
#include "rows.h"

static inline int row_team(int64_t n) { return n <= ROW_SMALL ? 4 : n <= ROW_MIDDLE ? 16 : SIMT_THREADS; }

/* Is every unit of a tensor of k columns one access? True of absent ones. */
static inline bool row_aligned(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    if (t == NULL) return true;
    const size_t unit = trine_dtype_size(t->dtype) * CODES_UNIT, to = unit < 16 ? unit : 16;
    return (uintptr_t)t->data % to == 0 &&
           (t->rank < 2 || t->shape[0] <= 1 || (size_t)t->stride[0] * trine_dtype_size(t->dtype) % to == 0);
}

/* Where codes, scales and y are among the tensors; the rest of those have k columns too. */
typedef struct row_places {
    int codes, scales, y;
    int64_t r, k, groups;
    bool powers, upward;
} row_places;

static inline row_codes row_codes_of(const trine_call *call, const row_places *at) {
    const trine_dtype C = call->tensor[at->codes].dtype, S = call->tensor[at->scales].dtype;
    row_codes p = { .codes = simt_rows_of(call, at->codes),
                    .scales = simt_rows_of(call, at->scales),
                    .y = simt_rows_of(call, at->y),
                    .r = at->r,
                    .k = at->k,
                    .n = at->groups > 0 ? at->k / at->groups : 0,
                    .groups = at->groups,
                    .powers = at->powers,
                    .upward = at->upward,
                    .codes_type = C == TRINE_I8     ? ROW_I8
                                  : C == TRINE_E4M3 ? ROW_E4M3
                                                    : ROW_E5M2,
                    .scales_type = codes_type_of(S) };
    p.vectors = p.n % CODES_UNIT == 0;
    for (int i = 0; i < call->plan->tensors; i++) p.vectors &= i == at->scales || row_aligned(call, i);
    return p;
}

#endif
