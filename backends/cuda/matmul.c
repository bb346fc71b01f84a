/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: the host side. */
#include "matmul_sm90_host.h"

#include <math.h>
#include <stdio.h>

#include <trine/ops.h>

const char *matmul_refuse(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    if (call->tensor[MATMUL_A].dtype != TRINE_I8) return NULL;
    if (simt_present(call, MATMUL_A_SCALE) || simt_present(call, MATMUL_B_SCALE)) return "i8 products take no scales";
    const bool integers = fabsf(args->alpha) <= 0x1p24f && args->alpha == rintf(args->alpha) && fabsf(args->beta) <= 0x1p24f && args->beta == rintf(args->beta);
    if (!integers) return "i8 products take integers up to 2^24 for alpha and beta";
    return args->activation > TRINE_ACTIVATION_RELU ? "i8 products take no activation but relu" : NULL;
}

const char *matmul_refuse_cores(const trine_call *call) {
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    const bool cut = ((const trine_matmul_args *)call->args)->precision == TRINE_PRECISION_TF32;
    if (type == TRINE_F64 || (type == TRINE_F32 && !cut)) return "tensor cores have no products of this type that the error bound allows";
    return matmul_refuse(call);
}

/* Can `count` elements that begin at a multiple of that be read as one? */
static bool wide(const trine_tensor *t, int across, int64_t count) {
    const int64_t bytes = count * (int64_t)trine_dtype_size(t->dtype), align = bytes < 16 ? bytes : 16, size = (int64_t)trine_dtype_size(t->dtype);
    return t->stride[3 - across] == 1 && (uintptr_t)t->data % (uintptr_t)align == 0 && (t->shape[0] == 1 || t->stride[0] * size % align == 0) &&
           (t->shape[across] == 1 || t->stride[across] * size % align == 0);
}

matmul_operand matmul_operand_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int lane = tensor == MATMUL_A ? 1 : 2, along = 3 - lane;
    return (matmul_operand){ .data = t->data,
                             .batch = t->shape[0] > 1 ? t->stride[0] : 0,
                             .lane = t->stride[lane],
                             .along = t->stride[along],
                             .across = t->stride[along] != 1,
                             .wide = wide(t, t->stride[along] == 1 ? lane : along, 4) };
}

static matmul_type type_of(trine_dtype dtype) { return dtype == TRINE_F16 ? MATMUL_F16 : dtype == TRINE_BF16 ? MATMUL_BF16 : MATMUL_F32; }

static matmul_scales scales_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return simt_present(call, tensor) ? (matmul_scales){ t->data, t->stride[0], t->stride[1] } : (matmul_scales){ 0 };
}

matmul_target matmul_target_of(const trine_call *call) {
    const trine_matmul_args *args = call->args;
    const trine_tensor *d = &call->tensor[MATMUL_D], *c = &call->tensor[MATMUL_C], *bias = &call->tensor[MATMUL_BIAS];
    matmul_target t = { .d = d->data,
                        .d_batch = d->stride[0],
                        .d_row = d->stride[1],
                        .alpha = args->alpha + 0.0f, /* + 0: -0 stands for 0 */
                        .beta = args->beta + 0.0f,
                        .activation = args->activation,
                        .type = type_of(d->dtype),
                        .wide = wide(d, 1, 4),
                        .rows = scales_of(call, MATMUL_A_SCALE),
                        .columns = scales_of(call, MATMUL_B_SCALE) };
    if (simt_present(call, MATMUL_C)) t.c = c->data, t.c_batch = c->stride[0], t.c_row = c->stride[1], t.c_column = c->stride[2];
    if (simt_present(call, MATMUL_BIAS)) t.bias = bias->data, t.bias_type = type_of(bias->dtype);
    t.plain = !t.c && !t.bias && !t.activation;
    return t;
}

/* -------------------------------------------------------------------------------------------------------------------- sides */

/* Can copies read the operand where it lies, if `across` says which direction is consecutive? Where it begins does not count: the order of sums and the
 * workspace follow from sizes and strides alone. */
