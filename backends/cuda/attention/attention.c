/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CUDA devices: the host side. */
#include "backends/simt/attention/attention_same_host.h"
#include "attention_sm90.h"
#include "attention_sm90_host.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include <trine/ops.h>

attention_problem attention_problem_of(const trine_call *call, attention_asked asked) {
    const int64_t *dim = call->dim, all = dim[ATTENTION_DIM_SQ] + dim[ATTENTION_DIM_SK];
    attention_problem p = { .cu_q = attention_given(call, asked.cu_q),
                            .cu_k = attention_given(call, asked.cu_k),
                            .used_q = attention_given(call, asked.used_q),
                            .used_k = attention_given(call, asked.used_k),
                            .b = (int32_t)dim[ATTENTION_DIM_B],
                            .sq = (int32_t)dim[ATTENTION_DIM_SQ],
                            .sk = (int32_t)dim[ATTENTION_DIM_SK],
                            .h = (int32_t)dim[ATTENTION_DIM_H],
                            .group = (int32_t)(dim[ATTENTION_DIM_H] / dim[ATTENTION_DIM_HK]),
                            .d = (int32_t)dim[ATTENTION_DIM_D],
                            .before = asked.before < all ? (int32_t)asked.before : 0,
                            .after = asked.after < all ? (int32_t)asked.after : 0,
                            .causal = asked.causal,
                            .scale = asked.scale != 0 ? asked.scale : (float)(1 / sqrt((double)dim[ATTENTION_DIM_D])),
                            .softcap = asked.softcap,
                            .options = attention_options_of(call, &asked) };
    if (simt_present(call, asked.cu_q)) p.nseq = (int32_t)dim[ATTENTION_DIM_NSEQ];
    p.simple = p.before == 0 && p.after == 0 && !simt_present(call, asked.cu_q) && !simt_present(call, asked.used_q) &&
               !simt_present(call, asked.used_k);
    return p;
}

/* Copies of a tile step beyond the last row, where they ask for no bytes but at aligned addresses. A dimension of 1 has
 * no second row: its stride, which nobody asked to be aligned, becomes 0. */
static int64_t step_of(const trine_tensor *t, int dim) { return t->shape[dim] == 1 ? 0 : t->stride[dim]; }

attention_tensor attention_tokens_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return (attention_tensor){ t->data, step_of(t, 0), step_of(t, 1), step_of(t, 2) };
}

attention_tensor attention_statistic_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return simt_present(call, tensor) ? (attention_tensor){ t->data, t->stride[0], t->stride[2], t->stride[1] }
                                      : (attention_tensor){ 0 };
}

const char *attention_refuse(const trine_call *call) {
    for (int i = 0; i < call->plan->symbols; i++)
        if (call->dim[i] > INT32_MAX / 2) return "a dimension exceeds 2^30";
    return NULL;
}

attention_params attention_params_of(const trine_call *call) {
    const trine_attention_args *args = call->args;
    attention_params p = { .at = attention_problem_of(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION)),
                           .q = attention_tokens_of(call, ATTENTION_Q),
                           .k = attention_tokens_of(call, ATTENTION_K),
                           .v = attention_tokens_of(call, ATTENTION_V),
                           .o = attention_tokens_of(call, ATTENTION_O),
                           .lse = attention_statistic_of(call, ATTENTION_LSE),
                           .wide = simt_aligned(call, ATTENTION_Q) && simt_aligned(call, ATTENTION_K) &&
                                   simt_aligned(call, ATTENTION_V) && simt_aligned(call, ATTENTION_O) };
    const attention_problem *at = &p.at;
    p.unit = at->softcap > 0 ? at->softcap : fabsf(at->scale);
    p.spread = (float)(p.unit * 0x1.71547652b82fep0);
    p.bend = at->softcap > 0 ? at->scale / at->softcap : 0;
    p.bends = at->softcap > 0 || at->scale < 0;
    p.hides = at->causal || !at->simple;
    if (at->options.adds || at->options.drops) p.unit = 1, p.spread = (float)0x1.71547652b82fep0;
    return p;
}

