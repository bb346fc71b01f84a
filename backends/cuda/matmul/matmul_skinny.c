/* SPDX-License-Identifier: Apache-2.0 */
/* matmul of f32 and f64 where one operand has few lanes: the host side. */
#include "matmul_kernels.h"

#include <stdio.h>

/* The operand with many lanes, how many, and whether they are consecutive; the other, which may be packed; blocks that
 * fill an SM, and those that share the lanes. */
typedef struct plan {
    int many, held;
    matmul_side few;
    int64_t lanes, right;
    bool across;
    matmul_split split;
} plan;

enum { PART = 1024 }; /* elements of k in a part, at least */

/* Blocks of half the threads, where there are more than SMs. */
static plan plan_of(const trine_call *call) {
    plan p = { .many = matmul_many_of(call) };
    const trine_tensor *t = &call->tensor[p.many];
    const int lane = matmul_lane_of(p.many);
    p.few = matmul_side_of(call, matmul_other(p.many), false), p.lanes = t->shape[lane],
    p.across = t->stride[3 - lane] != 1;
    const int64_t block = p.across ? MATMUL_SKINNY_LINE / (int64_t)trine_dtype_size(t->dtype) : MATMUL_SKINNY_LANES;
    p.held = call->dim[MATMUL_DIM_G] * simt_blocks(p.lanes, block) > simt_units(call) ? MATMUL_SKINNY_HELD : 1;
    p.right = simt_blocks(p.lanes, p.across ? block : block / p.held);
    const int64_t blocks = call->dim[MATMUL_DIM_G] * p.right, most = call->dim[MATMUL_DIM_K] / PART,
                  parts = blocks > 0 ? simt_units(call) / blocks : 1;
    p.split = matmul_split_into(call, parts < most ? parts : most);
    return p;
}

const char *matmul_skinny_refuse(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    if (type != TRINE_F32 && type != TRINE_F64) return "only products of f32 and f64";
    return call->dim[MATMUL_DIM_M] > MATMUL_SKINNY_FEW && call->dim[MATMUL_DIM_N] > MATMUL_SKINNY_FEW
               ? "neither m nor n is at most 8"
               : NULL;
}

size_t matmul_skinny_workspace(const trine_call *call) {
    const plan p = plan_of(call);
    return (size_t)(p.few.bytes + p.split.bytes);
}

trine_status matmul_skinny_launch(const trine_call *call) {
    const plan plan = plan_of(call);
    char *const packed = call->workspace, *const sums = packed + plan.few.bytes;
    matmul_skinny_params p = { .many = matmul_operand_of(call, plan.many),
                               .few = matmul_operand_of(call, plan.few.tensor),
                               .to = matmul_target_of_parts(call, &plan.split, sums),
                               .m = call->dim[MATMUL_DIM_M],
                               .n = call->dim[MATMUL_DIM_N],
                               .k = call->dim[MATMUL_DIM_K],
                               .lanes = plan.lanes,
                               .count = plan.few.lanes,
                               .right = plan.right,
                               .batches = call->dim[MATMUL_DIM_G],
                               .depth = plan.split.depth,
                               .swapped = plan.many == MATMUL_B };
    matmul_use_side(&p.few, &plan.few, packed);
    p.whole = p.many.wide && p.few.wide;
    int few = 1;
    while (few < p.count) few *= 2;
    cuda_launch launch = { .blocks = plan.split.parts * p.batches * p.right,
                           .threads = MATMUL_SKINNY_THREADS(few, plan.across, plan.held),
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_skinny_%s_%d%c_%d",
             trine_dtype_name(call->tensor[MATMUL_A].dtype), few, plan.across ? 'l' : 'k', plan.held);
    trine_status status = matmul_side_launch(call, &plan.few, packed);
    if (status == TRINE_OK) status = cuda_launch_function(call, &launch);
    return status == TRINE_OK ? matmul_add_launch(call, &plan.split, sums) : status;
}

void matmul_skinny_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t units = simt_units(call);
    const int line = MATMUL_SKINNY_LINE / (int)trine_dtype_size(call->tensor[MATMUL_A].dtype);
    for (int few = 1; few <= MATMUL_SKINNY_FEW; few *= 2) matmul_lane_edge(edges, few);
    matmul_lane_edge(edges, MATMUL_SKINNY_LANES);
    matmul_lane_edge(edges, line);
    matmul_lane_edge(edges, MATMUL_SKINNY_LANES * units);
    matmul_depth_edges(call, edges, 16, 32); /* a thread's vector, and a warp's */
    trine_kernel_edge(edges, MATMUL_DIM_K, 2 * PART);
}
