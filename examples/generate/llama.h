/* SPDX-License-Identifier: Apache-2.0 */
/* A model of Llama's family on a trine queue: RMSNorm, rotary positions, grouped-query attention over a cache of keys
 * and values, SwiGLU. */
#ifndef GENERATE_LLAMA_H
#define GENERATE_LLAMA_H

#include <trine/trine.h>

#include "model.h"
#include "pages.h"
#include "weights.h"

/* `void *` is device memory of the model's type. Matrices are [out, in]; of codes where all of its tensors in the file
 * are such of one type. */
typedef struct llama_layer {
    float *norm, *middle_norm;
    matrix query, key_value, mixed, gate_up, down; /* keys above values, gate above up */
    void *keys, *values;                           /* pages, PAGE, kv_heads, head */
} llama_layer;

typedef struct llama_options {
    trine_dtype type; /* f32 or bf16 */
    bool decoded;     /* weights are numbers, also where the file has codes */
    int64_t context;  /* tokens of a sequence */
    int64_t slots;    /* sequences in a pass, up to LLAMA_LOGITS */
    int64_t cache;    /* tokens of all sequences, at least; 0: as many as all slots can have */
    int64_t chunk;    /* tokens of a part, from 1 on; 0: 512 */
} llama_options;

/* The most logits of a pass, and sequences in it; and the most tokens of a part that are few. */
enum { LLAMA_LOGITS = 64, LLAMA_FEW = 16 };

typedef struct llama {
    model_config config;
    llama_options options;
    trine_queue *queue;
    page_pool pool;
    llama_layer *layer;
    void *embedding;
    matrix head; /* where the file has none that of the embedding */
    float *last_norm;
    float *cosines, *sines; /* context, rotary/2 */
    int64_t rows;           /* tokens in a pass */
    /* What a pass reads, in one run of memory: of each token its number, position and slot; of each part its sequence's
     * length and pages; of one of many tokens the slots of all. */
    int32_t *tokens, *positions, *slots, *lengths, *tables, *places;
    int32_t *input; /* the same on the host */
    int64_t input_size;
    int32_t *labels;
    void *stream, *normed, *query, *key_value, *attended, *gate_up, *activated;
    void *gathered;         /* keys, then values of a sequence that lie apart */
    float *logits, *losses; /* LLAMA_LOGITS, vocabulary; LLAMA_LOGITS */
    void *workspace;        /* which the queue has as its own while the model is open */
    size_t workspace_size;
    /* Passes of one token of so many sequences, recorded; which of them ran; and whether the device can record. */
    trine_graph *graph[LLAMA_LOGITS + 1];
    bool ran[LLAMA_LOGITS + 1], records;
    void **allocated;
    int64_t allocations;
} llama;

/* Reads the weights and makes room for the cache. llama_close() also takes one that is half open. Until then the
 * queue's workspace is the model's. */
bool llama_open(llama *m, const model_file *file, trine_queue *queue, const llama_options *options, problem *why);
void llama_close(llama *m);

/* Tokens that follow those of a sequence, and how many of the last ones' logits are asked for. */
typedef struct llama_part {
    sequence *sequence;
    const int32_t *tokens;
    int64_t count, wanted;
} llama_part;

/* Reads the parts, of up to options.slots sequences that all differ, in one pass, and tells the logits that were asked
 * for, up to LLAMA_LOGITS, in the order of the parts. A part of up to options.chunk tokens is alone; several have up to
 * LLAMA_FEW tokens each and LLAMA_LOGITS together. */
bool llama_pass(llama *m, const llama_part *part, int parts, float *logits_out, problem *why);

/* Reads tokens in as many passes as they need, and tells the logits of the one after the last. */
bool llama_read(llama *m, sequence *s, const int32_t *tokens, int64_t count, float *logits_out, problem *why);

/* The cross-entropies in nats of labels[i], which follows tokens[i]. */
bool llama_losses(llama *m, sequence *s, const int32_t *tokens, const int32_t *labels, int64_t count, float *losses_out,
                  problem *why);

/* Whether so many tokens more fit into a sequence; if not, says so. */
bool llama_fits(const llama *m, const sequence *s, int64_t count, problem *why);

#endif
