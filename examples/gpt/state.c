/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer's state: where it is, how it begins, and its steps. */
#include "state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "away.h"
#include "share.h"

enum { SOME = 1 << 20 }; /* parameters that are looked at at once */
enum { ALIGNED = 64 };   /* 256 bytes of f32 */

static void *at(const gpt_model *model, void *data, int64_t i) {
    return (char *)data + i * (int64_t)trine_dtype_size(model->type);
}

/* ---------------------------------------------------------------------------------------------------- where it is */

static void release(gpt_model *model, int allocations) {
    while (model->allocations > allocations) trine_memory_free(model->queue, model->allocated[--model->allocations]);
}

/* Takes memory for the state of `count` parameters, and sees that so many bytes more are left. */
static bool keep(gpt_model *model, int64_t count, int64_t left) {
    const int before = model->allocations;
    void *rest;
    bool good = gpt_reserve(model, &model->m, count, sizeof(float)) &&
                gpt_reserve(model, &model->v, count, sizeof(float)) &&
                (!model->config.mixed || gpt_reserve(model, &model->param, count, sizeof(float)));
    if (good && left > 0 && (good = gpt_reserve(model, &rest, left, 1))) release(model, model->allocations - 1);
    if (!good) release(model, before);
    if (!model->config.mixed) model->param = model->weight;
    model->kept = count;
    return good;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool step_kept(gpt_model *model, const gpt_step *step);

/* The fastest of some steps of what is there, or on the device. */
static bool measure(gpt_model *model, gpt_away *away, double *seconds_out) {
    const gpt_step step = { .rate = 1e-3f, .beta1 = 0.9f, .beta2 = 0.95f, .weight_decay = 0.1f, .number = 1 };
    *seconds_out = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double start = now();
        TRY(away ? gpt_away_step(away, model, &step, 0) : step_kept(model, &step));
        TRY(trine_queue_wait(model->queue) == TRINE_OK);
        *seconds_out = fmin(*seconds_out, now() - start);
    }
    return true;
}

/* Zeros for a measurement. */
static bool clear(gpt_model *model, int64_t count, gpt_away *away) {
    const size_t size = trine_dtype_size(model->type);
    float *zeros = calloc(SOME, sizeof *zeros);
    bool good = zeros && trine_memory_write(model->queue, model->scale, zeros, sizeof *zeros) == TRINE_OK;
    for (int64_t i = 0; good && i < count; i += SOME) {
        const int64_t n = count - i < SOME ? count - i : SOME;
        good = trine_memory_write(model->queue, at(model, model->grad, i), zeros, (size_t)n * size) == TRINE_OK;
        for (int which = GPT_PARAM; good && which <= GPT_V; which++)
            good = away ? gpt_away_write(away, model, which, i, n, zeros) : gpt_state_write(model, which, i, n, zeros);
    }
    free(zeros);
    return good;
}

/* Both step at once, each at its own rate: they end together if each has as large a part as it is fast. A device that
 * is the CPU gains nothing. */
static bool find_share(gpt_model *model, double *share_out) {
    const int64_t count = model->parameters < 8 * SOME ? model->parameters : 8 * SOME;
    const int before = model->allocations;
    double here, there;
    *share_out = 0;
    if (trine_queue_device(model->queue) == 0) return true;
    gpt_away *away = gpt_away_open(model, 0, count);
    bool good = away && clear(model, count, away) && measure(model, away, &there);
    gpt_away_close(away);
    if (!good || !keep(model, count, 0)) return good; /* no memory: none is kept */
    good = clear(model, count, NULL) && measure(model, NULL, &here);
    release(model, before);
    if (good) *share_out = there / (here + there);
    return good;
}

bool gpt_state_open(gpt_model *model) {
    const gpt_offload *o = model->config.away;
    if (!o) return model->part ? gpt_share_keep(model) : keep(model, model->parameters, 0);
    double share = o->share;
    trine_device_info_t device;
    TRY(trine_device_info(o->lib, trine_queue_device(model->queue), &device) == TRINE_OK);
    TRY(share >= 0 || find_share(model, &share));
    int64_t kept = share >= 1 ? model->parameters : (int64_t)(share * (double)model->parameters) / ALIGNED * ALIGNED;
    /* As much as there is memory for, with a sixteenth left to the ops. */
    while (!keep(model, kept, o->share < 0 && kept > 0 ? device.memory / 16 : 0)) {
        if (o->share >= 0 || kept == 0) return false;
        kept = kept * 7 / 8 / ALIGNED * ALIGNED;
    }
    if (kept < model->parameters) TRY((model->away = gpt_away_open(model, kept, model->parameters)) != NULL);
    return true;
}

/* --------------------------------------------------------------------------------------------- reading and writing */

bool gpt_state_put(gpt_model *model, int which, int64_t first, int64_t count, const float *from) {
    float *const kept = (float *[]){ model->param, model->m, model->v }[which];
    const int64_t here = model->kept <= first ? 0 : model->kept - first < count ? model->kept - first : count;
    TRY(here == 0 || trine_memory_write(model->queue, kept + first, from, (size_t)here * sizeof *from) == TRINE_OK);
    return here == count || gpt_away_write(model->away, model, which, first + here, count - here, from + here);
}

bool gpt_state_get(gpt_model *model, int which, int64_t first, int64_t count, float *to) {
    const float *const kept = (float *[]){ model->param, model->m, model->v }[which];
    const int64_t here = model->kept <= first ? 0 : model->kept - first < count ? model->kept - first : count;
    TRY(here == 0 || trine_memory_read(model->queue, to, kept + first, (size_t)here * sizeof *to) == TRINE_OK);
    return here == count || gpt_away_read(model->away, model, which, first + here, count - here, to + here);
}

