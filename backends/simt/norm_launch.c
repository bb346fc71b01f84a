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
    return trine_dtype_size(call->type[0]) == 2 && (call->dim[1] == length[0] || call->dim[1] == length[1]);
}

/* Rows in shared memory: two of a block, which share what is read of the weight, if those are enough for the device. Up to LEAST elements registers hold a row as
 * fast, if it does not fill half of a block's room, and faster if there are few; with dropout up to LEAST_DROPPED, and one row with a mean is faster than two. */
static const simt_shape *parts_of(const trine_call *call, const norm_tensors *t, norm_params *p) {
    enum { LEAST = 4096, LEAST_DROPPED = 2048, FEW = 4 };
    const bool dropped = p->dropout.p > 0;
    if (dropped ? p->n <= LEAST_DROPPED : fills_registers(call, t)) return NULL;
    const simt_room room = simt_room_of(call);
    for (p->block_rows = (p->weight.data || p->bias.data) && !(dropped && t->mean >= 0) ? 2 : 1; p->block_rows > 0; p->block_rows--) {
        const int64_t bytes = p->block_rows * (int64_t)trine_dtype_size(call->type[0]);
        const simt_shape *shape = simt_shape_for(call, 1, dropped || p->block_rows > 1 ? SIMT_SHORT : SIMT_ALL, bytes, room.cluster, &p->part);
        if (shape == NULL || (p->block_rows > 1 && p->rows * p->part.blocks < room.units)) continue;
        if (p->n > LEAST || (FEW * p->rows >= room.units && simt_parts_full(call, shape, &p->part, bytes))) return shape;
    }
    return NULL;
}

/* Rows of 16 bits with dropout and nothing added to them, whose elements are dropped where they are, by blocks of words whose numbers have 32 bits. */
static bool drops(const trine_call *call, const norm_params *p) {
    const bool alone = !p->residual.data && !p->residual_out.data && (call->type[2] == call->type[0] || !(p->weight.data || p->bias.data));
    return alone && p->dropout.p > 0 && p->dropout.p < 1 && trine_dtype_size(call->type[0]) == 2 && call->dim[1] % 8 == 0 &&
           p->rows <= ((int64_t)1 << 35) / (p->n > 0 ? p->n : 1);
}

/* The same of rows whose h is made there, as f32. Registers are as fast, or faster, of shorter rows, of those with a residual of 16 bits that nearly fill a group's, and of
 * up to 16384 elements where there is but dropout, which binds. */
static const simt_shape *full_of(const trine_call *call, norm_params *p) {
    enum { LEAST = 8 << 10, LEAST_NARROW = 4 << 10, LEAST_DROPOUT = 16 << 10, NEARLY = 7 << 10 };
    p->block_rows = 1;
    const bool narrow = call->type[1] != TRINE_F32, dropout = p->dropout.p > 0 && !p->residual.data && !p->residual_out.data;
    if (p->n <= (dropout ? LEAST_DROPOUT : narrow ? LEAST_NARROW : LEAST) || (p->n > NEARLY && p->n <= LEAST)) return NULL;
    const simt_shape *shape = simt_shape_for(call, 1, SIMT_SHORT, sizeof(float), simt_room_of(call).cluster, &p->part);
    return shape != NULL && shape->threads == NORM_FULL_THREADS ? shape : NULL;
}

/* The one of `count` groups that whole rows of n columns fill, on devices that have entries for them; NULL: none. */
static const norm_fit *fit_among(const trine_call *call, int count, const norm_fit *fits) {
    const int64_t n = call->dim[1];
    if (!simt_rows_whole(call, 1) || simt_room_of(call).shared == 0) return NULL;
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
    const bool wide = call->type[0] == TRINE_F32 || (p->f32_residual && (p->residual.data || p->residual_out.data));
    return wide && p->n > WIDE ? NULL : fit_among(call, COUNT, fits);
}

