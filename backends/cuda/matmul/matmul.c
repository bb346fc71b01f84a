/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: what no kernel takes, and the kernels in the order in which they are preferred. */
#include "backends/simt/matmul/matmul_same_host.h"
#include "matmul_kernels.h"

#include <math.h>

#include <trine/ops.h>

static bool is_integer(float factor) { return fabsf(factor) <= 0x1p24f && factor == rintf(factor); }

const char *matmul_refuse(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    if (call->tensor[MATMUL_A].dtype != TRINE_I8) return NULL;
    if (simt_present(call, MATMUL_A_SCALE) || simt_present(call, MATMUL_B_SCALE)) return "i8 products take no scales";
    if (!is_integer(args->alpha) || !is_integer(args->beta))
        return "i8 products take integers up to 2^24 for alpha and beta";
    return args->activation > TRINE_ACTIVATION_RELU ? "i8 products take no activation but relu" : NULL;
}

const char *matmul_refuse_cores(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    const bool cut = ((const trine_matmul_args *)call->args)->precision == TRINE_PRECISION_TF32;
    if (type == TRINE_F64 || (type == TRINE_F32 && !cut))
        return "tensor cores have no products of this type that the error bound allows";
    return matmul_refuse(call);
}

/* The kernel for sm_90a that its model of time prefers comes first; then each of its tiles, for tuning and for
 * TRINE_KERNEL; then what runs everywhere. */
#define FAMILY(text, family, which) \
    { SIMT_NAME text,       matmul_family_refuse,  matmul_family_workspace, \
      matmul_family_launch, matmul_family_seconds, &(const matmul_family_tile){ &matmul_##family##_family, which }, \
      matmul_family_edges },
#define F32(ROWS, COLUMNS, ...) FAMILY("_f32_" #ROWS "x" #COLUMNS, f32, MATMUL_F32_##ROWS##x##COLUMNS)
#define F64(ROWS, COLUMNS, ...) FAMILY("_f64_" #ROWS "x" #COLUMNS, f64, MATMUL_F64_##ROWS##x##COLUMNS)
#define SM90(text, which) \
    { SIMT_NAME text,      matmul_sm90_refuse,    matmul_sm90_workspace, matmul_sm90_launch, \
      matmul_sm90_seconds, &(const int){ which }, matmul_sm90_edges },
#define PAIRS(COLUMNS) SM90("_sm90_pairs_" #COLUMNS, MATMUL_SM90_PAIRS_##COLUMNS)
#define SPLIT(COLUMNS) SM90("_sm90_split_" #COLUMNS, MATMUL_SM90_SPLIT_##COLUMNS)

/* clang-format off */
SIMT_KERNELS(matmul) = {
    { SIMT_NAME "_few", matmul_few_refuse, matmul_few_workspace, matmul_few_launch, matmul_few_seconds,
      .edges = matmul_few_edges },
    SM90("_sm90", MATMUL_SM90_BEST)
    MATMUL_SM90_PAIRS(PAIRS)
    MATMUL_SM90_SPLITS(SPLIT)
    FAMILY("_f64", f64, MATMUL_F64_BEST)
    { SIMT_NAME "_skinny", matmul_skinny_refuse, matmul_skinny_workspace, matmul_skinny_launch,
      .edges = matmul_skinny_edges },
    MATMUL_F64_TILES(F64)
    { SIMT_NAME "_mma_few", matmul_mma_few_refuse, matmul_mma_few_workspace, matmul_mma_few_launch,
      matmul_mma_few_seconds, .edges = matmul_mma_few_edges },
    FAMILY("_mma", mma, MATMUL_MMA_BEST)
    FAMILY("_f32", f32, MATMUL_F32_BEST)
    MATMUL_F32_TILES(F32)
    FAMILY("", simt, MATMUL_SIMT_BEST)
    MATMUL_SAME_KERNEL,
    { 0 },
};
/* clang-format on */
