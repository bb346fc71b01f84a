/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on CUDA devices: the host side. */
#include "attention_pages_host.h"

#include "backends/cuda/driver/state.h"
#include "backends/simt/attention/attention_decode_launch.h"
#include "backends/simt/core/host.h"

enum { NARROW = 64, WIDE = 128 };

/* Why no kernel of tensor cores takes the call. */
static const char *refuse_tiles(const trine_call *call) {
    const trine_attention_decode_args *args = call->args;
    if (call->type[ATTENTION_DECODE_TYPE_T] == TRINE_F32)
        return "tensor cores have no products of this type that the error bound allows";
    if (args->softcap > 0 && (args->softcap < 0x1p-60f || args->softcap > 0x1p60f))
        return "softcap is nearly 0 or huge";
    if (!attention_decode_whole(call)) return "rows are no whole units of 8 elements, aligned";
    return attention_decode_refuse(call);
}

static const char *refuse_pages(const trine_call *call) {
    if (attention_decode_widest(call) > WIDE) return "more than 128 columns";
    return refuse_tiles(call);
}

static trine_status launch_pages(const trine_call *call) {
    const bool narrow = attention_decode_widest(call) <= NARROW;
    decode_params p = attention_decode_params_of(call);
    p.row_tiles = (int32_t)simt_blocks(p.rows, ATTENTION_PAGES_ROWS);
    const simt_function parts = {
        .step = "pages",
        .type = { call->type[ATTENTION_DECODE_TYPE_T], call->type[ATTENTION_DECODE_TYPE_C] },
        .variant = narrow ? NARROW : WIDE,
        .shared = narrow ? ATTENTION_PAGES_BYTES(NARROW) : ATTENTION_PAGES_BYTES(WIDE),
    };
    const int64_t blocks = call->dim[ATTENTION_DECODE_DIM_B] * p.hk * p.parts * p.row_tiles;
    const trine_status status = simt_launch(call, &parts, blocks, ATTENTION_PAGES_THREADS, &p, sizeof p);
    return status != TRINE_OK ? status : attention_decode_merge(call, &p);
}

static void edges_pages(const trine_call *call, trine_kernel_edges *edges) {
    attention_decode_edges(call, edges);
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ,
                      ATTENTION_PAGES_ROWS / (call->dim[ATTENTION_DECODE_DIM_H] / call->dim[ATTENTION_DECODE_DIM_HK]));
}

/* ----------------------------------------------------------------------------------------------- many rows, or wide */

#define SIDE(D, DV, C, KEYS, STAGES) { D, DV, 128 * (C), ATTENTION_PAGES_SIDE_BYTES(D, DV, C, KEYS, STAGES) },
static const struct side {
    int d, dv, threads, shared;
} sides[] = { ATTENTION_PAGES_SIDES(SIDE) };
#undef SIDE
enum { SIDES = sizeof sides / sizeof sides[0] };

static const struct side *side_of(const trine_call *call) {
    const bool latent = !simt_present(call, ATTENTION_DECODE_V_CACHE);
    for (int i = 0; i < SIDES; i++)
        if (call->dim[ATTENTION_DECODE_DIM_D] <= sides[i].d && call->dim[ATTENTION_DECODE_DIM_DV] <= sides[i].dv &&
            (latent || sides[i].d == sides[i].dv))
            return &sides[i];
    return NULL;
}

static const char *refuse_side(const trine_call *call) {
    const int64_t rows =
        call->dim[ATTENTION_DECODE_DIM_H] / call->dim[ATTENTION_DECODE_DIM_HK] * call->dim[ATTENTION_DECODE_DIM_SQ];
    const struct side *const side = side_of(call);
    if (call->type[ATTENTION_DECODE_TYPE_C] != call->type[ATTENTION_DECODE_TYPE_T]) return "the cache has another type";
    if (side == NULL) return "more than 576 columns, or 256 with values of their own";
    if (side->shared > ((const cuda_device *)call->device)->shared) return "the device's shared memory is too small";
    if (rows <= ATTENTION_PAGES_ROWS && attention_decode_widest(call) <= WIDE) return "rows are few";
    return refuse_tiles(call);
}

static trine_status launch_side(const trine_call *call) {
    const struct side *const side = side_of(call);
    decode_params p = attention_decode_params_of(call);
    p.row_tiles = (int32_t)simt_blocks(p.rows, ATTENTION_PAGES_SIDE);
    const simt_function parts = {
        .step = "side", .type = { call->type[ATTENTION_DECODE_TYPE_T] }, .variant = side->d, .shared = side->shared
    };
    const int64_t blocks = call->dim[ATTENTION_DECODE_DIM_B] * p.hk * p.parts * p.row_tiles;
    const trine_status status = simt_launch(call, &parts, blocks, side->threads, &p, sizeof p);
    return status != TRINE_OK ? status : attention_decode_merge(call, &p);
}

static void edges_side(const trine_call *call, trine_kernel_edges *edges) {
    attention_decode_edges(call, edges);
    for (int i = 0; i < SIDES; i++) {
        trine_kernel_edge(edges, ATTENTION_DECODE_DIM_D, sides[i].d);
        trine_kernel_edge(edges, ATTENTION_DECODE_DIM_DV, sides[i].dv);
    }
    trine_kernel_edge(edges, ATTENTION_DECODE_DIM_SQ,
                      ATTENTION_PAGES_SIDE / (call->dim[ATTENTION_DECODE_DIM_H] / call->dim[ATTENTION_DECODE_DIM_HK]));
}

SIMT_KERNELS(attention_decode) = { { .name = SIMT_NAME "_side",
                                     .refuse = refuse_side,
                                     .workspace = attention_decode_workspace,
                                     .launch = launch_side,
                                     .edges = edges_side },
                                   { .name = SIMT_NAME "_pages",
                                     .refuse = refuse_pages,
                                     .workspace = attention_decode_workspace,
                                     .launch = launch_pages,
                                     .edges = edges_pages },
                                   { .name = SIMT_NAME,
                                     .refuse = attention_decode_refuse,
                                     .workspace = attention_decode_workspace,
                                     .launch = attention_decode_launch,
                                     .edges = attention_decode_launch_edges },
                                   { 0 } };
