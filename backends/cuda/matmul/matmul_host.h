/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product as the host sides of its kernels see it. */
#ifndef TRINE_CUDA_MATMUL_HOST_H
#define TRINE_CUDA_MATMUL_HOST_H

#include "backends/simt/matmul/widen_host.h"
#include "matmul.h"
#include "backends/cuda/driver/state.h"
#include "spec/places/matmul.h"

/* The dimension of an operand's lanes; 3 less that is k's. */
static inline int matmul_lane_of(int tensor) { return tensor == MATMUL_A ? 1 : 2; }

/* The operand with more lanes, and the other. */
static inline int matmul_many_of(const trine_call *call) {
    return call->dim[MATMUL_DIM_M] < call->dim[MATMUL_DIM_N] ? MATMUL_B : MATMUL_A;
}
static inline int matmul_other(int tensor) { return tensor == MATMUL_A ? MATMUL_B : MATMUL_A; }

/* Why no kernel here can run the call; NULL if one can. */
const char *matmul_refuse(const trine_call *call);
/* The same of the tensor cores'. */
const char *matmul_refuse_cores(const trine_call *call);

/* An operand as copies of 16 bytes and more need it: as it lies, or packed, which takes `bytes` of workspace. */
typedef struct matmul_side {
    int tensor;
    int64_t lanes;
    bool across, packed;
    int64_t pitch, bytes; /* packed */
} matmul_side;

/* `across`: the kernel takes 16-bit types with consecutive lanes too. */
matmul_side matmul_side_of(const trine_call *call, int tensor, bool across);

matmul_operand matmul_operand_of(const trine_call *call, int tensor);
matmul_target matmul_target_of(const trine_call *call);

/* The operand as it goes on once it is packed, if it is; else as it lies, `wide` for copies of 16 bytes. */
void matmul_use_side(matmul_operand *operand, const matmul_side *side, const void *packed);

/* Launches what packs an operand, if it is to be packed: consecutive elements of k, `pitch` elements from lane to
 * lane. */
trine_status matmul_side_launch(const trine_call *call, const matmul_side *side, void *to);

/* An edge of both m and n: of lanes, whichever operand they are of. */
static inline void matmul_lane_edge(trine_kernel_edges *edges, int64_t lanes) {
    trine_kernel_edge(edges, MATMUL_DIM_M, lanes);
    trine_kernel_edge(edges, MATMUL_DIM_N, lanes);
}
/* And of k: so many bytes of it, once, and for the stages of a ring. */
static inline void matmul_depth_edges(const trine_call *call, trine_kernel_edges *edges, int bytes, int stages) {
    const int64_t depth = bytes / (int64_t)trine_dtype_size(call->tensor[MATMUL_A].dtype);
    trine_kernel_edge(edges, MATMUL_DIM_K, depth);
    trine_kernel_edge(edges, MATMUL_DIM_K, depth * stages);
}

/* How k is shared by blocks; the sums of all parts are in the workspace, rows of whole vectors. Follows from sizes and
 * the device's SMs alone. */
enum { MATMUL_LEAST_DEPTH = 64 }; /* of parts but the last, a multiple of it */
typedef struct matmul_split {
    int64_t parts, depth, units, bytes; /* units of 4 columns in a row of sums */
} matmul_split;

matmul_split matmul_split_into(const trine_call *call, int64_t parts);
/* Where sums of parts go instead of d, and what adds them up. */
matmul_target matmul_target_of_parts(const trine_call *call, const matmul_split *s, void *sums);
trine_status matmul_add_launch(const trine_call *call, const matmul_split *s, const void *sums);

/* Blocks that come before the previous launch has ended save 1 to 2 us, but cost bf16 2 % where, one to an SM, they
 * fill more than half of the device and not all. */
static inline bool matmul_better_alone(int64_t units, int64_t blocks) {
    return blocks > units / 2 && blocks <= units - units / 16;
}

#endif
