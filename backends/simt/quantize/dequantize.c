/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize on devices: the host side. */
#include "codes_host.h"
#include "dequantize.h"
#include "spec/places/dequantize.h"

static trine_status launch(const trine_call *call) {
    const trine_dequantize_args *args = call->args;
    const codes_places at = { DEQUANTIZE_Y,
                              DEQUANTIZE_CODES,
                              DEQUANTIZE_SCALES,
                              DEQUANTIZE_ZEROS,
                              DEQUANTIZE_MINS,
                              call->dim[DEQUANTIZE_DIM_R],
                              call->dim[DEQUANTIZE_DIM_K],
                              call->dim[DEQUANTIZE_DIM_GROUPS],
                              call->dim[DEQUANTIZE_DIM_BYTES] };
    const simt_codes codes = codes_params(call, &at, args->offset, args->format);
    const int64_t units = simt_blocks(codes.n, CODES_UNIT);
    if (units == 0) return TRINE_OK;
    const dequantize_params p = { codes, codes.items * units, simt_divisor_of(units) };
    const simt_function function = { .type = { call->type[DEQUANTIZE_TYPE_T] } };
    return simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

/* A unit of codes. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, DEQUANTIZE_DIM_K, CODES_UNIT);
}

SIMT_KERNELS(dequantize) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
