/* SPDX-License-Identifier: Apache-2.0 */
/* Products in pieces, whose exchange takes place while ranks multiply. What a rank sends goes straight to where it is
 * read (simt_group_landing): pieces in turn to one half of that and the other, or one to all of it. */
#ifndef TRINE_SIMT_LANDED_H
#define TRINE_SIMT_LANDED_H

#include "products.h"

/* Each of `parts` has m lines, of which a piece has so many. */
typedef struct pieces {
    int64_t parts, m, lines, count; /* lines 0: there is no room for one, or nobody to send to */
    size_t room;                    /* bytes of a piece of one rank, where it lands */
    size_t half;                    /* from where pieces 0, 2, ... land to where the others do */
} pieces;

/* At least so many pieces, if there are as many lines; of whole tiles of a product, if there is room. */
enum { TILE = 128 };
static inline pieces pieces_of(const trine_call *call, int64_t parts, int64_t m, int64_t line_bytes, int64_t least) {
    pieces p = { .parts = parts, .m = m };
    if (parts < 2 || m < 1 || line_bytes < 1) return p;
    const int64_t landing = (int64_t)simt_group_landing(call), others = parts - 1;
    int64_t most = (landing / others - PRODUCT_ALIGNMENT) / line_bytes;
    if (least > 1 || most < m) {
        p.half = (size_t)(landing / 2 / PRODUCT_ALIGNMENT * PRODUCT_ALIGNMENT);
        most = ((int64_t)p.half / others - PRODUCT_ALIGNMENT) / line_bytes;
    }
    if (most < 1) return p;
    const int64_t count = simt_blocks(m, most);
    p.lines = simt_blocks(m, count > least ? count : least);
    const int64_t whole = simt_blocks(p.lines, TILE) * TILE;
    if (whole <= most && whole < m) p.lines = whole;
    p.count = simt_blocks(m, p.lines);
    p.room = (size_t)simt_blocks(p.lines * line_bytes, PRODUCT_ALIGNMENT) * PRODUCT_ALIGNMENT;
    return p;
}

static inline const char *pieces_refuse(const pieces *p) {
    return p->lines > 0 ? NULL : "there is no memory where what others send lands, or not enough for a line";
}

/* Is less hidden of the exchange than more launches cost? It is taken to last as long as on two H200s, and so are the
 * products of so many multiply-adds that hide it. */
static inline const char *pieces_slow(const trine_call *call, const pieces *p, double products) {
    if (!simt_group_overlaps(call)) return "ranks share a device, or all are in one call";
    const double exchange = (double)(p->parts - 1) * (double)p->count * (double)p->room / 300e9;
    const double hidden = exchange < products / 300e12 ? exchange : products / 300e12;
    const double launches = (double)(p->count + 1) * (5e-6 + 3e-6 * (double)p->parts);
    return hidden > 2 * launches ? NULL : "too little of the exchange is hidden";
}

static inline int64_t piece_first(const pieces *p, int64_t piece) {
    return piece * p->lines < p->m ? piece * p->lines : p->m;
}
static inline int64_t piece_lines(const pieces *p, int64_t piece) {
    return piece_first(p, piece + 1) - piece_first(p, piece);
}

/* What rank `from` sends to rank `to`, in a piece. */
static inline char *piece_landing(const trine_call *call, const pieces *p, int from, int to, int64_t piece) {
    return simt_group_landing_of(call, to) + (size_t)(piece % 2) * p->half +
           (size_t)(from < to ? from : from - 1) * p->room;
}

/* Lines of one of several matrices, or of the m lines of a part of one. */
static inline trine_tensor some_lines(trine_tensor t, int64_t part, int64_t m, int64_t first, int64_t count) {
    const int line = t.rank - 2;
    const int64_t at = t.rank > 2 ? part * t.stride[0] + first * t.stride[1] : (part * m + first) * t.stride[0];
    if (t.data != NULL) t.data = (char *)t.data + at * (int64_t)trine_dtype_size(t.dtype);
    t.rank = 2;
    t.shape[0] = count, t.shape[1] = t.shape[line + 1];
    t.stride[0] = t.stride[line], t.stride[1] = t.stride[line + 1];
    return t;
}

static inline trine_tensor whole_matrix(void *data, trine_dtype T, int64_t m, int64_t n) {
    return (trine_tensor){ .data = data, .dtype = T, .rank = 2, .shape = { m, n }, .stride = { n, 1 } };
}

/* The workspace of a product of a piece, of which the last one that is not empty may have fewer lines, and another
 * kernel for these. */
typedef trine_status product_bytes(const void *products, int64_t lines, size_t *bytes_out);
static inline trine_status pieces_bytes(const pieces *p, const void *products, product_bytes *bytes_of,
                                        size_t *bytes_out) {
    size_t all = 0, last = 0;
    const int64_t rest = p->m % p->lines;
    trine_status status = bytes_of(products, p->lines, &all);
    if (status == TRINE_OK && rest > 0) status = bytes_of(products, rest, &last);
    *bytes_out = all > last ? all : last;
    return status;
}

/* Sends a piece from this rank's memory, lines that begin `step` bytes after each other, to rank `to`, beside what the
 * queue does next. */
