/* SPDX-License-Identifier: Apache-2.0 */
/* Codes in words on devices: which element a thread has, and where that is. */
#ifndef TRINE_SIMT_PACKING_INL_H
#define TRINE_SIMT_PACKING_INL_H

#include "packing.h"
#include "backends/simt/core/simt.h"

struct packing_place {
    int64_t batch, row, at; /* at: along the row */
    DEVICE packing_place(const packing_params &p, int64_t number) {
        const bool fast = divides_fast(p.count);
        const int64_t rest = fast ? (int64_t)quotient((uint32_t)number, p.inner) : number / p.inner.by,
                      j = number - rest * p.inner.by;
        batch = fast ? (int64_t)quotient((uint32_t)rest, p.outer) : rest / p.outer.by;
        const int64_t i = rest - batch * p.outer.by;
        row = p.across ? j : i;
        at = p.across ? i : j;
    }
    DEVICE int64_t begin(const packing_tensor &t) const { return batch * t.batch + row * t.row; }
};

/* 0, 4, 1, 5, 2, 6, 3, 7, and back: bits of the number turn round. */
DEVICE int64_t packing_awq_place(int64_t code) { return (code & ~(int64_t)7) | (code >> 1 & 3) | (code & 1) << 2; }
DEVICE int64_t packing_awq_code(int64_t place) { return (place & ~(int64_t)7) | (place & 3) << 1 | (place >> 2 & 1); }

#endif
