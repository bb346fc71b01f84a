/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that the norms share, and those of their gradients. */
#include "norm_launch.h"

static bool given(const trine_call *call, int tensor) { return tensor >= 0 && simt_present(call, tensor); }

static simt_rows rows_of(const trine_call *call, int tensor) { return tensor >= 0 ? simt_rows_of(call, tensor) : (simt_rows){ 0 }; }

/* -------------------------------------------------------------------------------------------------------------------- norms */

/* Rows of 16 bits that fill the registers of their group, and are faster by 1 to 2 % there than in shared memory (H200). */
static bool fills_registers(const trine_call *call, const norm_tensors *t) {
    static const int64_t lengths[][2] = { { 2 << 10, 4 << 10 }, { 1 << 10, 2 << 10 } }; /* without and with a mean */
    const int64_t *length = lengths[t->mean >= 0];
    return trine_dtype_size(call->type[NORM_TYPE_T]) == 2 && (call->dim[NORM_DIM_N] == length[0] || call->dim[NORM_DIM_N] == length[1]);
}

/* Rows in shared memory: two of a block, which share what is read of the weight, if those are enough for the device. Up to LEAST elements registers hold a row as
 * fast, if it does not fill half of a block's room, and faster if there are few; with dropout up to LEAST_DROPPED, and one row with a mean is faster than two. */
static const simt_shape *parts_of(const trine_call *call, const norm_tensors *t, norm_params *p) {
    enum { LEAST = 4096, LEAST_DROPPED = 2048, FEW = 4 };
    const bool dropped = p->dropout.p > 0;
    if (dropped ? p->n <= LEAST_DROPPED : fills_registers(call, t)) return NULL;
    const simt_room room = simt_room_of(call);
    for (p->block_rows = (p->weight.data || p->bias.data) && !(dropped && t->mean >= 0) ? 2 : 1; p->block_rows > 0; p->block_rows--) {
        const int64_t bytes = p->block_rows * (int64_t)trine_dtype_size(call->type[NORM_TYPE_T]);
        const simt_shape *shape = simt_shape_for(call, NORM_DIM_N, dropped || p->block_rows > 1 ? SIMT_SHORT : SIMT_ALL, bytes, room.cluster, &p->part);
        if (shape == NULL || (p->block_rows > 1 && p->rows * p->part.blocks < room.units)) continue;
        if (p->n > LEAST || (FEW * p->rows >= room.units && simt_parts_full(call, shape, &p->part, bytes))) return shape;
    }
    return NULL;
}

/* Rows of 16 bits with dropout and nothing added to them, whose elements are dropped where they are, by blocks of words whose numbers have 32 bits. */
static bool drops(const trine_call *call, const norm_params *p) {
    const bool alone = !p->residual.data && !p->residual_out.data && (call->type[NORM_TYPE_W] == call->type[NORM_TYPE_T] || !(p->weight.data || p->bias.data));
    return alone && p->dropout.p > 0 && p->dropout.p < 1 && trine_dtype_size(call->type[NORM_TYPE_T]) == 2 && call->dim[NORM_DIM_N] % 8 == 0 &&
           p->rows <= ((int64_t)1 << 35) / (p->n > 0 ? p->n : 1);
}

/* The same of rows whose h is made there, as f32. Registers are as fast, or faster, of shorter rows, of those with a residual of 16 bits that nearly fill a group's, and of
 * up to 16384 elements where there is but dropout, which binds. */
static const simt_shape *full_of(const trine_call *call, norm_params *p) {
    enum { LEAST = 8 << 10, LEAST_NARROW = 4 << 10, LEAST_DROPOUT = 16 << 10, NEARLY = 7 << 10 };
    p->block_rows = 1;
    const bool narrow = call->type[NORM_TYPE_R] != TRINE_F32, dropout = p->dropout.p > 0 && !p->residual.data && !p->residual_out.data;
    if (p->n <= (dropout ? LEAST_DROPOUT : narrow ? LEAST_NARROW : LEAST) || (p->n > NEARLY && p->n <= LEAST)) return NULL;
    const simt_shape *shape = simt_shape_for(call, NORM_DIM_N, SIMT_SHORT, sizeof(float), simt_room_of(call).cluster, &p->part);
    return shape != NULL && shape->threads == NORM_FULL_THREADS ? shape : NULL;
}

