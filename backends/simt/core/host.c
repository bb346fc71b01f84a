/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of device kernels have in common: walks and rows. */
#include <string.h>

#include "host.h"

simt_divisor simt_divisor_of(int64_t by) {
    int bits = 0;
    while (bits < 31 && (int64_t)1 << bits < by) bits++;
    if (by > (int64_t)1 << 31) return (simt_divisor){ .by = by }; /* 0 times */
    return (simt_divisor){ .by = by, .multiplier = (uint32_t)((((uint64_t)1 << (31 + bits)) + (uint64_t)by - 1) / (uint64_t)by), .shift = 31 + bits };
}

/* --------------------------------------------------------------------------------------------------------------------- walk */

/* The merged dimensions, outermost first. */
typedef struct merged {
    int rank;
    int64_t shape[SIMT_WALK_RANK], stride[SIMT_WALK_TENSORS][SIMT_WALK_RANK];
} merged;

/* Can dimension d, of `length`, be one with the last of the merged ones? */
static bool merges(const merged *m, const trine_call *call, uint32_t set, int d, int64_t length) {
    for (int t = 0; t < call->plan->tensors; t++)
        if (set >> t & 1 && m->stride[t][m->rank - 1] != call->tensor[t].stride[d] * length) return false;
    return true;
}

static merged merge(const trine_call *call, uint32_t set, const trine_tensor *shape) {
    merged m = { 0 };
    for (int d = 0; d < shape->rank; d++) {
        const int64_t length = shape->shape[d];
        if (length == 1) continue;
        const bool one = m.rank > 0 && merges(&m, call, set, d, length);
        m.rank += !one;
        m.shape[m.rank - 1] = one ? m.shape[m.rank - 1] * length : length;
        for (int t = 0; t < call->plan->tensors; t++)
            if (set >> t & 1) m.stride[t][m.rank - 1] = call->tensor[t].stride[d];
    }
    if (m.rank == 0) m.shape[m.rank++] = 1;
    return m;
}

/* Can rows of a tensor be read in vectors of `length`: contiguous, or broadcast where the op expects it, and aligned to 16 bytes or to the vector? */
static bool vectors(const trine_call *call, int t, const int64_t *stride, int inner, int64_t length) {
    const trine_tensor *tensor = &call->tensor[t];
    const int64_t size = (int64_t)trine_dtype_size(tensor->dtype), vector = length * size, align = vector < 16 ? vector : 16;
    if (stride[inner] == 0) return call->plan->tensor[t].spec->flags & BROADCAST;
    if (stride[inner] != 1 || (uintptr_t)tensor->data % (uintptr_t)align != 0) return false;
    for (int d = 0; d < inner; d++)
        if (stride[d] * size % align != 0) return false;
    return true;
}

simt_walk simt_walk_of(const trine_call *call, uint32_t set, int output) {
    const merged m = merge(call, set, &call->tensor[output]);
    const int inner = m.rank - 1, pad = SIMT_WALK_RANK - m.rank;
    simt_walk w = { .n = m.shape[inner], .length = trine_dtype_size(call->tensor[output].dtype) > 2 ? 4 : 8 };
    bool wide = w.n > 1;
    for (int t = 0; t < call->plan->tensors; t++) {
        if (!(set >> t & 1)) continue;
        if ((set & ((1u << t) - 1)) == 0) w.ahead = simt_ahead_of(call, t);
        w.data[t] = call->tensor[t].data;
        w.step[t] = m.stride[t][inner];
        memcpy(&w.stride[t][pad], m.stride[t], sizeof(int64_t) * (size_t)inner);
        wide = wide && vectors(call, t, m.stride[t], inner, w.length);
    }
    if (!wide) w.length = 1;
    w.units = simt_blocks(w.n, w.length);
    w.row_units = simt_divisor_of(w.units);
    for (int d = 0; d < SIMT_WALK_RANK - 1; d++) {
        const int64_t length = d < pad ? 1 : m.shape[d - pad];
        w.shape[d] = simt_divisor_of(length);
        w.units *= length;
    }
    return w;
}