static bool copyable(const trine_tensor *t, int lane, bool across) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    const int outer = across ? 3 - lane : lane;
    return t->stride[3 - outer] == 1 && (t->shape[outer] == 1 || matmul_copyable_stride(t->stride[outer] * size)) &&
           (t->shape[0] == 1 || matmul_copyable_stride(t->stride[0] * size));
}

matmul_side matmul_side_of(const trine_call *call, int tensor, bool across) {
    const trine_tensor *t = &call->tensor[tensor];
    const int lane = tensor == MATMUL_A ? 1 : 2;
    const int64_t size = (int64_t)trine_dtype_size(t->dtype), k = t->shape[3 - lane];
    matmul_side s = { .tensor = tensor, .lanes = t->shape[lane] };
    if (copyable(t, lane, false)) return s;
    s.across = across && size == 2 && copyable(t, lane, true);
    s.packed = !s.across;
    if (s.packed) s.pitch = (k * size + 15) / 16 * 16 / size, s.bytes = (t->shape[0] * s.lanes * s.pitch * size + 255) / 256 * 256;
    return s;
}

trine_status matmul_side_launch(const trine_call *call, const matmul_side *side, void *to) {
    const trine_tensor *t = &call->tensor[side->tensor];
    matmul_pack_params p = { .from = matmul_operand_of(call, side->tensor),
                             .to = to,
                             .lanes = side->lanes,
                             .depth = call->dim[MATMUL_K],
                             .batches = t->shape[0],
                             .pitch = side->pitch };
    if (!side->packed) return TRINE_OK;
    p.blocks_along = simt_blocks(p.depth, MATMUL_PACK_SIDE), p.blocks_lane = simt_blocks(p.lanes, MATMUL_PACK_SIDE);
    cuda_launch launch = { .blocks = p.batches * p.blocks_along * p.blocks_lane, .threads = MATMUL_THREADS, .params = &p };
    snprintf(launch.name, sizeof launch.name, "matmul_pack_%d", 8 * (int)trine_dtype_size(t->dtype));
    return cuda_launch_function(call, &launch);
}

/* ----------------------------------------------------------------------------------------------------------------- launches */

static matmul_params params_of(const trine_call *call, int columns) {
    matmul_params p = { .a = matmul_operand_of(call, MATMUL_A),
                        .b = matmul_operand_of(call, MATMUL_B),
                        .to = matmul_target_of(call),
                        .m = call->dim[MATMUL_M],
                        .n = call->dim[MATMUL_N],
                        .k = call->dim[MATMUL_K] };
    p.down = simt_blocks(p.m, MATMUL_SIDE), p.right = simt_blocks(p.n, columns);
    return p;
}

static trine_status launch_tiles(const trine_call *call, const matmul_params *p, const char *kind, const char *variant, int shared) {
    cuda_launch launch = { .blocks = call->dim[MATMUL_G] * p->down * p->right, .threads = MATMUL_THREADS, .shared = shared, .params = p };
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    snprintf(launch.name, sizeof launch.name, "matmul_%s_%s%s", kind, trine_dtype_name(simt_float8(type) ? TRINE_F16 : type), variant);
    return cuda_launch_function(call, &launch);
}

/* Float8 is widened to f16, and goes on as such. */
static bool widens(const trine_call *call) { return simt_float8(call->tensor[MATMUL_A].dtype); }

static size_t workspace_simt(const trine_call *call) {
    return widens(call) ? (size_t)(simt_widened_of(call, MATMUL_A).bytes + simt_widened_of(call, MATMUL_B).bytes) : 0;
}

static trine_status widen(const trine_call *call, matmul_operand *operand, int tensor, void *to) {
    const simt_widened w = simt_widened_of(call, tensor);
    const bool across = w.turned == (tensor == MATMUL_A);
    *operand = (matmul_operand){
        .data = to, .batch = operand->batch ? w.lines * w.pitch : 0, .lane = across ? 1 : w.pitch, .along = across ? w.pitch : 1, .across = across, .wide = true
    };
    return simt_widen(call, &w, to);
}

