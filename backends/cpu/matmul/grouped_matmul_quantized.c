/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_quantized on the CPU: a task writes the weights of its columns down, a part of k at a time, and packs
 * and multiplies them as grouped_matmul does. Of a few rows it reads the codes as matmul_quantized does. */
#include "grouped_product.h"
#include "quantized_dots.h"
#include "backends/cpu/quantize/expand.h"
#include "spec/places/grouped_matmul_quantized.h"

static const grouped_places places = GROUPED_PLACES(GROUPED_MATMUL_QUANTIZED);

/* Weights before and behind those of a part, so that their codes begin and end with bytes. */
enum { AROUND = 8 };

typedef struct experts {
    quantized q;                              /* of the first expert */
    int64_t codes, scales, zeros, mins;       /* strides from one to the next in bytes */
    affine a;                                 /* but for the numbers of a group */
    trine_dtype line_type;                    /* what weights are written down in, as units take them */
    int64_t line;                             /* bytes of a row of them */
    int64_t x_bytes, sums_bytes, strip_bytes; /* of a thread's own, in front of those rows */
} experts;

/* --------------------------------------------------------------------------------------------- weights written down */

static quantized expert_of(const experts *w, int64_t g) {
    quantized q = w->q;
    q.codes += g * w->codes;
    q.scales.data += g * w->scales;
    if (q.zeros.data) q.zeros.data += g * w->zeros;
    if (q.mins.data) q.mins.data += g * w->mins;
    return q;
}

static float number_at(const numbers *t, int64_t j, int64_t h, trine_dtype type, float absent) {
    if (!t->data) return absent;
    const char *row = t->data + j * t->row;
    return type == TRINE_F32    ? sload(row, TRINE_F32, h)
           : type == TRINE_BF16 ? sload(row, TRINE_BF16, h)
                                : sload(row, TRINE_F16, h);
}

INLINE void expand_as(affine a, const uint8_t *from, int64_t n, void *line, int64_t at, trine_dtype T, int bits) {
    CODES_FOR_BITS(bits, expand, a, from, n, line, at, T);
}

/* Weights [first, last) of row j, the first at element AROUND of the line. */
static void write_down(const experts *w, const quantized *q, char *line, int64_t j, int64_t first, int64_t last) {
    affine a = w->a;
    for (int64_t h = first / q->group; h * q->group < last; h++) {
        const int64_t begin = h * q->group, end = begin + q->group < last ? begin + q->group : last;
        const int64_t from = first > begin ? (first - begin) / 8 * 8 : 0, most = (end - begin + 7) / 8 * 8,
                      to = most < q->group ? most : q->group;
        const uint8_t *codes = q->codes + j * q->codes_row + h * q->codes_group + from / 8 * q->bits;
        a.scale = vset(number_at(&q->scales, j, h, q->type, 0));
        a.zero = vset(number_at(&q->zeros, j, h, q->type, 0));
        a.min = vset(number_at(&q->mins, j, h, q->type, -0.0f));
        if (w->line_type == TRINE_BF16)
            expand_as(a, codes, to - from, line, AROUND + begin + from - first, TRINE_BF16, q->bits);
        else
            expand_as(a, codes, to - from, line, AROUND + begin + from - first, TRINE_F32, q->bits);
    }
}

static void pack_w(const task *t, int64_t part) {
    const grouped *a = t->a;
    const experts *w = a->weights;
    const quantized q = expert_of(w, t->g);
    const int64_t wide = tile_columns(a->kind), depth = depth_of(a, part), first = part * a->part * unit_depth(a->kind),
                  size = (int64_t)trine_dtype_size(w->line_type);
    const view v = { .dtype = w->line_type, .lane = w->line, .along = size };
    char *lines = t->own + w->x_bytes + w->sums_bytes + w->strip_bytes;
    for (int64_t j = 0; j < t->columns; j += wide) {
        const int64_t there = t->columns - j < wide ? t->columns - j : wide;
        for (int64_t l = 0; l < there && depth > 0; l++)
            write_down(w, &q, lines + l * w->line, t->column + j + l, first, first + depth);
        panel_pack(t->w + j / wide * panel_bytes(a->part, (int)wide, a->kind), lines + AROUND * size, &v, there, depth,
                   units_of(a, part), false);
    }
}

/* --------------------------------------------------------------------------------------------------------- few rows */