static bool has_options(const attention_problem *at) { return at->options.adds || at->options.drops; }

const char *attention_refuse_options(const attention_problem *at) {
    return has_options(at) ? "there is a bias, or slopes, or dropout" : NULL;
}

static trine_status launch_simt(const trine_call *call) {
    attention_params p = attention_params_of(call);
    const int width = has_options(&p.at) ? ATTENTION_WIDE : attention_width(p.at.d);
    p.tiles = (int32_t)simt_blocks(p.at.sq, ATTENTION_SIDE), p.columns = (int32_t)simt_blocks(p.at.d, width);
    cuda_launch launch = { .blocks = (int64_t)p.tiles * p.columns * p.at.h * p.at.b,
                           .threads = ATTENTION_THREADS,
                           .alone = true,
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "attention_simt_%s%s_%d", has_options(&p.at) ? "options_" : "",
             trine_dtype_name(call->tensor[ATTENTION_Q].dtype), width);
    return cuda_launch_function(call, &launch);
}

void attention_edges_simt(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ATTENTION_DIM_D, ATTENTION_NARROW);
    trine_kernel_edge(edges, ATTENTION_DIM_D, ATTENTION_WIDE);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, ATTENTION_SIDE);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, ATTENTION_SIDE);
}

/* ----------------------------------------------------------------------------------------------------- tensor cores */

const char *attention_refuse_tiles(const trine_call *call, float scale, float softcap) {
    if (trine_dtype_size(call->type[ATTENTION_TYPE_T]) != 2)
        return "tensor cores have no products of this type that the error bound allows";
    if (call->dim[ATTENTION_DIM_D] > 256) return "d exceeds 256";
    if (scale != 0 && fabsf(scale) < 0x1p-100f) return "scale is nearly 0";
    if (softcap > 0 && (softcap < 0x1p-60f || softcap > 0x1p60f)) return "softcap is nearly 0 or huge";
    return attention_refuse(call);
}

#define TILE(D, KEYS, R, STAGES) { D, KEYS, (R) * ATTENTION_SIDE, ATTENTION_MMA_BYTES(D, KEYS, R, STAGES) },
static const struct tile {
    int d, keys, queries, shared;
} tiles[] = { ATTENTION_MMA_TILES(TILE) }, options_tiles[] = { ATTENTION_MMA_OPTIONS_TILES(TILE) };
#undef TILE
enum { TILES = sizeof tiles / sizeof tiles[0] };
static_assert(sizeof options_tiles == sizeof tiles, "as many with options");

static void edges_mma(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    for (int i = 0; i < TILES; i++) {
        trine_kernel_edge(edges, ATTENTION_DIM_D, tiles[i].d);
        trine_kernel_edge(edges, ATTENTION_DIM_SQ, tiles[i].queries);
        trine_kernel_edge(edges, ATTENTION_DIM_SQ, options_tiles[i].queries);
        trine_kernel_edge(edges, ATTENTION_DIM_SK, tiles[i].keys);
        trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * tiles[i].keys);
    }
}

static trine_status launch_mma(const trine_call *call) {
    enum { HELD = 2 }; /* blocks of which an SM is full */
    attention_params p = attention_params_of(call);
    const bool options = has_options(&p.at);
    const struct tile *t = options ? options_tiles : tiles;
    while (t->d < p.at.d) t++;
    p.tiles = (int32_t)simt_blocks(p.at.sq, t->queries);
    p.bunch = (int32_t)simt_blocks(p.at.causal ? INT32_MAX : HELD * simt_units(call), p.tiles);
    cuda_launch launch = { .blocks = (int64_t)p.tiles * p.at.h * p.at.b,
                           .threads = ATTENTION_MMA_THREADS,
                           .shared = t->shared,
                           .alone = true,
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "attention_mma_%s%s_%d",
             options   ? "options_"
             : p.bends ? "bent_"
                       : "",
             trine_dtype_name(call->tensor[ATTENTION_Q].dtype), t->d);
    return cuda_launch_function(call, &launch);
}