trine_status simt_walk_launch(const trine_call *call) {
    struct {
        simt_walk walk;
        unsigned char args[sizeof call->storage];
    } params;
    simt_function function = { 0 };
    int output = 0;
    if (call->plan->tensors > SIMT_WALK_TENSORS || call->plan->types > SIMT_MAX_TYPES)
        return call->host->error(TRINE_ERR_INTERNAL, "%s: a walk has room for %d tensors of %d types", call->plan->spec->name, SIMT_WALK_TENSORS,
                                 SIMT_MAX_TYPES);
    while (!(call->plan->tensor[output].spec->flags & OUT)) output++;
    params.walk = simt_walk_of(call, call->present, output);
    memcpy(params.args, call->args, call->plan->spec->args_size);
    memcpy(function.type, call->type, sizeof *call->type * (size_t)call->plan->types);
    return simt_launch(call, &function, simt_blocks(params.walk.units, SIMT_THREADS), SIMT_THREADS, &params, sizeof params.walk + call->plan->spec->args_size);
}

/* --------------------------------------------------------------------------------------------------------------------- rows */

bool simt_aligned(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    if (!simt_present(call, tensor)) return true;
    bool aligned = (uintptr_t)t->data % 16 == 0;
    for (int d = 0; d < t->rank - 1; d++) aligned = aligned && (t->shape[d] == 1 || t->stride[d] * size % 16 == 0);
    return aligned;
}

bool simt_rows_whole(const trine_call *call, int symbol) {
    const int64_t n = call->dim[symbol];
    if (n <= 0 || n > INT32_MAX - 65536 || n % 8 != 0) return false;
    for (int t = 0; t < call->plan->tensors; t++) {
        const trine_plan_tensor *tensor = &call->plan->tensor[t];
        if (tensor->dim[tensor->rank - 1].symbol == symbol && !simt_aligned(call, t)) return false;
    }
    return true;
}

static simt_ahead ahead_of(const trine_call *call, int tensor, int64_t bytes, int sectors) {
    const trine_tensor *t = &call->tensor[tensor];
    int64_t count = 1;
    for (int d = t->rank - 1; d >= 0; count *= t->shape[d], d--)
        if (t->shape[d] != 1 && t->stride[d] != count) return (simt_ahead){ 0 };
    const int64_t most = bytes / (int64_t)trine_dtype_size(t->dtype);
    return (simt_ahead){ t->data, (count < most ? count : most) * (int64_t)trine_dtype_size(t->dtype), sectors };
}
simt_ahead simt_ahead_of(const trine_call *call, int tensor) { return ahead_of(call, tensor, SIMT_AHEAD, 1); }
simt_ahead simt_ahead_of_parts(const trine_call *call, int tensor, const simt_shape *shape) {
    const int sectors = shape->threads >= 128 ? 2 : 1;
    return ahead_of(call, tensor, sectors * SIMT_AHEAD_PARTS, sectors);
}

simt_ahead_two simt_ahead_of_two(const trine_call *call, int first, int second) {
    simt_ahead_two ahead = { { simt_ahead_of(call, first), simt_ahead_of(call, second) } };
    for (int i = 0; i < 2; i++)
        if (ahead.of[i].bytes > SIMT_AHEAD / 2) ahead.of[i].bytes = SIMT_AHEAD / 2;
    return ahead;
}

simt_rows simt_rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (simt_rows){ 0 };
    return (simt_rows){ t->data, t->rank > 2 ? t->stride[0] : 0, t->rank > 1 ? t->stride[t->rank - 2] : 0 };
}

simt_scales simt_scales_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return simt_present(call, tensor) ? (simt_scales){ t->data, t->stride[0], t->stride[1] } : (simt_scales){ 0 };
}

simt_group simt_group_of(int64_t rows, int64_t n, int items, int count, const int *sizes) {
    int i = 0;
    while (i + 1 < count && sizes[i] * items < n) i++;
    const int size = sizes[i], threads = size <= 32 ? SIMT_THREADS : size;
    return (simt_group){ size, threads, simt_blocks(rows, threads / size) };
}

