/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_matmul on devices: the host side. */
#include "backends/simt/comm/landed.h"
#include "spec/places/all_gather_matmul.h"

/* Where the rows of all ranks come: to the output, or else to the workspace's beginning. */
static trine_tensor gathered_of(const trine_call *call, size_t *bytes_out) {
    *bytes_out = 0;
    if (trine_call_given(call, ALL_GATHER_MATMUL_GATHERED) != NULL) return own_tensor(call, ALL_GATHER_MATMUL_GATHERED);
    return product_room(call, call->type[ALL_GATHER_MATMUL_TYPE_T], call->dim[ALL_GATHER_MATMUL_DIM_RANKS],
                        call->dim[ALL_GATHER_MATMUL_DIM_M], call->dim[ALL_GATHER_MATMUL_DIM_K], bytes_out);
}

static trine_status product(const trine_call *call, size_t *bytes, bool run) {
    size_t at, nested = 0;
    const trine_tensor gathered = gathered_of(call, &at);
    if (run) nested = call->workspace_size - at;
    const trine_status status = multiply(call, gathered, own_tensor(call, ALL_GATHER_MATMUL_B),
                                         own_tensor(call, ALL_GATHER_MATMUL_D), at, &nested, run);
    *bytes = at + nested;
    return status;
}

static const char *refuse(const trine_call *call) {
    size_t bytes;
    return product(call, &bytes, false) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    return product(call, &bytes, false) == TRINE_OK ? bytes : 0;
}

