/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder-only transformer on a trine queue: RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied embedding.
 *
 * Functions that return bool return false when a trine call failed; trine_error_message() says why. */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <trine/trine.h>

enum { GPT_VOCABULARY = 256, GPT_MAX_LAYERS = 64 }; /* tokens are bytes */

typedef struct gpt_config {
    int32_t context; /* tokens per sequence */
    int32_t batch;   /* sequences per step */
    int32_t layers;
    int32_t width;    /* of the residual stream; heads divides it, into an even number */
    int32_t heads;    /* of the queries */
    int32_t kv_heads; /* of the keys and values; divides heads */
    int32_t hidden;   /* of the feed-forward layer */
} gpt_config;

/* What is kept of a layer's forward pass for its gradient. r = batch*context rows. */
typedef struct gpt_layer {
    float *stream, *rstd, *normed;                                /* attention's: r width, r, r width */
    float *qkv, *mixed, *lse;                                     /* r (heads + 2 kv_heads) head; r width; batch heads context */
    float *middle, *middle_rstd, *middle_normed;                  /* the feed-forward's: r width, r, r width */
    float *gate_up, *activated;                                   /* r 2 hidden; r hidden */
    int64_t w_qkv, w_mixed, w_gate_up, w_down, norm, middle_norm; /* where its parameters are, in elements; matrices are stored [in, out] */
} gpt_layer;

typedef struct gpt_model {
    gpt_config config;
    trine_queue *queue;
    int64_t parameters, decayed; /* all, and the matrices, which come first and decay; the embedding is at 0 */
    int64_t final_norm;
    float *param, *grad, *m, *v; /* device memory, all in one run each */
    float *cosines, *sines;      /* context, head/2 */
    int32_t *tokens, *labels;
    float *stream, *rstd, *normed; /* of the final norm */
    float *delta, *logits, *lse, *loss, *dloss;
    float *dstream[2], *dnormed, *dqkv, *dmixed, *dgate_up, *dactivated;
    float *scale; /* the clipping coefficient; then the norm */
    int64_t dloss_rows;
    float *host; /* r, for losses */
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

/* Mean cross-entropy in nats of predicting labels[i] from tokens up to i, for `sequences` <= batch sequences of `length` <= context tokens. */
bool gpt_loss(gpt_model *model, const int32_t *tokens, const int32_t *labels, int sequences, int length, double *loss_out);

/* The gradient of the last gpt_loss() into model->grad. */
bool gpt_gradient(gpt_model *model, int sequences, int length);

typedef struct gpt_step {
    float rate, beta1, beta2, weight_decay, max_norm;
    int64_t number; /* from 1 */
} gpt_step;

/* Clips the gradient and takes an AdamW step; norm_out gets the gradient's norm. */
bool gpt_update(gpt_model *model, const gpt_step *step, float *norm_out);

/* The logits of the token after the last of one sequence. */
bool gpt_predict(gpt_model *model, const int32_t *tokens, int length, float logits_out[GPT_VOCABULARY]);

/* xoshiro256**, seeded by splitmix64: the same on every machine. */
typedef struct gpt_random {
    uint64_t state[4];
} gpt_random;

void gpt_random_seed(gpt_random *random, uint64_t seed);
uint64_t gpt_random_next(gpt_random *random);
double gpt_random_uniform(gpt_random *random); /* in [0, 1) */

#endif
