/* SPDX-License-Identifier: Apache-2.0 */
/* chain on the CPU: the program's steps one by one, each over a tile of a row that stays in the first-level cache. */
#include "backends/cpu/core/row.h"
#include "pairs.h"
#include "spec/chain/shape.h"
#include "spec/places/chain.h"

enum { CHAIN_TILE = 1024 };
_Static_assert((int)CHAIN_Y0 == (int)CHAIN_INPUTS && (int)CHAIN_R0 == (int)CHAIN_ROW_TENSORS &&
                   (int)CHAIN_R1 == (int)CHAIN_TENSORS - 1,
               "inputs, outputs, outputs of a row");
_Static_assert(CHAIN_TILE / VL <= 256, "sums would be deeper than specified");

typedef struct chain_job {
    chain_program program;
    const trine_call *call;
    chain_shape shape;
    int64_t pieces, length; /* of a row, and elements of each */
    bool stream;
    bool own; /* is an input an output's memory? */
} chain_job;

/* What one thread works with. */
typedef struct chain_state {
    chain_space space;
    float reduced[CHAIN_ROW_VALUES];
    char *at[CHAIN_TENSORS]; /* of the row */
    vf still[CHAIN_REGISTERS];
    float memory[CHAIN_REGISTERS][CHAIN_TILE] __attribute__((aligned(64)));
} chain_state;

static inline bool chain_given(const chain_job *job, int tensor) { return job->call->present >> tensor & 1; }

/* ------------------------------------------------------------------------------------------------- loads and stores */

#define CHAIN_WIDEN(type) \
    for (int j = 0; j < count; j++) to[j] = (float)((const type *)from)[j]

/* Asks for the next tile's lines, which begin on another page, where the hardware does not look ahead. */
static inline void chain_ahead(const char *from, int bytes) {
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)i));
}

/* One that is still has a vector of its own, since a step may write to the register it reads. */
static void chain_load(const chain_job *job, chain_state *s, const chain_step *step, int64_t at, int count) {
    const int input = step->a;
    const trine_dtype dtype = job->call->tensor[input].dtype;
    const bool still = job->shape.still[input];
    const char *from = s->at[input] + (still ? 0 : at * (int64_t)trine_dtype_size(dtype));
    float *to = still ? (float *)&s->still[step->to] : s->memory[step->to];
    chain_value *value = &s->space.value[step->to];
    *value = (chain_value){ to, still ? 0 : VL };
    if (still) {
        count = 1;
    } else {
        chain_ahead(from + CHAIN_TILE * (int64_t)trine_dtype_size(dtype), count * (int)trine_dtype_size(dtype));
    }
    if (!still && dtype == TRINE_F32 && count % VL == 0 && !job->own) {
        value->at = (const float *)(const void *)from;
        return;
    }
    switch (dtype) {
    case TRINE_I8: CHAIN_WIDEN(int8_t); break;
    case TRINE_U8: CHAIN_WIDEN(uint8_t); break;
    case TRINE_I32: CHAIN_WIDEN(int32_t); break;
    default: row_load(to, from, 0, count, dtype);
    }
    if (still) s->still[step->to] = vset(to[0]);
}

static void chain_store(const chain_job *job, chain_state *s, const chain_step *step, int64_t at, int count) {
    const int output = CHAIN_INPUTS + step->to;
    const trine_dtype dtype = job->call->tensor[output].dtype;
    const chain_value value = s->space.value[step->a];
    if (!chain_given(job, output)) return;
    const row_sink sink = row_sink_at(s->at[output], dtype, at, job->stream);
    if (value.step != 0 && value.at == (const float *)s->memory[step->a]) {
        row_store(s->memory[step->a], sink, count, dtype);
        return;
    }
    float copy[CHAIN_TILE] __attribute__((aligned(64)));
    for (int j = 0; j < count; j += VL) *row_vector(copy, j) = *(const vf_any *)(value.at + j / VL * value.step);
    row_store(copy, sink, count, dtype);
}

static void chain_store_row(const chain_job *job, const chain_state *s, const chain_step *step) {
    const int output = CHAIN_ROW_TENSORS + step->to;
    if (chain_given(job, output)) *(float *)(void *)s->at[output] = *s->space.value[step->a].at;
}

/* --------------------------------------------------------------------------------------------------------- programs */

/* The steps on a tile of elements at .. at+count-1. */
static void chain_tile(const chain_job *job, chain_state *s, const chain_phase *phase, int64_t at, int count) {
    for (int i = phase->first; i < phase->end; i++) {
        const chain_step *step = &job->program.step[i];
        if (step->op == CHAIN_LOAD) {
            chain_load(job, s, step, at, count);
        } else if (step->op == CHAIN_STORE) {
            chain_store(job, s, step, at, count);
        } else if (chain_reduces(step->op)) {
            float *reduced = &s->reduced[step->to - CHAIN_ROW];
            *reduced = chain_reduce(step->op, *reduced, s->space.value[step->a], count);
        } else {
            (step->op >= CHAIN_PAIR ? chain_do_pair : chain_do)(&s->space, step, s->memory[step->to],
                                                                (count + VL - 1) / VL);
            s->space.value[step->to] = (chain_value){ s->memory[step->to], VL };
        }
    }
}

