/* SPDX-License-Identifier: Apache-2.0 */
/* quantize on devices: the host side. */
#include "quantize.h"
#include "codes_host.h"
#include "spec/places/quantize.h"

/* Threads of a group of n: 4, 16 or all of a block. */
enum { SMALL = 64, MIDDLE = 512 };
static int team_of(int64_t n) { return n <= SMALL ? 4 : n <= MIDDLE ? 16 : SIMT_THREADS; }

static trine_status launch(const trine_call *call) {
    const trine_quantize_args *args = call->args;
    const codes_places at = { QUANTIZE_X,
                              QUANTIZE_CODES,
                              QUANTIZE_SCALES,
                              QUANTIZE_ZEROS,
                              -1,
                              call->dim[QUANTIZE_DIM_R],
                              call->dim[QUANTIZE_DIM_K],
                              call->dim[QUANTIZE_DIM_GROUPS],
                              call->dim[QUANTIZE_DIM_BYTES] };
    quantize_params p = { .codes = codes_params(call, &at, args->offset, args->format),
                          .k = at.k,
                          .powers = args->powers,
                          .ties = args->stochastic ? TRINE_TIES_EVEN : args->ties,
                          .deviations = args->deviations,
                          .upward = args->upward,
                          .chances = simt_dropout_of(0, args->seed, args->stream),
                          .philox = simt_present(call, QUANTIZE_PHILOX) ? call->tensor[QUANTIZE_PHILOX].data : NULL };
    const int half = p.codes.sign ? 1 << (p.codes.bits - 1) : 0;
    p.low = p.codes.e2m1 ? -6 : (float)-half;
    p.high = p.codes.e2m1 ? 6 : (float)((1 << p.codes.bits) - 1 - half);
    if (p.codes.float8) {
        p.high = p.codes.float8 == CODES_E4M3 ? 448 : 57344;
        p.low = -p.high;
    }
    const int team = team_of(p.codes.n);
    const simt_function function = { .step = args->stochastic || args->ties != TRINE_TIES_EVEN ? "chance" : NULL,
                                     .type = { call->type[QUANTIZE_TYPE_T] },
                                     .variant = team };
    return simt_launch(call, &function, simt_blocks(p.codes.items, SIMT_THREADS / team), SIMT_THREADS, &p, sizeof p);
}

/* A unit of codes, and what a team has, of one group. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, QUANTIZE_DIM_K, CODES_UNIT);
    trine_kernel_edge(edges, QUANTIZE_DIM_K, SMALL);
    trine_kernel_edge(edges, QUANTIZE_DIM_K, MIDDLE);
    trine_kernel_edge(edges, QUANTIZE_DIM_K, SIMT_THREADS * CODES_UNIT);
}

SIMT_KERNELS(quantize) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