simt_group simt_row_group(int64_t rows, int64_t n, simt_ladder ladder) {
    enum { ITEMS = 32, ENOUGH = 512 };
    static const int fine[] = { 8, 32, 64, 128, 256, 512, 1024 }, stream[] = { 8, 32, 128, 256, 512, 1024 };
    if (ladder == SIMT_STREAM) return simt_group_of(rows, n, ITEMS, rows < ENOUGH ? 6 : 4, stream);
    return simt_group_of(rows, n, ITEMS, ladder == SIMT_TWO_ROWS ? 6 : 7, fine);
}

trine_status simt_launch_rows(const trine_call *call, const char *step, int64_t rows, int symbol, simt_ladder ladder, const void *params, size_t size) {
    const simt_group group = simt_row_group(rows, call->dim[symbol], ladder);
    const simt_function function = { .step = step, .ragged = !simt_rows_whole(call, symbol), .type = { call->type[SIMT_FIRST_TYPE] }, .variant = group.size };
    return simt_launch(call, &function, group.blocks, group.threads, params, size);
}

/* Bytes of a row for each block, if a processor holds so many: whole pieces of 32. A kilobyte of its memory belongs to each block, another is its function's own. */
static int64_t part_room(const simt_room *room, int held) {
    enum { OWN = 1 << 10, PIECE = 32 };
    const int64_t shared = room->shared < SIMT_PART_BYTES ? room->shared : SIMT_PART_BYTES;
    return ((shared + OWN) / held - 2 * OWN) / PIECE * PIECE;
}

/* Parts begin where lines of the cache do: elsewhere a warp's reads and writes touch one more, which costs up to 6 %. */
static int part_length(int64_t n, int blocks) {
    enum { LINE = 64 };
    return (int)(blocks > 1 ? simt_blocks(n, LINE * blocks) * LINE : n);
}

#define SHAPE(threads, held) { threads, held },
static const simt_shape shapes[] = { SIMT_PART_SHAPES(SHAPE) };
#undef SHAPE
enum { DIVIDED = 2 }; /* the first whose rows clusters divide */

/* The fewest blocks, up to `most`, that have room for a row of n elements. */
static bool part_fits(const simt_room *room, int64_t n, int64_t bytes, int held, int most, simt_part *part_out) {
    for (int blocks = 1; blocks <= most; blocks++) {
        *part_out = (simt_part){ blocks, part_length(n, blocks) };
        if (part_out->length * bytes <= part_room(room, held)) return true;
    }
    return false;
}

const simt_shape *simt_shape_for(const trine_call *call, int symbol, int count, int64_t bytes, int share, simt_part *part_out) {
    const simt_room room = simt_room_of(call);
    const int64_t n = call->dim[symbol];
    if (room.shared == 0 || n > INT32_MAX - 65536) return NULL;
    for (int i = 0; i < count; i++) {
        const int most = i < DIVIDED ? 1 : i == DIVIDED && room.cluster > share ? share : room.cluster;
        if (part_fits(&room, n, bytes, shapes[i].held, most, part_out)) return &shapes[i];
    }
    return NULL;
}

const simt_shape *simt_shape_of(const trine_call *call, int symbol, int64_t least, simt_part *part_out) {
    enum { FEW = 4 }; /* blocks of six to a processor; else more of three */
    return call->dim[symbol] > least ? simt_shape_for(call, symbol, SIMT_ALL, (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]), FEW, part_out) : NULL;
}

bool simt_parts_full(const trine_call *call, const simt_shape *shape, const simt_part *part, int64_t bytes) {
    const simt_room room = simt_room_of(call);
    return 2 * part->length * bytes >= part_room(&room, shape->held);
}

