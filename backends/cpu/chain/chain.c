/* SPDX-License-Identifier: Apache-2.0 */
/* chain on the CPU: the program's steps one by one, each over a tile of a row that stays in the first-level cache. */
#include "pairs.h"
#include "spec/chain/shape.h"
#include "spec/places/chain.h"
#include "steps.h"

enum { CHAIN_TILE_f32 = 1024, CHAIN_TILE_f64 = 512, CHAIN_SUM = 1024 /* elements whose sum is added to others' */ };
_Static_assert((int)CHAIN_Y0 == (int)CHAIN_INPUTS && (int)CHAIN_R0 == (int)CHAIN_ROW_TENSORS &&
                   (int)CHAIN_R1 == (int)CHAIN_TENSORS - 1,
               "inputs, outputs, outputs of a row");
_Static_assert(CHAIN_SUM / (ROW_ACC * DOUBLES) + 8 <= 256, "sums would be deeper than specified");

typedef struct chain_job {
    chain_program program;
    const trine_call *call;
    chain_shape shape;
    int64_t pieces, length; /* of a row, and elements of each */
    bool stream;
    bool own; /* is an input an output's memory? */
} chain_job;

static inline bool chain_given(const chain_job *job, int tensor) { return job->call->present >> tensor & 1; }

/* Where each tensor's row is. */
static void chain_find_row(const chain_job *job, int64_t row, char **at_out) {
    int64_t place[CHAIN_OUTER];
    for (int d = CHAIN_OUTER - 1; d >= 0; d--) {
        place[d] = row % job->shape.outer[d];
        row /= job->shape.outer[d];
    }
    for (int t = 0; t < CHAIN_TENSORS; t++) {
        const trine_tensor *tensor = &job->call->tensor[t];
        int64_t at = 0;
        if (!chain_given(job, t)) continue;
        for (int d = 0; d < CHAIN_OUTER; d++) at += place[d] * job->shape.stride[t][d];
        at_out[t] = (char *)tensor->data + at * (int64_t)trine_dtype_size(tensor->dtype);
    }
}

/* Asks for the next tile's lines, which begin on another page, where the hardware does not look ahead. */
static inline void chain_ahead(const char *from, int bytes) {
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)i));
}

/* ------------------------------------------------------------------------------------------ elements of other types */

#define CHAIN_WIDEN(real, type) \
    for (int j = 0; j < count; j++) to[j] = (real)((const type *)from)[j]

static void fetch_f32(float *to, const void *from, int count, trine_dtype dtype) {
    switch (dtype) {
    case TRINE_I8: CHAIN_WIDEN(float, int8_t); break;
    case TRINE_U8: CHAIN_WIDEN(float, uint8_t); break;
    case TRINE_I32: CHAIN_WIDEN(float, int32_t); break;
    default: row_load(to, from, 0, count, dtype);
    }
}
static void fetch_f64(double *to, const void *from, int count, trine_dtype dtype) {
    switch (dtype) {
    case TRINE_F64: memcpy(to, from, (size_t)count * sizeof *to); break;
    case TRINE_I32: CHAIN_WIDEN(double, int32_t); break;
    default: CHAIN_WIDEN(double, float);
    }
}

/* To elements at, at + 1, ... of a row. */
static void put_f32(float *from, char *row, int64_t at, int count, trine_dtype dtype, bool stream) {
    row_store(from, row_sink_at(row, dtype, at, stream), count, dtype);
}
static void put_f64(double *from, char *row, int64_t at, int count, trine_dtype dtype, bool stream) {
    if (dtype == TRINE_F64) {
        store_doubles((double *)(void *)row + at, from, count, stream);
        return;
    }
    float narrow[CHAIN_TILE_f64] __attribute__((aligned(64)));
    for (int j = 0; j < count; j++) narrow[j] = (float)from[j];
    put_f32(narrow, row, at, count, dtype, stream);
}

/* --------------------------------------------------------------------------------------------------------- programs */

#define REAL float
#define REAL_DTYPE TRINE_F32
#define NAME(name) name##_f32
#define VECTOR vf
#define VECTOR_ANY vf_any
#define LANES VL
#include "chain.inl.h"
#undef REAL
#undef REAL_DTYPE
#undef NAME
#undef VECTOR
#undef VECTOR_ANY
#undef LANES
#define REAL double
#define REAL_DTYPE TRINE_F64
#define NAME(name) name##_f64
#define VECTOR number
#define VECTOR_ANY number_any
#define LANES DOUBLES
#include "chain.inl.h"

/* --------------------------------------------------------------------------------------------------------- the call */

static trine_status launch(const trine_call *call) {
    const trine_chain_args *args = call->args;
    chain_job job = { .call = call };
    char error[256] = "";
    const bool wide = chain_is_wide(call->tensor, call->present);
    const int tile = wide ? CHAIN_TILE_f64 : CHAIN_TILE_f32;
    if (!trine_chain_program_of(args->program, wide, &job.program, error, sizeof error))
        return call->host->error(TRINE_ERR_ARGUMENT, "chain: program: %s", error);
    chain_pair_up(&job.program);
    const bool rows = chain_by_rows(&job.program);
    job.shape = chain_shape_of(call->tensor, call->present, !rows);
    job.length = rows ? job.shape.n : tile;
    job.pieces = rows ? 1 : (job.shape.n + tile - 1) / tile;
    for (int y = CHAIN_INPUTS; y < CHAIN_ROW_TENSORS; y++)
        for (int x = 0; x < CHAIN_INPUTS; x++)
            job.own |= chain_given(&job, x) && chain_given(&job, y) && call->tensor[x].data == call->tensor[y].data;
    job.stream = !job.own && row_written(call) > cpu_of(call)->l3;
    const int64_t items = job.shape.outer[0] * job.shape.outer[1] * job.shape.outer[2] * job.pieces;
    cpu_shares(call, cpu_team(call, items, row_bytes(call)), items, wide ? chain_items_f64 : chain_items_f32, &job);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t n = call->dim[CHAIN_DIM_N] > 0 ? call->dim[CHAIN_DIM_N] : 1, each = row_written(call) / n;
    const bool wide = chain_is_wide(call->tensor, call->present);
    trine_kernel_edge(edges, CHAIN_DIM_N, wide ? DOUBLES : VL);
    trine_kernel_edge(edges, CHAIN_DIM_N, wide ? CHAIN_TILE_f64 : CHAIN_TILE_f32);
    cpu_team_edge(edges, CHAIN_DIM_N, row_bytes(call) / n);
    if (each > 0) trine_kernel_edge(edges, CHAIN_DIM_N, cpu_of(call)->l3 / each);
}

CPU_KERNELS(chain) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
