/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of rows in shared memory. */
#include "shared.h"

#include "backends/cuda/driver/state.h"

static const cuda_device *device_of(const trine_call *call) { return call->device; }

int cuda_cluster(const trine_call *call) { return device_of(call)->cluster_launch ? CUDA_MOST_CLUSTER : 1; }

/* Bytes of a row for each block, if an SM holds so many: whole pieces of 32. A kilobyte of its memory belongs to each
 * block, another is its function's own. */
static int64_t part_room(const trine_call *call, int held) {
    enum { OWN = 1 << 10, PIECE = 32 };
    const int64_t most = device_of(call)->shared, shared = most < SIMT_PART_BYTES ? most : SIMT_PART_BYTES;
    return ((shared + OWN) / held - 2 * OWN) / PIECE * PIECE;
}

/* Parts begin where lines of the cache do: elsewhere a warp's reads and writes touch one more, which costs up to 6
 * %. */
static int part_length(int64_t n, int blocks) {
    enum { LINE = 64 };
    return (int)(blocks > 1 ? simt_blocks(n, LINE * blocks) * LINE : n);
}

#define SHAPE(threads, held) { threads, held },
static const cuda_shape shapes[CUDA_SHAPES] = { SIMT_PART_SHAPES(SHAPE) };
#undef SHAPE

/* The fewest blocks, up to `most`, that have room for a row of n elements. */
static bool part_fits(const trine_call *call, int64_t n, int64_t bytes, int held, int most, simt_part *part_out) {
    for (int blocks = 1; blocks <= most; blocks++) {
        *part_out = (simt_part){ blocks, part_length(n, blocks) };
        if (part_out->length * bytes <= part_room(call, held)) return true;
    }
    return false;
}

/* Blocks of a cluster that may divide a row for shape i. */
static int most_blocks(int i, int share, int cluster) {
    return i < CUDA_SHAPE_256 ? 1 : i == CUDA_SHAPE_256 && cluster > share ? share : cluster;
}

const cuda_shape *cuda_shape_for(const trine_call *call, int symbol, const cuda_shape_range *range,
                                 simt_part *part_out) {
    const int64_t n = call->dim[symbol];
    const int cluster = cuda_cluster(call);
    if (n > INT32_MAX - 65536) return NULL;
    for (int i = range->first; i < range->end; i++) {
        if (part_fits(call, n, range->bytes, shapes[i].held, most_blocks(i, range->share, cluster), part_out))
            return &shapes[i];
    }
    return NULL;
}

void cuda_shape_edges_for(const trine_call *call, int symbol, const cuda_shape_range *range,
                          trine_kernel_edges *edges) {
    const int cluster = cuda_cluster(call);
    for (int i = range->first; i < range->end; i++) {
        const int64_t room = part_room(call, shapes[i].held) / range->bytes;
        trine_kernel_edge(edges, symbol, room);
        trine_kernel_edge(edges, symbol, room * most_blocks(i, range->share, cluster));
    }
}

static cuda_shape_range all_shapes(const trine_call *call) {
    enum { FEW = 4 }; /* blocks of six to an SM; else more of three */
    return (cuda_shape_range){ 0, CUDA_SHAPES, FEW, (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]) };
}

const cuda_shape *cuda_shape_of(const trine_call *call, int symbol, int64_t least, simt_part *part_out) {
    const cuda_shape_range all = all_shapes(call);
    return call->dim[symbol] > least ? cuda_shape_for(call, symbol, &all, part_out) : NULL;
}

void cuda_shape_edges(const trine_call *call, int symbol, int64_t least, trine_kernel_edges *edges) {
    const cuda_shape_range all = all_shapes(call);
    trine_kernel_edge(edges, symbol, least);
    cuda_shape_edges_for(call, symbol, &all, edges);
}

simt_ahead cuda_ahead_of_parts(const trine_call *call, int tensor, const cuda_shape *shape) {
    const int sectors = shape->threads >= 128 ? 2 : 1;
    return simt_ahead_most(call, tensor, sectors * SIMT_AHEAD_PARTS, sectors);
}

trine_status cuda_launch_parts(const trine_call *call, const char *step, trine_dtype other, const cuda_shape *shape,
                               int symbol, const simt_part *part, int64_t rows, const void *params, size_t size) {
    const simt_function function = {
        .step = step,
        .ragged = !simt_rows_whole(call, symbol),
        .type = { call->type[SIMT_FIRST_TYPE], other },
        .variant = shape->held,
        .shared = (int)part_room(call, shape->held),
        .cluster = part->blocks,
    };
    return simt_launch(call, &function, rows * part->blocks, shape->threads, params, size);
}

