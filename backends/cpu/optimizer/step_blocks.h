/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a step's elements by their types: included behind step_range(d, s, first, last, words, state, param, grad),
 * which makes the step of some; words, from the first on, round parameters of bf16 by chance, or are NULL. */
#ifndef TRINE_CPU_STEP_BLOCKS_H
#define TRINE_CPU_STEP_BLOCKS_H

#include "optimizer.h"

INLINE void range_of_param(const step_data *d, const step_scalars *s, int64_t first, int64_t last, const int32_t *words,
                           trine_dtype state, trine_dtype grad, trine_dtype type) {
    step_range(d, s, first, last, words, state, type, grad);
}
INLINE void range_of_grad(const step_data *d, const step_scalars *s, int64_t first, int64_t last, const int32_t *words,
                          trine_dtype state, trine_dtype type, trine_dtype grad) {
    FOR_TYPE(type, range_of_param, d, s, first, last, words, state, grad);
}

typedef struct update {
    const step_scalars *s;
    const step_data *d;
    int64_t n;
    trine_dtype type, state, grad;
    bool by_chance;
    dropout chances;
} update;

static void update_range(const update *u, int64_t first, int64_t last, const int32_t *words) {
    if (u->state == TRINE_F32)
        FOR_TYPE(u->grad, range_of_grad, u->d, u->s, first, last, words, TRINE_F32, u->type);
    else
        FOR_TYPE(u->grad, range_of_grad, u->d, u->s, first, last, words, TRINE_BF16, u->type);
}

/* Of blocks. */
static void update_blocks(const void *context, int64_t first, int64_t last, int thread) {
    const update *u = context;
    (void)thread;
    first *= OPTIMIZER_BLOCK;
    last = last * OPTIMIZER_BLOCK < u->n ? last * OPTIMIZER_BLOCK : u->n;
    if (!u->by_chance) {
        update_range(u, first, last, NULL);
        return;
    }
    int32_t buffer[DROPOUT_BUFFER];
    for (; first < last; first += DROPOUT_RUN) {
        const int64_t end = last - first < DROPOUT_RUN ? last : first + DROPOUT_RUN;
        update_range(u, first, end, optimizer_words(&u->chances, (uint64_t)first, (int)(end - first), buffer));
    }
}

#endif
