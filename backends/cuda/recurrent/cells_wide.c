/* SPDX-License-Identifier: Apache-2.0 */
/* How heads of recurrent cells are divided among blocks. */
#include "cells_wide_host.h"

#include <math.h>

#include "backends/cuda/core/shared.h"
#include "backends/cuda/driver/state.h"

enum { OWN = 2 << 10 /* bytes of shared memory that are the function's own, or the device's */ };
enum { MOST_BLOCKS = 16, MOST_ACROSS = 4, MOST_UNITS = 1 << 14 };

static int room_of(const trine_call *call) { return ((const cuda_device *)call->device)->shared - OWN; }
static int parts_of(trine_dtype type) { return type == TRINE_BF16 ? 1 : type == TRINE_F16 ? 2 : CELL_PARTS; }
static int rounded_up(int n, int by) { return (n + by - 1) / by; }

static simt_function steps_of(const trine_call *call, const cell_ask *ask, int blocks) {
    return (simt_function){ .step = "wide", .type = { ask->type }, .shared = room_of(call), .cluster = blocks };
}

/* Clusters of so many blocks that run at the same time; 0: there can be none. */
static int at_once(const trine_call *call, const cell_ask *ask, int blocks) {
    if (blocks == 1) return simt_units(call);
    if (cuda_cluster(call) == 1) return 0;
    const simt_function steps = steps_of(call, ask, blocks);
    int held = 0;
    return cuda_function_clusters(call, &steps, CELL_WIDE_THREADS, &held) == TRINE_OK ? held : 0;
}

/* Slices such that warps have the fewest steps, all their shares together; returns those. */
static int slice(const cell_ask *ask, cell_wide *w) {
    enum { TURNS = 3 };
    int best = INT32_MAX;
    for (int turns = 0; turns <= TURNS; turns++) {
        const int slices = turns > 0 ? turns * CELL_WIDE_WARPS / w->pairs : 1;
        if (slices < 1 || slices > w->depth || (slices > 1 && ask->sends && w->blocks > 1)) continue;
        const int steps = rounded_up(w->pairs * slices, CELL_WIDE_WARPS) * rounded_up(w->depth, slices);
        if (steps < best) best = steps, w->slices = slices;
    }
    return best;
}

/* Clocks of a step, from counts of instructions and bytes; numbers as measured on an H200. */
static double clocks_of(const cell_ask *ask, const cell_wide *w, int steps, int streamed) {
    enum { PRODUCT = 7, ALONE = 1700, MEET = 3300, FAR = 1000, BYTES = 50, SCHEDULERS = 4 };
    const int parts = parts_of(ask->type), products = parts * CELL_PARTS;
    const double multiply = (double)steps * 2 * products * PRODUCT * CELL_WIDE_WARPS / SCHEDULERS,
                 stream = (double)w->pairs * w->slices * streamed * 2 * CELL_PIECE * parts / BYTES,
                 elements = (double)ask->clocks * w->across * CELL_ACROSS * w->units / CELL_WIDE_THREADS;
    return w->across * (multiply + stream) + elements +
           (w->blocks == 1                   ? ALONE
            : w->blocks <= CUDA_MOST_CLUSTER ? MEET
                                             : MEET + FAR);
}

/* A division into so many blocks and column tiles, its clocks, infinitely many where there is no room, and how many
 * clusters come one after the other. */
static double divide(const trine_call *call, const cell_ask *ask, int blocks, int across, cell_wide *w,
                     int64_t *turns_out) {
    const int parts = parts_of(ask->type), kept = CELL_KEPT(parts), d = (int)ask->d;
    *w = (cell_wide){ .units = rounded_up(d, blocks * CELL_ROWS) * CELL_ROWS,
                      .across = across,
                      .groups = simt_blocks(ask->count, (int64_t)across * CELL_ACROSS) };
    w->blocks = rounded_up(d, w->units);
    w->buffers = w->blocks > 1 ? 2 : 1;
    ask->tiles(d, w);
    const int steps = slice(ask, w), most = rounded_up(w->depth, w->slices),
              left = w->pairs * w->slices > CELL_WIDE_WARPS ? most
                     : most > kept                          ? most - kept
                                                            : 0;
    const int64_t room = room_of(call) - ask->bytes(w), step = (int64_t)w->pairs * w->slices * 2 * CELL_PIECE * parts;
    const int clusters = room < 0 ? 0 : at_once(call, ask, w->blocks);
    if (clusters == 0) return INFINITY;
    w->held = room / step < left ? (int)(room / step) : left;
    *turns_out = simt_blocks(w->groups * ask->h, clusters);
    return clocks_of(ask, w, steps, left - w->held) * (double)*turns_out;
}

/* The fewest clocks, of blocks that each have a row tile at least; sequences are side by side in a block where
 * otherwise clusters would come one after the other. */
static double choose(const trine_call *call, const cell_ask *ask, cell_wide *w_out) {
    double best = INFINITY;
    int64_t turns = 1;
    if (ask->d < 1 || ask->d > MOST_UNITS) return best;
    for (int blocks = 1; blocks <= MOST_BLOCKS && (blocks == 1 || (blocks - 1) * CELL_ROWS < ask->d); blocks *= 2)
        for (int across = 1; across <= MOST_ACROSS && (across == 1 || turns > 1); across *= 2) {
            cell_wide w;
            const double clocks = divide(call, ask, blocks, across, &w, &turns);
            if (clocks < best) best = clocks, *w_out = w;
            if (clocks == INFINITY) break;
        }
    return best;
}

const char *cell_wide_of(const trine_call *call, const cell_ask *ask, cell_wide *w_out) {
    *w_out = (cell_wide){ .blocks = 1 };
    return ask->d > 0 && choose(call, ask, w_out) == INFINITY ? "shared memory has no room for a head's states" : NULL;
}

static int64_t pieces(const cell_ask *ask, const cell_wide *w) { return ask->h * w->blocks * w->pairs * w->depth; }
int64_t cell_wide_bytes(const cell_ask *ask, const cell_wide *w) {
    return pieces(ask, w) * 2 * CELL_PIECE * parts_of(ask->type);
}
int64_t cell_wide_packers(const cell_ask *ask, const cell_wide *w) {
    enum { LANES = 32 };
    return simt_blocks(pieces(ask, w) * LANES, SIMT_THREADS);
}

trine_status cell_wide_launch(const trine_call *call, const cell_ask *ask, const cell_wide *w, bool packed,
                              const void *params, size_t size) {
    const simt_function steps = steps_of(call, ask, w->blocks);
    return simt_launch(call, &steps, (w->groups + packed) * ask->h * w->blocks, CELL_WIDE_THREADS, params, size);
}

double cell_wide_seconds(const trine_call *call, const cell_ask *ask, int64_t steps) {
    enum { LAUNCHES = 10000 };
    const double clock = 1.8e9;
    cell_wide w;
    return (LAUNCHES + (double)steps * choose(call, ask, &w)) / clock;
}

void cell_wide_edges(trine_kernel_edges *edges, int units, int members) {
    trine_kernel_edge(edges, units, CELL_ROWS);
    for (int blocks = 1; blocks < MOST_BLOCKS; blocks *= 2) trine_kernel_edge(edges, units, blocks * CELL_ROWS);
    for (int shares = 1; shares <= 2; shares++) /* of a warp; of wider heads blocks keep no more than a part */
        trine_kernel_edge(edges, units, (int64_t)shares * CELL_WIDE_WARPS * 2 * CELL_ROWS);
    trine_kernel_edge(edges, members, CELL_ACROSS);
    trine_kernel_edge(edges, members, 2 * CELL_ACROSS);
}
