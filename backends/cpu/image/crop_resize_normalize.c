/* SPDX-License-Identifier: Apache-2.0 */
/* crop_resize_normalize on the CPU: a task is a row of a box. Rows of the image are added up to one by vectors, of
 * which then each pixel is made. The spans of the columns are kept as long as the box is the same. */
#include "sides.h"
#include "spec/places/crop_resize_normalize.h"

typedef struct view {
    char *data;
    int64_t n, h, w, c; /* strides, in elements */
} view;

typedef struct resize {
    const trine_call *call;
    const trine_crop_resize_normalize_args *args;
    view x, y;
    int64_t n, h, w, c, b, p, q, most; /* most: pixels of a column's span */
    int64_t slice;                     /* bytes of a thread's part of the workspace */
    const float *mean, *deviation;     /* NULL: absent */
    trine_dtype from, to;
    bool together; /* the channels of an image's row are one line */
} resize;

/* What a thread has of the workspace. */
typedef struct room {
    int64_t *first, *count;               /* of the columns' spans */
    float *across, *down, *line, *result; /* weights of the columns and of a row; of rows added up; of y */
} room;

typedef struct box {
    int64_t image, left, top, w, h; /* image: -1 if there is nothing */
} box;

static view view_of(const trine_tensor *t) {
    return (view){ t->data, t->stride[0], t->stride[1], t->stride[2], t->stride[3] };
}

static int64_t room_bytes(const resize *r, char *at, room *room_out) {
    const side v = side_of(r->args, r->h, r->p);
    int64_t used = 0;
    const int64_t sizes[] = { 8 * r->q,          8 * r->q,        4 * r->q * r->most,
                              4 * side_most(&v), 4 * r->w * r->c, 4 * r->q * r->c };
    char *part[6];
    for (int i = 0; i < 6; i++) {
        part[i] = at + used;
        used += cpu_round_up(sizes[i], 64);
    }
    if (room_out)
        *room_out = (room){ (int64_t *)(void *)part[0], (int64_t *)(void *)part[1], (float *)(void *)part[2],
                            (float *)(void *)part[3],   (float *)(void *)part[4],   (float *)(void *)part[5] };
    return cpu_round_up(used, 256);
}

static resize resize_of(const trine_call *call) {
    const int64_t *dim = call->dim;
    const trine_tensor *x = &call->tensor[CROP_RESIZE_NORMALIZE_X],
                       *mean = trine_call_given(call, CROP_RESIZE_NORMALIZE_MEAN),
                       *deviation = trine_call_given(call, CROP_RESIZE_NORMALIZE_DEVIATION);
    resize r = { .call = call,
                 .args = call->args,
                 .x = view_of(x),
                 .y = view_of(&call->tensor[CROP_RESIZE_NORMALIZE_Y]),
                 .n = dim[CROP_RESIZE_NORMALIZE_DIM_N],
                 .h = dim[CROP_RESIZE_NORMALIZE_DIM_H],
                 .w = dim[CROP_RESIZE_NORMALIZE_DIM_W],
                 .c = dim[CROP_RESIZE_NORMALIZE_DIM_C],
                 .b = dim[CROP_RESIZE_NORMALIZE_DIM_B],
                 .p = dim[CROP_RESIZE_NORMALIZE_DIM_P],
                 .q = dim[CROP_RESIZE_NORMALIZE_DIM_Q],
                 .mean = mean ? mean->data : NULL,
                 .deviation = deviation ? deviation->data : NULL,
                 .from = x->dtype,
                 .to = call->type[CROP_RESIZE_NORMALIZE_TYPE_T] };
    const side h = side_of(r.args, r.w, r.q);
    r.most = side_most(&h);
    r.together = r.x.c == 1 && r.x.w == r.c;
    r.slice = room_bytes(&r, NULL, NULL);
    return r;
}