static simt_function ring_function(const trine_call *call, const cuda_ring_entry *entry, const simt_ring *ring) {
    return (simt_function){
        .step = entry->full ? "ring_full" : "ring",
        .type = { call->type[SIMT_FIRST_TYPE], entry->full ? call->type[SIMT_SECOND_TYPE] : TRINE_NONE },
        .variant = entry->threads * entry->chunks,
        .shared = SIMT_RING_BYTES / SIMT_RING_HELD(entry->threads) + entry->behind,
        .cluster = ring->blocks,
    };
}

/* How many clusters of a ring's function the device holds at once. */
static trine_status ring_held(const trine_call *call, const cuda_ring_entry *entry, const simt_ring *ring,
                              int *clusters_out) {
    const simt_function function = ring_function(call, entry, ring);
    *clusters_out = simt_units(call) * SIMT_RING_HELD(entry->threads);
    return function.cluster > 1 ? cuda_function_clusters(call, &function, entry->threads, clusters_out) : TRINE_OK;
}

/* Columns that a block's threads hold; and blocks that may divide a row. */
static int64_t ring_columns(const trine_call *call, const cuda_ring_entry *entry) {
    const int64_t items = entry->items ? entry->items : 16 / (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]);
    return entry->chunks * entry->threads * items;
}
static int ring_room(const cuda_ring_entry *entry) { return SIMT_RING_BLOCKS(entry->threads, entry->full); }
static int ring_cluster(const trine_call *call, const cuda_ring_entry *entry) {
    const int room = ring_room(entry), usual = cuda_cluster(call);
    return usual < room ? usual : room;
}

const cuda_ring_entry *cuda_ring_of(const trine_call *call, int symbol, int count, const cuda_ring_entry *entries,
                                    simt_ring *ring_out) {
    enum { OWN = 3 << 10, LINE = 64 }; /* bytes of a function's own; columns that are not divided */
    const int64_t n = call->dim[symbol], bytes = n * (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]);
    const bool whole = simt_rows_whole(call, symbol);
    int i = 0, clusters = 0;
    while (i < count && (bytes <= entries[i].least || (entries[i].most > 0 && bytes > entries[i].most) ||
                         (entries[i].whole && n % 8 != 0)))
        i++;
    if (i == count) return NULL;
    const cuda_ring_entry *entry = &entries[i];
    const int held = SIMT_RING_HELD(entry->threads), room = ring_room(entry), cluster = ring_cluster(call, entry);
    if (device_of(call)->shared < SIMT_RING_BYTES + held * entry->behind + OWN) return NULL;
    const int64_t least = simt_blocks(n, ring_columns(call, entry));
    const bool wide = least > cluster;
    if (wide && (cluster == 1 || least > room)) return NULL;
    const int blocks = wide ? room : (int)least;
    const int64_t part = simt_blocks(simt_blocks(n, blocks), LINE) * LINE;
    *ring_out = (simt_ring){
        .blocks = blocks,
        .part = (int)part,
        .rows = entry->near > 0 && part * (bytes / n) >= entry->near ? SIMT_RING_ROWS - 1 : SIMT_RING_ROWS,
        .whole = whole,
    };
    return wide && (ring_held(call, entry, ring_out, &clusters) != TRINE_OK || clusters == 0) ? NULL : entry;
}

void cuda_ring_edges(const trine_call *call, int symbol, int count, const cuda_ring_entry *entries,
                     trine_kernel_edges *edges) {
    const int64_t size = (int64_t)trine_dtype_size(call->type[SIMT_FIRST_TYPE]);
    for (int i = 0; i < count; i++) {
        const int64_t columns = ring_columns(call, &entries[i]);
        trine_kernel_edge(edges, symbol, entries[i].least / size);
        trine_kernel_edge(edges, symbol, entries[i].most / size);
        trine_kernel_edge(edges, symbol, columns);
        trine_kernel_edge(edges, symbol, columns * ring_cluster(call, &entries[i]));
        trine_kernel_edge(edges, symbol, columns * ring_room(&entries[i]));
    }
}

int64_t cuda_ring_clusters(int64_t rows, int64_t held, int64_t most) {
    const int64_t turns = simt_blocks(rows, held < 1 ? 1 : held);
    return rows == 0 ? 0 : simt_blocks(rows, turns > most ? most : turns);
}

trine_status cuda_ring_fill(const trine_call *call, const cuda_ring_entry *entry, simt_ring *ring, int64_t rows,
                            int64_t most) {
    int held;
    const trine_status status = ring_held(call, entry, ring, &held);
    if (status != TRINE_OK) return status;
    ring->clusters = cuda_ring_clusters(rows, entry->idle > 0 ? held - held / entry->idle : held, most);
    if (rows > 0) ring->turns = (int)simt_blocks(rows, ring->clusters);
    return TRINE_OK;
}

trine_status cuda_launch_ring(const trine_call *call, const cuda_ring_entry *entry, const simt_ring *ring,
                              const void *params, size_t size) {
    const simt_function function = ring_function(call, entry, ring);
    return simt_launch(call, &function, ring->clusters * ring->blocks, entry->threads, params, size);
}
