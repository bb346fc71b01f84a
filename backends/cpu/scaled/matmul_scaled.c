/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on the CPU. Few rows of a: few.h. Otherwise many.h. */
#include "few.h"
#include "many.h"
#include "spec/places/matmul_scaled.h"

static scaled scaled_of(const trine_call *call) {
    const trine_matmul_scaled_args *args = call->args;
    const bool both = args->format == TRINE_SCALED_E2M1_BOTH, e2m1 = args->format >= TRINE_SCALED_E2M1;
    scaled s = { .m = call->dim[MATMUL_SCALED_DIM_M],
                 .n = call->dim[MATMUL_SCALED_DIM_N],
                 .k = call->dim[MATMUL_SCALED_DIM_P] * (both ? 2 : 1) };
    s.a = side_of(&call->tensor[MATMUL_SCALED_A], trine_call_given(call, MATMUL_SCALED_A_SCALE), 2,
                  element_of(call->type[MATMUL_SCALED_TYPE_A], both, true), s.k);
    s.b = side_of(&call->tensor[MATMUL_SCALED_B], trine_call_given(call, MATMUL_SCALED_B_SCALE), 2,
                  element_of(call->type[MATMUL_SCALED_TYPE_B], call->dim[MATMUL_SCALED_DIM_Q] < s.k, e2m1), s.k);
    s.b.offset = args->offset;
    s.parts = count_parts(&s);
    return s;
}

/* In front of the workspace, behind which is what threads have. */
static int64_t parts_bytes(const scaled *s) { return cpu_round_up(s->parts * (int64_t)sizeof(part), 256); }

/* n sums of a row of d from `column` on; they may be read in whole vectors. */
static void finish_sums(const trine_call *call, const float *sums, int64_t row, int64_t column, int64_t n) {
    const trine_matmul_scaled_args *args = call->args;
    const trine_tensor *d = &call->tensor[MATMUL_SCALED_D], *bias = &call->tensor[MATMUL_SCALED_BIAS];
    const target t = { .bias = call->present >> MATMUL_SCALED_BIAS & 1 ? bias->data : NULL,
                       .bias_type = bias->dtype,
                       .activation = args->activation };
    const factors f = { .whole = (double)args->alpha };
    char *to = (char *)d->data + row * d->stride[0] * (int64_t)trine_dtype_size(d->dtype);
    if (d->dtype == TRINE_F32)
        finish_row(&t, sums, &f, to, NULL, column, n, TRINE_F32);
    else if (d->dtype == TRINE_BF16)
        finish_row(&t, sums, &f, to, NULL, column, n, TRINE_BF16);
    else
        finish_row(&t, sums, &f, to, NULL, column, n, TRINE_F16);
}

/* --------------------------------------------------------------------------------------------------------- few rows */

typedef struct few_rows {
    few f;
    const trine_call *call;
    char *own; /* of the first thread */
    int team;
} few_rows;

static few_rows few_rows_of(const trine_call *call, const scaled *s) {
    few_rows r = { .f = few_of(s), .call = call };
    const int64_t read = s->n * s->k, much = 1 << 30;
    r.team = cpu_team(call, (s->n + STRIP - 1) / STRIP, (read < much ? read : much) * (1 + s->m / SIDE));
    r.f.x = (float *)(void *)((char *)call->workspace + parts_bytes(s));
    r.f.scales = (float *)(void *)((char *)r.f.x + r.f.x_bytes);
    r.own = (char *)r.f.scales + r.f.scales_bytes;
    return r;
}

static void strips(const void *context, int64_t begin, int64_t end, int thread) {
    const few_rows *r = context;
    const scaled *s = &r->f.s;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = t * STRIP, columns = s->n - first < STRIP ? s->n - first : STRIP;
        const float *sums = strip_sums(&r->f, r->own + thread * r->f.own_bytes, first, columns);
        for (int64_t i = 0; i < s->m; i++) finish_sums(r->call, sums + i * STRIP, i, first, columns);
    }
}

static void run_few(const trine_call *call, const scaled *s) {
    const few_rows r = few_rows_of(call, s);
    list_parts(s, s->part, few_unit(s));
    cpu_shares(call, cpu_team(call, s->m, r.f.x_bytes * 2), s->m, few_lay_out, &r.f);
    cpu_tasks(call, r.team, (s->n + STRIP - 1) / STRIP, strips, &r);
}

/* -------------------------------------------------------------------------------------------------------- many rows */

typedef struct many_tasks {
    many g;
    const scaled *s;
    const trine_call *call;
    int64_t right, down; /* tasks along n and m */
    int team;
} many_tasks;

static many_tasks many_tasks_of(const trine_call *call, const scaled *s) {
    many_tasks t = { .g = many_of(s->m, s->n), .s = s, .call = call };
    t.right = (s->n + MANY_COLUMNS - 1) / MANY_COLUMNS;
    t.down = t.g.rows > 0 ? (s->m + t.g.rows - 1) / t.g.rows : 0;
    const double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    t.team = cpu_team(call, t.right * t.down, (int64_t)fmin(flops / 4, 0x1p62));
    return t;
}

static void finish_task(const trine_call *call, const many_task *t) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j += t->g->wide)
            finish_sums(call, many_row(t, i, j), t->row + i, t->column + j, many_least(t->columns - j, t->g->wide));
}

static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const many_tasks *all = context;
    const scaled *s = all->s;
    const many *g = &all->g;
    many_task t = many_task_in(g, s, (char *)all->call->workspace + parts_bytes(s) + thread * g->bytes);
    for (int64_t index = first; index < last; index++) {
        t.row = index / all->right * g->rows, t.column = index % all->right * MANY_COLUMNS;
        t.rows = many_least(s->m - t.row, g->rows), t.columns = many_least(s->n - t.column, MANY_COLUMNS);
        many_sums(&t);
        finish_task(all->call, &t);
    }
}

static void run_many(const trine_call *call, const scaled *s) {
    const many_tasks t = many_tasks_of(call, s);
    list_parts(s, s->part, 1);
    cpu_tasks(call, t.team, t.right * t.down, run_tasks, &t);
}

/* --------------------------------------------------------------------------------------------------------- the call */

static const char *refuse(const trine_call *call) {
    const trine_dtype b = call->type[MATMUL_SCALED_TYPE_B];
    if ((b == TRINE_E4M3 || b == TRINE_E5M2) && call->dim[MATMUL_SCALED_DIM_P] != call->dim[MATMUL_SCALED_DIM_Q])
        return "b of two elements in a byte that take 8 bits";
    return call->dim[MATMUL_SCALED_DIM_P] > INT32_MAX / 2 ? "rows of more than 2^30 bytes" : NULL;
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const scaled s = scaled_of(call);
    if (few_takes(&s)) {
        const few_rows r = few_rows_of(call, &s);
        return (size_t)(parts_bytes(&s) + r.f.x_bytes + r.f.scales_bytes + r.team * r.f.own_bytes);
    }
    const many_tasks t = many_tasks_of(call, &s);
    return (size_t)(parts_bytes(&s) + t.team * t.g.bytes);
}

static trine_status launch(const trine_call *call) {
    scaled s = scaled_of(call);
    s.part = call->workspace;
    if (few_takes(&s))
        run_few(call, &s);
    else
        run_many(call, &s);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SIDE);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, FEW);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, MANY_PACKED);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, MANY_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, STRIP);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, MANY_COLUMNS);
}

CPU_KERNELS(matmul_scaled) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