static trine_status launch_fit(const trine_call *call, const norm_fit *fit, const norm_params *p) {
    const simt_function function = { .step = "fit", .type = { call->type[0] }, .variant = norm_fit_columns(fit) };
    const int threads = NORM_FIT_THREADS(fit->size);
    return simt_launch(call, &function, simt_blocks(p->rows, threads / fit->size), threads, p, sizeof *p);
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
    p.rows = call->dim[0];
    p.n = call->dim[1];
    p.inverse = 1.0f / (float)p.n;
    p.f32_residual = call->type[1] == TRINE_F32;
    p.f32_weight = call->type[2] == TRINE_F32;
    const bool plain = norm_plain(&p, call->type[2] == call->type[0]);
    const bool dropped = drops(call, &p);
    const norm_fit *fit = fit_of(call, &p);
    const simt_shape *shape = plain || dropped ? parts_of(call, t, &p) : fit == NULL ? full_of(call, &p) : NULL;
    const char *const step = plain ? "parts" : dropped ? "drop" : "full";
    if (dropped && shape != NULL) p.eps = (float)(p.eps / ((double)p.dropout.scale * p.dropout.scale));
    p.ahead = shape != NULL ? simt_ahead_of_parts(call, t->x, shape) : simt_ahead_of(call, t->x);
    const trine_dtype other = plain || dropped ? TRINE_NONE : call->type[1];
    if (shape != NULL) return simt_launch_parts(call, step, other, shape, 1, &p.part, simt_blocks(p.rows, p.block_rows), &p, sizeof p);
    return fit != NULL ? launch_fit(call, fit, &p) : simt_launch_rows(call, NULL, p.rows, 1, SIMT_ONE_ROW, &p, sizeof p);
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
    p.rows = call->dim[0];
    p.n = call->dim[1];
    p.f32_residual = call->type[1] == TRINE_F32;
    p.f32_weight = call->type[2] == TRINE_F32;
    p.ahead = simt_ahead_of_two(call, t->dy, t->h);
    return p;
}

static bool fused(const trine_call *call) { return call->dim[1] <= NORM_FUSED_ITEMS * NORM_FUSED_MOST; }

/* The size of a group that whole rows fill by one vector of each thread; 0: half as many threads with two are as good. In % of copying (H200): bf16 at 64 and 256 from 71 and
 * 68 to 87 and 86 (rms_norm) and from 66 and 59 to 78 and 82; layer_norm with dropout and a residual of f32 at 1280, 2560 and 3072 from 76, 76 and 84 to 94, 92 and 97. But
 * rms_norm loses 1 to 6 where residuals have 32 bits at 640 and 768, and where all is f32, other than by seven warps. */
static int backward_fit_of(const trine_call *call, const norm_backward_params *p) {
    enum { COUNT = 8, THREE = 96, SEVEN = 224 };
    static const norm_fit fits[COUNT] = {
        { .least = 0, .size = 8, .vectors = 1 },      { .least = 128, .size = 32, .vectors = 1 },   { .least = 512, .size = THREE, .vectors = 1 },
        { .least = 1024, .size = 160, .vectors = 1 }, { .least = 1280, .size = 192, .vectors = 1 }, { .least = 1536, .size = SEVEN, .vectors = 1 },
        { .least = 2048, .size = 320, .vectors = 1 }, { .least = 2560, .size = 384, .vectors = 1 },
    };
    const norm_fit *fit = fit_among(call, COUNT, fits);
    if (fit == NULL) return 0;
    const bool loses = !p->mean.data && p->f32_residual && (call->type[0] == TRINE_F32 ? fit->size != SEVEN : fit->size == THREE);
    return loses ? 0 : fit->size;
}

/* Groups take the rows of a few blocks in turns. */
static simt_group fused_group(const trine_call *call, const norm_backward_params *p, int64_t *turns_out) {
    static const int sizes[] = { 8, 32, 64, 128, 256, NORM_FUSED_MOST };
    const int fit = backward_fit_of(call, p);
    simt_group group =
        fit > 0 ? simt_group_of(call->dim[0], call->dim[1], NORM_FIT_ITEMS, 1, &fit) : simt_group_of(call->dim[0], call->dim[1], NORM_FUSED_ITEMS, 6, sizes);
    const int64_t held = fit > 0 ? (int64_t)simt_room_of(call).units * NORM_FIT_BLOCKS(p->mean.data != NULL, fit) : norm_fused_blocks(group.size);
    const int64_t turns = simt_blocks(group.blocks, held), most = NORM_FUSED_TURNS;
    *turns_out = turns < 1 ? 1 : turns > most ? most : turns;
    group.blocks = simt_blocks(group.blocks, *turns_out);
    return group;
}

