/* SPDX-License-Identifier: Apache-2.0 */
/* What dropout_add and its gradient keep of a thread's columns. */
#ifndef TRINE_SIMT_DROPOUT_BITS_H
#define TRINE_SIMT_DROPOUT_BITS_H

#include "backends/simt/core/philox.h"

/* Bit k: is element k of a lane kept? With p = 1 none is. */
DEVICE uint32_t dropout_bits(const simt_dropout &d, int64_t row, const lane &l) {
    const uint64_t index = (uint64_t)(row * l.n + l.at);
    if (d.p == 0) return 0xffu;
    if (d.p == 1) return 0;
    return l.n % VECTOR == 0 ? kept<VECTOR, true>(d, index) : kept<VECTOR, false, false>(d, index);
}

#endif