/* The one of `count` groups that rows of n columns fill, if those are whole vectors, on devices that have entries for them; NULL: none. Rows that begin anywhere have it too,
 * since sums must not depend on that. */
static const norm_fit *fit_among(const trine_call *call, int count, const norm_fit *fits) {
    const int64_t n = call->dim[NORM_DIM_N];
    if (n % NORM_FIT_ITEMS != 0 || simt_room_of(call).shared == 0) return NULL;
    for (int i = 0; i < count; i++)
        if (n > fits[i].least && n <= norm_fit_columns(&fits[i])) return &fits[i];
    return NULL;
}

/* Whole rows in registers, by as many threads, and as many vectors of each, as it takes. Groups of row.h, which have four, would have room for a third to all of the
 * columns again, of which nothing is on its way. So little is, that of 1280 and 1536 rms_norm with dropout and a residual had 89 and 95 % of what a copy moves instead of
 * 97 and 98, and layer_norm 82 and 90 instead of 96 (H200). Residuals of f32 have enough on their way, but of the shortest rows. */
static const norm_fit *fit_of(const trine_call *call, const norm_params *p) {
    enum { COUNT = 12, WIDE = 512 };
    static const norm_fit fits[COUNT] = {
        { .least = 0, .size = 8, .vectors = 1 },      { .least = 64, .size = 8, .vectors = 2 },    { .least = 128, .size = 8, .vectors = 3 },
        { .least = 256, .size = 32, .vectors = 2 },   { .least = 512, .size = 32, .vectors = 3 },  { .least = 1024, .size = 32, .vectors = 5 },
        { .least = 1280, .size = 64, .vectors = 3 },  { .least = 1536, .size = 32, .vectors = 7 }, { .least = 2048, .size = 64, .vectors = 5 },
        { .least = 2560, .size = 128, .vectors = 3 }, { .least = 3072, .size = 64, .vectors = 7 }, { .least = 4096, .size = 128, .vectors = 5 },
    };
    const bool wide = call->type[NORM_TYPE_T] == TRINE_F32 || (p->f32_residual && (p->residual.data || p->residual_out.data));
    return wide && p->n > WIDE ? NULL : fit_among(call, COUNT, fits);
}

/* Rows that begin anywhere go by groups of as many threads, whose sums are the same. */
static trine_status launch_fit(const trine_call *call, const norm_fit *fit, const norm_params *p) {
    const simt_function whole = { .step = "fit", .type = { call->type[NORM_TYPE_T] }, .variant = norm_fit_columns(fit) };
    const simt_function ragged = { .ragged = true, .type = { call->type[NORM_TYPE_T] }, .variant = fit->size };
    const simt_group group = simt_group_of(p->rows, p->n, NORM_FIT_ITEMS, 1, &fit->size);
    const int threads = NORM_FIT_THREADS(fit->size);
    if (simt_rows_whole(call, NORM_DIM_N)) return simt_launch(call, &whole, simt_blocks(p->rows, threads / fit->size), threads, p, sizeof *p);
    return simt_launch(call, &ragged, group.blocks, group.threads, p, sizeof *p);
}