static trine_status run(const trine_call *call) {
    size_t bytes;
    const trine_tensor a = own_tensor(call, ALL_GATHER_MATMUL_A), all = gathered_of(call, &bytes);
    const int64_t width = (int64_t)trine_dtype_size(a.dtype), elements = EXCHANGE_PACKET / width;
    const simt_function function = { .variant = (int)width };
    exchange_params p =
        lines_of(&a, &all, call->dim[ALL_GATHER_MATMUL_DIM_M], call->dim[ALL_GATHER_MATMUL_DIM_K], elements);
    const trine_status status = simt_exchange(call, &function, &p, line_packets(&p), 1);
    return status == TRINE_OK ? product(call, &bytes, true) : status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

/* In pieces: a rank's rows are copied to the others while it multiplies them itself. Theirs are multiplied where they
 * land, if products can read that, or else where all come. */
typedef struct gathered_rows {
    const trine_call *call;
    trine_tensor a, b, d, all; /* all: the output, or the workspace's beginning; of no dimension where not needed */
    int64_t m, k;
    size_t at; /* what the products have of the workspace */
    pieces pieces;
} gathered_rows;

static gathered_rows rows_of(const trine_call *call) {
    gathered_rows g = { .call = call,
                        .a = own_tensor(call, ALL_GATHER_MATMUL_A),
                        .b = own_tensor(call, ALL_GATHER_MATMUL_B),
                        .d = own_tensor(call, ALL_GATHER_MATMUL_D),
                        .m = call->dim[ALL_GATHER_MATMUL_DIM_M],
                        .k = call->dim[ALL_GATHER_MATMUL_DIM_K] };
    const int64_t ranks = call->dim[ALL_GATHER_MATMUL_DIM_RANKS];
    if (trine_call_given(call, ALL_GATHER_MATMUL_GATHERED) != NULL || !simt_group_reads_landing())
        g.all = gathered_of(call, &g.at);
    g.pieces = pieces_of(call, ranks, g.m, g.k * (int64_t)trine_dtype_size(g.a.dtype), 2);
    return g;
}

static trine_status rows_bytes(const void *rows, int64_t lines, size_t *bytes_out) {
    const gathered_rows *g = rows;
    return multiply(g->call, some_lines(g->a, 0, g->m, 0, lines), g->b, some_lines(g->d, 0, g->m, 0, lines), 0,
                    bytes_out, false);
}

static const char *refuse_pieces(const trine_call *call, bool slow) {
    const gathered_rows g = rows_of(call);
    const double products =
        (double)g.pieces.parts * (double)g.m * (double)g.k * (double)call->dim[ALL_GATHER_MATMUL_DIM_N];
    const char *refused = pieces_refuse(&g.pieces);
    size_t bytes;
    if (refused == NULL && slow) refused = pieces_slow(call, &g.pieces, products);
    if (refused != NULL) return refused;
    if (g.k * (int64_t)trine_dtype_size(g.a.dtype) % EXCHANGE_PACKET != 0) return "its rows are not whole packets";
    return pieces_bytes(&g.pieces, &g, rows_bytes, &bytes) == TRINE_OK ? NULL : "matmul has no kernel for it";
}
static const char *refuse_landed(const trine_call *call) { return refuse_pieces(call, false); }
static const char *refuse_slow(const trine_call *call) { return refuse_pieces(call, true); }

static size_t workspace_landed(const trine_call *call) {
    const gathered_rows g = rows_of(call);
    size_t bytes;
    if (g.pieces.lines == 0 || pieces_bytes(&g.pieces, &g, rows_bytes, &bytes) != TRINE_OK) return 0;
    return g.at + bytes;
}

static trine_status multiply_rows(const gathered_rows *g, int part, int64_t piece) {
    const int64_t first = piece_first(&g->pieces, piece), lines = piece_lines(&g->pieces, piece);
    const int rank = simt_group_rank(g->call);
    size_t bytes = g->call->workspace_size - g->at;
    trine_tensor a = some_lines(g->a, 0, g->m, first, lines);
    if (part != rank && simt_group_reads_landing())
        a = whole_matrix(piece_landing(g->call, &g->pieces, part, rank, piece), g->a.dtype, lines, g->k);
    else if (part != rank)
        a = some_lines(g->all, part, g->m, first, lines);
    return multiply(g->call, a, g->b, some_lines(g->d, part, g->m, first, lines), g->at, &bytes, true);
}

/* When those of the other ranks have landed, they go to where all come. */
static trine_status meet(const gathered_rows *g, int64_t piece) {
    const int64_t first = piece_first(&g->pieces, piece), lines = piece_lines(&g->pieces, piece);
    const int64_t width = (int64_t)trine_dtype_size(g->a.dtype), elements = EXCHANGE_PACKET / width;
    const simt_function function = { .step = "landed", .variant = (int)width };
    const trine_tensor x = some_lines(g->a, 0, g->m, first, lines);
    trine_tensor y = g->all;
    const char *landing = simt_group_landing_of(g->call, simt_group_rank(g->call));
    landed_params p = { .landed = landing + (size_t)(piece % 2) * g->pieces.half,
                        .landed_row = (int64_t)g->pieces.room,
                        .landed_line = g->k * width };
    if (y.rank == 0 || lines == 0) return simt_exchange_more(g->call, &function, &p, sizeof p, 0, 1);
    y.data = (char *)y.data + first * y.stride[1] * width;
    p.exchange = lines_of(&x, &y, lines, g->k, elements);
    return simt_exchange_more(g->call, &function, &p, sizeof p, line_packets(&p.exchange), 1);
}

/* This rank's, to all others. */
static trine_status send_rows(const gathered_rows *g, int64_t piece) {
    const int ranks = (int)g->pieces.parts, rank = simt_group_rank(g->call);
    const trine_tensor a = some_lines(g->a, 0, g->m, piece_first(&g->pieces, piece), 0);
    const int64_t width = (int64_t)trine_dtype_size(a.dtype);
    trine_status status = TRINE_OK;
    for (int d = 1; d < ranks && status == TRINE_OK; d++)
        status = send_piece(g->call, &g->pieces, (rank + d) % ranks, piece, a.data, g->k * width, a.stride[0] * width);
    return status;
}

static trine_status run_landed(const trine_call *call) {
    const gathered_rows g = rows_of(call);
    const int ranks = (int)g.pieces.parts, rank = simt_group_rank(call);
    trine_status status = send_rows(&g, 0);
    for (int64_t piece = 0; piece < g.pieces.count && status == TRINE_OK; piece++) {
        status = multiply_rows(&g, rank, piece);
        if (status == TRINE_OK) status = simt_group_join(call);
        if (status == TRINE_OK) status = meet(&g, piece);
        if (status == TRINE_OK && piece + 1 < g.pieces.count) status = send_rows(&g, piece + 1);
        for (int d = 1; d < ranks && status == TRINE_OK; d++) status = multiply_rows(&g, (rank + d) % ranks, piece);
    }
    /* of no lines, when all ranks have read theirs: the next call sends at once */
    return status == TRINE_OK ? meet(&g, g.pieces.count) : status;
}
static trine_status launch_landed(const trine_call *call) { return simt_group_run(call, run_landed); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t width = (int64_t)trine_dtype_size(call->type[ALL_GATHER_MATMUL_TYPE_T]);
    trine_kernel_edge(edges, ALL_GATHER_MATMUL_DIM_K, EXCHANGE_PACKET / width);
}

/* The first where it is faster; the last is for those who ask for it. */
SIMT_KERNELS(all_gather_matmul) = {
    { .name = SIMT_NAME "_overlapped", .refuse = refuse_slow, .workspace = workspace_landed, .launch = launch_landed },
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges },
    { .name = SIMT_NAME "_in_pieces", .refuse = refuse_landed, .workspace = workspace_landed, .launch = launch_landed },
    { 0 }
};