/* Do rows of 16 bits with dropout fill registers of a group, which are faster then? With nothing but dropout rms_norm at 2048, 3584 and 4096 has 87, 79 and 87 % of what a copy
 * moves instead of 75, 72 and 78, layer_norm 76, 69 and 75 instead of 66, 63 and 70; with a gradient of the residual rms_norm at 4096 92 instead of 89, and layer_norm gains
 * nothing (H200). */
static bool fills_group(const trine_call *call, const norm_backward_params *p) {
    const bool bare = !p->dresidual.data && !p->dh.data;
    if (!simt_rows_whole(call, 1)) return false;
    for (int64_t room = 2 << 10; room <= 4 << 10; room *= 2)
        if (p->n <= room) return bare ? 8 * p->n >= 7 * room : p->n == room && !p->mean.data;
    return false;
}

/* Rows go through shared memory; shorter ones, and those with a gradient of the residual, dropout or several types, if they are long. NULL: these do not. Two
 * chunks of a thread stay in registers, unless too many blocks of a cluster would wait for each other's sums. Of 16 bits with a gradient of the residual or
 * dropout they are computed anew, in blocks of so many threads that few are without columns. Where a processor has several blocks, rows come faster if a few of
 * all are left out: with none left out 1600 columns of bf16 move 76 % of what a copy does, with one of 24 97 (H200). Registers are as fast for 2048 and 4096
 * columns of 16 bits with a gradient of the residual and no dropout, and for short rows that are not whole vectors. With one of 12 left out rms_norm with dropout and a
 * gradient of the residual has 89, 87, 89 and 89 % at 768, 1152, 1280 and 1536 instead of 84, 73, 84 and 85. */
