/* SPDX-License-Identifier: Apache-2.0 */
/* A model of Llama's family on a trine queue: RMSNorm, rotary positions, grouped-query attention over a cache of keys
 * and values, SwiGLU. */
#ifndef GENERATE_LLAMA_H
#define GENERATE_LLAMA_H

#include <trine/trine.h>

#include "model.h"
#include "weights.h"

/* `void *` is device memory of the model's type. Matrices are [out, in]; of codes where all of its tensors in the file
 * are such of one type. */
typedef struct llama_layer {
    float *norm, *middle_norm;
    matrix query, key_value, mixed, gate_up, down; /* keys above values, gate above up */
    void *cache;                                   /* a row for each token: its keys, then its values */
} llama_layer;

typedef struct llama {
    model_config config;
    trine_queue *queue;
    trine_dtype type;
    int64_t room;   /* tokens that the cache holds */
    int64_t length; /* tokens in it */
    int64_t chunk;  /* tokens that are read at once */
    llama_layer *layer;
    bool decoded; /* are all matrices numbers? */
    void *embedding;
    matrix head; /* where the file has none that of the embedding */
    float *last_norm;
    float *cosines, *sines; /* room, rotary/2 */
    int32_t *tokens, *labels;
    void *stream, *normed, *query, *attended, *gate_up, *activated;
    float *logits, *losses; /* LLAMA_LOGITS, vocabulary; LLAMA_LOGITS */
    void **allocated;
    int64_t allocations;
} llama;

enum { LLAMA_LOGITS = 64 };

/* Reads the weights and makes room for `room` tokens, in f32 or bf16. `decoded`: weights are numbers, also where the
 * file has codes. llama_close() also takes one that is half open. */
bool llama_open(llama *m, const model_file *file, trine_queue *queue, trine_dtype type, bool decoded, int64_t room,
                problem *why);
void llama_close(llama *m);

/* Reads tokens after those in the cache, and tells the logits of the one after the last. They must fit. */
bool llama_read(llama *m, const int32_t *tokens, int64_t count, float *logits_out, problem *why);

/* The cross-entropies in nats of labels[i], which follows tokens[i]. */
bool llama_losses(llama *m, const int32_t *tokens, const int32_t *labels, int64_t count, float *losses_out,
                  problem *why);

/* Forgets all tokens but the first `length`. */
void llama_forget(llama *m, int64_t length);

#endif