static void few(task *t) {
    const grouped *a = t->a;
    const experts *w = a->weights;
    quantized q = expert_of(w, t->g);
    q.x = (float *)(void *)t->own, q.sums = (float *)(void *)(t->own + w->x_bytes);
    const strip_memory own = strip_memory_at(&q, FEW, t->own + w->x_bytes + w->sums_bytes);
    for (int64_t i = 0; t->kept != t->first && i < t->rows; i++) {
        const int64_t from = source_of(a, t->first + i);
        lay_out(&q, i, from < 0 ? NULL : a->x.data + from * a->x.lane, a->x.dtype);
    }
    t->kept = t->first;
    for (int64_t j = 0; j < t->columns; j += STRIP) {
        const int64_t columns = t->columns - j < STRIP ? t->columns - j : STRIP;
        strip_dots(&q, t->rows, t->column + j, columns, &own);
        for (int64_t i = 0; i < t->rows; i++)
            FOR_TYPE(a->y->dtype, finish_one, a, own.sums + i * STRIP, t->g, t->first + i, t->column + j, columns);
    }
}

/* --------------------------------------------------------------------------------------------------------- the call */

static int64_t group_bytes(const trine_tensor *t) { return t ? t->stride[0] * (int64_t)trine_dtype_size(t->dtype) : 0; }

static experts experts_of(const trine_call *call) {
    const trine_grouped_matmul_quantized_args *args = call->args;
    const trine_tensor *codes = &call->tensor[GROUPED_MATMUL_QUANTIZED_CODES],
                       *scales = &call->tensor[GROUPED_MATMUL_QUANTIZED_SCALES],
                       *zeros = trine_call_given(call, GROUPED_MATMUL_QUANTIZED_ZEROS),
                       *mins = trine_call_given(call, GROUPED_MATMUL_QUANTIZED_MINS);
    experts w = { .q = quantized_of(codes, scales, zeros, mins, call->dim[GROUPED_MATMUL_QUANTIZED_DIM_K],
                                    args->code_offset, args->format),
                  .codes = codes->stride[0],
                  .scales = group_bytes(scales),
                  .zeros = group_bytes(zeros),
                  .mins = group_bytes(mins),
                  .line_type =
                      unit_of(call->tensor[GROUPED_MATMUL_QUANTIZED_X].dtype) == UNIT_F32 ? TRINE_F32 : TRINE_BF16 };
    w.a = (affine){ .half = viset(codes->dtype == TRINE_I8 ? 1 << (w.q.bits - 1) : 0),
                    .offset = viset(args->code_offset),
                    .e2m1 = w.q.e2m1,
                    .type = codes->dtype };
    w.x_bytes = cpu_round_up(FEW * w.q.x_row * 4, 64), w.sums_bytes = cpu_round_up(FEW * w.q.sums_row * 4, 64);
    w.strip_bytes = strip_bytes(&w.q, FEW);
    return w;
}

static grouped product_of(const trine_call *call, experts *w) {
    const trine_grouped_matmul_quantized_args *args = call->args;
    *w = experts_of(call);
    const int64_t own = w->x_bytes + w->sums_bytes + w->strip_bytes;
    grouped a = grouped_of(call, &places, args->divide, args->activation);
    w->line = (a.part * unit_depth(a.kind) + 2 * AROUND) * (int64_t)trine_dtype_size(w->line_type);
    grouped_own(&a, own + w->line * tile_columns(a.kind));
    a.pack_w = pack_w, a.weights = w, a.few = few, a.few_rows = FEW;
    a.read = (double)a.e * (double)a.n * (double)a.k;
    return a;
}

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_quantized_args *args = call->args;
    if (call->dim[GROUPED_MATMUL_QUANTIZED_DIM_K] > (int64_t)1 << 40) return "rows of more than 2^40 weights";
    return grouped_refuse(call, &places, args->divide);
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    experts w;
    const grouped a = product_of(call, &w);
    return grouped_workspace(&a);
}

static trine_status launch(const trine_call *call) {
    experts w;
    const grouped a = product_of(call, &w);
    return grouped_launch(&a, "grouped_matmul_quantized");
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    experts w;
    const grouped a = product_of(call, &w);
    grouped_edges(&a, &places, edges);
    trine_kernel_edge(edges, places.n, STRIP);
    trine_kernel_edge(edges, places.p, FEW);
}

CPU_KERNELS(grouped_matmul_quantized) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
