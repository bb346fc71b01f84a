/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that pack_strided and unpack_strided share. */
#ifndef TRINE_SIMT_STRIDED_HOST_H
#define TRINE_SIMT_STRIDED_HOST_H

#include <stdlib.h>

#include <trine/strided.h>

#include "strided.h"
#include "backends/simt/core/host.h"
#include "spec/strided/layout.h"

/* The widest word that addresses, strides and the run are multiples of; x of which a part may be beyond goes by
 * elements. */
static inline int64_t strided_word(const layout *l, int64_t size) {
    if (!l->inside) return size;
    int64_t all = (int64_t)((uintptr_t)l->x | (uintptr_t)l->packed) | l->start | l->run | STRIDED_WIDEST;
    for (int d = 0; d < l->levels; d++) all |= llabs(l->level[d].x) | llabs(l->level[d].packed);
    return all & -all;
}

static inline trine_status strided_launch(const trine_call *call, const layout *l, size_t size, bool ordered) {
    const int64_t word = strided_word(l, (int64_t)size);
    if (l->run == 0 || l->rows == 0) return TRINE_OK;
    const int64_t blocks = simt_blocks(l->run / word, SIMT_THREADS);
    strided_params p = { .x = l->x,
                         .packed = l->packed,
                         .run = simt_divisor_of(l->run / word),
                         .start = l->start / word,
                         .n = l->n / word,
                         .words = l->rows * (l->run / word),
                         .rows = l->rows,
                         .levels = l->levels,
                         .ordered = ordered ? (int32_t)(blocks < STRIDED_ORDERED ? blocks : STRIDED_ORDERED) : 0 };
    for (int d = 0; d < l->levels; d++) {
        p.count[d] = simt_divisor_of(l->level[d].count);
        p.step[d] = l->level[d].x / word;
        p.packed_step[d] = l->level[d].packed / word;
    }
    const simt_function function = { .variant = (int)word };
    return simt_launch(call, &function, p.ordered ? p.ordered : simt_blocks(p.words, SIMT_THREADS), SIMT_THREADS, &p,
                       sizeof p);
}

#endif