static int64_t integer(const trine_tensor *t, int64_t at) {
    return t->dtype == TRINE_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

static box box_of(const resize *r, int64_t i) {
    const trine_tensor *boxes = trine_call_given(r->call, CROP_RESIZE_NORMALIZE_BOXES),
                       *images = trine_call_given(r->call, CROP_RESIZE_NORMALIZE_IMAGES);
    int64_t edge[4] = { 0, 0, r->w, r->h };
    for (int k = 0; boxes && k < 4; k++) edge[k] = integer(boxes, i * boxes->stride[0] + k);
    box b = { .image = images ? integer(images, i * images->stride[0]) : i,
              .left = edge[0] > 0 ? edge[0] : 0,
              .top = edge[1] > 0 ? edge[1] : 0 };
    const int64_t right = edge[2] < r->w ? edge[2] : r->w, bottom = edge[3] < r->h ? edge[3] : r->h;
    if (b.image < 0 || b.image >= r->n || right <= b.left || bottom <= b.top) return (box){ .image = -1 };
    b.w = right - b.left, b.h = bottom - b.top;
    return b;
}

INLINE float pixel(const char *at, int64_t i, trine_dtype from) {
    return from == TRINE_U8 ? (float)((const uint8_t *)at)[i] : ((const float *)(const void *)at)[i];
}

/* line[j] = the sum of rows' elements j, `step` apart in memory. */
INLINE void add_rows(float *line, const char *from, int64_t n, int64_t step, int64_t row, const float *weight,
                     int64_t rows, trine_dtype U) {
    const int64_t size = U == TRINE_U8 ? 1 : 4;
    int64_t j = 0;
    for (; step == 1 && j + VL <= n; j += VL) {
        vf sum = vzero();
        for (int64_t i = 0; i < rows; i++) {
            const char *at = from + (i * row + j) * size;
            const vf x = U == TRINE_U8 ? __builtin_convertvector(vload_u8(at), vf) : vload(at, TRINE_F32, 0);
            sum = i == 0 ? x * vset(weight[0]) : vfma(x, vset(weight[i]), sum);
        }
        vstore(line, TRINE_F32, j, sum);
    }
    for (; j < n; j++) {
        float sum = pixel(from, j * step, U) * weight[0];
        for (int64_t i = 1; i < rows; i++)
            sum = vfma(vset(pixel(from, i * row + j * step, U)), vset(weight[i]), vset(sum))[0];
        line[j] = sum;
    }
}

/* Of the lines of a row only the pixels that columns need, if they are few. */
INLINE void fill_line(const resize *r, const room *m, const box *b, const char *from, int64_t wide, int64_t step,
                      int64_t rows, trine_dtype U) {
    const int64_t size = U == TRINE_U8 ? 1 : 4;
    if (r->args->filter == TRINE_RESIZE_AREA || r->args->antialias || 2 * r->q * r->most > b->w) {
        add_rows(m->line, from, b->w * wide, step, r->x.h, m->down, rows, U);
        return;
    }
    for (int64_t j = 0; j < r->q; j++)
        add_rows(m->line + m->first[j] * wide, from + m->first[j] * wide * step * size, m->count[j] * wide, step,
                 r->x.h, m->down, rows, U);
}

/* Channels first .. last-1 of a row, which the line has side by side. */
static void put_pixels(const resize *r, const room *m, int64_t first, int64_t last) {
    const int64_t wide = last - first, pixel_step = r->y.w == 1 ? 1 : r->c, plane_step = r->y.w == 1 ? r->q : 1;
    for (int64_t j = 0; j < r->q; j++) {
        const float *from = m->line + m->first[j] * wide, *weight = m->across + j * r->most;
        for (int64_t c = first; c < last; c++, from++) {
            float sum = from[0] * weight[0];
            for (int64_t k = 1; k < m->count[j]; k++) sum = vfma(vset(from[k * wide]), vset(weight[k]), vset(sum))[0];
            const int64_t to = r->args->reverse ? r->c - 1 - c : c;
            float y = sum * r->args->scale;
            if (r->mean) y -= r->mean[to];
            if (r->deviation) y /= r->deviation[to];
            m->result[j * pixel_step + to * plane_step] = y;
        }
    }
}

INLINE void store_run(char *to, const float *from, int64_t n, trine_dtype T) {
    int64_t j = 0;
    for (; j + VL <= n; j += VL) vstore(to, T, j, vload(from, TRINE_F32, j));
    if (j < n) vstoren(to, T, j, (int)(n - j), vloadn(from, TRINE_F32, j, (int)(n - j), 0));
}

INLINE void store_row(const resize *r, const float *from, char *to, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T);
    if (r->y.w == 1) {
        for (int64_t c = 0; c < r->c; c++) store_run(to + c * r->y.c * size, from + c * r->q, r->q, T);
    } else if (r->y.c == 1 && r->y.w == r->c) {
        store_run(to, from, r->q * r->c, T);
    } else {
        for (int64_t j = 0; j < r->q; j++)
            for (int64_t c = 0; c < r->c; c++) sstore(to + (j * r->y.w + c * r->y.c) * size, T, 0, from[j * r->c + c]);
    }
}

