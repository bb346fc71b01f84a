/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: what no kernel takes, and the kernels in the order in which they are preferred. */
#include "matmul_kernels.h"

#include <math.h>

#include <trine/ops.h>

static bool is_integer(float factor) { return fabsf(factor) <= 0x1p24f && factor == rintf(factor); }

const char *matmul_refuse(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    if (call->tensor[MATMUL_A].dtype != TRINE_I8) return NULL;
    if (simt_present(call, MATMUL_A_SCALE) || simt_present(call, MATMUL_B_SCALE)) return "i8 products take no scales";
    if (!is_integer(args->alpha) || !is_integer(args->beta)) return "i8 products take integers up to 2^24 for alpha and beta";
    return args->activation > TRINE_ACTIVATION_RELU ? "i8 products take no activation but relu" : NULL;
}

const char *matmul_refuse_cores(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    const bool cut = ((const trine_matmul_args *)call->args)->precision == TRINE_PRECISION_TF32;
    if (type == TRINE_F64 || (type == TRINE_F32 && !cut)) return "tensor cores have no products of this type that the error bound allows";
    return matmul_refuse(call);
}

/* The functions of a kernel that is one of a family's tiles, or the best of them. */
#define FAMILY(name, family, which) \
    static const char *refuse_##name(const trine_call *call) { return matmul_family_refuse(call, &matmul_##family##_family, which); } \
    static size_t workspace_##name(const trine_call *call) { return matmul_family_workspace(call, &matmul_##family##_family, which); } \
    static trine_status launch_##name(const trine_call *call) { return matmul_family_launch(call, &matmul_##family##_family, which); } \
    static double seconds_##name(const trine_call *call) { return matmul_family_seconds(call, &matmul_##family##_family, which); }
#define F32(ROWS, COLUMNS, ...) FAMILY(f32_##ROWS##x##COLUMNS, f32, MATMUL_F32_##ROWS##x##COLUMNS)
#define F64(ROWS, COLUMNS, ...) FAMILY(f64_##ROWS##x##COLUMNS, f64, MATMUL_F64_##ROWS##x##COLUMNS)
FAMILY(simt, simt, MATMUL_SIMT_BEST)
FAMILY(mma_tiles, mma, MATMUL_MMA_BEST)
FAMILY(f32, f32, MATMUL_F32_BEST)
FAMILY(f64, f64, MATMUL_F64_BEST)
MATMUL_F32_TILES(F32)
MATMUL_F64_TILES(F64)

#define SM90(name, which) \
    static size_t workspace_##name(const trine_call *call) { return matmul_sm90_workspace(call, which); } \
    static trine_status launch_##name(const trine_call *call) { return matmul_sm90_launch(call, which); } \
    static double seconds_##name(const trine_call *call) { return matmul_sm90_seconds(call, which); }
#define PAIRS(COLUMNS) SM90(pairs_##COLUMNS, MATMUL_SM90_PAIRS_##COLUMNS)
#define SPLIT(COLUMNS) SM90(split_##COLUMNS, MATMUL_SM90_SPLIT_##COLUMNS)
SM90(sm90, MATMUL_SM90_BEST)
MATMUL_SM90_PAIRS(PAIRS)
MATMUL_SM90_SPLITS(SPLIT)

/* By mma.sync tiles take longer where lanes are few. */
static bool few(const trine_call *call) { return matmul_mma_few_refuse(call) == NULL; }

static size_t workspace_mma(const trine_call *call) { return few(call) ? matmul_mma_few_workspace(call) : workspace_mma_tiles(call); }
static double seconds_mma(const trine_call *call) { return few(call) ? matmul_mma_few_seconds(call) : seconds_mma_tiles(call); }
static trine_status launch_mma(const trine_call *call) { return few(call) ? matmul_mma_few_launch(call) : launch_mma_tiles(call); }

/* The kernel for sm_90a that its model of time prefers comes first; then each of its tiles, for tuning and for TRINE_KERNEL; then what runs everywhere. */
#define KERNEL(text, name) { SIMT_NAME text, refuse_##name, workspace_##name, launch_##name, seconds_##name },
#define KERNEL_F32(ROWS, COLUMNS, ...) KERNEL("_f32_" #ROWS "x" #COLUMNS, f32_##ROWS##x##COLUMNS)
#define KERNEL_F64(ROWS, COLUMNS, ...) KERNEL("_f64_" #ROWS "x" #COLUMNS, f64_##ROWS##x##COLUMNS)
#define KERNEL_SM90(text, name) { SIMT_NAME text, matmul_sm90_refuse, workspace_##name, launch_##name, seconds_##name },
#define KERNEL_PAIRS(COLUMNS) KERNEL_SM90("_sm90_pairs_" #COLUMNS, pairs_##COLUMNS)
#define KERNEL_SPLIT(COLUMNS) KERNEL_SM90("_sm90_split_" #COLUMNS, split_##COLUMNS)

/* clang-format off */
SIMT_KERNELS(matmul) = {
    { SIMT_NAME "_few", matmul_few_refuse, matmul_few_workspace, matmul_few_launch, matmul_few_seconds },
    KERNEL_SM90("_sm90", sm90)
    MATMUL_SM90_PAIRS(KERNEL_PAIRS)
    MATMUL_SM90_SPLITS(KERNEL_SPLIT)
    KERNEL("_f64", f64)
    { SIMT_NAME "_skinny", matmul_skinny_refuse, matmul_skinny_workspace, matmul_skinny_launch, NULL },
    MATMUL_F64_TILES(KERNEL_F64)
    { SIMT_NAME "_mma", refuse_mma_tiles, workspace_mma, launch_mma, seconds_mma },
    KERNEL("_f32", f32)
    MATMUL_F32_TILES(KERNEL_F32)
    KERNEL("", simt)
    { 0 },
};
/* clang-format on */
