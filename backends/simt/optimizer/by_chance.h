/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of bf16 that are rounded by chance: what the host passes. */
#ifndef TRINE_SIMT_BY_CHANCE_H
#define TRINE_SIMT_BY_CHANCE_H

#include "backends/simt/core/params.h"

typedef struct by_chance {
    simt_dropout words;
    const int64_t *philox; /* their key and stream; NULL: those of `words` */
    bool on;
} by_chance;

#endif
