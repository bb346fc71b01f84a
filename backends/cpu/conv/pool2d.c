/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d on the CPU: a task has a row of windows, by vectors of channels where those lie side by side, else one by
 * one. */
#include "pool.h"
#include "spec/places/pool2d.h"

static double mean_over(const pool *a, pool_part h, pool_part w) {
    if (a->kind == TRINE_POOL2D_MEAN_PADDED) return (double)a->h.kernel * (double)a->w.kernel;
    return h.count > 0 && w.count > 0 ? (double)(h.count * w.count) : 1;
}

INLINE vf mean_of(const char *image, const pool *a, pool_part h, pool_part w, int n, trine_dtype T) {
    vf sum = vzero();
    for (int64_t i = 0; i < h.count; i++) {
        const char *at = image + (h.first + i * a->h.dilation) * a->x.h + w.first * a->x.w;
        for (int64_t j = 0; j < w.count; j++, at += a->w.dilation * a->x.w)
            sum += n == VL ? vload(at, T, 0) : vloadn(at, T, 0, n, 0);
    }
    return sum / (float)mean_over(a, h, w);
}

static void put_indices(const pool *a, char *to, pool_part h, pool_part w, vi number, int n) {
    for (int i = 0; i < n; i++)
        *(int64_t *)(void *)(to + i * a->other.c) = a->kind == TRINE_POOL2D_MAX ? pool_place(a, h, w, number[i]) : -1;
}

INLINE void window_by_channels(const pool *a, const char *image, char *y, char *indices, pool_part h, pool_part w,
                               trine_dtype T) {
    const int64_t size = (int64_t)vsize(T);
    for (int64_t c = 0; c < a->c; c += VL) {
        const int n = a->c - c < VL ? (int)(a->c - c) : VL;
        pool_best best = { 0 };
        if (a->kind == TRINE_POOL2D_MAX)
            best = pool_largest(image + c * size, &a->x, a, h, w, n, T);
        else
            best.most = mean_of(image + c * size, a, h, w, n, T);
        if (a->y.c == size && n == VL)
            vstore(y, T, c, best.most);
        else if (a->y.c == size)
            vstoren(y, T, c, n, best.most);
        else
            for (int i = 0; i < n; i++) sstore(y + (c + i) * a->y.c, T, 0, best.most[i]);
        if (indices) put_indices(a, indices + c * a->other.c, h, w, best.number, n);
    }
}

/* f64, or f32 of other types, in which a sum is rounded at each step. */
static double mean_of_one(const char *image, const pool *a, pool_part h, pool_part w) {
    double sum = 0;
    float single = 0;
    for (int64_t i = 0; i < h.count; i++)
        for (int64_t j = 0; j < w.count; j++) {
            const char *at = image + (h.first + i * a->h.dilation) * a->x.h + (w.first + j * a->w.dilation) * a->x.w;
            if (a->type == TRINE_F64)
                sum += *(const double *)(const void *)at;
            else
                single += sload(at, a->type, 0);
        }
    return a->type == TRINE_F64 ? sum / mean_over(a, h, w) : (double)(single / (float)mean_over(a, h, w));
}

static void window_one_by_one(const pool *a, const char *image, char *y, char *indices, pool_part h, pool_part w) {
    for (int64_t c = 0; c < a->c; c++) {
        double value;
        int64_t place = -1;
        if (a->kind == TRINE_POOL2D_MAX)
            place = pool_place(a, h, w, pool_largest_one(image + c * a->x.c, a, h, w, &value));
        else
            value = mean_of_one(image + c * a->x.c, a, h, w);
        pool_set(y + c * a->y.c, a->type, value);
        if (indices) *(int64_t *)(void *)(indices + c * a->other.c) = place;
    }
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const pool *a = context;
    const bool channels = pool_by_channels(a);
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const int64_t n = row / a->h.out, p = row % a->h.out;
        const pool_part h = pool_part_of(&a->h, p);
        for (int64_t q = 0; q < a->w.out; q++) {
            const char *image = a->x.data + n * a->x.n;
            char *y = a->y.data + n * a->y.n + p * a->y.h + q * a->y.w,
                 *indices = a->other.data ? a->other.data + n * a->other.n + p * a->other.h + q * a->other.w : NULL;
            const pool_part w = pool_part_of(&a->w, q);
            if (channels)
                FOR_TYPE(a->type, window_by_channels, a, image, y, indices, h, w);
            else
                window_one_by_one(a, image, y, indices, h, w);
        }
    }
}

static const char *refuse(const trine_call *call) {
    const int64_t h = call->dim[POOL2D_DIM_H], w = call->dim[POOL2D_DIM_W];
    return h > 0 && w > INT32_MAX / h ? "images of more than 2^31 - 1 pixels" : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_pool2d_args *args = call->args;
    const pool a = POOL_OF(call, args, POOL2D_X, POOL2D_Y, POOL2D_INDICES);
    cpu_shares(call, cpu_team(call, a.n * a.h.out, pool_bytes(&a)), a.n * a.h.out, rows, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, POOL2D_DIM_C, VL);
    trine_kernel_edge(edges, POOL2D_DIM_C, 2);
}

CPU_KERNELS(pool2d) = { { CPU_NAME, refuse, NULL, launch, .edges = edges }, { 0 } };
