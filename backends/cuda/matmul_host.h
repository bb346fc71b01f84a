/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product as the host sides of its kernels see it. */
#ifndef TRINE_CUDA_MATMUL_HOST_H
#define TRINE_CUDA_MATMUL_HOST_H

#include "backends/simt/widen_host.h"
#include "matmul.h"
#include "state.h"

/* Places in the table of the specification. */
enum { MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_BIAS, MATMUL_D, MATMUL_A_SCALE, MATMUL_B_SCALE };
enum { MATMUL_GA, MATMUL_M, MATMUL_K, MATMUL_GB, MATMUL_N, MATMUL_G };

/* Why no kernel here can run the call; NULL if one can. */
const char *matmul_refuse(const trine_call *call);
/* The same of the tensor cores'. */
const char *matmul_refuse_cores(const trine_call *call);

/* Strides in bytes as tensor maps take them (cuTensorMapEncodeTiled). */
static inline bool matmul_copyable_stride(int64_t bytes) { return bytes > 0 && bytes % 16 == 0 && bytes < INT64_C(1) << 40; }

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

/* Blocks that come before the launch ahead has ended save 1 to 2 us, but cost bf16 2 % where, one to a processor, they fill more than half of the device and not all. */
static inline bool matmul_better_alone(int64_t units, int64_t blocks) { return blocks > units / 2 && blocks <= units - units / 16; }

/* The operand as it goes on once it is packed, if it is; else as it lies, `wide` for copies of 16 bytes. */
void matmul_use_side(matmul_operand *operand, const matmul_side *side, const void *packed);

/* How k is shared by blocks; the sums of all parts are in the workspace, rows of whole vectors. Follows from sizes and the device's processors alone. */
typedef struct matmul_split {
    int64_t parts, depth, units, bytes; /* units of 4 columns in a row of sums */
    double seconds;
} matmul_split;

matmul_split matmul_split_into(const trine_call *call, int64_t parts);
/* Where sums of parts go instead of d, and what adds them up. */
matmul_target matmul_target_of_parts(const trine_call *call, const matmul_split *s, void *sums);
trine_status matmul_add_launch(const trine_call *call, const matmul_split *s, const void *sums);

/* Products with few tokens by mma.sync. */
const char *matmul_mma_few_refuse(const trine_call *call);
size_t matmul_mma_few_workspace(const trine_call *call);
double matmul_mma_few_seconds(const trine_call *call);
trine_status matmul_mma_few_launch(const trine_call *call);

/* Launches what packs an operand, if it is to be packed: consecutive elements of k, `pitch` elements from lane to lane. */
trine_status matmul_side_launch(const trine_call *call, const matmul_side *side, void *to);

#endif
