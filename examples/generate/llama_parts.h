/* SPDX-License-Identifier: Apache-2.0 */
/* What the model's memory and its passes share. */
#ifndef GENERATE_LLAMA_PARTS_H
#define GENERATE_LLAMA_PARTS_H

#include "llama.h"

#define TRY(call) \
    do { \
        if (!(call)) return false; \
    } while (0)

static inline int64_t query_width(const llama *m) { return m->config.heads * m->config.head; }
static inline int64_t kv_width(const llama *m) { return m->config.kv_heads * m->config.head; } /* of keys, or values */

/* Element `i` of memory of the model's type. */
static inline void *at(const llama *m, void *data, int64_t i) {
    return (char *)data + i * (int64_t)trine_dtype_size(m->options.type);
}

/* Gives the queue a workspace of so many bytes in place of the one that it has; 0 takes that back. */
bool llama_grow(llama *m, size_t size);

#endif
