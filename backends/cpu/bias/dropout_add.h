/* SPDX-License-Identifier: Apache-2.0 */
/* The mask that dropout_add and its gradient have on the CPU. */
#ifndef TRINE_CPU_DROPOUT_ADD_H
#define TRINE_CPU_DROPOUT_ADD_H

#include "bias.h"

static inline dropout dropout_add_of(float p, uint64_t seed, uint64_t offset, const trine_tensor *philox) {
    dropout d = dropout_of(p, seed, offset);
    if (philox) dropout_tell(&d, philox);
    return d;
}

/* The masks of up to DROPOUT_RUN elements; with p = 1, where the scale is 0, nothing is kept. */
INLINE const int32_t *dropout_add_keep(const dropout *d, int64_t first, int count, int32_t buffer[DROPOUT_BUFFER]) {
    static const int32_t none[DROPOUT_BUFFER];
    return d->scale == 0 ? none : dropout_run(d, (uint64_t)first, count, buffer);
}

#endif