static const simt_ring_entry *ring_of(const trine_call *call, norm_backward_params *p) {
    enum { WIDE = 5, NARROW = 7, CENTERED = 8, FULL_WIDE = 3, FULL = 13, NARROWEST = 3, DROPPED = 7, IDLE = 24, IDLE_DROPPED = 12, ALL = SIMT_RING_THREADS };
    static const simt_ring_entry wide[WIDE] = {
        { .threads = ALL / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .idle = IDLE },
        { .threads = ALL / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .idle = IDLE },
        { .threads = ALL, .chunks = 2, .least = 8 << 10, .most = 16 << 10 },
        { .threads = ALL, .chunks = 2, .least = 16 << 10, .most = 128 << 10, .whole = true },
        { .threads = ALL, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND, .near = 20 << 10 },
    };
    static const simt_ring_entry narrow[NARROW] = {
        { .threads = ALL / 8, .chunks = 2, .least = 1 << 10, .most = 2 << 10, .idle = IDLE },
        { .threads = ALL / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .whole = true, .idle = IDLE },
        { .threads = ALL / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .idle = IDLE },
        { .threads = ALL, .chunks = 2, .least = 8 << 10, .most = 16 << 10 },
        { .threads = ALL, .chunks = 2, .least = 16 << 10, .most = 64 << 10, .whole = true },
        { .threads = ALL, .chunks = 2, .least = 112 << 10, .most = 128 << 10, .whole = true },
        { .threads = ALL, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND, .near = 20 << 10 },
    };
    static const simt_ring_entry centered[CENTERED] = {
        { .threads = ALL / 8, .chunks = 2, .least = 1 << 10, .most = 2 << 10, .idle = IDLE },
        { .threads = ALL / 4, .chunks = 2, .least = 2 << 10, .most = 4 << 10, .whole = true, .idle = IDLE },
        { .threads = ALL / 2, .chunks = 2, .least = 4 << 10, .most = 7 << 10 },
        { .threads = ALL / 2, .chunks = 2, .least = 7 << 10, .most = 8 << 10, .idle = 32 },
        { .threads = ALL, .chunks = 2, .least = 8 << 10, .most = 16 << 10 },
        { .threads = ALL, .chunks = 2, .least = 16 << 10, .most = 32 << 10, .whole = true },
        { .threads = ALL, .chunks = 2, .least = 48 << 10, .most = 64 << 10, .whole = true },
        { .threads = ALL, .chunks = 4, .least = 16 << 10, .behind = SIMT_RING_BEHIND },
    };
    static const simt_ring_entry full_wide[FULL_WIDE] = {
        { .threads = ALL, .chunks = 2, .least = 8 << 10, .most = 10 << 10, .items = 4, .whole = true, .full = true }, /* of layer_norm */
        { .threads = ALL, .chunks = 2, .least = 10 << 10, .most = 16 << 10, .items = 4, .whole = true, .full = true },
        { .threads = ALL, .chunks = 2, .least = 16 << 10, .items = 4, .wide = SIMT_RING_WIDE, .full = true },
    };
    static const simt_ring_entry full_mixed = { .threads = ALL, .chunks = 2, .least = 8 << 10, .items = 4, .wide = SIMT_RING_WIDE, .full = true };
    static const simt_ring_entry full_narrow[FULL] = {
        /* The first of rows with dropout: where two chunks for each of 128 or 256 threads are too many, or registers are, one for each of as many as it takes, 1024 of a
         * processor: rms_norm at 768, 1280, 1536, 2560 and 3072 from 71, 77, 84, 75 and 86 % to 85, 86, 87, 89 and 92, layer_norm at 2560 and 3072 from 67 and 76 to 82 and
         * 85; at 1024, 1600, 2048 and 4096 it loses, and so does layer_norm on less than 2048 (H200). */
        { .threads = 96, .chunks = 1, .least = 1 << 10, .most = 3 << 9, .items = 8, .whole = true, .idle = IDLE_DROPPED, .full = true },
        { .threads = 160, .chunks = 1, .least = 2 << 10, .most = 5 << 9, .items = 8, .whole = true, .idle = IDLE_DROPPED, .full = true },
        { .threads = 192, .chunks = 1, .least = 5 << 9, .most = 3 << 10, .items = 8, .whole = true, .idle = IDLE_DROPPED, .full = true },
        { .threads = 320, .chunks = 1, .least = 4 << 10, .most = 5 << 10, .items = 8, .whole = true, .full = true },
        { .threads = 384, .chunks = 1, .least = 5 << 10, .most = 6 << 10, .items = 8, .whole = true, .full = true },
        { .threads = ALL / 4, .chunks = 2, .least = 3 << 10, .most = 4 << 10, .items = 8, .whole = true, .idle = IDLE, .full = true },
        { .threads = ALL / 2, .chunks = 2, .least = 4 << 10, .most = 8 << 10, .items = 8, .full = true },
        { .threads = ALL / 4, .chunks = 2, .least = 2 << 10, .most = (4 << 10) - 1, .items = 8, .whole = true, .idle = IDLE, .full = true },
        { .threads = ALL / 2, .chunks = 2, .least = 4 << 10, .most = (8 << 10) - 1, .items = 8, .full = true },
        { .threads = ALL / 4 * 3, .chunks = 2, .least = 8 << 10, .most = 12 << 10, .items = 8, .full = true },
        { .threads = ALL, .chunks = 2, .least = 12 << 10, .most = 16 << 10, .items = 8, .full = true },
        { .threads = ALL / 4 * 3, .chunks = 2, .least = 16 << 10, .most = 24 << 10, .items = 8, .full = true },
        { .threads = ALL, .chunks = 2, .least = 24 << 10, .items = 8, .full = true },
    };
    const int fit_dropped = !p->mean.data && p->dresidual.data ? 512 : 1536; /* columns: up to as many registers are 1 to 6 % faster with dropout */
    const bool alone = !p->dresidual.data && !p->dh.data && p->dropout.p == 0, alike = call->type[1] == call->type[0];
    if (alone && alike && (!p->weight.data || call->type[2] == call->type[0])) {
        if (call->type[0] == TRINE_F32) return simt_ring_of(call, 1, WIDE, wide, &p->ring);
        return p->mean.data ? simt_ring_of(call, 1, CENTERED, centered, &p->ring) : simt_ring_of(call, 1, NARROW, narrow, &p->ring);
    }
    if (!alike) return simt_ring_of(call, 1, 1, &full_mixed, &p->ring);
    if (call->type[0] == TRINE_F32) {
        const int first = p->mean.data ? 0 : 1;
        return simt_ring_of(call, 1, FULL_WIDE - first, full_wide + first, &p->ring);
    }
    if (p->dropout.p > 0 && (fills_group(call, p) || (p->n <= fit_dropped && backward_fit_of(call, p) > 0))) return NULL;
    const int first = p->dropout.p == 0 ? DROPPED : p->mean.data ? NARROWEST : 0;
    return simt_ring_of(call, 1, FULL - first, full_narrow + first, &p->ring);
}

