/* SPDX-License-Identifier: Apache-2.0 */
/* Products of small matrices of f32 or f64, which lie in a near cache: both operands are read where they are, for
 * packing would cost as much as multiplying.
 *
 * Vectors of d's columns are shared out to tiles of one to three, rows to tiles of equal height or one less. The last
 * vector of a row is loaded and stored under a mask, or moved back to end with the row where a mask is dear. */
#ifndef TRINE_CPU_MATMUL_SMALL_H
#define TRINE_CPU_MATMUL_SMALL_H

#include "backends/cpu/core/vec_part.h"
#include "matmul_product.h"

/* Bytes of either operand at most; bytes of products that are taken together; units of k at most. */
enum { SMALL_MOST = 65536, SMALL_CHUNK = 16384, SMALL_UNITS = 384 };

/* Vectors of a tile; its rows at most, by its vectors: sums, the vectors of b, a broadcast and a product fit the
 * registers. */
#if VB == 64 || defined(__aarch64__)
enum { SMALL_WIDE = 3, SMALL_HIGH = 16, SMALL_HIGH_2 = 12, SMALL_HIGH_3 = 8 };
#else
enum { SMALL_WIDE = 3, SMALL_HIGH = 12, SMALL_HIGH_2 = 6, SMALL_HIGH_3 = 4 };
#endif
INLINE int small_rows(int64_t vectors) {
    return vectors == 3 ? SMALL_HIGH_3 : vectors == 2 ? SMALL_HIGH_2 : SMALL_HIGH;
}

/* Tiles one below the other, in each of a chunk of products: some of a height, then some with a row less. Strides in
 * bytes. */
typedef struct small_run {
    const char *a, *b;
    char *d;
    int64_t a_batch, b_batch, d_batch;
    int64_t a_row, a_along, b_along, d_row;
    int64_t last; /* from the first vector of a tile to its last one */
    int64_t k, tall, low, products;
    vi factor;
    vec_part part; /* of the last vector */
} small_run;

/* The last vector, of which a part is meant if `masked`. */
INLINE vi small_load(const char *from, vec_part part, bool masked) {
    return masked ? part_load(from, part) : unit_load(from);
}
INLINE void small_store(char *to, vi x, vec_part part, bool masked) {
    if (masked)
        part_store(to, x, part);
    else
        unit_store(to, x);
}
INLINE vi small_scaled(sum s, vi factor, unit_kind kind) {
    return kind == UNIT_F64 ? (vi)(s.d * (vd)factor) : (vi)(s.f * (vf)factor);
}

INLINE void small_tile(const small_run *r, const char *a, const char *b, char *d, int rows, int vectors, bool masked,
                       unit_kind kind) {
    enum { GROUP = 3, GROUPS = (SMALL_HIGH + GROUP - 1) / GROUP };
    const int groups = (rows + GROUP - 1) / GROUP;
    const int64_t lane = r->a_row, a_along = r->a_along, b_along = r->b_along;
    const int64_t last = masked ? (vectors - 1) * VB : r->last;
    const char *from[GROUPS], *end = b + last;
    const vec_part part = r->part;
    sum s[SMALL_HIGH][SMALL_WIDE];
#pragma GCC unroll 6
    for (int i = 0; i < groups; i++) from[i] = a + i * GROUP * lane;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) s[i][j] = (sum){ 0 };
#pragma GCC unroll 2
    for (int64_t u = r->k; u > 0; u--) {
        vi x[SMALL_WIDE];
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++)
            x[j] = j + 1 < vectors ? unit_load(b + j * VB) : small_load(end, part, masked);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const vi y = unit_broadcast(from[i / GROUP] + i % GROUP * lane, kind);
#pragma GCC unroll 3
            for (int j = 0; j < vectors; j++) s[i][j] = sum_mac(s[i][j], y, x[j], kind);
        }
#pragma GCC unroll 6
        for (int i = 0; i < groups; i++) from[i] += a_along;
        b += b_along, end += b_along;
    }
    const vi factor = r->factor;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, d += r->d_row) {
#pragma GCC unroll 3
        for (int j = 0; j + 1 < vectors; j++) unit_store(d + j * VB, small_scaled(s[i][j], factor, kind));
        small_store(d + last, small_scaled(s[i][vectors - 1], factor, kind), part, masked);
    }
}

