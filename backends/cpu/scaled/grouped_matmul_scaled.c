/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_scaled on the CPU: the tasks are those of grouped_matmul, rows of a group by columns of its matrix,
 * and each is done as matmul_scaled does it, of few rows or of many. */
#include "backends/cpu/matmul/grouped_product.h"

#include "few.h"
#include "many.h"
#include "spec/places/grouped_matmul_scaled.h"

static const grouped_places places = GROUPED_PLACES(GROUPED_MATMUL_SCALED);

typedef struct experts {
    scaled s; /* of the first group */
    few f;
    many g;
    const float *group_scale; /* NULL: absent */
    int64_t w, w_scale;       /* strides from a group to the next, in bytes */
    int64_t rows_bytes, laid_bytes,
        parts; /* of a task's rows of x; of few rows that are laid out; of the list of parts */
} experts;

/* ---------------------------------------------------------------------------------------------------------- a task */

/* `sums`, of n columns of y from (row, column) on, are multiplied in place. */
static void finish_row_of(const task *t, float *sums, int64_t row, int64_t column, int64_t n) {
    const grouped *a = t->a;
    const experts *w = a->weights;
    for (int64_t j = 0; w->group_scale && j < n; j++) sums[j] *= w->group_scale[t->g];
    FOR_TYPE(a->y->dtype, finish_one, a, sums, t->g, row, column, n);
}

static void few_product(task *t, const scaled *s, char *memory) {
    const experts *w = t->a->weights;
    few f = w->f;
    f.s = *s, f.x = (float *)(void *)memory, f.scales = (float *)(void *)(memory + f.x_bytes);
    if (t->kept != t->first) few_lay_out(&f, 0, t->rows, 0);
    t->kept = t->first;
    for (int64_t j = 0; j < t->columns; j += STRIP) {
        const int64_t columns = t->columns - j < STRIP ? t->columns - j : STRIP;
        float *sums = strip_sums(&f, memory + w->laid_bytes, t->column + j, columns);
        for (int64_t i = 0; i < t->rows; i++) finish_row_of(t, sums + i * STRIP, t->first + i, t->column + j, columns);
    }
}

static void many_product(task *t, const scaled *s, char *memory) {
    const experts *w = t->a->weights;
    const many *g = &w->g;
    many_task m = many_task_in(g, s, memory);
    t->kept = -1;
    m.column = t->column, m.columns = t->columns;
    for (m.row = 0; m.row < t->rows; m.row += g->rows) {
        m.rows = many_least(t->rows - m.row, g->rows);
        many_sums(&m);
        for (int64_t i = 0; i < m.rows; i++)
            for (int64_t j = 0; j < t->columns; j += g->wide)
                finish_row_of(t, many_row(&m, i, j), t->first + m.row + i, t->column + j,
                              many_least(t->columns - j, g->wide));
    }
}

/* Rows that are made of none of x are computed of another, and written as 0. */
static void product(task *t) {
    const grouped *a = t->a;
    const experts *w = a->weights;
    int32_t *const source = (int32_t *)(void *)t->own;
    if (a->r == 0) {
        clear_part(t, t->first, t->first + t->rows);
        return;
    }
    scaled s = w->s;
    s.m = t->rows, s.a.source = source;
    s.b.data += t->g * w->w;
    if (s.b.scale) s.b.scale += t->g * w->w_scale;
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t from = source_of(a, t->first + i);
        source[i] = from < 0 ? 0 : (int32_t)from;
    }
    if (few_takes(&s))
        few_product(t, &s, t->own + w->rows_bytes);
    else
        many_product(t, &s, t->own + w->rows_bytes);
}

/* --------------------------------------------------------------------------------------------------------- the call */

