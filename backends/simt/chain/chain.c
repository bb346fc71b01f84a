/* SPDX-License-Identifier: Apache-2.0 */
/* chain on devices: the host side. */
#include "chain.h"
#include "backends/simt/core/host.h"
#include "chain_compiled.h"
#include "spec/chain/parse.h"
#include "spec/chain/shape.h"
#include "spec/places/chain.h"

_Static_assert((int)CHAIN_Y0 == (int)CHAIN_INPUTS && (int)CHAIN_VIEWS == (int)CHAIN_TENSORS &&
                   (int)CHAIN_AROUND == (int)CHAIN_OUTER,
               "inputs, then outputs");

static int32_t type_of(trine_dtype dtype) {
    switch (dtype) {
    case TRINE_BF16: return CHAIN_BF16;
    case TRINE_F16: return CHAIN_F16;
    case TRINE_I8: return CHAIN_I8;
    case TRINE_U8: return CHAIN_U8;
    case TRINE_I32: return CHAIN_I32;
    default: return CHAIN_F32;
    }
}

static void view_tensors(const trine_call *call, const chain_shape *shape, chain_params *p) {
    for (int t = 0; t < CHAIN_VIEWS; t++) {
        if (!simt_present(call, t)) continue;
        p->view[t] = (chain_view){ .data = call->tensor[t].data,
                                   .type = type_of(call->tensor[t].dtype),
                                   .step = !shape->still[t] };
        for (int d = 0; d < CHAIN_AROUND; d++) p->view[t].stride[d] = shape->stride[t][d];
    }
}

static void pack_program(const chain_program *program, chain_params *p) {
    p->phases = program->phases;
    for (int k = 0; k < program->phases; k++) p->phase[k] = program->phase[k];
    for (int i = 0; i < program->steps; i++) {
        const chain_step *s = &program->step[i];
        p->step[i][0] = s->op | (uint32_t)s->to << 8 | (uint32_t)s->a << 16 | (uint32_t)s->b << 24;
        p->step[i][1] = s->c;
    }
    for (int i = 0; i < program->constants; i++) p->constant[i] = program->constant[i];
}

static trine_status launch(const trine_call *call) {
    const trine_chain_args *args = call->args;
    chain_params p = { .phases = 0 };
    chain_program program;
    char error[256] = "";
    if (!trine_chain_program_of(args->program, &program, error, sizeof error))
        return call->host->error(TRINE_ERR_ARGUMENT, "chain: program: %s", error);
    const chain_shape shape = chain_shape_of(call->tensor, call->present, program.phases == 1);
    pack_program(&program, &p);
    view_tensors(call, &shape, &p);
    for (int d = 0; d < CHAIN_AROUND; d++) p.outer[d] = shape.outer[d];
    p.n = shape.n;
    p.length = program.phases == 1 ? CHAIN_PIECE : shape.n;
    p.pieces = simt_blocks(p.n, p.length);
    const simt_function function = { .step = NULL };
    return simt_launch(call, &function, p.outer[0] * p.outer[1] * p.outer[2] * p.pieces, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CHAIN_DIM_N, SIMT_THREADS);
    trine_kernel_edge(edges, CHAIN_DIM_N, CHAIN_PIECE);
}

SIMT_KERNELS(chain) = { { .name = SIMT_NAME "_compiled",
                          .refuse = chain_compiled_refuse,
                          .launch = chain_compiled_launch,
                          .edges = chain_compiled_edges },
                        { .name = SIMT_NAME, .launch = launch, .edges = edges },
                        { 0 } };
