/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder-only transformer on a trine queue: RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied
 * embedding.
 *
 * Functions that return bool return false with the reason in model->trouble, or in trine_error_message() if that is
 * empty. */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <trine/trine.h>

#include "random.h"

/* Memory of activations: each buffer has its own; those share that are not needed at once; and besides, what
 * is activated, and in f32 the norms, are made anew for the gradient. All give the same bits: in bf16 a norm is that of
 * a sum which has not been rounded yet, and could not be made anew from the rounded one. */
enum { GPT_SHARED, GPT_SEPARATE, GPT_RECOMPUTED };

enum { GPT_BYTES = 256, GPT_MAX_LAYERS = 64, GPT_MAX_LOSSES = 64 }; /* tokens are bytes */

/* Where the state of the optimizer is that the device does not keep: 12 bytes a parameter, or 8 in f32, whose
 * parameters the device needs itself. */
typedef struct gpt_offload {
    trine *lib;       /* whose CPU device takes the steps */
    int32_t threads;  /* of these; 0: its choice */
    const char *file; /* which is made, and is gone afterwards; NULL: the host's memory */
    float share;      /* of the parameters whose state the device keeps; below 0: as measured steps of both say */
    int64_t piece;    /* how many parameters are copied at once; 0: a million */
} gpt_offload;

typedef struct gpt_away gpt_away;

/* How the ranks of a group share a model. Functions that compute, read the state or write it are then called by all of
 * them, with the same arguments. */
typedef struct gpt_group {
    trine_comm *comm;
    int32_t rank, ranks;
    int32_t tensors; /* 1: a rank has some of each layer's heads and hidden columns; 0: some of a batch's sequences */
    int32_t parts;   /* 1, without tensors: and a part of the optimizer's state, as ZeRO's first stage */
} gpt_group;

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
    int32_t mixed;  /* 1: activations, gradients and the weights in use are bf16, the optimizer's f32; 0: all f32 */
    int32_t memory; /* GPT_SHARED, ...; a checkpoint does not have it */
    const gpt_offload *away; /* NULL: the device keeps all state; nor has it this */
    const gpt_group *group;  /* NULL: one rank has all; nor this */
    int32_t head;            /* the size of a head, of a rank's share; 0: width / heads */
} gpt_config;

/* What is kept of a layer's forward pass for its gradient. r = batch*context rows; `void *` is of the model's type. */
typedef struct gpt_layer {
    /* the inputs of attention and feed-forward, and their norms: r width */
    void *stream, *normed, *middle, *middle_normed;
    float *rstd, *middle_rstd; /* r */
    void *qkv, *mixed;         /* r (heads + 2 kv_heads) head; r width */
    float *lse;                /* batch heads context */
    void *gate_up, *activated; /* r 2 hidden, then their gradients; r hidden */
    /* the same for the gradient: that, or made anew */
    void *normed_again, *middle_normed_again, *activated_again;
    void *dqkv, *dmixed, *dactivated;
    /* where its parameters are, in elements; matrices are stored [in, out] */
    int64_t w_qkv, w_mixed, w_gate_up, w_down, norm, middle_norm;
} gpt_layer;

typedef struct gpt_model {
    gpt_config config, whole; /* what this rank has, and what all have; the same without a group */
    trine_queue *queue;
    int64_t parameters, decayed; /* all, and the matrices, which come first and decay; the embedding is at 0 */
    int64_t final_norm;
    trine_dtype type;     /* of `void *` */
    void *weight, *grad;  /* device memory, all in one run each */
    float *param, *m, *v; /* likewise, but of the first `kept` parameters; in f32 param is weight */
    int64_t kept;
    /* Of a rank with a part of the state: it begins with parameter `part_first`, and has `kept` of the `part` that each
     * rank has room for. The gradient of these, and their weights in use; in f32 that is param, beside weight. */
    int64_t part, part_first;
    void *part_grad, *part_weight;
    double *squares;        /* of the gradient's parts: of each rank, then two more */
    float *exchanged;       /* state on its way to other ranks */
    gpt_away *away;         /* the state of the others; NULL: there are none */
    float *cosines, *sines; /* context, head/2 */
    int32_t *tokens, *labels;
    void *stream, *normed; /* of the final norm */
    float *rstd;
    void *delta, *logits;
    float *loss, *dloss; /* of each token; one over their number */
    float *losses;       /* the means of up to GPT_MAX_LOSSES batches */
    float *byte_logits;  /* of one token */
    void *dstream[2], *dnormed;
    float *scale;       /* the clipping coefficient; then a sum of losses */
    int64_t dloss_rows; /* that number */
    float *host;        /* r, for losses */
    gpt_layer layer[GPT_MAX_LAYERS];
    void *activations;        /* all that a step keeps between its ops */
    trine_arena_report arena; /* how many bytes of them there are */
    void *allocated[32];
    int allocations;
    char trouble[256]; /* what went wrong, where trine does not know it */
} gpt_model;

/* NULL, or what is wrong with a configuration. */
const char *gpt_config_check(const gpt_config *config);

/* Likewise, with how a group is to share it. */
const char *gpt_group_check(const gpt_config *config, const gpt_group *group);

/* Places the parameters of a configuration, or of a rank's share; returns their number. `layer` may be NULL. */
int64_t gpt_place(const gpt_config *config, gpt_layer *layer, int64_t *decayed_out, int64_t *final_norm_out);

/* The number of parameters of a valid configuration. */
int64_t gpt_parameters(const gpt_config *config);

/* Makes a model of random weights. gpt_close() also takes one that gpt_open() left half made. */
bool gpt_open(gpt_model *model, const gpt_config *config, trine_queue *queue, uint64_t seed);
void gpt_close(gpt_model *model);

/* The state of `count` parameters of the whole model from `first` on, wherever it is. */
enum { GPT_PARAM, GPT_M, GPT_V };
bool gpt_state_write(gpt_model *model, int which, int64_t first, int64_t count, const float *from);
bool gpt_state_read(gpt_model *model, int which, int64_t first, int64_t count, float *to);

/* After parameters were written to: brings the weights in use up to them. */
bool gpt_refresh(gpt_model *model);

/* Mean cross-entropy in nats of predicting labels[i] from tokens up to i, for `sequences` <= batch sequences of
 * `length` <= context tokens; of a rank's own sequences. */
bool gpt_loss(gpt_model *model, const int32_t *tokens, const int32_t *labels, int sequences, int length,
              double *loss_out);

/* The same for a whole batch, that of all ranks, whose sequence b is text[place[b]], text[place[b] + 1], ... in device
 * memory, into model->losses[slot], without waiting. */
bool gpt_loss_of_text(gpt_model *model, const int32_t *text, const int64_t *place, int slot);

/* The gradient of the last loss into model->grad: what this rank's sequences have of it. */
bool gpt_gradient(gpt_model *model, int sequences, int length);

typedef struct gpt_step {
    float rate, beta1, beta2, weight_decay, max_norm;
    int64_t number; /* from 1 */
} gpt_step;

/* Adds up the ranks' gradients, clips them and takes an AdamW step; without waiting, where the device keeps all
 * state. */
bool gpt_update(gpt_model *model, const gpt_step *step);

/* The logits of the byte after the last of one sequence. */
bool gpt_predict(gpt_model *model, const int32_t *tokens, int length, float logits_out[GPT_BYTES]);

#endif
