/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_quantized on the CPU, in pieces whose codes have room in a half: each rank adds up its part of a piece's
 * blocks, and then reads the codes of the others' parts. */
#include "backends/cpu/comm/copy.h"
#include "backends/cpu/core/float8.h"
#include "spec/places/all_reduce_quantized.h"

enum { MOST = 1024 }; /* elements of a block */

/* Added to a number below 2^22 it leaves the nearest whole number in the low bits. */
#define WHOLE 0x1.8p23f

typedef float block_floats[MOST + VL] __attribute__((aligned(64)));

typedef struct job {
    const trine_call *call;
    const char *x;
    char *y;
    trine_dtype T;
    bool float8;
    int ranks, rank;
    int64_t n, block, room; /* room: blocks of a piece */
    /* the piece at hand: its first block, how many there are, and those of a rank's part */
    int64_t first, blocks, part;
    char *half; /* scales of a piece, then codes */
    const char *from[TRINE_MAX_RANKS];
} job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static float *scale_at(const char *half, int64_t i) { return (float *)(void *)(uintptr_t)half + i; }
static uint8_t *codes_at(const job *b, const char *half, int64_t i) {
    return (uint8_t *)(uintptr_t)half + b->room * (int64_t)sizeof(float) + i * b->block;
}
static int64_t length_of(const job *b, int64_t i) { return least(b->block, b->n - (b->first + i) * b->block); }

/* The vectors of a block are whole; beyond its elements they are 0. */
INLINE vf number_of(vb bytes, bool float8) {
    return float8 ? vf_from_float8(bytes, TRINE_E4M3) : __builtin_convertvector((vb_widen(bytes) ^ 128) - 128, vf);
}
INLINE vb code_of(vf q, bool float8) {
    return float8 ? vf_to_float8(q, TRINE_E4M3, true)
                  : vb_narrow((vi)(vmin(vmax(q, vset(-128)), vset(127)) + WHOLE) - (vi)vset(WHOLE));
}

static void encode(const job *b, const float *v, int64_t count, float *scale_out, uint8_t *codes) {
    vi size = { 0 }; /* as bits, so that Inf is above all numbers and NaN above Inf */
    for (int64_t j = 0; j < count; j += VL) {
        const vi bits = (vi)vabs(*(const vf *)(v + j));
        size = visel(bits > size, bits, size);
    }
    const float scale = vany(size >= 0x7f800000) ? NAN : vhmax((vf)size) / (b->float8 ? 448.0f : 127.0f);
    const vi live = viset(scale > 0 ? -1 : 0);
    for (int64_t j = 0; j < count; j += VL) {
        const vf q = (vf)((vi)(*(const vf *)(v + j) / scale) & live) + vzero(); /* of -0: 0 */
        const vb bytes = b->float8 ? code_of(q, true) : code_of(q, false);
        memcpy(codes + j, &bytes, (size_t)least(VL, count - j));
    }
    *scale_out = scale;
}

static void decode(const job *b, float *v, int64_t count, float scale, const uint8_t *codes) {
    for (int64_t j = 0; j < count; j += VL) {
        vb bytes = { 0 };
        memcpy(&bytes, codes + j, (size_t)least(VL, count - j));
        *(vf *)(v + j) = (b->float8 ? number_of(bytes, true) : number_of(bytes, false)) * scale;
    }
}

INLINE void load_block(float *v, const void *x, int64_t count, trine_dtype T) {
    for (int64_t j = 0; j < count; j += VL)
        *(vf *)(v + j) = count - j >= VL ? vload(x, T, j) : vloadn(x, T, j, (int)(count - j), 0);
}
INLINE void store_block(const float *v, void *y, int64_t count, trine_dtype T) {
    for (int64_t j = 0; j < count; j += VL) {
        if (count - j >= VL)
            vstore(y, T, j, *(const vf *)(v + j));
        else
            vstoren(y, T, j, (int)(count - j), *(const vf *)(v + j));
    }
}

static void encode_x(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const int64_t bytes = b->block * (int64_t)trine_dtype_size(b->T);
    block_floats v;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        FOR_TYPE(b->T, load_block, v, b->x + (b->first + i) * bytes, length_of(b, i));
        encode(b, v, length_of(b, i), scale_at(b->half, i), codes_at(b, b->half, i));
    }
}

