/* SPDX-License-Identifier: Apache-2.0 */
/* matmul by mma.sync where one operand has few lanes: the host side. */
#include "matmul_kernels.h"

#include <math.h>
#include <stdio.h>

/* Which operand has few lanes, warps of a block that share it, and groups of those that take steps of k in turns. */
typedef struct plan {
    int many, size, tokens; /* the function's most, 8 2^size */
    int beside, groups;
    int64_t blocks, right;
    matmul_side weights, few;
    matmul_split split;
    double seconds;
} plan;

enum { FEWEST = 8, MOST_GROUPS = 8, STEP = 128 }; /* STEP: bytes of k */

/* Shared memory of a block: its rings, and later the sums of all groups. */
static int bytes_of(const plan *p, int beside, int groups) {
    const int lanes = beside * MATMUL_MMA_FEW_LANES(p->weights.across),
              ring = groups * MATMUL_MMA_FEW_STAGES * p->tokens * STEP;
    const int rows = p->many == MATMUL_B ? p->tokens : lanes, columns = p->many == MATMUL_B ? lanes : p->tokens,
              sums = groups * rows * (columns + 4) * 4;
    return ring > sums ? ring : sums;
}

/* As measured on an H200: 3.9 TB/s of weights come from memory, a fifth of that time longer where no more than half of
 * the SMs have blocks; 6.5 TB/s from L2, of weights and of the tokens that each block reads again; and SMs multiply so
 * many bytes of weights in a second. A launch takes 4.5 us, each more round of blocks 1, and the addition of parts 2.5
 * besides its bytes. */
static double seconds_of(const trine_call *call, const plan *p, const matmul_split *s, int64_t blocks, int64_t lanes) {
    static const double rates[] = { 5.9e12, 5.9e12, 3.7e12 }; /* by 8 tokens, 16, ... */
    const double units = simt_units(call), waves = ceil((double)blocks / units),
                 busy = (double)blocks / (waves * units);
    const double size = (double)trine_dtype_size(call->tensor[MATMUL_A].dtype), deep = (double)s->depth * size;
    const double weights = (double)(call->dim[MATMUL_DIM_G] * p->weights.lanes * call->dim[MATMUL_DIM_K]) * size,
                 read = (double)blocks * (double)(lanes + p->few.lanes) * deep;
    const double memory = weights / 3.9e12 * (0.8 + 0.2 / busy),
                 products = weights / (rates[p->size] * units / 132 * busy);
    const double packing =
        (double)(p->weights.packed + p->few.packed) * 4e-6 + (double)(p->weights.bytes + p->few.bytes) * 3 / 3.9e12;
    return 4.5e-6 + packing + fmax(fmax(memory, read / 6.5e12), products) + (waves - 1) * 1e-6 +
           (s->parts > 1 ? 2.5e-6 + 2.0 * (double)s->bytes / 4e12 : 0);
}

/* The plan that is predicted to take the least time. */
static plan plan_of(const trine_call *call) {
    const cuda_device *d = call->device;
    plan best = { .many = matmul_many_of(call), .tokens = FEWEST, .seconds = INFINITY };
    best.weights = matmul_side_of(call, best.many, true),
    best.few = matmul_side_of(call, matmul_other(best.many), false);
    while (best.tokens < best.few.lanes) best.tokens *= 2, best.size++;
    const int most = MATMUL_MMA_FEW_WARPS(best.weights.across);
    const int64_t wide = MATMUL_MMA_FEW_LANES(best.weights.across),
                  steps = call->dim[MATMUL_DIM_K] * (int64_t)trine_dtype_size(call->tensor[MATMUL_A].dtype) / STEP;
    for (int beside = 1; beside <= most; beside++) {
        int groups = most / beside < MOST_GROUPS ? most / beside : MOST_GROUPS;
        while (groups > 1 && bytes_of(&best, beside, groups) > d->shared) groups--;
        const int64_t right = simt_blocks(best.weights.lanes, beside * wide), tiles = call->dim[MATMUL_DIM_G] * right;
        if (bytes_of(&best, beside, groups) > d->shared) continue;
        for (int64_t parts = 1; parts == 1 || (parts * tiles <= simt_units(call) && parts * groups * 2 <= steps);
             parts++) {
            matmul_split s = matmul_split_into(call, parts);
            const double seconds = seconds_of(call, &best, &s, s.parts * tiles, beside * wide);
            if (seconds >= best.seconds) continue;
            best.beside = beside, best.groups = groups, best.split = s, best.seconds = seconds, best.right = right,
            best.blocks = s.parts * tiles;
        }
    }
    return best;
}