/* Partial sums of a column, at most: a device may hold fewer clusters than it has processors for. */
static int64_t blocks_of(const trine_call *call, norm_backward_params *p) {
    const simt_ring_entry *ring = ring_of(call, p);
    int64_t turns;
    if (ring != NULL)
        return simt_ring_clusters(p->rows, (int64_t)simt_room_of(call).units * SIMT_RING_HELD(ring->threads, ring->chunks) / p->ring.blocks, NORM_FUSED_TURNS);
    return fused(call) ? fused_group(call, p, &turns).blocks : simt_blocks(p->rows, columns_block_rows(p->rows));
}

size_t norm_backward_workspace(const trine_call *call, const norm_backward_tensors *t, norm_backward_params p) {
    p = backward_params_of(call, t, p);
    return (size_t)((given(call, t->dweight) + given(call, t->dbias)) * blocks_of(call, &p) * p.n) * sizeof(float);
}

/* Is a residual's gradient asked for a row ahead? Of 16 bits layer_norm at 4096 has 95 % of what a copy moves instead of 87, and rms_norm 88 instead of 84 at 1024 with
 * dropout, but 88 instead of 92 without; by groups that fit, 94 instead of 88 and 93 instead of 90 at 768. Of f32 full groups have enough on their way. */
static bool asks_dresidual(const trine_call *call, const norm_backward_params *p, const simt_group *group, bool fit) {
    enum { LATE = 224 }; /* of which a processor holds three groups of the size, and two of larger ones */
    const bool centered = p->mean.data, dropout = p->dropout.p > 0, wide = call->type[0] == TRINE_F32;
    if (!p->dresidual.data) return false;
    if (!p->f32_residual) return fit || centered || dropout;
    if (fit) return centered && (wide || group->size == LATE || (group->size > LATE && dropout));
    return centered ? 5 * p->n <= 4 * NORM_FUSED_ITEMS * group->size : dropout && !wide && 4 * p->n < 3 * NORM_FUSED_ITEMS * group->size;
}

static trine_status launch_fused(const trine_call *call, norm_backward_params *p) {
    const simt_group group = fused_group(call, p, &p->turns);
    const bool fit = backward_fit_of(call, p) > 0;
    const simt_function function = {
        .step = fit ? "fit" : NULL, .ragged = !simt_rows_whole(call, 1), .type = { call->type[0] }, .variant = fit ? NORM_FIT_ITEMS * group.size : group.size
    };
    p->ask_dresidual = asks_dresidual(call, p, &group, fit);
    return simt_launch(call, &function, group.blocks, group.threads, p, sizeof *p);
}

/* The sums come first: dx may be dy. */
static trine_status launch_long(const trine_call *call, const norm_backward_params *norm) {
    const bool whole = simt_rows_whole(call, 1);
    const norm_columns_params p = {
        .norm = *norm,
        .columns = { .rows = norm->rows, .n = norm->n, .block_rows = columns_block_rows(norm->rows), .blocks = norm->blocks, .wide = whole },
    };
    const simt_function columns = { .step = "columns", .type = { call->type[0] } };
    const simt_function rows = { .step = "long", .ragged = !whole, .type = { call->type[0] } };
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
    p.blocks = blocks_of(call, &p);
    if (given(call, t->dweight)) {
        p.weight_partial = next;
        next += p.blocks * p.n;
    }
    if (given(call, t->dbias)) p.bias_partial = next;
    const simt_ring_entry *ring = ring_of(call, &p);
    const trine_status status = ring != NULL ? launch_ring(call, ring, &p) : fused(call) ? launch_fused(call, &p) : launch_long(call, &p);
    return status == TRINE_OK ? finish(call, t, &p, ring != NULL) : status;
}
