/* SPDX-License-Identifier: Apache-2.0 */
/* tm_clauses on the CPU: a task has some examples and a class; each of its clauses is read once for all of them. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "backends/cpu/tsetlin/bits.h"
#include "spec/places/tm_clauses.h"

enum { EXAMPLES = 16 /* of a task */ };

typedef struct clauses {
    const trine_tensor *literals, *include, *weights, *votes, *yes; /* weights, yes: NULL if absent */
    int64_t e, c, j, w;
    int32_t threshold;
    bool empty;
} clauses;

static void task(const clauses *a, int64_t first, int64_t class) {
    const int count = (int)(first + EXAMPLES < a->e ? EXAMPLES : a->e - first);
    const uint8_t *literals[EXAMPLES];
    uint32_t votes[EXAMPLES] = { 0 };
    for (int i = 0; i < count; i++)
        literals[i] = (const uint8_t *)a->literals->data + (first + i) * a->literals->stride[0];
    for (int64_t q = 0; q < a->j; q++) {
        const uint8_t *include =
            (const uint8_t *)a->include->data + class * a->include->stride[0] + q * a->include->stride[1];
        const bool filled = bits_any(include, a->w);
        const int32_t weight = a->weights ? ((const int32_t *)a->weights->data)[class * a->weights->stride[0] + q]
                                          : 1 - (int32_t)(q % 2) * 2;
        for (int i = 0; i < count; i++) {
            const bool yes = filled ? bits_within(include, literals[i], a->w) : a->empty;
            votes[i] += yes ? (uint32_t)weight : 0;
            if (a->yes)
                ((uint8_t *)a->yes->data)[(first + i) * a->yes->stride[0] + class * a->yes->stride[1] + q] = yes;
        }
    }
    for (int i = 0; i < count; i++)
        ((int32_t *)a->votes->data)[(first + i) * a->votes->stride[0] + class] =
            vote_within((int32_t)votes[i], a->threshold);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const clauses *a = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) task(a, i / a->c * EXAMPLES, i % a->c);
}

static trine_status launch(const trine_call *call) {
    const trine_tm_clauses_args *args = call->args;
    const clauses a = { .literals = &call->tensor[TM_CLAUSES_LITERALS],
                        .include = &call->tensor[TM_CLAUSES_INCLUDE],
                        .weights = trine_call_given(call, TM_CLAUSES_WEIGHTS),
                        .votes = &call->tensor[TM_CLAUSES_VOTES],
                        .yes = trine_call_given(call, TM_CLAUSES_CLAUSES),
                        .e = call->dim[TM_CLAUSES_DIM_E],
                        .c = call->dim[TM_CLAUSES_DIM_C],
                        .j = call->dim[TM_CLAUSES_DIM_J],
                        .w = call->dim[TM_CLAUSES_DIM_W],
                        .threshold = args->threshold,
                        .empty = args->empty };
    const int64_t count = (a.e + EXAMPLES - 1) / EXAMPLES * a.c;
    cpu_tasks(call, cpu_team(call, count, a.e * a.c * a.j * (a.w / 4 + 4)), count, tasks, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, TM_CLAUSES_DIM_E, EXAMPLES);
    trine_kernel_edge(edges, TM_CLAUSES_DIM_W, BITS_STEP);
    cpu_team_edge(edges, TM_CLAUSES_DIM_E,
                  call->dim[TM_CLAUSES_DIM_C] * call->dim[TM_CLAUSES_DIM_J] * (call->dim[TM_CLAUSES_DIM_W] / 4 + 4));
}

CPU_KERNELS(tm_clauses) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
