/* SPDX-License-Identifier: Apache-2.0 */
/* matmul of 16-bit elements with few rows or columns, by tensor cores: the host side. */
#include "matmul_few.h"

#include <stdio.h>

#include "matmul_kernels.h"

/* Which operand has few lanes, which may be packed; the most that its kernel takes;
 * lanes of the other, those of a block, and blocks. */
typedef struct few {
    int many, most;
    matmul_side few;
    int64_t lanes, own, right, blocks;
} few;

enum { FEWEST = 8, OWN = 16 }; /* lanes that are fewer; a block has a multiple of so many of the others */

static few few_of(const trine_call *call) {
    const int many = matmul_many_of(call);
    few f = { .many = many, .few = matmul_side_of(call, matmul_other(many), false) };
    f.most = f.few.lanes <= FEWEST ? FEWEST : MATMUL_FEW;
    f.lanes = call->tensor[many].shape[matmul_lane_of(many)];
    const int64_t groups = simt_blocks(f.lanes, OWN), batches = call->dim[MATMUL_DIM_G],
                  each = simt_blocks(groups * batches, simt_units(call));
    f.own = OWN * (each < 1 ? 1 : each < groups ? each : groups);
    f.right = simt_blocks(f.lanes, f.own);
    f.blocks = f.right * batches;
    return f;
}

/* A block's rings and sums. */
static int bytes_of(int most, int slots) {
    return MATMUL_FEW_WARPS * (slots * MATMUL_FEW_SLOT(most) + most * MATMUL_FEW_PITCH * 4);
}

const char *matmul_few_refuse(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    if (type != TRINE_F16 && type != TRINE_BF16) return "only products of f16 and bf16";
    if (call->dim[MATMUL_DIM_M] > MATMUL_FEW && call->dim[MATMUL_DIM_N] > MATMUL_FEW)
        return "neither m nor n is at most 16";
    if (call->dim[MATMUL_DIM_K] % 8 != 0 || call->dim[MATMUL_DIM_K] == 0) return "k is not a multiple of 8, or 0";
    if (call->dim[MATMUL_DIM_K] > INT32_MAX / 2 || call->dim[MATMUL_DIM_M] > INT32_MAX / 2 ||
        call->dim[MATMUL_DIM_N] > INT32_MAX / 2)
        return "a dimension exceeds 2^30";
    const matmul_side many = matmul_side_of(call, matmul_many_of(call), false);
    if (many.packed)
        return "elements of k of the operand with many lanes are not consecutive, or its lanes not aligned";
    return bytes_of(few_of(call).most, 3) > ((const cuda_device *)call->device)->shared
               ? "a block cannot have as much shared memory"
               : NULL;
}

size_t matmul_few_workspace(const trine_call *call) { return (size_t)few_of(call).few.bytes; }

/* An SM reads 34 GB/s when all do. */
double matmul_few_seconds(const trine_call *call) {
    const few f = few_of(call);
    return 5e-6 +
           (double)simt_blocks(f.blocks, simt_units(call)) * (double)(f.own * call->dim[MATMUL_DIM_K] * 2) / 34e9;
}

trine_status matmul_few_launch(const trine_call *call) {
    const few f = few_of(call);
    matmul_few_params p = { .many = matmul_operand_of(call, f.many),
                            .few = matmul_operand_of(call, f.few.tensor),
                            .to = matmul_target_of(call),
                            .m = call->dim[MATMUL_DIM_M],
                            .n = call->dim[MATMUL_DIM_N],
                            .k = call->dim[MATMUL_DIM_K],
                            .lanes = f.lanes,
                            .count = f.few.lanes,
                            .right = f.right,
                            .own = f.own,
                            .slots = bytes_of(f.most, 4) > ((const cuda_device *)call->device)->shared ? 3 : 4,
                            .swapped = f.many == MATMUL_B };
    matmul_use_side(&p.few, &f.few, call->workspace);
    if (p.count == 1) p.few.lane = 0; /* the stride of one lane means nothing, and may be no multiple of 16 bytes */
    if (p.lanes == 1) p.many.lane = 0;
    p.plain = p.to.plain && p.to.wide && p.n % 4 == 0 && p.to.rows.data == NULL && p.to.columns.data == NULL;
    const bool whole = (uintptr_t)p.many.data % 16 == 0 && p.few.wide;
    cuda_launch launch = {
        .blocks = f.blocks, .threads = MATMUL_FEW_THREADS, .shared = bytes_of(f.most, p.slots), .params = &p
    };
    snprintf(launch.name, sizeof launch.name, "matmul_few_%s_%d%s", trine_dtype_name(call->tensor[MATMUL_A].dtype),
             f.most, whole ? "" : "_odd");
    const trine_status status = matmul_side_launch(call, &f.few, call->workspace);
    return status == TRINE_OK ? cuda_launch_function(call, &launch) : status;
}

void matmul_few_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t units = simt_units(call);
    matmul_lane_edge(edges, 1);
    matmul_lane_edge(edges, FEWEST);
    matmul_lane_edge(edges, MATMUL_FEW);
    matmul_lane_edge(edges, MATMUL_FEW_LANES);
    matmul_lane_edge(edges, OWN * units);
    trine_kernel_edge(edges, MATMUL_DIM_K, MATMUL_FEW_CHUNK);
    trine_kernel_edge(edges, MATMUL_DIM_K, MATMUL_FEW_CHUNK * MATMUL_FEW_WARPS);
}