trine_status simt_launch_parts(const trine_call *call, const char *step, trine_dtype other, const simt_shape *shape, int symbol, const simt_part *part,
                               int64_t rows, const void *params, size_t size) {
    const simt_room room = simt_room_of(call);
    const simt_function function = {
        .step = step,
        .ragged = !simt_rows_whole(call, symbol),
        .type = { call->type[SIMT_FIRST_TYPE], other },
        .variant = shape->held,
        .shared = (int)part_room(&room, shape->held),
        .cluster = part->blocks,
    };
    return simt_launch(call, &function, rows * part->blocks, shape->threads, params, size);
}

static simt_function ring_function(const trine_call *call, const simt_ring_entry *entry, const simt_ring *ring) {
    return (simt_function){
        .step = entry->full ? "ring_full" : "ring",
        .type = { call->type[SIMT_FIRST_TYPE], entry->full ? call->type[SIMT_SECOND_TYPE] : TRINE_NONE },
        .variant = entry->threads * entry->chunks,
        .shared = SIMT_RING_BYTES / SIMT_RING_HELD(entry->threads, entry->chunks) + entry->behind,
        .cluster = ring->blocks,
    };
}

static trine_status ring_held(const trine_call *call, const simt_ring_entry *entry, const simt_ring *ring, int *clusters_out) {
    const simt_function function = ring_function(call, entry, ring);
    return simt_clusters_held(call, &function, entry->threads, SIMT_RING_HELD(entry->threads, entry->chunks), clusters_out);
}

const simt_ring_entry *simt_ring_of(const trine_call *call, int symbol, int count, const simt_ring_entry *entries, simt_ring *ring_out) {
    enum { OWN = 3 << 10, LINE = 64 }; /* bytes of a function's own; columns that are not divided */
    const simt_room room = simt_room_of(call);
    const int64_t n = call->dim[symbol], bytes = n * (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]);
    const bool whole = simt_rows_whole(call, symbol);
    int i = 0, clusters = 0;
    while (i < count && (bytes <= entries[i].least || (entries[i].most > 0 && bytes > entries[i].most) || (entries[i].whole && n % 8 != 0))) i++;
    if (i == count) return NULL;
    const simt_ring_entry *entry = &entries[i];
    const int held = SIMT_RING_HELD(entry->threads, entry->chunks), cluster = entry->full && held > SIMT_RING_DIVIDED ? 1 : room.cluster;
    if (room.shared < SIMT_RING_BYTES + held * entry->behind + OWN) return NULL;
    const int64_t items = entry->items ? entry->items : 16 / (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]);
    const int64_t least = simt_blocks(n, entry->chunks * entry->threads * items);
    const bool wide = least > cluster;
    if (wide && (cluster == 1 || least > entry->wide)) return NULL;
    const int blocks = wide ? entry->wide : (int)least;
    const int64_t part = simt_blocks(simt_blocks(n, blocks), LINE) * LINE;
    *ring_out = (simt_ring){
        .blocks = blocks,
        .part = (int)part,
        .rows = entry->near > 0 && part * (bytes / n) >= entry->near ? SIMT_RING_ROWS - 1 : SIMT_RING_ROWS,
        .whole = whole,
    };
    return wide && (ring_held(call, entry, ring_out, &clusters) != TRINE_OK || clusters == 0) ? NULL : entry;
}

int64_t simt_ring_clusters(int64_t rows, int64_t held, int64_t most) {
    const int64_t turns = simt_blocks(rows, held < 1 ? 1 : held);
    return rows == 0 ? 0 : simt_blocks(rows, turns > most ? most : turns);
}

trine_status simt_launch_ring(const trine_call *call, const simt_ring_entry *entry, simt_ring *ring, int64_t rows, int64_t most, const void *params,
                              size_t size) {
    const simt_function function = ring_function(call, entry, ring);
    int held;
    const trine_status status = ring_held(call, entry, ring, &held);
    if (status != TRINE_OK) return status;
    ring->clusters = simt_ring_clusters(rows, entry->idle > 0 ? held - held / entry->idle : held, most);
    if (rows > 0) ring->turns = (int)simt_blocks(rows, ring->clusters);
    return simt_launch(call, &function, ring->clusters * ring->blocks, entry->threads, params, size);
}
