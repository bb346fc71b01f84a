/* SPDX-License-Identifier: Apache-2.0 */
/* Products of small matrices of f32 or f64, which lie in a near cache: tiles read both operands where they are, for
 * packing would cost as much as multiplying. Only rows and columns that fill no tile are packed. */
#ifndef TRINE_CPU_MATMUL_SMALL_H
#define TRINE_CPU_MATMUL_SMALL_H

#include "matmul_blocks.h"

/* Bytes of either operand at most. */
enum { SMALL_MOST = 65536 };

/* Lanes from `first` on: where they are, or packed if they fill no tile. */
static inline unit_grid small_lanes(const product *p, const blocking *b, int64_t batch, int64_t first, bool is_a,
                                    char *packed) {
    const view *v = is_a ? &p->a : &p->b;
    const int64_t width = is_a ? tile_rows(p->kind) : tile_columns(p->kind), lanes = is_a ? p->m : p->n;
    if (lanes - first >= width) return (unit_grid){ v->data + batch * v->batch + first * v->lane, v->lane, v->along };
    pack(packed, v, batch, first, lanes - first, lanes, 0, b, p, is_a);
    return (unit_grid){ packed, unit_bytes(p->kind), width * unit_bytes(p->kind) };
}

INLINE void small_product(const product *p, const blocking *b, int64_t batch, char *packed, unit_kind kind) {
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), whole = p->m / high * high;
    const bool plain = kind == UNIT_F32 && target_plain(&p->to);
    char *const rest = packed + b->b_bytes;
    _Alignas(64) char tile[TILE_BYTES];
    const unit_grid last = small_lanes(p, b, batch, whole, true, rest);
    for (int64_t j = 0; j < p->n; j += wide) {
        const unit_grid right = small_lanes(p, b, batch, j, false, packed);
        for (int64_t i = 0; i < p->m; i += high) {
            tile_target put = { 0 };
            if (plain && i < whole && p->n - j >= wide) put = product_put(p, batch, i, j);
            tile_multiply_into(tile, put, i < whole ? small_lanes(p, b, batch, i, true, rest) : last, right, b->units,
                               false, kind);
            if (put.data) continue;
            finish(&p->to, tile, wide,
                   &(block_place){ batch, i, j, p->m - i < high ? p->m - i : high, p->n - j < wide ? p->n - j : wide });
        }
    }
}

/* One panel of each operand. */
static inline blocking small_blocking(const trine_call *call, const product *p) {
    blocking b = { .units = p->k, .part = cpu_round_up(p->k, UNITS_STEP), .parts = 1 };
    b.b_bytes = cpu_round_up(panel_bytes(b.part, tile_columns(p->kind), p->kind), 64);
    b.a_bytes = cpu_round_up(panel_bytes(b.part, tile_rows(p->kind), p->kind), 64);
    b.slice = cpu_round_up(b.a_bytes + b.b_bytes, 256);
    b.team = product_team(call, p, p->g);
    return b;
}

static const char *small_refuse(const trine_call *call) {
    const char *reason = product_refuse(call);
    if (reason) return reason;
    const product p = product_of(call);
    const int64_t size = unit_bytes(p.kind);
    if (p.a.dtype != TRINE_F32 && p.a.dtype != TRINE_F64) return "neither f32 nor f64";
    if (!p.b.across) return "b's columns are not side by side";
    if (p.k > PART_UNITS) return "k is more than one part of a sum";
    if (p.m * p.k > SMALL_MOST / size || p.k * p.n > SMALL_MOST / size) return "an operand has more than 64 KiB";
    return NULL;
}

static size_t small_workspace(const trine_call *call) {
    if (call->empty) return 0;
    const product p = product_of(call);
    const blocking b = small_blocking(call, &p);
    return (size_t)(b.slice * b.team);
}

typedef struct small_job {
    const trine_call *call;
    const product *p;
    const blocking *b;
} small_job;

static void small_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const small_job *job = context;
    char *memory = (char *)job->call->workspace + thread * job->b->slice;
    for (int64_t i = first; i < last; i++)
        if (job->p->kind == UNIT_F64)
            small_product(job->p, job->b, i, memory, UNIT_F64);
        else
            small_product(job->p, job->b, i, memory, UNIT_F32);
}

static trine_status small_launch(const trine_call *call) {
    const product p = product_of(call);
    const blocking b = small_blocking(call, &p);
    const int slices = b.slice > 0 ? (int)(call->workspace_size / (size_t)b.slice) : b.team;
    cpu_shares(call, b.team < slices ? b.team : slices, p.g, small_tasks, &(small_job){ call, &p, &b });
    return TRINE_OK;
}

static void small_edges(const trine_call *call, trine_kernel_edges *edges) {
    const unit_kind kind = product_of(call).kind;
    trine_kernel_edge(edges, MATMUL_DIM_M, tile_rows(kind));
    trine_kernel_edge(edges, MATMUL_DIM_N, tile_columns(kind));
    trine_kernel_edge(edges, MATMUL_DIM_K, PART_UNITS);
}

#endif