static trine_status widen_both(const trine_call *call, matmul_params *p) {
    const trine_status status = widen(call, &p->a, MATMUL_A, call->workspace);
    return status == TRINE_OK ? widen(call, &p->b, MATMUL_B, (char *)call->workspace + simt_widened_of(call, MATMUL_A).bytes) : status;
}

static trine_status launch_simt(const trine_call *call) {
    matmul_params p = params_of(call, MATMUL_SIDE);
    const trine_dtype type = call->tensor[MATMUL_A].dtype;
    const trine_status status = widens(call) ? widen_both(call, &p) : TRINE_OK;
    if (status != TRINE_OK) return status;
    return launch_tiles(call, &p, "simt", "", type == TRINE_F32 || type == TRINE_F64 ? MATMUL_SIMT_STAGES * MATMUL_SIMT_BYTES : 0);
}

static size_t workspace_mma(const trine_call *call) {
    if (widens(call)) return workspace_simt(call);
    return (size_t)(matmul_side_of(call, MATMUL_A, true).bytes + matmul_side_of(call, MATMUL_B, true).bytes);
}

static void use_side(matmul_operand *operand, const matmul_side *side, const void *packed) {
    operand->across = side->across;
    operand->wide = (uintptr_t)operand->data % 16 == 0;
    if (side->packed)
        *operand = (matmul_operand){ .data = packed, .batch = operand->batch ? side->lanes * side->pitch : 0, .lane = side->pitch, .along = 1, .wide = true };
}

static trine_status launch_mma_tiles(const trine_call *call, const matmul_params *p) {
    const char variant[] = { '_', p->a.across ? 'l' : 'k', p->b.across ? 'l' : 'k', 0 };
    return launch_tiles(call, p, "mma", variant, MATMUL_MMA_STAGES * MATMUL_MMA_BYTES);
}

static trine_status launch_mma(const trine_call *call) {
    matmul_params p = params_of(call, MATMUL_MMA_COLUMNS);
    if (widens(call)) {
        const trine_status status = widen_both(call, &p);
        return status == TRINE_OK ? launch_mma_tiles(call, &p) : status;
    }
    const matmul_side a = matmul_side_of(call, MATMUL_A, true), b = matmul_side_of(call, MATMUL_B, true);
    char *const packed = call->workspace;
    use_side(&p.a, &a, packed);
    use_side(&p.b, &b, packed + a.bytes);
    trine_status status = matmul_side_launch(call, &a, packed);
    if (status == TRINE_OK) status = matmul_side_launch(call, &b, packed + a.bytes);
    return status == TRINE_OK ? launch_mma_tiles(call, &p) : status;
}

/* The kernel for sm_90a that its model of time prefers comes first; then each of its tiles, for tuning and for TRINE_KERNEL; then what runs everywhere. */
#define SM90(which) \
    static size_t workspace_##which(const trine_call *call) { return matmul_sm90_workspace(call, which); } \
    static trine_status launch_##which(const trine_call *call) { return matmul_sm90_launch(call, which); } \
    static double seconds_##which(const trine_call *call) { return matmul_sm90_seconds(call, which); }
#define SM90_KERNEL(name, which) { SIMT_NAME "_sm90" name, matmul_sm90_refuse, workspace_##which, launch_##which, seconds_##which }
SM90(0)
SM90(1)
SM90(2)
SM90(3)
SM90(4)
SM90(5)
SM90(6)
SM90(7)

SIMT_KERNELS(matmul) = {
    SM90_KERNEL("", 7),
    SM90_KERNEL("_pairs_256", 0),
    SM90_KERNEL("_pairs_128", 1),
    SM90_KERNEL("_split_128", 2),
    SM90_KERNEL("_split_64", 3),
    SM90_KERNEL("_split_32", 4),
    SM90_KERNEL("_split_16", 5),
    SM90_KERNEL("_split_8", 6),
    { .name = SIMT_NAME "_mma", .refuse = matmul_refuse_cores, .workspace = workspace_mma, .launch = launch_mma },
    { .name = SIMT_NAME, .refuse = matmul_refuse, .workspace = workspace_simt, .launch = launch_simt },
    { 0 },
};