trine_status norm_launch(const trine_call *call, const norm_tensors *t, norm_params p) {
    p.x = simt_rows_of(call, t->x);
    p.residual = simt_rows_of(call, t->residual);
    p.weight = simt_rows_of(call, t->weight);
    p.bias = rows_of(call, t->bias);
    p.y = simt_rows_of(call, t->y);
    p.residual_out = simt_rows_of(call, t->residual_out);
    p.mean = rows_of(call, t->mean);
    p.rstd = simt_rows_of(call, t->rstd);
    p.rows = call->dim[NORM_DIM_R];
    p.n = call->dim[NORM_DIM_N];
    p.inverse = 1.0f / (float)p.n;
    p.f32_residual = call->type[NORM_TYPE_R] == TRINE_F32;
    p.f32_weight = call->type[NORM_TYPE_W] == TRINE_F32;
    const bool plain = norm_plain(&p, call->type[NORM_TYPE_W] == call->type[NORM_TYPE_T]);
    const bool dropped = drops(call, &p);
    const norm_fit *fit = fit_of(call, &p);
    const simt_shape *shape = plain || dropped ? parts_of(call, t, &p) : fit == NULL ? full_of(call, &p) : NULL;
    const char *const step = plain ? "parts" : dropped ? "drop" : "full";
    if (dropped && shape != NULL) p.eps = (float)(p.eps / ((double)p.dropout.scale * p.dropout.scale));
    p.ahead = shape != NULL ? simt_ahead_of_parts(call, t->x, shape) : simt_ahead_of(call, t->x);
    const trine_dtype other = plain || dropped ? TRINE_NONE : call->type[NORM_TYPE_R];
    if (shape != NULL) return simt_launch_parts(call, step, other, shape, NORM_DIM_N, &p.part, simt_blocks(p.rows, p.block_rows), &p, sizeof p);
    return fit != NULL ? launch_fit(call, fit, &p) : simt_launch_rows(call, NULL, p.rows, NORM_DIM_N, SIMT_ONE_ROW, &p, sizeof p);
}

/* ---------------------------------------------------------------------------------------------------------------- gradients */

static norm_backward_params backward_params_of(const trine_call *call, const norm_backward_tensors *t, norm_backward_params p) {
    p.dy = simt_rows_of(call, t->dy);
    p.h = simt_rows_of(call, t->h);
    p.weight = simt_rows_of(call, t->weight);
    p.mean = rows_of(call, t->mean);
    p.rstd = simt_rows_of(call, t->rstd);
    p.dresidual = simt_rows_of(call, t->dresidual);
    p.dx = simt_rows_of(call, t->dx);
    p.dh = simt_rows_of(call, t->dh);
    p.rows = call->dim[NORM_DIM_R];
    p.n = call->dim[NORM_DIM_N];
    p.f32_residual = call->type[NORM_TYPE_R] == TRINE_F32;
    p.f32_weight = call->type[NORM_TYPE_W] == TRINE_F32;
    p.ahead = simt_ahead_of_two(call, t->dy, t->h);
    return p;
}

static bool fused(const trine_call *call) { return call->dim[NORM_DIM_N] <= NORM_FUSED_ITEMS * NORM_FUSED_MOST; }

/* The size of a group that whole rows fill by one vector of each thread; 0: half as many threads with two are as good. In % of copying (H200): bf16 at 64 and 256 from 71 and
 * 68 to 87 and 86 (rms_norm) and from 66 and 59 to 78 and 82; layer_norm with dropout and a residual of f32 at 1280, 2560 and 3072 from 76, 76 and 84 to 94, 92 and 97. But
 * rms_norm loses 1 to 6 where residuals have 32 bits at 640 and 768, and where all is f32, other than by seven warps. */
static int backward_fit_of(const trine_call *call, const norm_backward_params *p) {
    enum { COUNT = 8, THREE = 96, SEVEN = 224 };
    static const norm_fit fits[COUNT] = {
        { .least = 0, .size = 8, .vectors = 1 },       { .least = 128, .size = 32, .vectors = 1 },
        { .least = 512, .size = THREE, .vectors = 1 }, { .least = 1024, .size = 160, .vectors = 1 },
        { .least = 1280, .size = 192, .vectors = 1 },  { .least = 1536, .size = SEVEN, .vectors = 1 },
        { .least = 2048, .size = 320, .vectors = 1 },  { .least = 2560, .size = NORM_FIT_MOST, .vectors = 1 },
    };
    const norm_fit *fit = fit_among(call, COUNT, fits);
    if (fit == NULL) return 0;
    const bool loses = !p->mean.data && p->f32_residual && (call->type[NORM_TYPE_T] == TRINE_F32 ? fit->size != SEVEN : fit->size == THREE);
    return loses ? 0 : fit->size;
}