static experts experts_of(const trine_call *call) {
    const trine_grouped_matmul_scaled_args *args = call->args;
    const trine_tensor *x = &call->tensor[GROUPED_MATMUL_SCALED_X], *w = &call->tensor[GROUPED_MATMUL_SCALED_W],
                       *w_scale = trine_call_given(call, GROUPED_MATMUL_SCALED_W_SCALE),
                       *group_scale = trine_call_given(call, GROUPED_MATMUL_SCALED_GROUP_SCALE);
    const bool both = args->format == TRINE_SCALED_E2M1_BOTH, e2m1 = args->format >= TRINE_SCALED_E2M1;
    const int64_t p = call->dim[GROUPED_MATMUL_SCALED_DIM_P], n = call->dim[GROUPED_MATMUL_SCALED_DIM_N],
                  k = call->dim[GROUPED_MATMUL_SCALED_DIM_K] * (both ? 2 : 1);
    experts of = { .s = { .m = many_least(p, FEW), .n = n, .k = k },
                   .g = many_of(many_least(p, TASK_ROWS), n),
                   .group_scale = group_scale ? group_scale->data : NULL,
                   .w = w->stride[0],
                   .w_scale = w_scale ? w_scale->stride[0] * (int64_t)trine_dtype_size(w_scale->dtype) : 0 };
    scaled *s = &of.s;
    s->a = side_of(x, trine_call_given(call, GROUPED_MATMUL_SCALED_X_SCALE), 2, element_of(x->dtype, both, true), k);
    s->b = side_of(w, w_scale, 3, element_of(w->dtype, call->dim[GROUPED_MATMUL_SCALED_DIM_Q] < k, e2m1), k);
    s->b.offset = args->code_offset;
    s->parts = count_parts(s);
    of.f = few_of(s);
    of.rows_bytes = cpu_round_up(many_least(p, TASK_ROWS) * (int64_t)sizeof(int32_t), 256);
    of.laid_bytes = of.f.x_bytes + of.f.scales_bytes;
    of.parts = cpu_round_up(s->parts * (int64_t)sizeof(part), 256);
    return of;
}

static grouped product_of(const trine_call *call, experts *w) {
    const trine_grouped_matmul_scaled_args *args = call->args;
    *w = experts_of(call);
    grouped a = grouped_of(call, &places, args->divide, args->activation);
    a.kind = UNIT_F32, a.columns = w->g.columns, a.right = divide_up(a.n, a.columns > 0 ? a.columns : 1);
    a.x_bytes = a.w_bytes = a.sums_bytes = a.lines_bytes = 0;
    const int64_t few_bytes = w->laid_bytes + w->f.own_bytes;
    grouped_own(&a, w->rows_bytes + (few_bytes > w->g.bytes ? few_bytes : w->g.bytes));
    a.weights = w, a.few = product, a.few_rows = TASK_ROWS;
    a.read = (double)a.e * (double)a.n * (double)a.k;
    return a;
}

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_scaled_args *args = call->args;
    const trine_dtype w = call->type[GROUPED_MATMUL_SCALED_TYPE_B];
    const int64_t k = call->dim[GROUPED_MATMUL_SCALED_DIM_K];
    if ((w == TRINE_E4M3 || w == TRINE_E5M2) && k != call->dim[GROUPED_MATMUL_SCALED_DIM_Q])
        return "w of two elements in a byte that take 8 bits";
    return k > INT32_MAX / 2 ? "rows of more than 2^30 bytes" : grouped_refuse(call, &places, args->divide);
}

/* Behind what threads have is the list of the parts of k. */
static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    experts w;
    const grouped a = product_of(call, &w);
    return grouped_workspace(&a) + (size_t)w.parts;
}

static trine_status launch(const trine_call *call) {
    experts w;
    const grouped a = product_of(call, &w);
    w.s.part = (part *)(void *)((char *)call->workspace + grouped_workspace(&a));
    list_parts(&w.s, w.s.part, few_unit(&w.s));
    return grouped_launch(&a, "grouped_matmul_scaled");
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    experts w;
    const grouped a = product_of(call, &w);
    grouped_edges(&a, &places, edges);
    trine_kernel_edge(edges, places.p, SIDE);
    trine_kernel_edge(edges, places.p, FEW);
    trine_kernel_edge(edges, places.p, MANY_PACKED);
    trine_kernel_edge(edges, places.p, MANY_ROWS);
    trine_kernel_edge(edges, places.n, STRIP);
}

CPU_KERNELS(grouped_matmul_scaled) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
