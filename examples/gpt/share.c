/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's share of a model. By data each rank has all parameters and some of a batch's sequences; the state of the
 * optimizer too, or a part of it, of one size on all ranks. By tensors it has all sequences, but of each layer some
 * heads and some hidden columns: the columns of one matrix and the rows of the next, so that one sum over the ranks
 * after the second is enough. Embedding and norms are everyone's. */
#include "share.h"

#include <math.h>
#include <stdlib.h>

#include "state.h"

enum { SOME = 1 << 20 }; /* parameters whose state is exchanged at once */
enum { ALIGNED = 64 };   /* parameters of a part: 128 bytes of bf16 */

static const gpt_group *by_tensors(const gpt_config *whole) {
    return whole->group && whole->group->tensors ? whole->group : NULL;
}
static const gpt_group *by_data(const gpt_config *whole) {
    return whole->group && !whole->group->tensors ? whole->group : NULL;
}

const char *gpt_group_check(const gpt_config *config, const gpt_group *group) {
    if (config->away) return "ranks of a group keep the optimizer's state on the device";
    if (group->tensors && group->parts) return "ranks that share tensors have parts of the state already";
    if (group->tensors && (config->heads % group->ranks || config->kv_heads % group->ranks))
        return "ranks that share tensors must divide heads and kv-heads";
    if (group->tensors && config->hidden % group->ranks) return "ranks that share tensors must divide the hidden width";
    if (!group->tensors && config->batch % group->ranks) return "ranks must divide the batch";
    return NULL;
}

gpt_config gpt_share_of(const gpt_config *whole) {
    gpt_config share = *whole;
    if (by_data(whole)) share.batch /= whole->group->ranks;
    if (by_tensors(whole)) {
        share.head = whole->width / whole->heads;
        share.heads /= whole->group->ranks;
        share.kv_heads /= whole->group->ranks;
        share.hidden /= whole->group->ranks;
    }
    return share;
}

int64_t gpt_share_batches(const gpt_model *model) { return by_data(&model->whole) ? model->whole.group->ranks : 1; }

bool gpt_share_is(const gpt_model *model) { return by_tensors(&model->whole) || model->part; }

/* ----------------------------------------------------------------------------------------------------------- memory */

void gpt_share_begin(gpt_model *model) {
    const gpt_group *g = by_data(&model->whole);
    if (!g || !g->parts) return;
    model->part = ((model->parameters + g->ranks - 1) / g->ranks + ALIGNED - 1) / ALIGNED * ALIGNED;
    model->part_first = model->part * g->rank;
    const int64_t left = model->parameters - model->part_first;
    model->kept = left < 0 ? 0 : left < model->part ? left : model->part;
}

int64_t gpt_share_room(const gpt_model *model) {
    return model->part ? model->part * model->whole.group->ranks : model->parameters;
}

bool gpt_share_open(gpt_model *model) {
    const gpt_group *g = model->whole.group;
    const int64_t n = model->parameters, rest = gpt_share_room(model) - n;
    const size_t size = trine_dtype_size(model->type);
    if (!g) return true;
    TRY(gpt_reserve(model, &model->exchanged, SOME, sizeof(float)) &&
        gpt_reserve(model, &model->squares, g->ranks + 2, sizeof(double)));
    void *zeros = calloc((size_t)rest + 1, size);
    const bool good = zeros && (rest == 0 || trine_memory_write(model->queue, (char *)model->grad + n * (int64_t)size,
                                                                zeros, (size_t)rest * size) == TRINE_OK);
    free(zeros);
    return good;
}