/* Groups take the rows of a few blocks in turns; fit: backward_fit_of(). */
static simt_group fused_group(const trine_call *call, const norm_backward_params *p, int fit, int64_t *turns_out) {
    static const int sizes[] = { 8, 32, 64, 128, 256, NORM_FUSED_MOST };
    simt_group group = fit > 0 ? simt_group_of(call->dim[NORM_DIM_R], call->dim[NORM_DIM_N], NORM_FIT_ITEMS, 1, &fit)
                               : simt_group_of(call->dim[NORM_DIM_R], call->dim[NORM_DIM_N], NORM_FUSED_ITEMS, 6, sizes);
    const int64_t held = fit > 0 ? (int64_t)simt_room_of(call).units * NORM_FIT_BLOCKS(p->mean.data != NULL, fit) : norm_fused_blocks(group.size);
    const int64_t turns = simt_blocks(group.blocks, held), most = NORM_FUSED_TURNS;
    *turns_out = turns < 1 ? 1 : turns > most ? most : turns;
    group.blocks = simt_blocks(group.blocks, *turns_out);
    return group;
}

/* Which rows a way is for: what a gradient has besides that of the norm, of rms_norm or of layer_norm. */
enum {
    ALONE = 1 << 0,    /* nothing, and one type */
    DROPOUT = 1 << 1,  /* dropout */
    RESIDUAL = 1 << 2, /* a gradient of the residual, in or out, or a weight of another type */
    WRITTEN = 1 << 3,  /* dropout and a gradient of the residual that is only written */
    READ = 1 << 4,     /* dropout and one that is read too */
    OTHERS = DROPOUT | RESIDUAL | WRITTEN | READ,
    DROPPED = DROPOUT | WRITTEN | READ,
    ADDED = RESIDUAL | WRITTEN | READ,
};
#define RMS(which) (which)
#define LAYER(which) ((which) << 5)
#define EACH(which) (RMS(which) | LAYER(which))

static int which_of(const trine_call *call, const norm_backward_params *p) {
    const bool dropout = p->dropout.p > 0, residual = p->dresidual.data || p->dh.data;
    const bool alike = call->type[NORM_TYPE_R] == call->type[NORM_TYPE_T] && (!p->weight.data || call->type[NORM_TYPE_W] == call->type[NORM_TYPE_T]);
    const int which = dropout ? p->dresidual.data ? READ : p->dh.data ? WRITTEN : DROPOUT : residual || !alike ? RESIDUAL : ALONE;
    return p->mean.data ? LAYER(which) : RMS(which);
}

/* A way of gradients: a ring, or without threads registers, of rows of whole vectors. Like those of a norm it is chosen by a row's length, never by where it begins, on
 * which sums must not depend. */
typedef struct norm_way {
    int which;
    simt_ring_entry ring;
} norm_way;

/* The first that takes the rows, if it is a ring. */
static const simt_ring_entry *ring_among(const trine_call *call, norm_backward_params *p, int count, const norm_way *ways) {
    const int which = which_of(call, p);
    const int64_t bytes = p->n * (int64_t)trine_dtype_size(call->type[NORM_TYPE_T]);
    for (int i = 0; i < count; i++) {
        if (!(ways[i].which & which)) continue;
        const simt_ring_entry *ring = &ways[i].ring;
        if (ring->threads == 0 && bytes > ring->least && bytes <= ring->most && p->n % NORM_FIT_ITEMS == 0) return NULL;
        if (ring->threads > 0 && simt_ring_of(call, NORM_DIM_N, 1, ring, &p->ring) != NULL) return ring;
    }
    return NULL;
}

/* Rows go through shared memory, if some way takes them, else they stay in registers. Two chunks of a thread stay there in a ring too where there is nothing but the norm,
 * unless too many blocks of a cluster would wait for each other's sums; others are computed anew. Where a processor has several blocks, rows come faster if a few of all
 * are left out: with none left out 1600 columns of bf16 move 76 % of what a copy does, with one of 24 97. Which way is the fastest is measured on an H200
 * (docs/learned.md). A way without `most` takes what its blocks hold, or clusters of them. */
