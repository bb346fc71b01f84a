/* SPDX-License-Identifier: Apache-2.0 */
/* A norm and the product behind it (Wu et al. 2025, Mirage): rms_norm_matmul beside rms_norm and matmul, and beside the
 * paper's graph, which multiplies rows as they are by weights that have the norm's in them, and scales them at the end.
 * Time of the first two, and how far apart all three are, in f32 and bf16, with and without a residual sum. That they
 * are equal but for rounding is what trine check --exact-field says. */
#include "papers.h"

enum { K = 512, N = 1024, MOST = 512, ROUNDS = 5 };
static const float eps = 1e-5f;
static trine_queue *queue;

/* A tensor with the numbers of x, rounded to its type. */
static trine_tensor typed(trine_dtype type, float *x, int64_t rows, int64_t columns) {
    const trine_tensor from = matrix(x, rows, columns);
    void *data = malloc((size_t)(rows * columns) * trine_dtype_size(type));
    if (data == NULL) exit(1);
    const trine_tensor to = trine_tensor_2d(data, type, rows, columns);
    RUN(cast, .x = &from, .y = &to);
    need(trine_queue_wait(queue));
    return to;
}

static float *numbers(const trine_tensor *t) {
    float *x = floats(t->shape[0] * t->shape[1]);
    const trine_tensor to = matrix(x, t->shape[0], t->shape[1]);
    RUN(cast, .x = t, .y = &to);
    need(trine_queue_wait(queue));
    return x;
}

/* Inputs, and room for what is made of them. b is N x K, as linear layers have it. */
typedef struct layer {
    trine_tensor x, residual, weight, b, scaled, normalized, sum, y[3], rstd;
} layer;

static layer make_layer(trine_dtype type, int64_t rows) {
    float *x = floats(rows * K), *residual = floats(rows * K), *weight = floats(K), *b = floats(N * K),
          *scaled = floats(N * K), *zero = floats(rows * N);
    for (int64_t i = 0; i < rows * K; i++) x[i] = 3 * normal(), residual[i] = normal();
    for (int i = 0; i < K; i++) weight[i] = 1 + 0.1f * normal();
    for (int i = 0; i < N * K; i++) b[i] = normal() / sqrtf(K), scaled[i] = b[i] * weight[i % K];
    layer l = { .x = typed(type, x, rows, K),
                .residual = typed(type, residual, rows, K),
                .weight = typed(type, weight, 1, K),
                .b = typed(type, b, N, K),
                .scaled = typed(type, scaled, N, K),
                .normalized = typed(type, x, rows, K),
                .sum = typed(type, x, rows, K),
                .rstd = vector(floats(rows), rows) };
    l.weight = trine_tensor_1d(l.weight.data, type, K);
    for (int i = 0; i < 3; i++) l.y[i] = typed(type, zero, rows, N);
    free(x), free(residual), free(weight), free(b), free(scaled), free(zero);
    return l;
}

static void free_layer(layer *l) {
    free(l->x.data), free(l->residual.data), free(l->weight.data), free(l->b.data), free(l->scaled.data);
    free(l->normalized.data), free(l->sum.data), free(l->rstd.data);
    for (int i = 0; i < 3; i++) free(l->y[i].data);
}

static void by_two(const layer *l, bool residual) {
    const trine_tensor across = trine_tensor_transpose(&l->b);
    RUN(rms_norm, .x = &l->x, .weight = &l->weight, .residual = residual ? &l->residual : NULL, .y = &l->normalized,
        .residual_out = residual ? &l->sum : NULL, .eps = eps);
    RUN(matmul, .a = &l->normalized, .b = &across, .d = &l->y[0], .activation = TRINE_ACTIVATION_SILU);
}

static void by_one(const layer *l, bool residual) {
    const trine_tensor across = trine_tensor_transpose(&l->b);
    RUN(rms_norm_matmul, .x = &l->x, .weight = &l->weight, .residual = residual ? &l->residual : NULL, .b = &across,
        .y = &l->y[1], .residual_out = residual ? &l->sum : NULL, .rstd = &l->rstd, .eps = eps,
        .activation = TRINE_ACTIVATION_SILU);
}

/* With the rows' factors that by_one() left. */
static void by_factors(const layer *l, bool residual) {
    const trine_tensor across = trine_tensor_transpose(&l->scaled);
    RUN(matmul, .a = residual ? &l->sum : &l->x, .b = &across, .d = &l->y[2], .a_scale = &l->rstd,
        .activation = TRINE_ACTIVATION_SILU);
}

static void compare(trine_dtype type, int64_t rows, bool residual) {
    layer l = make_layer(type, rows);
    double least[2] = { INFINITY, INFINITY };
    for (int round = 0; round < 2 * ROUNDS; round++) {
        const double start = seconds();
        (round % 2 ? by_one : by_two)(&l, residual);
        need(trine_queue_wait(queue));
        least[round % 2] = fmin(least[round % 2], seconds() - start);
    }
    by_factors(&l, residual);
    need(trine_queue_wait(queue));
    float *two = numbers(&l.y[0]), *one = numbers(&l.y[1]), *factors = numbers(&l.y[2]);
    const double apart = distance(one, two, rows * N), apart_factors = distance(factors, two, rows * N);
    printf("%-5s %5d  %-9s %9.3f %9.3f %12.1e %12.1e\n", trine_dtype_name(type), (int)rows, residual ? "residual" : "",
           1e3 * least[0], 1e3 * least[1], apart, apart_factors);
    agree("one op beside two", apart, type == TRINE_F32 ? 1e-6 : 1e-2);
    agree("factors at the end beside two ops", apart_factors, type == TRINE_F32 ? 1e-6 : 2e-2);
    free(two), free(one), free(factors);
    free_layer(&l);
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    printf("y = silu(rms_norm(x) b), b %d x %d\n", K, N);
    printf("                         ms:        ms:   apart from two ops:\n");
    printf("type   rows              two ops    one op       one op   factors at the end\n");
    for (int type = 0; type < 2; type++)
        for (int64_t rows = 1; rows <= MOST; rows *= 8)
            for (int residual = 0; residual < 2; residual++) compare(type ? TRINE_BF16 : TRINE_F32, rows, residual);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