/* A phase on elements first .. last-1 of a row. */
static void chain_run_phase(const chain_job *job, chain_state *s, const chain_phase *phase, int64_t first,
                            int64_t last) {
    for (int i = phase->row; i < phase->first; i++) {
        const chain_step *step = &job->program.step[i];
        if (step->op == CHAIN_STORE_ROW)
            chain_store_row(job, s, step);
        else
            chain_do(&s->space, step, (float *)&s->space.row[step->to - CHAIN_ROW], 1);
    }
    for (int i = phase->first; i < phase->end; i++)
        if (chain_reduces(job->program.step[i].op))
            s->reduced[job->program.step[i].to - CHAIN_ROW] = chain_nothing(job->program.step[i].op);
    for (int64_t at = first; at < last; at += CHAIN_TILE)
        chain_tile(job, s, phase, at, last - at < CHAIN_TILE ? (int)(last - at) : CHAIN_TILE);
    for (int i = phase->first; i < phase->end; i++)
        if (chain_reduces(job->program.step[i].op)) {
            const int value = job->program.step[i].to - CHAIN_ROW;
            s->space.row[value] = vset(s->reduced[value]);
        }
}

static void chain_begin(const chain_job *job, chain_state *s) {
    const chain_program *p = &job->program;
    s->space.n = (float)job->shape.n;
    for (int i = 0; i < p->row_values; i++)
        s->space.value[CHAIN_ROW + i] = (chain_value){ (const float *)&s->space.row[i], 0 };
    for (int i = 0; i < p->constants; i++) {
        s->space.constant[i] = vset(p->constant[i]);
        s->space.value[CHAIN_CONSTANT + i] = (chain_value){ (const float *)&s->space.constant[i], 0 };
    }
}

/* Where each tensor's row is. */
static void chain_find_row(const chain_job *job, chain_state *s, int64_t row) {
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
        s->at[t] = (char *)tensor->data + at * (int64_t)trine_dtype_size(tensor->dtype);
    }
}

static void chain_items(const void *context, int64_t first, int64_t last, int thread) {
    const chain_job *job = context;
    chain_state s;
    (void)thread;
    chain_begin(job, &s);
    for (int64_t item = first; item < last; item++) {
        const int64_t from = item % job->pieces * job->length,
                      to = from + job->length < job->shape.n ? from + job->length : job->shape.n;
        chain_find_row(job, &s, item / job->pieces);
        for (int k = 0; k < job->program.phases; k++) chain_run_phase(job, &s, &job->program.phase[k], from, to);
    }
    if (job->stream) stream_fence();
}

/* --------------------------------------------------------------------------------------------------------- the call */

static trine_status launch(const trine_call *call) {
    const trine_chain_args *args = call->args;
    chain_job job = { .call = call };
    char error[256] = "";
    if (!trine_chain_program_of(args->program, &job.program, error, sizeof error))
        return call->host->error(TRINE_ERR_ARGUMENT, "chain: program: %s", error);
    chain_pair_up(&job.program);
    const bool rows = chain_by_rows(&job.program);
    job.shape = chain_shape_of(call->tensor, call->present, !rows);
    job.length = rows ? job.shape.n : CHAIN_TILE;
    job.pieces = rows ? 1 : (job.shape.n + CHAIN_TILE - 1) / CHAIN_TILE;
    job.stream = row_streams(call);
    for (int y = CHAIN_INPUTS; y < CHAIN_ROW_TENSORS; y++)
        for (int x = 0; x < CHAIN_INPUTS; x++)
            job.own |= chain_given(&job, x) && chain_given(&job, y) && call->tensor[x].data == call->tensor[y].data;
    const int64_t items = job.shape.outer[0] * job.shape.outer[1] * job.shape.outer[2] * job.pieces;
    cpu_shares(call, cpu_team(call, items, row_bytes(call)), items, chain_items, &job);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t n = call->dim[CHAIN_DIM_N] > 0 ? call->dim[CHAIN_DIM_N] : 1, each = row_written(call) / n;
    trine_kernel_edge(edges, CHAIN_DIM_N, VL);
    trine_kernel_edge(edges, CHAIN_DIM_N, CHAIN_TILE);
    cpu_team_edge(edges, CHAIN_DIM_N, row_bytes(call) / n);
    if (each > 0) trine_kernel_edge(edges, CHAIN_DIM_N, cpu_of(call)->l3 / each);
}

CPU_KERNELS(chain) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