INLINE void small_tiles(const small_run *r, int rows, int vectors, bool masked, unit_kind kind) {
    for (int64_t product = 0; product < r->products; product++) {
        const char *a = r->a + product * r->a_batch, *b = r->b + product * r->b_batch;
        char *d = r->d + product * r->d_batch;
        for (int64_t i = r->tall; i > 0; i--, a += rows * r->a_row, d += rows * r->d_row)
            small_tile(r, a, b, d, rows, vectors, masked, kind);
        for (int64_t i = rows > 1 ? r->low : 0; i > 0; i--, a += (rows - 1) * r->a_row, d += (rows - 1) * r->d_row)
            small_tile(r, a, b, d, rows - 1, vectors, masked, kind);
    }
}

/* `vectors` is 0 for a single one that is not whole, where whole ones have no mask. */
#define SMALL_CASE(rows, vectors) \
    case (rows) * 4 + (vectors): \
        if ((rows) <= ((vectors) == 3   ? SMALL_HIGH_3 \
                       : (vectors) == 2 ? SMALL_HIGH_2 \
                                        : SMALL_HIGH) && \
            !(VEC_PARTS && (vectors) == 0)) \
            small_tiles(r, rows, (vectors) ? (vectors) : 1, VEC_PARTS || (vectors) == 0, kind); \
        break
#define SMALL_CASES(rows) \
    SMALL_CASE(rows, 0); \
    SMALL_CASE(rows, 1); \
    SMALL_CASE(rows, 2); \
    SMALL_CASE(rows, 3)

INLINE void small_run_tiles(const small_run *r, int rows, int vectors, unit_kind kind) {
    switch (rows * 4 + vectors) {
        SMALL_CASES(1);
        SMALL_CASES(2);
        SMALL_CASES(3);
        SMALL_CASES(4);
        SMALL_CASES(5);
        SMALL_CASES(6);
        SMALL_CASES(7);
        SMALL_CASES(8);
        SMALL_CASES(9);
        SMALL_CASES(10);
        SMALL_CASES(11);
        SMALL_CASES(12);
        SMALL_CASES(13);
        SMALL_CASES(14);
        SMALL_CASES(15);
        SMALL_CASES(16);
    default: break;
    }
}

static void small_run_f32(const small_run *r, int rows, int vectors) { small_run_tiles(r, rows, vectors, UNIT_F32); }
static void small_run_f64(const small_run *r, int rows, int vectors) { small_run_tiles(r, rows, vectors, UNIT_F64); }
static void small_run_any(const small_run *r, int rows, int vectors, unit_kind kind) {
    if (kind == UNIT_F64)
        small_run_f64(r, rows, vectors);
    else
        small_run_f32(r, rows, vectors);
}

/* Whether d is the sums times one factor, so that tiles are stored where they belong. */
static inline bool small_plain(const target *t) {
    return !t->c && !t->bias && !t->activation && !t->rows.data && !t->columns.data;
}

/* The tiles of `r`, finished one by one: columns from `column` to `to` of products [first, last). */
static void small_finish(const product *p, small_run r, int64_t first, int64_t last, int rows, int64_t column,
                         int64_t to, int vectors) {
    _Alignas(64) char sums[SMALL_HIGH_3 * SMALL_WIDE * VB];
    const int64_t tall = r.tall, tiles = r.tall + r.low, width = vectors ? vectors : 1;
    r.d = sums, r.d_row = width * VB, r.products = 1;
    for (int64_t i = first; i < last; i++, r.b += r.b_batch)
        for (int64_t t = 0, row = 0; t < tiles; t++, row += r.tall ? rows : rows - 1) {
            r.a = p->a.data + i * p->a.batch + row * p->a.lane;
            r.tall = t < tall, r.low = !r.tall;
            small_run_any(&r, rows, vectors, p->kind);
            finish(&p->to, sums, width * unit_lanes(p->kind),
                   &(block_place){ i, row, column, r.tall ? rows : rows - 1, to - column });
        }
}