/* Blocks of this rank's part. */
static void add_up(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    block_floats sum, v;
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t i = b->rank * b->part + k, count = length_of(b, i);
        decode(b, sum, count, *scale_at(b->from[0], i), codes_at(b, b->from[0], i));
        for (int r = 1; r < b->ranks; r++) {
            decode(b, v, count, *scale_at(b->from[r], i), codes_at(b, b->from[r], i));
            for (int64_t j = 0; j < count; j += VL) *(vf *)(sum + j) += *(const vf *)(v + j);
        }
        encode(b, sum, count, scale_at(b->half, k), codes_at(b, b->half, k));
    }
}

static void decode_y(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const int64_t bytes = b->block * (int64_t)trine_dtype_size(b->T);
    block_floats v;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const char *half = b->from[i / b->part];
        const int64_t k = i % b->part;
        decode(b, v, length_of(b, i), *scale_at(half, k), codes_at(b, half, k));
        FOR_TYPE(b->T, store_block, v, b->y + (b->first + i) * bytes, length_of(b, i));
    }
}

static void run(const job *b, int64_t blocks, cpu_body *body) {
    const int64_t bytes = blocks * b->block * (int64_t)trine_dtype_size(b->T);
    cpu_shares(b->call, cpu_team(b->call, blocks, bytes), blocks, body, b);
}

static trine_status piece(job *b) {
    trine_status status = trine_cpu_group_ready(b->call, &b->half);
    if (status != TRINE_OK) return status;
    run(b, b->blocks, encode_x);
    status = trine_cpu_group_post(b->call, b->first == 0, 1);
    if (status != TRINE_OK || b->blocks == 0) return status;
    for (int r = 0; r < b->ranks; r++) b->from[r] = trine_cpu_group_half(b->call, r);
    if ((status = trine_cpu_group_ready(b->call, &b->half)) != TRINE_OK) return status;
    b->part = (b->blocks + b->ranks - 1) / b->ranks;
    const int64_t left = b->blocks - b->rank * b->part;
    if (left > 0) run(b, least(b->part, left), add_up);
    if ((status = trine_cpu_group_post(b->call, false, 1)) != TRINE_OK) return status;
    for (int r = 0; r < b->ranks; r++) b->from[r] = trine_cpu_group_half(b->call, r);
    run(b, b->blocks, decode_y);
    return TRINE_OK;
}

static int64_t room_of(const trine_call *call, int64_t block) {
    return trine_cpu_group_bytes(call) / (block + (int64_t)sizeof(float));
}

static trine_status launch(const trine_call *call) {
    const trine_all_reduce_quantized_args *args = call->args;
    job b = { .call = call,
              .x = call->tensor[ALL_REDUCE_QUANTIZED_X].data,
              .y = call->tensor[ALL_REDUCE_QUANTIZED_Y].data,
              .T = call->type[ALL_REDUCE_QUANTIZED_TYPE_T],
              .float8 = args->codes == TRINE_RANKS_E4M3,
              .ranks = (int)call->dim[ALL_REDUCE_QUANTIZED_DIM_RANKS],
              .rank = trine_cpu_group_rank(call),
              .n = call->dim[ALL_REDUCE_QUANTIZED_DIM_N],
              .block = args->block,
              .room = room_of(call, args->block) };
    const int64_t blocks = (b.n + b.block - 1) / b.block;
    for (b.first = 0; b.first == 0 || b.first < blocks; b.first += b.room) {
        b.blocks = least(b.room, blocks - b.first);
        const trine_status status = piece(&b);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t block = ((const trine_all_reduce_quantized_args *)call->args)->block;
    trine_kernel_edge(edges, ALL_REDUCE_QUANTIZED_DIM_N, block);
    trine_kernel_edge(edges, ALL_REDUCE_QUANTIZED_DIM_N, block * call->dim[ALL_REDUCE_QUANTIZED_DIM_RANKS]);
    trine_kernel_edge(edges, ALL_REDUCE_QUANTIZED_DIM_N, block * room_of(call, block));
    cpu_team_edge(edges, ALL_REDUCE_QUANTIZED_DIM_N,
                  (int64_t)trine_dtype_size(call->type[ALL_REDUCE_QUANTIZED_TYPE_T]));
}

CPU_KERNELS(all_reduce_quantized) = { { CPU_NAME, NULL, NULL, launch, .edges = edges, .same = true }, { 0 } };