/* The most that a plan with these tokens may want: a function has the same at every launch. */
static int shared_of(const trine_call *call, const plan *p) {
    const int most = ((const cuda_device *)call->device)->shared;
    int bytes = 0;
    for (int beside = 1; beside <= MATMUL_MMA_FEW_WARPS(p->weights.across); beside++)
        for (int groups = 1; groups <= MOST_GROUPS && beside * groups <= MATMUL_MMA_FEW_WARPS(p->weights.across);
             groups++) {
            const int wanted = bytes_of(p, beside, groups);
            if (wanted <= most && wanted > bytes) bytes = wanted;
        }
    return bytes;
}

const char *matmul_mma_few_refuse(const trine_call *call) {
    const int64_t m = call->dim[MATMUL_DIM_M], n = call->dim[MATMUL_DIM_N];
    const char *const why = matmul_refuse_cores(call);
    if (why != NULL) return why;
    if (simt_float8(call->tensor[MATMUL_A].dtype)) return "float8 is widened first";
    if ((m < n ? m : n) > MATMUL_MMA_FEW_MOST) return "neither m nor n is at most 32";
    return call->dim[MATMUL_DIM_K] > INT32_MAX / 2 ? "k exceeds what is counted in 32 bits" : NULL;
}

size_t matmul_mma_few_workspace(const trine_call *call) {
    const plan p = plan_of(call);
    return (size_t)(p.weights.bytes + p.few.bytes + p.split.bytes);
}

double matmul_mma_few_seconds(const trine_call *call) { return plan_of(call).seconds; }

trine_status matmul_mma_few_launch(const trine_call *call) {
    const plan p = plan_of(call);
    char *const packed = call->workspace, *const sums = packed + p.weights.bytes + p.few.bytes;
    matmul_mma_few_params params = { .many = matmul_operand_of(call, p.many),
                                     .few = matmul_operand_of(call, p.few.tensor),
                                     .to = matmul_target_of_parts(call, &p.split, sums),
                                     .m = call->dim[MATMUL_DIM_M],
                                     .n = call->dim[MATMUL_DIM_N],
                                     .k = call->dim[MATMUL_DIM_K],
                                     .lanes = p.weights.lanes,
                                     .count = p.few.lanes,
                                     .right = p.right,
                                     .batches = call->dim[MATMUL_DIM_G],
                                     .depth = p.split.depth,
                                     .beside = p.beside,
                                     .groups = p.groups,
                                     .swapped = p.many == MATMUL_B };
    matmul_use_side(&params.many, &p.weights, packed);
    matmul_use_side(&params.few, &p.few, packed + p.weights.bytes);
    if (params.k == 1) params.many.along = 0; /* whatever it was: addresses that are not read stay aligned */
    params.whole = params.many.wide;
    cuda_launch launch = {
        .blocks = p.blocks, .threads = p.beside * p.groups * 32, .shared = shared_of(call, &p), .params = &params
    };
    snprintf(launch.name, sizeof launch.name, "matmul_mma_few_%s_%d%c", trine_dtype_name(call->tensor[MATMUL_A].dtype),
             p.tokens, p.weights.across ? 'l' : 'k');
    trine_status status = matmul_side_launch(call, &p.weights, packed);
    if (status == TRINE_OK) status = matmul_side_launch(call, &p.few, packed + p.weights.bytes);
    if (status == TRINE_OK) status = cuda_launch_function(call, &launch);
    return status == TRINE_OK ? matmul_add_launch(call, &p.split, sums) : status;
}

void matmul_mma_few_edges(const trine_call *call, trine_kernel_edges *edges) {
    for (int tokens = FEWEST; tokens <= MATMUL_MMA_FEW_MOST; tokens *= 2) matmul_lane_edge(edges, tokens);
    for (int across = 0; across < 2; across++) {
        matmul_lane_edge(edges, MATMUL_MMA_FEW_LANES(across));
        matmul_lane_edge(edges, MATMUL_MMA_FEW_LANES(across) * MATMUL_MMA_FEW_WARPS(across));
    }
    matmul_depth_edges(call, edges, STEP, MATMUL_MMA_FEW_STAGES);
    trine_kernel_edge(edges, MATMUL_DIM_K, 2 * MATMUL_LEAST_DEPTH);
}