static const char *refuse_mma(const trine_call *call) {
    const trine_attention_args *args = call->args;
    return attention_refuse_tiles(call, args->scale, args->softcap);
}

/* --------------------------------------------------------------------------------------------------------- decoding */

/* Rows of tiles: heads of a group, and as many tokens as there is room for; packed ones may see keys of different
 * sequences, and have tiles of their own. */
enum { ROWS = 16 };
static attention_decode_params decode_tiles(const attention_problem *at) {
    attention_decode_params p = { .heads = at->group < 1 ? 1 : at->group < ROWS ? at->group : ROWS, .tokens = 1 };
    if (at->nseq == 0 && at->sq > 1) p.tokens = at->sq < ROWS / p.heads ? at->sq : ROWS / p.heads;
    p.head_tiles = (int32_t)simt_blocks(at->group, p.heads);
    p.row_tiles = (int32_t)simt_blocks(at->sq, p.tokens) * p.head_tiles;
    return p;
}

static attention_problem decode_problem(const trine_call *call) {
    const trine_attention_args *args = call->args;
    return attention_problem_of(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION));
}

static int64_t decode_all(const trine_call *call, const attention_decode_params *p) {
    return call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_HK] * p->row_tiles;
}

/* Into how many parts keys are best split, by a model of time that counts keys of a block. Memory is busy with two
 * blocks on each SM, at 16.2 GB/s for each (H200); one alone has 20.9. Besides its keys a block has ends, and parts
 * that are many a second launch. */
enum { LEAST = 128 }; /* keys of a part */
static int32_t decode_parts(const trine_call *call, const attention_problem *at, int64_t tiles) {
    enum { MOST = 64, ENDS = 64, LAUNCH = 96 };
    const int64_t held = 2 * (int64_t)simt_units(call),
                  sees = at->before > 0 ? (int64_t)at->before + (at->causal ? 0 : at->after) + at->sq : at->sk;
    const int64_t own = at->nseq > 0 ? at->sk / at->nseq : at->sk, keys = own < sees ? own : sees;
    int32_t best = 1;
    int64_t least = INT64_MAX;
    for (int32_t parts = 1; parts <= MOST && (parts == 1 || keys >= (int64_t)parts * LEAST); parts++) {
        const int64_t blocks = tiles * parts, each = simt_blocks(keys, parts) + ENDS, rest = blocks % held,
                      alone = rest > 0 ? each * 3 / 4 : 0;
        const int64_t shared = rest * each / held,
                      time = blocks / held * each + (shared > alone ? shared : alone) + (parts > 1 ? LAUNCH : 0);
        if (time < least) best = parts, least = time;
    }
    return best;
}

static const char *refuse_decode(const trine_call *call) {
    const trine_attention_args *args = call->args;
    const char *const reason = attention_refuse_tiles(call, args->scale, args->softcap);
    if (reason != NULL) return reason;
    if (call->dim[ATTENTION_DIM_D] > ATTENTION_WIDE) return "d exceeds 128";
    const attention_problem at = decode_problem(call);
    if (attention_refuse_options(&at) != NULL) return attention_refuse_options(&at);
    if (at.nseq > 0 ? at.sq > 2 * at.nseq : at.sq > 16) return "queries are many";
    if (at.nseq == 0 && at.sq > 8 && (int64_t)at.b * at.h > simt_units(call) / 2)
        return "there are tiles of queries enough for other kernels";
    const attention_decode_params p = decode_tiles(&at);
    if (at.nseq == 0 && p.row_tiles > 4) return "more than 64 rows share a head of keys";
    return decode_all(call, &p) > INT32_MAX / 64 ? "more tiles than are counted in 32 bits" : NULL;
}

