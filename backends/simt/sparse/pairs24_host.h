/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of prune24, pack24 and unpack24 share. */
#ifndef TRINE_SIMT_PAIRS24_HOST_H
#define TRINE_SIMT_PAIRS24_HOST_H

#include "backends/simt/core/host.h"
#include "pairs24.h"

/* Who has which elements of r rows of n. */
static inline pairs24_params pairs24_of(int64_t r, int64_t n) {
    const int64_t row_units = simt_blocks(n, SIMT_VECTOR);
    return (
        pairs24_params){ .row_units = simt_divisor_of(row_units > 0 ? row_units : 1), .units = r * row_units, .n = n };
}

static inline trine_status pairs24_launch(const trine_call *call, const pairs24_params *p) {
    const simt_function function = { .type = { call->type[SIMT_FIRST_TYPE] } };
    return simt_launch(call, &function, simt_blocks(p->units, SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
}

#endif
