/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d_backward on the CPU. A task has a vector of channels of an image, where those lie side by side: for each
 * window it finds the number of the largest, and then for each element adds up the windows that chose it. Elsewhere a
 * task has one channel of an image, whose windows are added one by one to sums in the workspace. */
#include "pool.h"
#include "spec/places/pool2d_backward.h"

/* Windows [first, last) that may hold place `at`. */
typedef struct windows {
    int64_t first, last;
} windows;

static windows windows_of(const pool_axis *a, int64_t at) {
    const int64_t end = at + a->pad, reach = (a->kernel - 1) * a->dilation, start = end - reach;
    windows w = { start > 0 ? (start + a->stride - 1) / a->stride : 0, end / a->stride + 1 };
    if (w.last > a->out) w.last = a->out;
    return w;
}

/* The number of place `at` along an axis of a window, -1 if it is not one of its. */
static int64_t number_of(const pool_axis *a, pool_part part, int64_t at) {
    const int64_t far = at - part.first;
    return far >= 0 && far % a->dilation == 0 && far / a->dilation < part.count ? far / a->dilation : -1;
}

static float over(const pool *a, pool_part h, pool_part w) {
    return a->kind == TRINE_POOL2D_MEAN ? (float)(h.count * w.count) : (float)a->h.kernel * (float)a->w.kernel;
}

/* Numbers of the largest, of all windows. */
INLINE void choose(const pool *a, const char *image, int n, int32_t *chosen, trine_dtype T) {
    for (int64_t p = 0; p < a->h.out; p++)
        for (int64_t q = 0; q < a->w.out; q++) {
            const pool_best best = pool_largest(image, &a->x, a, pool_part_of(&a->h, p), pool_part_of(&a->w, q), n, T);
            *(vi_any *)(chosen + (p * a->w.out + q) * VL) = best.number;
        }
}

INLINE vf gather(const pool *a, const char *dy, const int32_t *chosen, int64_t i, int64_t j, int n, trine_dtype T) {
    const windows down = windows_of(&a->h, i), right = windows_of(&a->w, j);
    vf sum = vzero();
    for (int64_t p = down.first; p < down.last; p++) {
        const pool_part h = pool_part_of(&a->h, p);
        const int64_t row = number_of(&a->h, h, i);
        if (row < 0) continue;
        for (int64_t q = right.first; q < right.last; q++) {
            const pool_part w = pool_part_of(&a->w, q);
            const int64_t column = number_of(&a->w, w, j);
            if (column < 0) continue;
            const char *at = dy + p * a->y.h + q * a->y.w;
            vf d = vzero();
            if (a->y.c == (int64_t)vsize(T))
                d = n == VL ? vload(at, T, 0) : vloadn(at, T, 0, n, 0);
            else
                for (int l = 0; l < n; l++) d[l] = sload(at + l * a->y.c, T, 0);
            if (a->kind == TRINE_POOL2D_MAX)
                sum += vsel(*(const vi_any *)(chosen + (p * a->w.out + q) * VL) == (int32_t)(row * w.count + column), d,
                            vzero());
            else
                sum += d / over(a, h, w);
        }
    }
    return sum;
}

INLINE void image_by_channels(const pool *a, int64_t number, char *memory, trine_dtype T) {
    const int64_t blocks = (a->c + VL - 1) / VL, c = number % blocks * VL, image = number / blocks,
                  size = (int64_t)vsize(T);
    const int n = a->c - c < VL ? (int)(a->c - c) : VL;
    int32_t *chosen = (int32_t *)(void *)memory;
    if (a->kind == TRINE_POOL2D_MAX) choose(a, a->x.data + image * a->x.n + c * size, n, chosen, T);
    for (int64_t i = 0; i < a->h.in; i++)
        for (int64_t j = 0; j < a->w.in; j++) {
            const vf sum = gather(a, a->y.data + image * a->y.n + c * a->y.c, chosen, i, j, n, T);
            char *to = a->other.data + image * a->other.n + c * a->other.c + i * a->other.h + j * a->other.w;
            if (a->other.c == size && n == VL)
                vstore(to, T, 0, sum);
            else if (a->other.c == size)
                vstoren(to, T, 0, n, sum);
            else
                for (int l = 0; l < n; l++) sstore(to + l * a->other.c, T, 0, sum[l]);
        }
}

