/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that ops along time share. */
#ifndef TRINE_SIMT_SCAN_HOST_H
#define TRINE_SIMT_SCAN_HOST_H

#include "backends/simt/core/host.h"
#include "scan.h"

static inline scan_shape scan_shape_of(const trine_call *call, int cu, int64_t b, int64_t t, int64_t n,
                                       int64_t sequences, bool reverse) {
    const trine_tensor *offsets = trine_call_given(call, cu);
    return (scan_shape){ .cu = offsets ? offsets->data : NULL,
                         .t = t,
                         .n = n,
                         .count = offsets ? sequences : b,
                         .tiles = simt_blocks(n, SCAN_THREADS),
                         .reverse = reverse };
}

/* Blocks of all sequences, and of the room behind the last of packed ones. */
static inline int64_t scan_blocks(const scan_shape *s) { return (s->count + (s->cu != NULL)) * s->tiles; }

#endif