static inline trine_status send_piece(const trine_call *call, const pieces *p, int to, int64_t piece, const void *from,
                                      int64_t line_bytes, int64_t step) {
    const int rank = simt_group_rank(call);
    const trine_status status = simt_group_fork(call);
    if (status != TRINE_OK) return status;
    return simt_group_copy(call, piece_landing(call, p, rank, to, piece), from, (size_t)line_bytes, step,
                           piece_lines(p, piece));
}

/* ---------------------------------------------------------------------------------------------------------- summed */

/* Each rank multiplies the others' lines first and sends them while it multiplies its own. The workspace begins with a
 * piece for each rank. */
typedef struct landed_products {
    summed_products s; /* parts: of all ranks; m: lines of each */
    int64_t line;      /* elements, in whole packets */
    pieces pieces;
} landed_products;

static inline landed_products landed_products_of(const summed_products *s, int64_t parts, int64_t m) {
    landed_products l = { .s = *s, .line = simt_blocks(s->n, PRODUCT_PACKET) * PRODUCT_PACKET };
    l.s.parts = parts, l.s.m = m;
    l.pieces = pieces_of(s->call, parts, m, l.line * (int64_t)sizeof(float), 1);
    return l;
}

static inline trine_tensor piece_products(const landed_products *l, int64_t part, int64_t lines) {
    const trine_call *call = l->s.call;
    trine_tensor t = whole_matrix(call->workspace, TRINE_F32, lines, l->s.n);
    if (t.data != NULL) t.data = (char *)t.data + (size_t)part * l->pieces.room;
    t.stride[0] = l->line;
    return t;
}

static inline trine_status landed_product_bytes(const void *products, int64_t lines, size_t *bytes_out) {
    const landed_products *l = products;
    return multiply(l->s.call, some_lines(l->s.a, 0, l->s.m, 0, lines), l->s.b, piece_products(l, 0, lines), 0,
                    bytes_out, false);
}

static inline const char *landed_products_refuse(const landed_products *l, bool slow) {
    size_t bytes;
    const summed_products *s = &l->s;
    const char *refused = pieces_refuse(&l->pieces);
    if (refused == NULL && slow)
        refused = pieces_slow(s->call, &l->pieces, (double)s->m * (double)s->n * (double)s->a.shape[s->a.rank - 1]);
    if (refused != NULL) return refused;
    return pieces_bytes(&l->pieces, l, landed_product_bytes, &bytes) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static inline size_t landed_products_workspace(const landed_products *l) {
    size_t bytes;
    if (l->pieces.lines == 0 || pieces_bytes(&l->pieces, l, landed_product_bytes, &bytes) != TRINE_OK) return 0;
    return (size_t)l->s.parts * l->pieces.room + bytes;
}

static inline trine_status multiply_piece(const landed_products *l, int part, int64_t piece) {
    const summed_products *s = &l->s;
    const size_t at = (size_t)s->parts * l->pieces.room;
    size_t bytes = s->call->workspace_size - at;
    const int64_t lines = piece_lines(&l->pieces, piece);
    return multiply(s->call, some_lines(s->a, part, s->m, piece_first(&l->pieces, piece), lines), s->b,
                    piece_products(l, part, lines), at, &bytes, true);
}

/* When those of the other ranks have landed: the sums of a piece of this rank's lines, which `d` has alone, or as a
 * part of all. */
static inline trine_status add_up_piece(const landed_products *l, int64_t piece, bool all) {
    const summed_products *s = &l->s;
    const int rank = simt_group_rank(s->call);
    const int64_t lines = piece_lines(&l->pieces, piece);
    const simt_function function = { .step = "landed", .type = { s->d.dtype } };
    const trine_tensor x = piece_products(l, rank, lines),
                       y = some_lines(s->d, all ? rank : 0, s->m, piece_first(&l->pieces, piece), lines);
    landed_params p = { .exchange = lines_of(&x, &y, lines, s->n, PRODUCT_PACKET),
                        .landed = simt_group_landing_of(s->call, rank) + (size_t)(piece % 2) * l->pieces.half,
                        .landed_row = (int64_t)l->pieces.room,
                        .landed_line = l->line * (int64_t)sizeof(float) };
    return simt_exchange_more(s->call, &function, &p, sizeof p, line_packets(&p.exchange), 1);
}

/* Where d has the lines of all ranks, an exchange of these follows. */
static inline trine_status landed_products_run(const landed_products *l, bool all) {
    const trine_call *call = l->s.call;
    const int ranks = (int)l->s.parts, rank = simt_group_rank(call);
    trine_status status = TRINE_OK;
    for (int64_t piece = 0; piece < l->pieces.count && status == TRINE_OK; piece++) {
        for (int d = 1; d < ranks && status == TRINE_OK; d++) {
            const int part = (rank + d) % ranks;
            status = multiply_piece(l, part, piece);
            if (status == TRINE_OK)
                status = send_piece(call, &l->pieces, part, piece, piece_products(l, part, 0).data,
                                    l->line * (int64_t)sizeof(float), l->line * (int64_t)sizeof(float));
        }
        if (status == TRINE_OK) status = multiply_piece(l, rank, piece);
        if (status == TRINE_OK) status = simt_group_join(call);
        if (status == TRINE_OK) status = add_up_piece(l, piece, all);
    }
    /* of no lines, when all ranks have read theirs: the next call sends at once */
    return status == TRINE_OK && !all ? add_up_piece(l, l->pieces.count, all) : status;
}

#endif