static inline int64_t small_divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }

/* Products [first, last). */
static void small_products(const product *p, int64_t first, int64_t last) {
    const int64_t side = unit_lanes(p->kind), bytes = unit_bytes(p->kind), all = small_divide_up(p->n, side);
    const bool plain = small_plain(&p->to);
    const double alpha = plain ? (double)p->to.alpha : 1;
    small_run r = { .a = p->a.data + first * p->a.batch,
                    .a_batch = p->a.batch,
                    .b_batch = p->b.batch,
                    .d_batch = p->to.d_batch,
                    .a_row = p->a.lane,
                    .a_along = p->a.along,
                    .b_along = p->b.along,
                    .d_row = p->to.d_row,
                    .k = p->k,
                    .products = last - first,
                    .factor = p->kind == UNIT_F64 ? (vi)((vd){ 0 } + alpha) : (vi)vset((float)alpha) };
    int64_t groups = small_divide_up(all, SMALL_WIDE);
    for (int64_t v = 0, wide; v < all; v += wide, groups--) {
        wide = small_divide_up(all - v, groups);
        const int64_t to = v + wide < all ? (v + wide) * side : p->n, end = (v + wide - 1) * side;
        const bool whole = to - end == side, back = !VEC_PARTS && !whole && p->n >= side;
        const int64_t column = v * side;
        r.b = p->b.data + first * p->b.batch + column * bytes;
        r.d = p->to.d + first * p->to.d_batch + column * bytes;
        r.last = back ? (to - column) * bytes - VB : (wide - 1) * VB;
        r.part = part_of((to - end) * bytes);
        const int64_t most = small_rows(wide), blocks = small_divide_up(p->m, most),
                      rows = small_divide_up(p->m, blocks);
        r.tall = p->m - (rows - 1) * blocks, r.low = blocks - r.tall;
        const int vectors = VEC_PARTS || whole || back ? (int)wide : 0;
        if (plain)
            small_run_any(&r, (int)rows, vectors, p->kind);
        else
            small_finish(p, r, first, last, (int)rows, column, to, vectors);
    }
}

static const char *small_refuse(const trine_call *call) {
    const char *reason = product_refuse(call);
    if (reason) return reason;
    const product p = product_of(call);
    const int64_t size = unit_bytes(p.kind);
    if (p.a.dtype != TRINE_F32 && p.a.dtype != TRINE_F64) return "neither f32 nor f64";
    if (!p.b.across) return "b's columns are not side by side";
    if (p.k > SMALL_UNITS) return "k is more than one part of a sum";
    if (p.m * p.k > SMALL_MOST / size || p.k * p.n > SMALL_MOST / size) return "an operand has more than 64 KiB";
    return NULL;
}

typedef struct small_job {
    const product *p;
    int64_t chunk;
} small_job;

static void small_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const small_job *job = context;
    (void)thread;
    for (int64_t i = first; i < last; i += job->chunk)
        small_products(job->p, i, last - i < job->chunk ? last : i + job->chunk);
}

static trine_status small_launch(const trine_call *call) {
    const product p = product_of(call);
    const int64_t bytes = (p.m * p.k + p.k * p.n + p.m * p.n) * unit_bytes(p.kind) + 1,
                  chunk = bytes < SMALL_CHUNK ? SMALL_CHUNK / bytes : 1;
    cpu_shares(call, product_team(call, &p, p.g), p.g, small_tasks, &(small_job){ &p, chunk });
    return TRINE_OK;
}

static void small_edges(const trine_call *call, trine_kernel_edges *edges) {
    const unit_kind kind = product_of(call).kind;
    for (int vectors = 1; vectors <= SMALL_WIDE; vectors++) {
        trine_kernel_edge(edges, MATMUL_DIM_M, small_rows(vectors));
        trine_kernel_edge(edges, MATMUL_DIM_N, (int64_t)vectors * unit_lanes(kind));
    }
    trine_kernel_edge(edges, MATMUL_DIM_K, SMALL_UNITS);
}

#endif