static void add(const pool *a, char *sums, int64_t place, double x) {
    if (a->type == TRINE_F64)
        ((double *)(void *)sums)[place] += x;
    else
        ((float *)(void *)sums)[place] += (float)x;
}

static void add_window(const pool *a, const char *image, double dy, pool_part h, pool_part w, char *sums) {
    if (a->kind == TRINE_POOL2D_MAX) {
        double most;
        const int64_t place = pool_place(a, h, w, pool_largest_one(image, a, h, w, &most));
        if (place >= 0) add(a, sums, place, dy);
        return;
    }
    const double term = a->type == TRINE_F64 ? dy / (double)over(a, h, w) : (double)((float)dy / over(a, h, w));
    for (int64_t number = 0; number < h.count * w.count; number++) add(a, sums, pool_place(a, h, w, number), term);
}

static void image_one_by_one(const pool *a, int64_t number, char *sums) {
    const int64_t c = number % a->c, image = number / a->c, pixels = a->h.in * a->w.in,
                  bytes = a->type == TRINE_F64 ? 8 : 4;
    memset(sums, 0, (size_t)(pixels * bytes));
    for (int64_t p = 0; p < a->h.out; p++)
        for (int64_t q = 0; q < a->w.out; q++)
            add_window(a, a->x.data + image * a->x.n + c * a->x.c,
                       pool_get(a->y.data + image * a->y.n + c * a->y.c + p * a->y.h + q * a->y.w, a->type),
                       pool_part_of(&a->h, p), pool_part_of(&a->w, q), sums);
    for (int64_t i = 0; i < pixels; i++)
        pool_set(a->other.data + image * a->other.n + c * a->other.c + i / a->w.in * a->other.h +
                     i % a->w.in * a->other.w,
                 a->type, a->type == TRINE_F64 ? ((double *)(void *)sums)[i] : (double)((float *)(void *)sums)[i]);
}

static int64_t images(const pool *a) { return a->n * (pool_by_channels(a) ? (a->c + VL - 1) / VL : a->c); }

static void run(const void *context, int64_t first, int64_t last, int thread) {
    const pool *a = context;
    char *memory = (char *)a->call->workspace + thread * a->slice;
    for (int64_t i = first; i < last; i++) {
        if (pool_by_channels(a))
            FOR_TYPE(a->type, image_by_channels, a, i, memory);
        else
            image_one_by_one(a, i, memory);
    }
}

static pool geometry(const trine_call *call) {
    const trine_pool2d_backward_args *args = call->args;
    pool a = POOL_OF(call, args, POOL2D_BACKWARD_X, POOL2D_BACKWARD_DY, POOL2D_BACKWARD_DX);
    const int64_t chosen = a.kind == TRINE_POOL2D_MAX ? a.h.out * a.w.out * VB : 0,
                  sums = a.h.in * a.w.in * (a.type == TRINE_F64 ? 8 : 4);
    a.slice = cpu_round_up(pool_by_channels(&a) ? chosen : sums, 256);
    return a;
}

static int team_of(const pool *a) { return cpu_team(a->call, images(a), pool_bytes(a)); }

static const char *refuse(const trine_call *call) {
    const int64_t h = call->dim[POOL2D_BACKWARD_DIM_H], w = call->dim[POOL2D_BACKWARD_DIM_W];
    return h > 0 && w > INT32_MAX / h ? "images of more than 2^31 - 1 pixels" : NULL;
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const pool a = geometry(call);
    return (size_t)(team_of(&a) * a.slice);
}

static trine_status launch(const trine_call *call) {
    const pool a = geometry(call);
    cpu_tasks(call, team_of(&a), images(&a), run, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, POOL2D_BACKWARD_DIM_C, VL);
    trine_kernel_edge(edges, POOL2D_BACKWARD_DIM_C, 2);
}

CPU_KERNELS(pool2d_backward) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
