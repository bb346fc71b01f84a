/* SPDX-License-Identifier: Apache-2.0 */
/* tm_clauses on devices: the host side. */
#include "tm_clauses.h"
#include "backends/simt/core/host.h"
#include "spec/places/tm_clauses.h"

static bool in_words(const trine_tensor *t) {
    bool words = (uintptr_t)t->data % 4 == 0;
    for (int i = 0; i + 1 < t->rank; i++) words &= t->stride[i] % 4 == 0;
    return words;
}

static trine_status launch(const trine_call *call) {
    const trine_tm_clauses_args *args = call->args;
    const trine_tensor *literals = &call->tensor[TM_CLAUSES_LITERALS], *include = &call->tensor[TM_CLAUSES_INCLUDE],
                       *clauses = trine_call_given(call, TM_CLAUSES_CLAUSES);
    const clauses_params p = { .literals = simt_rows_of(call, TM_CLAUSES_LITERALS),
                               .votes = simt_rows_of(call, TM_CLAUSES_VOTES),
                               .weights = simt_rows_of(call, TM_CLAUSES_WEIGHTS),
                               .include = include->data,
                               .clauses = clauses ? clauses->data : NULL,
                               .include_stride = { include->stride[0], include->stride[1] },
                               .clauses_stride = { clauses ? clauses->stride[0] : 0, clauses ? clauses->stride[1] : 0 },
                               .e = call->dim[TM_CLAUSES_DIM_E],
                               .c = call->dim[TM_CLAUSES_DIM_C],
                               .j = call->dim[TM_CLAUSES_DIM_J],
                               .w = call->dim[TM_CLAUSES_DIM_W],
                               .threshold = args->threshold,
                               .empty = args->empty,
                               .words = in_words(literals) && in_words(include) };
    const simt_function function = { 0 };
    return simt_launch(call, &function, simt_blocks(p.e, TM_EXAMPLES) * p.c, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TM_CLAUSES_DIM_E, TM_EXAMPLES);
    trine_kernel_edge(edges, TM_CLAUSES_DIM_J, SIMT_THREADS);
    trine_kernel_edge(edges, TM_CLAUSES_DIM_W, 4);
}

SIMT_KERNELS(tm_clauses) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
