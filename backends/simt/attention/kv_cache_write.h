/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of kv_cache_write passes to its device side. */
#ifndef TRINE_SIMT_KV_CACHE_WRITE_H
#define TRINE_SIMT_KV_CACHE_WRITE_H

#include "backends/simt/core/params.h"

enum { KV_CACHE_WRITE_TOKENS = 8 /* of a block, at most */ };

/* Keys or values, and where they go; strides in elements. */
typedef struct kv_cache_write_part {
    const void *x; /* NULL: there are none */
    void *cache;
    const float *scale;       /* NULL: none */
    int64_t token, head;      /* strides of x */
    int64_t page, place, row; /* strides of the cache; row: of heads */
    int64_t scale_step;
    simt_divisor units; /* of a head, of 8 elements or of 1 */
    int64_t all;        /* units of a token */
} kv_cache_write_part;

typedef struct kv_cache_write_params {
    kv_cache_write_part k, v;
    const void *slots;
    int64_t t, page, all; /* all: slots */
    int32_t tokens;       /* of a block */
    bool long_slots;
} kv_cache_write_params;

#endif