bool gpt_state_write(gpt_model *model, int which, int64_t first, int64_t count, const float *from) {
    return gpt_share_is(model) ? gpt_share_write(model, which, first, count, from)
                               : gpt_state_put(model, which, first, count, from);
}

bool gpt_state_read(gpt_model *model, int which, int64_t first, int64_t count, float *to) {
    return gpt_share_is(model) ? gpt_share_read(model, which, first, count, to)
                               : gpt_state_get(model, which, first, count, to);
}

bool gpt_refresh(gpt_model *model) {
    const trine_tensor from = trine_tensor_1d(model->param, TRINE_F32, model->kept);
    const trine_tensor to = trine_tensor_1d(model->part ? model->part_weight : model->weight, model->type, model->kept);
    if (model->config.mixed) RUN(cast, .x = &from, .y = &to);
    if (model->part) return gpt_share_spread(model);
    return !model->away || gpt_away_refresh(model->away, model);
}

/* Is it a matrix that writes to the residual stream? Its weights are smaller by the root of the number of those. */
static bool writes_to_stream(const gpt_config *c, const gpt_layer *layers, int64_t decayed, int64_t i) {
    const int64_t width = c->width, hidden = c->hidden;
    const int64_t layer = layers[0].w_qkv, next = c->layers > 1 ? layers[1].w_qkv - layer : 0;
    if (i < layer || i >= decayed) return false;
    const gpt_layer *l = &layers[next ? (i - layer) / next : 0];
    return (i >= l->w_mixed && i < l->w_mixed + width * width) || (i >= l->w_down && i < l->w_down + hidden * width);
}

/* Normal weights of deviation 0.02; norms are 1. */
bool gpt_state_begin(gpt_model *model, uint64_t seed) {
    const float shrink = (float)(1 / sqrt(2.0 * model->config.layers));
    gpt_layer layer[GPT_MAX_LAYERS]; /* of the whole model, of which each rank draws all */
    int64_t decayed, final_norm;
    const int64_t parameters = gpt_place(&model->whole, layer, &decayed, &final_norm);
    float *param = malloc(SOME * sizeof *param), *zeros = calloc(SOME, sizeof *zeros);
    gpt_random random;
    gpt_random_seed(&random, seed);
    bool good = param && zeros;
    for (int64_t first = 0; good && first < parameters; first += SOME) {
        const int64_t count = parameters - first < SOME ? parameters - first : SOME;
        for (int64_t i = 0; i < count; i++) {
            const double radius = sqrt(-2 * log(1 - gpt_random_uniform(&random)));
            param[i] = first + i < decayed
                           ? (float)(0.02 * radius * cos(6.283185307179586 * gpt_random_uniform(&random)))
                           : 1.0f;
            if (writes_to_stream(&model->whole, layer, decayed, first + i)) param[i] *= shrink;
        }
        good = gpt_state_write(model, GPT_PARAM, first, count, param) &&
               gpt_state_write(model, GPT_M, first, count, zeros) && gpt_state_write(model, GPT_V, first, count, zeros);
    }
    free(param);
    free(zeros);
    return good && gpt_refresh(model);
}

/* ----------------------------------------------------------------------------------------------------------- steps */

/* The matrices, which decay, and the norms' weights, which do not. */
static bool step_kept(gpt_model *model, const gpt_step *step) {
    const trine_tensor coefficient = trine_tensor_1d(model->scale, TRINE_F32, 1);
    const int64_t before = model->decayed - model->part_first, /* of this rank's, those that decay */
        decayed = before < 0             ? 0
                  : before < model->kept ? before
                                         : model->kept;
    const int64_t end[2] = { decayed, model->kept };
    void *const grads = model->part ? model->part_grad : model->grad, *const weights = model->part ? model->part_weight
                                                                                                   : model->weight;
    for (int part = 0; part < 2; part++) {
        const int64_t first = part ? decayed : 0, n = end[part] - first;
        const trine_tensor param = trine_tensor_1d(model->param + first, TRINE_F32, n),
                           m = trine_tensor_1d(model->m + first, TRINE_F32, n),
                           v = trine_tensor_1d(model->v + first, TRINE_F32, n);
        const trine_tensor grad = trine_tensor_1d(at(model, grads, first), model->type, n),
                           copy = trine_tensor_1d(at(model, weights, first), model->type, n);
        RUN(adamw, .param = &param, .grad = &grad, .m = &m, .v = &v, .copy = model->config.mixed ? &copy : NULL,
            .grad_scale = &coefficient, .lr = step->rate, .beta1 = step->beta1, .beta2 = step->beta2,
            .weight_decay = part ? 0 : step->weight_decay, .step = step->number);
    }
    return true;
}

/* The device's share and the host's are stepped at once. */
bool gpt_update(gpt_model *model, const gpt_step *step) {
    const trine_tensor all = trine_tensor_1d(model->grad, model->type, model->parameters),
                       coefficient = trine_tensor_1d(model->scale, TRINE_F32, 1);
    float scale = 1;
    TRY(gpt_share_gradient(model));
    if (gpt_share_is(model))
        TRY(gpt_share_clip(model, step->max_norm));
    else
        RUN(global_norm_clip, .x = &all, .coefficient = &coefficient, .max_norm = step->max_norm);
    TRY(!model->away || trine_memory_read(model->queue, &scale, model->scale, sizeof scale) == TRINE_OK);
    TRY(step_kept(model, step));
    if (model->part) return gpt_share_spread(model);
    return !model->away || gpt_away_step(model->away, model, step, scale);
}
