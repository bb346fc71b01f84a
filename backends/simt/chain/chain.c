/* SPDX-License-Identifier: Apache-2.0 */
/* chain on devices: the host side. */
#include "chain.h"

#include <string.h>

#include "backends/simt/core/host.h"
#include "chain_compiled.h"
#include "chain_launch.h"
#include "spec/chain/parse.h"
#include "spec/chain/shape.h"
#include "spec/places/chain.h"

_Static_assert((int)CHAIN_Y0 == (int)CHAIN_INPUTS && (int)CHAIN_R0 == (int)CHAIN_ROW_VIEWS &&
                   (int)CHAIN_VIEWS == (int)CHAIN_TENSORS && (int)CHAIN_AROUND == (int)CHAIN_OUTER,
               "inputs, outputs, outputs of a row");
_Static_assert(sizeof(chain_list_params) <= 4096 && sizeof(chain_params) <= 4096, "parameters of a launch");

static uint8_t type_of(uint16_t dtype) {
    switch (dtype) {
    case TRINE_BF16: return CHAIN_BF16;
    case TRINE_F16: return CHAIN_F16;
    case TRINE_I8: return CHAIN_I8;
    case TRINE_U8: return CHAIN_U8;
    case TRINE_I32: return CHAIN_I32;
    case TRINE_F64: return CHAIN_F64;
    default: return CHAIN_F32;
    }
}

static void pack_program(const chain_program *program, const chain_layout *layout, chain_steps *p) {
    p->phases = program->phases;
    p->by_rows = chain_by_rows(program);
    for (int k = 0; k < program->phases; k++) p->phase[k] = program->phase[k];
    for (int i = 0; i < program->steps; i++) {
        const chain_step *s = &program->step[i];
        p->step[i] = s->op | (uint32_t)s->to << 8 | (uint32_t)s->a << 16 | (uint32_t)s->b << 24;
        p->c[i] = s->c;
    }
    p->numbers = chain_constants_of(program);
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        p->type[t] = type_of(layout->type[t]);
        p->along[t] = layout->place[t] == CHAIN_ALONG;
    }
}

static void lay_out(const trine_call *call, const chain_program *program, chain_layout *layout, chain_job *job) {
    const chain_shape shape = chain_shape_of(call->tensor, call->present, !chain_by_rows(program));
    memset(layout, 0, sizeof *layout); /* padding too: layouts are compared by bytes */
    memset(job, 0, sizeof *job);
    chain_lie(call, call->present, &shape, layout, job);
}

/* Elements of a block, and blocks of a row. */
static int64_t length_of(const chain_program *program, int64_t n) {
    return chain_by_rows(program) ? n : program->wide ? CHAIN_WIDE_PIECE : CHAIN_PIECE;
}
static int64_t pieces_of(const chain_program *program, int64_t n) {
    return chain_by_rows(program) ? 1 : simt_blocks(n, length_of(program, n));
}

static int threads_of(const chain_program *program) { return program->wide ? CHAIN_WIDE_THREADS : SIMT_THREADS; }
static simt_function function_of(const chain_program *program, const char *step) {
    return (simt_function){ .step = step, .type = { program->wide ? TRINE_F64 : TRINE_NONE } };
}

static int64_t blocks_of(const chain_program *program, const chain_layout *layout, const chain_job *job) {
    (void)layout;
    return job->rows * pieces_of(program, job->n);
}

static trine_status launch(const trine_call *call) {
    const trine_chain_args *args = call->args;
    chain_params p = { .n = 0 };
    chain_program program;
    chain_layout layout;
    chain_job job;
    char error[256] = "";
    if (!trine_chain_program_of(args->program, chain_is_wide(call->tensor, call->present), &program, error,
                                sizeof error))
        return call->host->error(TRINE_ERR_ARGUMENT, "chain: program: %s", error);
    lay_out(call, &program, &layout, &job);
    pack_program(&program, &layout, &p.steps);
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        p.view[t].data = job.data[t];
        for (int d = 0; d < CHAIN_AROUND; d++) p.view[t].stride[d] = job.stride[t][d];
    }
    for (int d = 0; d < CHAIN_AROUND; d++) p.outer[d] = job.shape[d].by;
    p.n = job.n;
    p.pieces = pieces_of(&program, job.n);
    p.length = length_of(&program, job.n);
    const simt_function function = function_of(&program, NULL);
    return simt_launch(call, &function, blocks_of(&program, &layout, &job), threads_of(&program), &p, sizeof p);
}

static trine_status launch_many(const trine_call *call, const chain_program *program, const chain_layout *layout,
                                const chain_calls *list, int64_t blocks) {
    chain_list_params p = { .list = *list };
    const simt_function function = function_of(program, "list");
    pack_program(program, layout, &p.steps);
    return simt_launch(call, &function, blocks, threads_of(program), &p, sizeof p);
}

static trine_status launch_list(trine_call *const *calls, int64_t count) {
    static const chain_list_kernel kernel = { lay_out, blocks_of, launch, launch_many };
    return chain_launch_list(&kernel, calls, count);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const bool wide = chain_is_wide(call->tensor, call->present);
    trine_kernel_edge(edges, CHAIN_DIM_N, wide ? CHAIN_WIDE_THREADS : SIMT_THREADS);
    trine_kernel_edge(edges, CHAIN_DIM_N, wide ? CHAIN_WIDE_PIECE : CHAIN_PIECE);
}

SIMT_KERNELS(chain) = { { .name = SIMT_NAME "_compiled",
                          .refuse = chain_compiled_refuse,
                          .launch = chain_compiled_launch,
                          .edges = chain_compiled_edges,
                          .launch_list = chain_compiled_launch_list },
                        { .name = SIMT_NAME, .launch = launch, .edges = edges, .launch_list = launch_list },
                        { 0 } };