static size_t workspace_decode(const trine_call *call) {
    const attention_problem at = decode_problem(call);
    const attention_decode_params p = decode_tiles(&at);
    const int64_t tiles = decode_all(call, &p), parts = decode_parts(call, &at, tiles);
    return parts == 1 ? 0
                      : (size_t)(tiles * parts * 16 * ATTENTION_DECODE_RECORD(attention_width(at.d))) * sizeof(float);
}

static trine_status launch_decode_step(const trine_call *call, const attention_decode_params *p, const char *step,
                                       int64_t blocks) {
    cuda_launch launch = { .blocks = blocks, .threads = ATTENTION_DECODE_THREADS, .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_decode_%s%s_%d", step,
             trine_dtype_name(call->tensor[ATTENTION_Q].dtype), attention_width(p->call.at.d));
    return cuda_launch_function(call, &launch);
}

static trine_status launch_decode(const trine_call *call) {
    const attention_problem at = decode_problem(call);
    attention_decode_params p = decode_tiles(&at);
    const int64_t tiles = decode_all(call, &p);
    p.call = attention_params_of(call), p.sums = call->workspace, p.parts = decode_parts(call, &at, tiles);
    trine_status status = launch_decode_step(call, &p, "", tiles * p.parts);
    if (status == TRINE_OK && p.parts > 1)
        status = launch_decode_step(call, &p, "end_", tiles * (16 / (ATTENTION_DECODE_THREADS / 32)));
    return status;
}

/* Rows of a tile, of one token and of several, and parts of keys. */
static void edges_decode(const trine_call *call, trine_kernel_edges *edges) {
    static const int keys[] = {
#define TILE(D, KEYS) KEYS,
        ATTENTION_DECODE_TILES(TILE)
#undef TILE
    };
    (void)call;
    trine_kernel_edge(edges, ATTENTION_DIM_D, SIMT_VECTOR);
    trine_kernel_edge(edges, ATTENTION_DIM_D, ATTENTION_NARROW);
    trine_kernel_edge(edges, ATTENTION_DIM_D, ATTENTION_WIDE);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, 1);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, ROWS / 2);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, ROWS);
    trine_kernel_edge(edges, ATTENTION_DIM_H, ROWS);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        trine_kernel_edge(edges, ATTENTION_DIM_SK, keys[i] * (ATTENTION_DECODE_THREADS / 32));
    trine_kernel_edge(edges, ATTENTION_DIM_SK, LEAST);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * LEAST);
}

/* The kernel for sm_90a that its model of time prefers, then each of its tiles, for tuning and for TRINE_KERNEL. */
#define SM90(text, QUERIES, KEYS) \
    { SIMT_NAME "_sm90" text, attention_sm90_refuse,  NULL, \
      attention_sm90_launch,  attention_sm90_seconds, &(const attention_sm90_shape){ QUERIES, KEYS }, \
      attention_sm90_edges },
#define SM90_SHAPE(QUERIES, KEYS) SM90("_" #QUERIES "x" #KEYS, QUERIES, KEYS)

/* clang-format off */
SIMT_KERNELS(attention) = {
    { .name = SIMT_NAME "_decode",
      .refuse = refuse_decode,
      .workspace = workspace_decode,
      .launch = launch_decode,
      .edges = edges_decode },
    SM90("", 0, 0)
    ATTENTION_SM90_SHAPES(SM90_SHAPE)
    { .name = SIMT_NAME "_mma", .refuse = refuse_mma, .launch = launch_mma, .edges = edges_mma },
    { .name = SIMT_NAME, .refuse = attention_refuse, .launch = launch_simt, .edges = attention_edges_simt },
    ATTENTION_SAME_KERNEL,
    { 0 }
};
/* clang-format on */
