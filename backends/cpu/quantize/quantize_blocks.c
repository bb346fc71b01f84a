/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_blocks on the CPU: a block is read twice, for its largest and for its codes. One that is large is cut into
 * pieces, of which threads take shares, and read as a whole before the second time. */
#include "rows.h"
#include "spec/places/quantize_blocks.h"
#include "spec/scaled/blocks.h"

enum { PIECE_ROWS = 128, PIECE_COLUMNS = 2048 };

typedef struct job {
    const trine_tensor *x, *codes, *scales;
    int64_t r, k, rows, columns, high, wide; /* of the matrix; of scales; of a block */
    int64_t down, across;                    /* pieces of a block */
    float most;
    float *largest; /* of each piece; Inf: there is NaN or Inf */
    bool powers, upward;
} job;

typedef struct part {
    int64_t top, bottom, left, right;
} part;

static job job_of(const trine_call *call) {
    const trine_quantize_blocks_args *args = call->args;
    const trine_dtype C = call->type[QUANTIZE_BLOCKS_TYPE_C];
    job b = { .x = &call->tensor[QUANTIZE_BLOCKS_X],
              .codes = &call->tensor[QUANTIZE_BLOCKS_CODES],
              .scales = &call->tensor[QUANTIZE_BLOCKS_SCALES],
              .r = call->dim[QUANTIZE_BLOCKS_DIM_R],
              .k = call->dim[QUANTIZE_BLOCKS_DIM_K],
              .rows = call->dim[QUANTIZE_BLOCKS_DIM_ROWS],
              .columns = call->dim[QUANTIZE_BLOCKS_DIM_COLUMNS],
              .most = C == TRINE_I8     ? 127.0f
                      : C == TRINE_E4M3 ? 448.0f
                                        : 57344.0f,
              .largest = call->workspace,
              .powers = args->powers == TRINE_POWERS_ALL,
              .upward = args->upward };
    b.high = scaled_block(b.r, b.rows);
    b.wide = scaled_block(b.k, b.columns);
    b.down = (b.high + PIECE_ROWS - 1) / PIECE_ROWS;
    b.across = (b.wide + PIECE_COLUMNS - 1) / PIECE_COLUMNS;
    return b;
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* A piece of a block, which may have nothing. */
static part part_of(const job *b, int64_t block, int64_t piece) {
    const int64_t top = block / b->columns * b->high, left = block % b->columns * b->wide,
                  first = top + piece / b->across * PIECE_ROWS, from = left + piece % b->across * PIECE_COLUMNS;
    return (part){ first, least_of(least_of(first + PIECE_ROWS, top + b->high), b->r), from,
                   least_of(least_of(from + PIECE_COLUMNS, left + b->wide), b->k) };
}

INLINE float largest_of(const job *b, part p, trine_dtype T) {
    vi size = { 0 }; /* as bits, so that Inf is above all numbers and NaN above Inf */
    for (int64_t i = p.top; i < p.bottom; i++) {
        const char *row = (const char *)b->x->data + i * b->x->stride[0] * (int64_t)vsize(T);
        for (int64_t j = p.left; j < p.right; j += VL) {
            const vi bits = (vi)vabs(row_load(row, T, j, p.right - j < VL ? (int)(p.right - j) : VL));
            size = visel(bits > size, bits, size);
        }
    }
    return vany(size >= 0x7f800000) ? INFINITY : vhmax((vf)size);
}

INLINE void put_codes(const job *b, part p, float scale, trine_dtype T) {
    const vi live = viset(scale > 0 ? -1 : 0);
    const vf by = vset(scale);
    for (int64_t i = p.top; i < p.bottom; i++) {
        const char *row = (const char *)b->x->data + i * b->x->stride[0] * (int64_t)vsize(T);
        uint8_t *codes = (uint8_t *)b->codes->data + i * b->codes->stride[0];
        for (int64_t j = p.left; j < p.right; j += VL) {
            const int count = p.right - j < VL ? (int)(p.right - j) : VL;
            const vf q = (vf)((vi)(row_load(row, T, j, count) / by) & live) + vzero(); /* of -0: 0 */
            row_put(codes + j, q, count, b->codes->dtype);
        }
    }
}

/* The scale of a block, rounded to its type. */
static float put_scale(const job *b, int64_t block, float most) {
    const float quotient = isinf(most) ? NAN : most / b->most;
    return codes_put_scale(b->scales, block / b->columns, block % b->columns, b->powers, most, b->most, quotient,
                           b->upward);
}

/* Blocks that are one piece each. */
INLINE void whole_blocks(const job *b, int64_t first, int64_t last, trine_dtype T) {
    for (int64_t block = first; block < last; block++) {
        const part p = part_of(b, block, 0);
        put_codes(b, p, put_scale(b, block, largest_of(b, p, T)), T);
    }
}

/* Pieces of larger ones: their largest, and with the scale the codes. */
INLINE void find_pieces(const job *b, int64_t first, int64_t last, trine_dtype T) {
    const int64_t pieces = b->down * b->across;
    for (int64_t item = first; item < last; item++)
        b->largest[item] = largest_of(b, part_of(b, item / pieces, item % pieces), T);
}
INLINE void put_pieces(const job *b, int64_t first, int64_t last, trine_dtype T) {
    const int64_t pieces = b->down * b->across;
    for (int64_t item = first; item < last; item++) {
        const int64_t block = item / pieces;
        put_codes(b, part_of(b, block, item % pieces), codes_number(b->scales, block / b->columns, block % b->columns),
                  T);
    }
}

static void whole(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    FOR_TYPE(b->x->dtype, whole_blocks, b, first, last);
}
static void find(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    FOR_TYPE(b->x->dtype, find_pieces, b, first, last);
}
static void put(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    FOR_TYPE(b->x->dtype, put_pieces, b, first, last);
}

static int64_t items_of(const job *b) { return b->rows * b->columns * b->down * b->across; }

static int64_t row_bytes(const trine_call *call) {
    return call->dim[QUANTIZE_BLOCKS_DIM_K] * (int64_t)(2 * trine_dtype_size(call->type[QUANTIZE_BLOCKS_TYPE_T]) + 1);
}

static size_t workspace(const trine_call *call) {
    const job b = job_of(call);
    return b.down * b.across > 1 ? (size_t)items_of(&b) * sizeof(float) : 0;
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    const int64_t items = items_of(&b);
    const int team = cpu_team(call, items, b.r * row_bytes(call));
    if (b.down * b.across == 1) {
        cpu_shares(call, team, items, whole, &b);
        return TRINE_OK;
    }
    cpu_shares(call, team, items, find, &b);
    const int64_t pieces = b.down * b.across;
    for (int64_t block = 0; block < b.rows * b.columns; block++) {
        float most = 0;
        for (int64_t i = 0; i < pieces; i++) most = fmaxf(most, b.largest[block * pieces + i]);
        put_scale(&b, block, most);
    }
    cpu_shares(call, team, items, put, &b);
    return TRINE_OK;
}

/* Pieces, vectors of one; and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_R, PIECE_ROWS);
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_K, PIECE_COLUMNS);
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_K, VL);
    cpu_team_edge(edges, QUANTIZE_BLOCKS_DIM_R, row_bytes(call));
}

CPU_KERNELS(quantize_blocks) = { { CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
