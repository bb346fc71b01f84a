/* SPDX-License-Identifier: Apache-2.0 */
/* What a step keeps between its ops, in one piece of memory: each buffer's life is known, and the library's plan lays
 * those that are not needed at once over each other. */
#include <stdlib.h>
#include <string.h>

#include "activations.h"

/* The steps of a pass through a layer, and back. */
enum { NORM, ATTEND, MIDDLE_NORM, FEED_FORWARD, FORWARD };
enum { DOWN, ACTIVATION, UP, MIDDLE_NORM_BACK, MIXED, ATTENTION, QKV, NORM_BACK, BACKWARD };
enum { MOST = 20 + 17 * GPT_MAX_LAYERS };

typedef struct lives {
    const gpt_model *model;
    int64_t end; /* the last step */
    int64_t count;
    trine_lifetime life[MOST];
    void *place[MOST]; /* where the pointer is */
    void *same[MOST];  /* where it is too, or NULL */
} lives;

bool gpt_norms_again(const gpt_config *config) { return config->memory == GPT_RECOMPUTED && !config->mixed; }

static int64_t forward(int layer, int step) { return (int64_t)FORWARD * layer + step; }
static int64_t head(const lives *l) { return forward(l->model->config.layers, 0); }
static int64_t backward(const lives *l, int layer, int step) {
    return head(l) + 2 + (int64_t)BACKWARD * (l->model->config.layers - 1 - layer) + step;
}

static void need(lives *l, void *pointer, int64_t count, size_t size, int64_t first, int64_t last) {
    const bool alone = l->model->config.memory == GPT_SEPARATE;
    l->life[l->count] = (trine_lifetime){ count * (int64_t)size, alone ? 0 : first, alone ? l->end : last };
    l->place[l->count++] = pointer;
}

/* Kept from the pass to the step back that reads it; or made anew there, if memory is short. */
static void need_twice(lives *l, bool anew, void *pointer, void *again, int64_t count, size_t size, int64_t first,
                       int64_t last, int64_t back) {
    need(l, pointer, count, size, first, anew ? last : back);
    if (anew)
        need(l, again, count, size, back, back);
    else
        l->same[l->count - 1] = again;
}

static void need_layer(lives *l, gpt_layer *layer, int i) {
    const gpt_config *c = &l->model->config;
    const size_t size = trine_dtype_size(l->model->type);
    const bool norms = gpt_norms_again(c);
    const int64_t r = (int64_t)c->batch * c->context, wide = r * c->width, tall = r * c->hidden,
                  head = c->head ? c->head : c->width / c->heads, qkv = r * (c->heads + 2 * c->kv_heads) * head,
                  mixed = r * c->heads * head, norm = forward(i, NORM), attend = forward(i, ATTEND),
                  middle = forward(i, MIDDLE_NORM), feed = forward(i, FEED_FORWARD),
                  attention = backward(l, i, ATTENTION);
    need(l, &layer->stream, wide, size, norm, backward(l, i, NORM_BACK));
    need(l, &layer->rstd, r, sizeof(float), norm, backward(l, i, NORM_BACK));
    need_twice(l, norms, &layer->normed, &layer->normed_again, wide, size, norm, attend, backward(l, i, QKV));
    need(l, &layer->qkv, qkv, size, attend, attention);
    need(l, &layer->mixed, mixed, size, attend, attention);
    need(l, &layer->lse, r * c->heads, sizeof(float), attend, attention);
    need(l, &layer->middle, wide, size, middle, backward(l, i, MIDDLE_NORM_BACK));
    need(l, &layer->middle_rstd, r, sizeof(float), middle, backward(l, i, MIDDLE_NORM_BACK));
    need_twice(l, norms, &layer->middle_normed, &layer->middle_normed_again, wide, size, middle, feed,
               backward(l, i, UP));
    need(l, &layer->gate_up, 2 * tall, size, feed, backward(l, i, UP));
    need_twice(l, c->memory == GPT_RECOMPUTED, &layer->activated, &layer->activated_again, tall, size, feed, feed,
               backward(l, i, DOWN));
    need(l, &layer->dactivated, tall, size, backward(l, i, DOWN), backward(l, i, ACTIVATION));
    need(l, &layer->dmixed, mixed, size, backward(l, i, MIXED), attention);
    need(l, &layer->dqkv, qkv, size, attention, backward(l, i, QKV));
}

static void need_ends(lives *l, gpt_model *model) {
    const gpt_config *c = &l->model->config;
    const size_t size = trine_dtype_size(model->type);
    const int64_t r = (int64_t)c->batch * c->context, wide = r * c->width, loss = head(l), back = loss + 1;
    need(l, &model->delta, wide, size, forward(0, ATTEND), loss);
    need(l, &model->stream, wide, size, loss, back);
    need(l, &model->rstd, r, sizeof(float), loss, back);
    need(l, &model->normed, wide, size, loss, back);
    need(l, &model->logits, r * c->vocabulary, size, loss, back);
    need(l, &model->dnormed, wide, size, back, l->end);
    need(l, &model->dstream[0], wide, size, back, l->end);
    need(l, &model->dstream[1], wide, size, backward(l, c->layers - 1, MIDDLE_NORM_BACK), l->end);
}

static void put(lives *l, const int64_t *offset, char *memory) {
    for (int64_t i = 0; i < l->count; i++) {
        void *const here = memory + offset[i];
        memcpy(l->place[i], &here, sizeof here);
        if (l->same[i]) memcpy(l->same[i], &here, sizeof here);
    }
}

bool gpt_activations_open(gpt_model *model) {
    static const int64_t alignment = 256;
    lives *l = calloc(1, sizeof *l);
    int64_t *offset = calloc(MOST, sizeof *offset);
    void *memory = NULL;
    bool good = l != NULL && offset != NULL;
    if (good) {
        l->model = model;
        l->end = forward(model->config.layers, 2) + (int64_t)BACKWARD * model->config.layers;
        need_ends(l, model);
        for (int i = 0; i < model->config.layers; i++) need_layer(l, &model->layer[i], i);
        good = trine_arena_plan(l->life, l->count, alignment, offset, &model->arena) == TRINE_OK &&
               trine_memory_alloc(model->queue, (size_t)model->arena.bytes, &memory) == TRINE_OK;
    }
    if (good) {
        model->activations = memory;
        put(l, offset, memory);
    }
    free(l);
    free(offset);
    return good;
}

void gpt_activations_close(gpt_model *model) {
    if (model->activations) trine_memory_free(model->queue, model->activations);
    model->activations = NULL;
}