INLINE void put_row(const resize *r, const room *m, const box *b, int64_t row, trine_dtype U) {
    const int64_t size = U == TRINE_U8 ? 1 : 4;
    const side v = side_of(r->args, b->h, r->p);
    const span rows = side_span(&v, row, m->down);
    const char *from = r->x.data + (b->image * r->x.n + (b->top + rows.first) * r->x.h + b->left * r->x.w) * size;
    if (r->together) {
        fill_line(r, m, b, from, r->c, 1, rows.count, U);
        put_pixels(r, m, 0, r->c);
        return;
    }
    for (int64_t c = 0; c < r->c; c++) {
        fill_line(r, m, b, from + c * r->x.c * size, 1, r->x.w, rows.count, U);
        put_pixels(r, m, c, c + 1);
    }
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const resize *r = context;
    room m;
    room_bytes(r, (char *)r->call->workspace + thread * r->slice, &m);
    box b = { .image = -1 };
    for (int64_t i = first; i < last; i++) {
        if (i == first || i % r->p == 0) {
            b = box_of(r, i / r->p);
            const side h = side_of(r->args, b.w, r->q);
            for (int64_t j = 0; b.image >= 0 && j < r->q; j++) {
                const span s = side_span(&h, j, m.across + j * r->most);
                m.first[j] = s.first, m.count[j] = s.count;
            }
        }
        for (int64_t j = 0; b.image < 0 && j < r->q * r->c; j++) m.result[j] = NAN;
        if (b.image >= 0 && r->from == TRINE_U8)
            put_row(r, &m, &b, i % r->p, TRINE_U8);
        else if (b.image >= 0)
            put_row(r, &m, &b, i % r->p, TRINE_F32);
        char *to = r->y.data + (i / r->p * r->y.n + i % r->p * r->y.h) * (int64_t)vsize(r->to);
        FOR_TYPE(r->to, store_row, r, m.result, to);
    }
}

/* What a row of the output costs, in bytes of memory that took as long. */
static double row_bytes(const trine_call *call) {
    return 16.0 * (double)call->dim[CROP_RESIZE_NORMALIZE_DIM_Q] * (double)call->dim[CROP_RESIZE_NORMALIZE_DIM_C];
}

static int team_of(const resize *r) {
    const double bytes = (double)r->b * (double)r->p * row_bytes(r->call);
    return cpu_team(r->call, r->b * r->p, (int64_t)fmin(bytes, 0x1p62));
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const resize r = resize_of(call);
    return (size_t)(team_of(&r) * r.slice);
}

static trine_status launch(const trine_call *call) {
    const resize r = resize_of(call);
    cpu_shares(call, team_of(&r), r.b * r.p, rows, &r);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t c = call->dim[CROP_RESIZE_NORMALIZE_DIM_C], p = call->dim[CROP_RESIZE_NORMALIZE_DIM_P];
    if (c > 0) trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_Q, (VL + c - 1) / c);
    if (c > 0) trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_W, (VL + c - 1) / c);
    if (p > 0) cpu_team_edge(edges, CROP_RESIZE_NORMALIZE_DIM_B, (int64_t)fmin((double)p * row_bytes(call), 0x1p62));
}

CPU_KERNELS(crop_resize_normalize) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
