/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_matmul on the CPU: the rows of all ranks come by way of the halves, and are then one product. */
#include "products.h"
#include "spec/places/all_gather_matmul.h"

/* Where the rows of all ranks come: to the output, or else to the workspace's beginning. */
static trine_tensor gathered_of(const trine_call *call, size_t *bytes_out) {
    const trine_tensor a = own_tensor(call, ALL_GATHER_MATMUL_A);
    const int64_t ranks = call->dim[ALL_GATHER_MATMUL_DIM_RANKS], m = call->dim[ALL_GATHER_MATMUL_DIM_M],
                  k = call->dim[ALL_GATHER_MATMUL_DIM_K];
    *bytes_out = 0;
    if (trine_call_given(call, ALL_GATHER_MATMUL_GATHERED) != NULL) return own_tensor(call, ALL_GATHER_MATMUL_GATHERED);
    const int64_t bytes = ranks * m * k * (int64_t)trine_dtype_size(a.dtype);
    *bytes_out = (size_t)cpu_round_up(bytes, PRODUCT_ALIGNMENT);
    return (trine_tensor){
        .data = call->workspace, .dtype = a.dtype, .rank = 3, .shape = { ranks, m, k }, .stride = { m * k, k, 1 }
    };
}

static trine_status product(const trine_call *call, size_t *bytes, bool run) {
    size_t at;
    const trine_tensor gathered = gathered_of(call, &at);
    if (run) *bytes = call->workspace_size - at;
    return multiply(call, gathered, own_tensor(call, ALL_GATHER_MATMUL_B), own_tensor(call, ALL_GATHER_MATMUL_D), at,
                    bytes, run);
}

static const char *refuse(const trine_call *call) {
    size_t bytes = 0;
    return product(call, &bytes, false) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t gathered, bytes = 0;
    gathered_of(call, &gathered);
    return product(call, &bytes, false) == TRINE_OK ? gathered + bytes : 0;
}

/* Rows of as many bytes, so far apart. */
typedef struct block {
    char *to;
    const char *from;
    int64_t to_step, from_step, bytes;
} block;

static void copy_lines(const void *context, int64_t first, int64_t last, int thread) {
    const block *b = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) memcpy(b->to + i * b->to_step, b->from + i * b->from_step, (size_t)b->bytes);
}

static void copy_block(const trine_call *call, const block *b, int64_t rows) {
    cpu_shares(call, cpu_team(call, rows, rows * b->bytes), rows, copy_lines, b);
}

/* A piece: whole rows, or part of one. */
static int64_t piece_rows(const trine_call *call, int64_t *columns_out) {
    const int64_t k = call->dim[ALL_GATHER_MATMUL_DIM_K], m = call->dim[ALL_GATHER_MATMUL_DIM_M],
                  room = copy_room(call, call->type[ALL_GATHER_MATMUL_TYPE_T], 1), rows = k > 0 ? room / k : m;
    const int64_t most = rows < m ? rows : m;
    *columns_out = k < room ? k : room;
    return most > 0 ? most : 1;
}

static trine_status gather_piece(const trine_call *call, const trine_tensor *all, int64_t row, int64_t rows,
                                 int64_t column, int64_t columns) {
    const trine_tensor *a = &call->tensor[ALL_GATHER_MATMUL_A];
    const int64_t width = (int64_t)trine_dtype_size(a->dtype), bytes = columns * width;
    char *half;
    trine_status status = trine_cpu_group_ready(call, &half);
    if (status != TRINE_OK) return status;
    const bool some = rows > 0 && columns > 0;
    if (some) copy_block(call, &(block){ half, row_at(a, row, column), bytes, a->stride[0] * width, bytes }, rows);
    status = trine_cpu_group_post(call, row == 0 && column == 0, 1);
    for (int r = 0; r < all->shape[0] && some && status == TRINE_OK; r++) {
        char *to = (char *)all->data + (r * all->stride[0] + row * all->stride[1] + column) * width;
        copy_block(call, &(block){ to, trine_cpu_group_half(call, r), all->stride[1] * width, bytes, bytes }, rows);
    }
    return status;
}

static trine_status launch(const trine_call *call) {
    const int64_t m = call->dim[ALL_GATHER_MATMUL_DIM_M], k = call->dim[ALL_GATHER_MATMUL_DIM_K];
    size_t bytes;
    int64_t columns;
    const int64_t rows = piece_rows(call, &columns);
    const trine_tensor all = gathered_of(call, &bytes);
    for (int64_t row = 0; row == 0 || row < m; row += rows)
        for (int64_t column = 0; column == 0 || column < k; column += columns) {
            const int64_t high = m - row < rows ? m - row : rows, wide = k - column < columns ? k - column : columns;
            const trine_status status = gather_piece(call, &all, row, high, column, wide);
            if (status != TRINE_OK) return status;
            if (columns == 0) break;
        }
    return product(call, &bytes, true);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    int64_t columns;
    trine_kernel_edge(edges, ALL_GATHER_MATMUL_DIM_M, piece_rows(call, &columns));
}

CPU_KERNELS(all_gather_matmul) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