bool gpt_share_keep(gpt_model *model) {
    const size_t size = trine_dtype_size(model->type);
    TRY(gpt_reserve(model, &model->m, model->part, sizeof(float)) &&
        gpt_reserve(model, &model->v, model->part, sizeof(float)) &&
        gpt_reserve(model, &model->param, model->part, sizeof(float)) &&
        gpt_reserve(model, &model->part_grad, model->part, size));
    model->part_weight = model->param;
    return !model->config.mixed || gpt_reserve(model, &model->part_weight, model->part, size);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static trine_tensor ranks_of(void *data, trine_dtype type, int64_t ranks, int64_t n) {
    return trine_tensor_2d(data, type, ranks, n);
}

bool gpt_share_sum(gpt_model *model, void *data, int64_t count) {
    const gpt_group *g = by_tensors(&model->whole);
    const trine_tensor x = trine_tensor_1d(data, model->type, count);
    if (g) RUN(all_reduce, .comm = g->comm, .x = &x, .y = &x);
    return true;
}

bool gpt_share_loss(gpt_model *model, float *loss) {
    const gpt_group *g = by_data(&model->whole);
    const trine_tensor x = trine_tensor_1d(loss, TRINE_F32, 1);
    if (g) RUN(all_reduce, .comm = g->comm, .x = &x, .y = &x);
    return true;
}

bool gpt_share_gradient(gpt_model *model) {
    const gpt_group *g = by_data(&model->whole);
    if (!g) return true;
    const trine_tensor all = trine_tensor_1d(model->grad, model->type, model->parameters),
                       parts = ranks_of(model->grad, model->type, g->ranks, model->part),
                       own = trine_tensor_1d(model->part_grad, model->type, model->part);
    if (model->part)
        RUN(reduce_scatter, .comm = g->comm, .x = &parts, .y = &own);
    else
        RUN(all_reduce, .comm = g->comm, .x = &all, .y = &all);
    return true;
}

static bool squares_of(gpt_model *model, void *data, int64_t first, int64_t count, double *to) {
    const trine_tensor x = trine_tensor_1d((char *)data + first * (int64_t)trine_dtype_size(model->type), model->type,
                                           count),
                       sum = trine_tensor_1d(to, TRINE_F64, 1);
    RUN(global_norm_clip, .x = &x, .sum_squares = &sum);
    return true;
}

bool gpt_share_clip(gpt_model *model, float max_norm) {
    const gpt_group *g = model->whole.group;
    const int64_t shared = model->layer[0].w_qkv, n = model->parameters; /* what all have is before and behind */
    double *const own = model->squares + g->ranks;
    const trine_tensor x = trine_tensor_1d(own, TRINE_F64, 1), y = ranks_of(model->squares, TRINE_F64, g->ranks, 1),
                       none = trine_tensor_1d(model->grad, model->type, 0);
    const trine_tensor squares = trine_tensor_1d(model->squares, TRINE_F64, g->ranks + (g->tensors ? 2 : 0)),
                       coefficient = trine_tensor_1d(model->scale, TRINE_F32, 1);
    TRY(g->tensors ? squares_of(model, model->grad, shared, model->decayed - shared, own)
                   : squares_of(model, model->part_grad, 0, model->kept, own));
    RUN(all_gather, .comm = g->comm, .x = &x, .y = &y);
    if (g->tensors)
        TRY(squares_of(model, model->grad, 0, shared, own) &&
            squares_of(model, model->grad, model->decayed, n - model->decayed, own + 1));
    RUN(global_norm_clip, .x = &none, .other_squares = &squares, .coefficient = &coefficient, .max_norm = max_norm);
    return true;
}

bool gpt_share_spread(gpt_model *model) {
    const gpt_group *g = model->whole.group;
    const trine_tensor own = trine_tensor_1d(model->part_weight, model->type, model->part),
                       all = ranks_of(model->weight, model->type, g->ranks, model->part);
    RUN(all_gather, .comm = g->comm, .x = &own, .y = &all);
    return true;
}

bool gpt_share_any(gpt_model *model, bool mine, bool *any_out) {
    const gpt_group *g = model->whole.group;
    float flag = mine;
    if (g) {
        const trine_tensor x = trine_tensor_1d(model->exchanged, TRINE_F32, 1);
        TRY(trine_memory_write(model->queue, model->exchanged, &flag, sizeof flag) == TRINE_OK);
        RUN(all_reduce, .comm = g->comm, .x = &x, .y = &x, .kind = TRINE_RANKS_MAX);
        TRY(trine_memory_read(model->queue, &flag, model->exchanged, sizeof flag) == TRINE_OK);
    }
    *any_out = flag > 0;
    return true;
}

/* ------------------------------------------------------------------------------------------- where parameters are */

/* Parameters of the whole model, [first, first + count), whose state is read or written. */
typedef struct range {
    gpt_model *model;
    int which;
    int64_t first, count;
    const float *from; /* or, of what is read, to */
    float *to;
} range;

/* `count` parameters from `whole` on are from `here` on at this rank: those of them that are in the range. */
static bool run(const range *r, int64_t whole, int64_t here, int64_t count) {
    const int64_t begin = whole > r->first ? whole : r->first, end_of_range = r->first + r->count,
                  end = whole + count < end_of_range ? whole + count : end_of_range, at = begin - r->first;
    if (begin >= end) return true;
    here += begin - whole;
    return r->to ? gpt_state_get(r->model, r->which, here, end - begin, r->to + at)
                 : gpt_state_put(r->model, r->which, here, end - begin, r->from + at);
}

/* Columns [first, first + count) of each row of a matrix, which are from column `to` on of this rank's. */
static bool columns(const range *r, int64_t whole, int64_t whole_width, int64_t here, int64_t width, int64_t first,
                    int64_t to, int64_t count) {
    const int64_t rows = r->model->whole.width;
    if (whole + rows * whole_width <= r->first || whole >= r->first + r->count) return true;
    for (int64_t i = 0; i < rows; i++) TRY(run(r, whole + i * whole_width + first, here + i * width + to, count));
    return true;
}

static bool layer_runs(const range *r, const gpt_layer *whole, const gpt_layer *here) {
    const gpt_config *all = &r->model->whole, *own = &r->model->config;
    const int64_t rank = all->group->rank, width = all->width, heads = (int64_t)own->heads * own->head,
                  kv = (int64_t)own->kv_heads * own->head, hidden = own->hidden;
    const int64_t all_heads = width, all_kv = (int64_t)all->kv_heads * own->head, all_qkv = all_heads + 2 * all_kv;
    for (int part = 0; part < 3; part++) { /* queries, keys, values */
        const int64_t count = part ? kv : heads, begin = part ? all_heads + (part - 1) * all_kv : 0;
        TRY(columns(r, whole->w_qkv, all_qkv, here->w_qkv, heads + 2 * kv, begin + rank * count,
                    part ? heads + (part - 1) * kv : 0, count));
    }
    for (int up = 0; up < 2; up++)
        TRY(columns(r, whole->w_gate_up, 2 * (int64_t)all->hidden, here->w_gate_up, 2 * hidden,
                    up * (int64_t)all->hidden + rank * hidden, up * hidden, hidden));
    return run(r, whole->w_mixed + rank * heads * width, here->w_mixed, heads * width) &&
           run(r, whole->w_down + rank * hidden * width, here->w_down, hidden * width);
}

static bool all_runs(const range *r) {
    const gpt_model *model = r->model;
    gpt_layer whole[GPT_MAX_LAYERS];
    int64_t decayed, final_norm;
    if (model->part) return run(r, model->part_first, 0, model->kept);
    const int64_t parameters = gpt_place(&model->whole, whole, &decayed, &final_norm);
    TRY(run(r, 0, 0, whole[0].w_qkv) && run(r, decayed, model->decayed, parameters - decayed));
    for (int i = 0; i < model->whole.layers; i++) TRY(layer_runs(r, &whole[i], &model->layer[i]));
    return true;
}

bool gpt_share_write(gpt_model *model, int which, int64_t first, int64_t count, const float *from) {
    const range r = { model, which, first, count, from, NULL };
    return all_runs(&r);
}

/* What this rank has not is below all that another may have, so that the largest is the one that is there. */
bool gpt_share_read(gpt_model *model, int which, int64_t first, int64_t count, float *to) {
    for (int64_t done = 0; done < count; done += SOME) {
        const int64_t n = count - done < SOME ? count - done : SOME;
        const range r = { model, which, first + done, n, NULL, to + done };
        const trine_tensor x = trine_tensor_1d(model->exchanged, TRINE_F32, n);
        for (int64_t i = 0; i < n; i++) to[done + i] = -INFINITY;
        TRY(all_runs(&r));
        TRY(trine_memory_write(model->queue, model->exchanged, to + done, (size_t)n * sizeof *to) == TRINE_OK);
        RUN(all_reduce, .comm = model->whole.group->comm, .x = &x, .y = &x, .kind = TRINE_RANKS_MAX);
        TRY(trine_memory_read(model->queue, to + done, model->exchanged, (size_t)n * sizeof *to) == TRINE_OK);
    }
    return true;
}