static const simt_ring_entry *ring_of(const trine_call *call, norm_backward_params *p) {
    enum { MOST = SIMT_RING_THREADS, IDLE = 24, IDLE_MORE = 12 };
    static const norm_way wide[] = {
        { EACH(ALONE), { .threads = MOST / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .idle = IDLE } },
        { EACH(ALONE), { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .idle = IDLE } },
        { EACH(ALONE), { .threads = MOST, .chunks = 2, .least = 8 << 10, .most = 16 << 10 } },
        { EACH(ALONE), { .threads = MOST, .chunks = 2, .least = 16 << 10, .most = 128 << 10, .whole = true } },
        { EACH(ALONE), { .threads = MOST, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND, .near = 20 << 10 } },
        { RMS(RESIDUAL | READ), { .threads = MOST / 4, .chunks = 2, .least = 2 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { LAYER(RESIDUAL | READ), { .threads = MOST / 4, .chunks = 2, .least = 3 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(WRITTEN), { .threads = MOST / 4, .chunks = 2, .least = 5 << 9, .whole = true, .idle = IDLE_MORE, .full = true } },
        { LAYER(WRITTEN), { .threads = MOST / 4, .chunks = 2, .least = (4 << 10) - 1, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(ADDED), { .threads = MOST / 2, .chunks = 2, .least = 19 << 8, .most = 8 << 10, .whole = true, .idle = IDLE, .full = true } },
        { RMS(WRITTEN), { .threads = MOST / 2, .chunks = 2, .least = 8 << 10, .most = 12 << 10, .whole = true, .full = true } },
        { LAYER(RESIDUAL | READ), { .threads = MOST / 2, .chunks = 2, .least = 6 << 10, .most = 8 << 10, .whole = true, .idle = IDLE, .full = true } },
        { LAYER(WRITTEN), { .threads = MOST / 2, .chunks = 2, .least = (8 << 10) - 1, .most = 8 << 10, .whole = true, .idle = IDLE, .full = true } },
        { LAYER(OTHERS), { .threads = MOST, .chunks = 2, .least = 8 << 10, .most = 10 << 10, .whole = true, .full = true } },
        { EACH(OTHERS), { .threads = MOST, .chunks = 2, .least = 10 << 10, .most = 16 << 10, .whole = true, .full = true } },
        { EACH(OTHERS), { .threads = MOST, .chunks = 2, .least = 16 << 10, .wide = SIMT_RING_WIDE, .full = true } },
    };
    static const norm_way narrow[] = {
        { RMS(ALONE), { .threads = MOST / 8, .chunks = 2, .least = 1 << 10, .most = 2 << 10, .idle = IDLE } },
        { RMS(ALONE), { .threads = MOST / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .whole = true, .idle = IDLE } },
        { RMS(ALONE), { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .idle = IDLE } },
        { RMS(ALONE), { .threads = MOST, .chunks = 2, .least = 8 << 10, .most = 16 << 10 } },
        { RMS(ALONE), { .threads = MOST, .chunks = 2, .least = 16 << 10, .most = 64 << 10, .whole = true } },
        { RMS(ALONE), { .threads = MOST, .chunks = 2, .least = 112 << 10, .most = 128 << 10, .whole = true } },
        { RMS(ALONE), { .threads = MOST, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND, .near = 20 << 10 } },
        { LAYER(ALONE), { .threads = MOST / 8, .chunks = 2, .least = 1 << 10, .most = 2 << 10, .idle = IDLE } },
        { LAYER(ALONE), { .threads = MOST / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .whole = true, .idle = IDLE } },
        { LAYER(ALONE), { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = 7 << 10 } },
        { LAYER(ALONE), { .threads = MOST / 2, .chunks = 2, .least = 7 << 10, .most = 8 << 10, .idle = 32 } },
        { LAYER(ALONE), { .threads = MOST, .chunks = 2, .least = 8 << 10, .most = 16 << 10 } },
        { LAYER(ALONE), { .threads = MOST, .chunks = 2, .least = 16 << 10, .most = 32 << 10, .whole = true } },
        { LAYER(ALONE), { .threads = MOST, .chunks = 2, .least = 48 << 10, .most = 64 << 10, .whole = true } },
        { LAYER(ALONE), { .threads = MOST, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND } },
        { RMS(DROPOUT | WRITTEN) | LAYER(DROPPED), { .least = 0, .most = 3 << 10 } },
        { RMS(WRITTEN), { .least = 3 << 10, .most = 4 << 10 } },
        { RMS(WRITTEN), { .least = 6 << 10, .most = 8 << 10 } },
        { LAYER(WRITTEN), { .least = 3 << 10, .most = 8 << 10 } },
        { RMS(READ), { .least = (4 << 10) - 1, .most = 4 << 10 } },
        { RMS(READ), { .least = (8 << 10) - 1, .most = 8 << 10 } },
        { EACH(DROPOUT), { .least = 7 << 9, .most = 4 << 10 } },
        { EACH(DROPOUT), { .least = 7 << 10, .most = 8 << 10 } },
        { RMS(READ), { .threads = 96, .chunks = 1, .least = 1 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(READ), { .threads = 160, .chunks = 1, .least = 2 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(READ), { .threads = 192, .chunks = 1, .least = 5 << 9, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(READ), { .threads = 320, .chunks = 1, .least = 4 << 10, .most = 5 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(READ), { .threads = MOST / 2, .chunks = 2, .least = (16 << 10) - 1, .most = 16 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { RMS(WRITTEN), { .threads = 320, .chunks = 1, .least = 8 << 10, .most = 10 << 10, .whole = true, .full = true } },
        { RMS(RESIDUAL), { .threads = 320, .chunks = 1, .least = (8 << 10) - 1, .most = 8 << 10, .whole = true, .full = true } },
        { RMS(RESIDUAL), { .threads = 384, .chunks = 1, .least = 8 << 10, .most = 10 << 10, .whole = true, .full = true } },
        { RMS(RESIDUAL), { .threads = 320, .chunks = 1, .least = 15 << 10, .most = 16 << 10, .whole = true, .idle = IDLE, .full = true } },
        { RMS(RESIDUAL), { .threads = MOST / 2, .chunks = 2, .least = 24 << 10, .most = 64 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { LAYER(RESIDUAL), { .threads = MOST / 2, .chunks = 2, .least = 24 << 10, .most = 40 << 10, .whole = true, .idle = IDLE_MORE, .full = true } },
        { EACH(DROPPED), { .threads = 320, .chunks = 1, .least = 4 << 10, .most = 5 << 10, .whole = true, .full = true } },
        { EACH(DROPPED), { .threads = 384, .chunks = 1, .least = 5 << 10, .most = 6 << 10, .whole = true, .full = true } },
        { EACH(DROPPED), { .threads = MOST / 4, .chunks = 2, .least = 3 << 10, .whole = true, .idle = IDLE, .full = true } },
        { EACH(DROPPED), { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .full = true } },
        { EACH(RESIDUAL), { .threads = MOST / 4, .chunks = 2, .least = 2 << 10, .most = (4 << 10) - 1, .whole = true, .idle = IDLE, .full = true } },
        { EACH(RESIDUAL), { .threads = MOST / 2, .chunks = 2, .least = 4 << 10, .most = (8 << 10) - 1, .full = true } },
        { EACH(OTHERS), { .threads = MOST / 4 * 3, .chunks = 2, .least = 8 << 10, .most = 12 << 10, .full = true } },
        { EACH(OTHERS), { .threads = MOST, .chunks = 2, .least = 12 << 10, .most = 16 << 10, .full = true } },
        { EACH(OTHERS), { .threads = MOST / 4 * 3, .chunks = 2, .least = 16 << 10, .most = 24 << 10, .full = true } },
        { EACH(READ) | LAYER(RESIDUAL), { .threads = MOST, .chunks = 2, .least = 44 << 10, .most = 72 << 10, .idle = IDLE_MORE, .full = true } },
        { EACH(READ) | LAYER(RESIDUAL), { .threads = MOST, .chunks = 2, .least = 112 << 10, .idle = IDLE_MORE, .full = true } },
        { EACH(OTHERS), { .threads = MOST, .chunks = 2, .least = 24 << 10, .full = true } },
    };
    static const norm_way mixed = { EACH(OTHERS), { .threads = MOST, .chunks = 2, .least = 8 << 10, .items = 4, .wide = SIMT_RING_WIDE, .full = true } };
    if (call->type[NORM_TYPE_R] != call->type[NORM_TYPE_T]) return ring_among(call, p, 1, &mixed);
    return call->type[NORM_TYPE_T] == TRINE_F32 ? ring_among(call, p, sizeof wide / sizeof wide[0], wide)
                                                : ring_among(call, p, sizeof narrow / sizeof narrow[0], narrow);
}

/* Partial sums of a column, at most: a device may hold fewer clusters than it has processors for. */
static int64_t blocks_of(const trine_call *call, const norm_backward_params *p, const simt_ring_entry *ring) {
    int64_t turns;
    if (ring != NULL)
        return simt_ring_clusters(p->rows, (int64_t)simt_room_of(call).units * SIMT_RING_HELD(ring->threads, ring->chunks) / p->ring.blocks, NORM_FUSED_TURNS);
    return fused(call) ? fused_group(call, p, backward_fit_of(call, p), &turns).blocks : simt_blocks(p->rows, columns_block_rows(p->rows));
}

size_t norm_backward_workspace(const trine_call *call, const norm_backward_tensors *t, norm_backward_params p) {
    p = backward_params_of(call, t, p);
    const simt_ring_entry *ring = ring_of(call, &p);
    return (size_t)((given(call, t->dweight) + given(call, t->dbias)) * blocks_of(call, &p, ring) * p.n) * sizeof(float);
}

/* Is a residual's gradient asked for a row ahead? Of 16 bits layer_norm at 4096 has 95 % of what a copy moves instead of 87, and rms_norm 88 instead of 84 at 1024 with
 * dropout, but 88 instead of 92 without; by groups that fit, 94 instead of 88 and 93 instead of 90 at 768. Of f32 full groups have enough on their way. */
static bool asks_dresidual(const trine_call *call, const norm_backward_params *p, const simt_group *group, bool fit) {
    enum { LATE = 224 }; /* of which a processor holds three groups of the size, and two of larger ones */
    const bool centered = p->mean.data, dropout = p->dropout.p > 0, wide = call->type[NORM_TYPE_T] == TRINE_F32;
    if (!p->dresidual.data) return false;
    if (!p->f32_residual) return fit || centered || dropout;
    if (fit) return centered && (wide || group->size == LATE || (group->size > LATE && dropout));
    return centered ? 5 * p->n <= 4 * NORM_FUSED_ITEMS * group->size : dropout && !wide && 4 * p->n < 3 * NORM_FUSED_ITEMS * group->size;
}

/* Rows that begin anywhere go by groups of as many threads, or if those are several warps by one of the most: their sums are the same, since it adds one warp after the
 * other too. */
static trine_status launch_fused(const trine_call *call, norm_backward_params *p) {
    const int fit = backward_fit_of(call, p);
    const simt_group group = fused_group(call, p, fit, &p->turns);
    const bool whole = simt_rows_whole(call, NORM_DIM_N), fitted = fit > 0 && (whole || fit > 32), most = fitted && !whole;
    const int size = most ? NORM_FIT_MOST : group.size;
    const simt_function function = {
        .step = fitted ? "fit" : NULL, .ragged = !whole, .type = { call->type[NORM_TYPE_T] }, .variant = fitted ? NORM_FIT_ITEMS * size : size
    };
    p->ask_dresidual = asks_dresidual(call, p, &group, fit > 0);
    return simt_launch(call, &function, group.blocks, most ? size : group.threads, p, sizeof *p);
}

/* The sums come first: dx may be dy. */
static trine_status launch_long(const trine_call *call, const norm_backward_params *norm) {
    const bool whole = simt_rows_whole(call, NORM_DIM_N);
    const norm_columns_params p = {
        .norm = *norm,
        .columns = { .rows = norm->rows, .n = norm->n, .block_rows = columns_block_rows(norm->rows), .blocks = norm->blocks, .wide = whole },
    };
    const simt_function columns = { .step = "columns", .type = { call->type[NORM_TYPE_T] } };
    const simt_function rows = { .step = "long", .ragged = !whole, .type = { call->type[NORM_TYPE_T] } };
    trine_status status = TRINE_OK;
    if (norm->weight_partial || norm->bias_partial)
        status = simt_launch(call, &columns, p.columns.blocks * simt_blocks(norm->n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &rows, norm->rows, NORM_FUSED_MOST, norm, sizeof *norm) : status;
}

static trine_status launch_ring(const trine_call *call, const simt_ring_entry *ring, norm_backward_params *p) {
    const trine_status status = simt_launch_ring(call, ring, &p->ring, p->rows, NORM_FUSED_TURNS, p, sizeof *p);
    p->blocks = p->ring.clusters;
    return status;
}

/* Sums over blocks, by thread blocks of so many columns: of 32 threads for each, of which a processor holds two, where that is one round of them; of one, where a ring
 * leaves few sums and its columns are enough for all processors; else of 8. */
typedef struct finish_way {
    const char *step;
    int columns, threads;
} finish_way;

static const finish_way *finish_way_of(const norm_backward_params *norm, int count, int64_t units, bool ring) {
    static const finish_way deep = { "finish_deep", COLUMNS_FINISH, NORM_DEEP_THREADS }, each = { "finish_each", SIMT_THREADS, SIMT_THREADS },
                            plain = { "finish", COLUMNS_FINISH, SIMT_THREADS };
    enum { FEW = 40 };
    if (count * simt_blocks(norm->n, deep.columns) <= 2 * units) return &deep; /* none where rows do not go through shared memory */
    return ring && norm->blocks <= FEW && count * simt_blocks(norm->n, each.columns) >= units ? &each : &plain;
}

/* One launch for all sums: each costs as much as those of a small call's rows. */
static trine_status finish(const trine_call *call, const norm_backward_tensors *t, const norm_backward_params *norm, bool ring) {
    const struct {
        int tensor;
        float *partial;
    } sums[] = { { t->dweight, norm->weight_partial }, { t->dbias, norm->bias_partial } };
    norm_finish_params p = { 0 };
    int count = 0, tensor = t->dweight;
    for (int i = 0; i < 2; i++) {
        if (!given(call, sums[i].tensor)) continue;
        tensor = sums[i].tensor;
        p.sum[count++] = (columns_params){ .out = simt_rows_of(call, tensor), .partial = sums[i].partial, .n = norm->n, .blocks = norm->blocks };
    }
    if (count == 0) return TRINE_OK;
    const finish_way *way = finish_way_of(norm, count, simt_room_of(call).units, ring);
    const simt_function function = { .step = way->step, .type = { call->tensor[tensor].dtype } };
    return simt_launch(call, &function, count * simt_blocks(norm->n, way->columns), way->threads, &p, sizeof p);
}

trine_status norm_backward_launch(const trine_call *call, const norm_backward_tensors *t, norm_backward_params p) {
    float *next = call->workspace;
    p = backward_params_of(call, t, p);
    const simt_ring_entry *ring = ring_of(call, &p);
    p.blocks = blocks_of(call, &p, ring);
    if (given(call, t->dweight)) {
        p.weight_partial = next;
        next += p.blocks * p.n;
    }
    if (given(call, t->dbias)) p.bias_partial = next;
    const trine_status status = ring != NULL ? launch_ring(call, ring, &p) : fused(call) ? launch_fused(call, &p) : launch_long(call, &p);
    return status == TRINE_OK ? finish(call, t, &p, ring != NULL) : status;
}
