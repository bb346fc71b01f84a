/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on sm_90a: the host side. */
#include "matmul_scaled_sm90.h"

#include <stdio.h>

#include "matmul_scaled_sm90_host.h"
#include "backends/cuda/driver/maps.h"
#include "backends/cuda/driver/state.h"
#include "backends/cuda/matmul/rows_sm90_host.h"
#include "backends/simt/scaled/matmul_scaled_host.h"

/* What a kernel's name says of the types; NULL: there is none. */
static const char *types_of(const trine_call *call) {
    static const struct {
        trine_dtype a, b;
        const char *name;
    } types[] = { { TRINE_E4M3, TRINE_E4M3, "e4m3_e4m3" },
                  { TRINE_E4M3, TRINE_E5M2, "e4m3_e5m2" },
                  { TRINE_E5M2, TRINE_E4M3, "e5m2_e4m3" },
                  { TRINE_I8, TRINE_I8, "i8_i8" } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (call->type[MATMUL_SCALED_TYPE_A] == types[i].a && call->type[MATMUL_SCALED_TYPE_B] == types[i].b)
            return types[i].name;
    return NULL;
}

/* Elements of k whose sums are scaled together, where blocks of both sides are of as many, or of all; 0: they are of
 * none that there is a kernel for. */
static int part_of(const scaled_params *p) {
    for (int part = 128; part >= 32; part -= 96)
        if ((p->a.block.by >= p->k || p->a.block.by % part == 0) &&
            (p->b.block.by >= p->k || p->b.block.by % part == 0))
            return part;
    return 0;
}

/* Have 128 rows of b one scale, and as many elements of k? */
static bool has_blocks(const scaled_params *p) {
    return part_of(p) == 128 && (p->b.row_block % 128 == 0 || p->b.row_block >= p->b.rows);
}

static bool copyable(const trine_tensor *t) { return t->shape[0] <= 1 || cuda_copyable_stride(t->stride[0]); }

/* Are there fewer scales than are counted in 32 bits? */
static bool countable(const scaled_side *s) { return s->rows / s->row_block * s->scale_row < INT32_MAX - s->scale_row; }

const char *matmul_scaled_sm90_refuse(const trine_call *call) {
    const trine_matmul_scaled_args *args = call->args;
    const char *why = cuda_refuse_hopper(call);
    if (why == NULL) why = scaled_refuse(call);
    if (why != NULL) return why;
    const int64_t m = call->dim[MATMUL_SCALED_DIM_M], n = call->dim[MATMUL_SCALED_DIM_N];
    if (types_of(call) == NULL || call->dim[MATMUL_SCALED_DIM_P] != call->dim[MATMUL_SCALED_DIM_Q] ||
        args->format != TRINE_SCALED_PLAIN || (args->offset != 0 && call->type[MATMUL_SCALED_TYPE_B] == TRINE_I8))
        return "tensor cores have no products of such elements";
    if (m <= SCALED_FEW) return "so few rows are read faster otherwise";
    if (call->dim[MATMUL_SCALED_DIM_P] == 0) return "k is 0";
    if (!copyable(&call->tensor[MATMUL_SCALED_A]) || !copyable(&call->tensor[MATMUL_SCALED_B]))
        return "rows are not multiples of 16 bytes apart";
    if (m > INT32_MAX - 512 || n > INT32_MAX - 512 || simt_blocks(m, 128) * simt_blocks(n, 128) > INT32_MAX / 2)
        return "more tiles than are counted in 32 bits";
    const scaled_params p = scaled_params_of(call);
    if (part_of(&p) == 0) return "sums of 32 or 128 elements do not share their scales";
    if (*(const int *)call->self == 256 && !has_blocks(&p)) return "128 rows of b do not share their scales";
    return countable(&p.a) && countable(&p.b) ? NULL : "more scales than are counted in 32 bits";
}

static trine_status encode(const trine_call *call, int tensor, int rows, tensor_map *map_out) {
    const trine_tensor *t = &call->tensor[tensor];
    const cuda_map m = { .dtype = t->dtype,
                         .data = t->data,
                         .shape = { t->shape[1], t->shape[0], 1 },
                         .line = t->shape[0] > 1 ? t->stride[0] : (t->shape[1] + 15) / 16 * 16,
                         .batch = 16,
                         .width = 128,
                         .rows = rows,
                         .fetch = CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
    return cuda_map_encode(((const cuda_device *)call->device)->driver, &m, map_out);
}

trine_status matmul_scaled_sm90_launch(const trine_call *call) {
    const cuda_device *d = call->device;
    const trine_tensor *out = &call->tensor[MATMUL_SCALED_D];
    const int64_t size = (int64_t)trine_dtype_size(out->dtype);
    scaled_sm90_params params = { .of = scaled_params_of(call) };
    const scaled_params *p = &params.of;
    const int64_t m = p->a.rows, n = p->b.rows, pairs = simt_blocks(m, ROWS_SM90_PAIR * ROWS_SM90_ROWS);
    const int part = part_of(p);
    const bool blocks = has_blocks(p);
    const int own = *(const int *)call->self,
              wide = rows_sm90_columns(simt_units(call) / ROWS_SM90_PAIR, pairs, n, simt_blocks(p->k, 128), false),
              columns = own                     ? own
                        : blocks && wide == 256 ? 256
                                                : 128;
    params.boxes = rows_sm90_begins_whole(&call->tensor[MATMUL_SCALED_A]) &&
                   rows_sm90_begins_whole(&call->tensor[MATMUL_SCALED_B]);
    params.whole = rows_sm90_begins_whole(out) && n * size % 16 == 0 && (m == 1 || p->d_row * size % 16 == 0);
    cuda_launch launch = { .part = CUDA_HOPPER,
                           .threads = MATMUL_SM90_THREADS,
                           .cluster = ROWS_SM90_PAIR,
                           .blocks = ROWS_SM90_PAIR,
                           .shared = MATMUL_SM90_MEMORY,
                           .params = &params };
    snprintf(launch.name, sizeof launch.name, "matmul_scaled_sm90_%s_%d_%d%c", types_of(call), columns, part,
             blocks ? 'b' : 'r');
    int held = 0;
    trine_status status = cuda_clusters_held(call, &launch, &held);
    if (status != TRINE_OK) return status;
    if (held == 0) return call->host->error(TRINE_ERR_UNSUPPORTED, "matmul_scaled: the device holds no pair of blocks");
    if (params.boxes) {
        cuda_scope scope;
        status = cuda_enter(d, &scope);
        if (status != TRINE_OK) return status;
        status = encode(call, MATMUL_SCALED_A, ROWS_SM90_ROWS, &params.a);
        if (status == TRINE_OK) status = encode(call, MATMUL_SCALED_B, columns / ROWS_SM90_PAIR, &params.b);
        cuda_leave(d, scope);
        if (status != TRINE_OK) return status;
    }
    const int64_t units = pairs * simt_blocks(n, columns);
    launch.blocks = ROWS_SM90_PAIR * (units < held ? units : held);
    return cuda_launch_function(call, &launch);
}

void matmul_scaled_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SCALED_FEW);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, ROWS_SM90_ROWS / 2);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, ROWS_SM90_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, ROWS_SM90_PAIR * ROWS_SM90_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, 128);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, 256);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_P, 128);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_P,
                      128 * ROWS_SM90_STAGES(128, false, SCALED_SM90_SCALES(128, 128, true)));
}
