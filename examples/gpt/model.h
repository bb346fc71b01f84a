/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder-only transformer on a trine queue: RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied
 * embedding.
 *
 * Functions that return bool return false when a trine call failed; trine_error_message() says why. */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <trine/trine.h>

#include "random.h"

enum { GPT_BYTES = 256, GPT_MAX_LAYERS = 64, GPT_MAX_LOSSES = 64 }; /* tokens are bytes */

typedef struct gpt_config {
    int32_t context; /* tokens per sequence */
    int32_t batch;   /* sequences per step */
    int32_t layers;
    int32_t width;    /* of the residual stream; heads divides it, into an even number */
    int32_t heads;    /* of the queries */
    int32_t kv_heads; /* of the keys and values; divides heads */
    int32_t hidden;   /* of the feed-forward layer */
    /* rows of the embedding: the bytes, and as many that no text uses as give another model's shape */
    int32_t vocabulary;
    int32_t mixed; /* 1: activations, gradients and the weights in use are bf16, the optimizer's f32; 0: all f32 */
} gpt_config;

/* What is kept of a layer's forward pass for its gradient. r = batch*context rows; `void *` is of the model's type. */
typedef struct gpt_layer {
    /* the inputs of attention and feed-forward, and their norms: r width */
    void *stream, *normed, *middle, *middle_normed;
    float *rstd, *middle_rstd; /* r */
    void *qkv, *mixed;         /* r (heads + 2 kv_heads) head; r width */
    float *lse;                /* batch heads context */
    void *gate_up, *activated; /* r 2 hidden; r hidden */
    /* where its parameters are, in elements; matrices are stored [in, out] */
    int64_t w_qkv, w_mixed, w_gate_up, w_down, norm, middle_norm;
} gpt_layer;

typedef struct gpt_model {
    gpt_config config;
    trine_queue *queue;
    int64_t parameters, decayed; /* all, and the matrices, which come first and decay; the embedding is at 0 */
    int64_t final_norm;
    trine_dtype type;       /* of `void *` */
    float *param, *m, *v;   /* device memory, all in one run each */
    void *weight, *grad;    /* likewise; weight is param, or its copy in bf16 */
    float *cosines, *sines; /* context, head/2 */
    int32_t *tokens, *labels;
    void *stream, *normed; /* of the final norm */
    float *rstd;
    void *delta, *logits;
    float *loss, *dloss; /* of each token; one over their number */
    float *losses;       /* the means of up to GPT_MAX_LOSSES batches */
    float *byte_logits;  /* of one token */
    void *dstream[2], *dnormed, *dqkv, *dmixed, *dgate_up, *dactivated;
    float *scale;       /* the clipping coefficient; then a sum of losses */
    int64_t dloss_rows; /* that number */
    float *host;        /* r, for losses */
    gpt_layer layer[GPT_MAX_LAYERS];
    void *allocated[32 + 16 * GPT_MAX_LAYERS];
    int allocations;
} gpt_model;

/* NULL, or what is wrong with a configuration. */
const char *gpt_config_check(const gpt_config *config);

/* The number of parameters of a valid configuration. */
int64_t gpt_parameters(const gpt_config *config);

/* Makes a model of random weights. gpt_close() also takes one that gpt_open() left half made. */
bool gpt_open(gpt_model *model, const gpt_config *config, trine_queue *queue, uint64_t seed);
void gpt_close(gpt_model *model);

/* After param was written to: brings the weights in use up to it. */
bool gpt_refresh(gpt_model *model);

/* Mean cross-entropy in nats of predicting labels[i] from tokens up to i, for `sequences` <= batch sequences of
 * `length` <= context tokens. */
bool gpt_loss(gpt_model *model, const int32_t *tokens, const int32_t *labels, int sequences, int length,
              double *loss_out);

/* The same for a whole batch whose sequence b is text[place[b]], text[place[b] + 1], ... in device memory, into
 * model->losses[slot], without waiting. */
bool gpt_loss_of_text(gpt_model *model, const int32_t *text, const int64_t *place, int slot);

/* The gradient of the last loss into model->grad. */
bool gpt_gradient(gpt_model *model, int sequences, int length);

typedef struct gpt_step {
    float rate, beta1, beta2, weight_decay, max_norm;
    int64_t number; /* from 1 */
} gpt_step;

/* Clips the gradient and takes an AdamW step, without waiting. */
bool gpt_update(gpt_model *model, const gpt_step *step);

/* The logits of the byte after the last of one sequence. */
bool gpt_predict(gpt_model *model, const int32_t *tokens, int length, float logits_out[GPT_BYTES]);

#endif
