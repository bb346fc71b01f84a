/* SPDX-License-Identifier: Apache-2.0 */
/* Three fusions of Megatron-LM (Narayanan et al. 2021), which DeepSpeed Inference (Aminabadi et al. 2022) has too:
 * softmax of scaled and masked scores, GELU of rows plus a bias, and dropout of rows plus a bias added to a residual,
 * each with its gradient, and beside it the same by separate ops, which read and write more bytes and round between.
 * Off is the largest difference from the fused op in f32. */
#include <string.h>

#include "papers.h"

enum { BATCH = 2, HEADS = 8, LENGTH = 512, ROWS = 4096, WIDTH = 1024, ALL = ROWS * WIDTH, ROUNDS = 5 };
static const float scale = 0.7f, p = 0.1f;

/* What separate ops add to scores for a mask, what they write between, outputs, and inputs. */
enum { HIDDEN, BETWEEN, Y, DBIAS, X, DY, RESIDUAL, BIAS, WEIGHTS, TENSORS };
typedef struct job {
    trine_queue *queue;
    trine_tensor t[TENSORS], mask;
} job;

/* Counts the bytes of a tensor that an op reads or writes. */
static double moved;
static const trine_tensor *pass(const trine_tensor *t) {
    moved += (double)trine_tensor_count(t) * (double)trine_dtype_size(t->dtype);
    return t;
}

static trine_tensor scores(const trine_tensor *t) {
    return trine_tensor_4d(t->data, t->dtype, BATCH, HEADS, LENGTH, LENGTH);
}
static trine_tensor matrices(const trine_tensor *t) {
    return trine_tensor_3d(t->data, t->dtype, BATCH * HEADS, LENGTH, LENGTH);
}

#define CALL(op, ...) need(trine_##op(j->queue, &(trine_##op##_args){ TRINE_ARGS(op), __VA_ARGS__ }))

static void softmax_fused(job *j) {
    const trine_tensor x = scores(&j->t[X]), y = scores(&j->t[Y]);
    CALL(softmax_masked, .x = pass(&x), .mask = pass(&j->mask), .y = pass(&y), .scale = scale);
}
static void softmax_apart(job *j) {
    const trine_tensor x = scores(&j->t[X]), z = scores(&j->t[BETWEEN]), in = matrices(&z), out = matrices(&j->t[Y]);
    CALL(scale, .x = pass(&x), .y = pass(&z), .alpha = scale);
    CALL(add, .a = pass(&z), .b = pass(&j->t[HIDDEN]), .y = pass(&z));
    CALL(softmax, .x = pass(&in), .y = pass(&out));
}
static void softmax_backward_fused(job *j) {
    const trine_tensor w = scores(&j->t[WEIGHTS]), dy = scores(&j->t[DY]), dx = scores(&j->t[Y]);
    CALL(softmax_masked_backward, .y = pass(&w), .dy = pass(&dy), .dx = pass(&dx), .scale = scale);
}
static void softmax_backward_apart(job *j) {
    const trine_tensor w = matrices(&j->t[WEIGHTS]), dy = matrices(&j->t[DY]), dx = matrices(&j->t[Y]);
    CALL(softmax_backward, .y = pass(&w), .dy = pass(&dy), .dx = pass(&dx));
    CALL(scale, .x = pass(&dx), .y = pass(&dx), .alpha = scale);
}
static void gelu_fused(job *j) { CALL(gelu_bias, .x = pass(&j->t[X]), .bias = pass(&j->t[BIAS]), .y = pass(&j->t[Y])); }
static void gelu_apart(job *j) {
    CALL(add, .a = pass(&j->t[X]), .b = pass(&j->t[BIAS]), .y = pass(&j->t[BETWEEN]));
    CALL(gelu, .x = pass(&j->t[BETWEEN]), .y = pass(&j->t[Y]));
}
static void gelu_backward_fused(job *j) {
    CALL(gelu_bias_backward, .dy = pass(&j->t[DY]), .x = pass(&j->t[X]), .bias = pass(&j->t[BIAS]),
         .dx = pass(&j->t[Y]), .dbias = pass(&j->t[DBIAS]));
}
/* With the sum that the forward kept. */
static void gelu_backward_apart(job *j) {
    CALL(gelu_backward, .dy = pass(&j->t[DY]), .x = pass(&j->t[BETWEEN]), .dx = pass(&j->t[Y]));
    CALL(reduce_sum, .x = pass(&j->t[Y]), .column_sums = pass(&j->t[DBIAS]));
}
static void dropout_fused(job *j) {
    CALL(dropout_add, .x = pass(&j->t[X]), .bias = pass(&j->t[BIAS]), .residual = pass(&j->t[RESIDUAL]),
         .y = pass(&j->t[Y]), .p = p, .seed = 1);
}
static void dropout_apart(job *j) {
    CALL(add, .a = pass(&j->t[X]), .b = pass(&j->t[BIAS]), .y = pass(&j->t[BETWEEN]));
    CALL(dropout, .x = pass(&j->t[BETWEEN]), .y = pass(&j->t[BETWEEN]), .p = p, .seed = 1);
    CALL(add, .a = pass(&j->t[BETWEEN]), .b = pass(&j->t[RESIDUAL]), .y = pass(&j->t[Y]));
}
static void dropout_backward_fused(job *j) {
    CALL(dropout_add_backward, .dy = pass(&j->t[DY]), .dx = pass(&j->t[Y]), .dbias = pass(&j->t[DBIAS]), .p = p,
         .seed = 1);
}
static void dropout_backward_apart(job *j) {
    CALL(dropout, .x = pass(&j->t[DY]), .y = pass(&j->t[Y]), .p = p, .seed = 1);
    CALL(reduce_sum, .x = pass(&j->t[Y]), .column_sums = pass(&j->t[DBIAS]));
}

typedef void way(job *);
static const struct {
    const char *name;
    way *fused, *apart;
    bool dbias;
} ops[] = { { "softmax_masked", softmax_fused, softmax_apart, false },
            { "its gradient", softmax_backward_fused, softmax_backward_apart, false },
            { "gelu_bias", gelu_fused, gelu_apart, false },
            { "its gradient", gelu_backward_fused, gelu_backward_apart, true },
            { "dropout_add", dropout_fused, dropout_apart, false },
            { "its gradient", dropout_backward_fused, dropout_backward_apart, true } };

/* The same numbers in another type. */
static trine_tensor convert(trine_queue *queue, const trine_tensor *x, trine_dtype type) {
    trine_tensor y = *x;
    y.dtype = type, y.data = calloc((size_t)trine_tensor_count(x), trine_dtype_size(type));
    if (y.data == NULL) exit(1);
    need(trine_cast(queue, &(trine_cast_args){ TRINE_ARGS(cast), .x = x, .y = &y }));
    return y;
}

/* In bf16, and then the same numbers in f32. A third of the keys, others for each query, is hidden. */
static void make_jobs(trine_queue *queue, job *jobs) {
    static const float size[TENSORS] = { [X] = 4, [DY] = 1, [RESIDUAL] = 1, [BIAS] = 1 };
    static uint8_t mask[BATCH * LENGTH * LENGTH];
    for (int k = 0; k < TENSORS; k++) {
        const int64_t count = k == HIDDEN ? (int64_t)sizeof mask : k == BIAS || k == DBIAS ? WIDTH : ALL;
        float *x = floats(count);
        for (int64_t i = 0; i < count; i++) x[i] = size[k] > 0 ? size[k] * normal() : 0;
        for (int64_t i = 0; k == HIDDEN && i < count; i++) x[i] = (mask[i] = uniform() < 2.0 / 3) ? 0 : -10000;
        const trine_tensor t = k == HIDDEN    ? trine_tensor_4d(x, TRINE_F32, BATCH, 1, LENGTH, LENGTH)
                               : count == ALL ? matrix(x, ROWS, WIDTH)
                                              : vector(x, count);
        jobs[0].t[k] = convert(queue, &t, TRINE_BF16);
        free(x);
    }
    jobs[0].queue = queue, jobs[0].mask = trine_tensor_4d(mask, TRINE_U8, BATCH, 1, LENGTH, LENGTH);
    softmax_fused(&jobs[0]);
    memcpy(jobs[0].t[WEIGHTS].data, jobs[0].t[Y].data, ALL * sizeof(uint16_t));
    jobs[1] = jobs[0];
    for (int k = 0; k < TENSORS; k++) jobs[1].t[k] = convert(queue, &jobs[0].t[k], TRINE_F32);
}

/* The least seconds of some runs; outputs are those of the last. */
static double timed(job *j, way *run, double *bytes_out) {
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        moved = 0;
        const double start = seconds();
        run(j);
        need(trine_queue_wait(j->queue));
        least = fmin(least, seconds() - start);
    }
    *bytes_out = moved;
    return least;
}

/* The largest difference, as a share of the element and the root mean square of all. */
static double off(trine_queue *queue, const trine_tensor *t, const trine_tensor *from) {
    const int64_t count = trine_tensor_count(t);
    const trine_tensor wide = convert(queue, t, TRINE_F32);
    const float *a = wide.data, *b = from->data;
    double squares = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) squares += (double)b[i] * (double)b[i];
    const double size = sqrt(squares / (double)count);
    for (int64_t i = 0; i < count; i++)
        largest = worst(largest, fabs((double)a[i] - (double)b[i]) / (fabs((double)b[i]) + size));
    free(wide.data);
    return largest;
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    job jobs[2];
    make_jobs(queue, jobs);
    printf("%d heads of %d queries and keys, twice; %d rows of %d\n\n", HEADS, LENGTH, ROWS, WIDTH);
    printf("                       fused                       by separate ops\n");
    printf("op               type      ms      MB       off       ms      MB       off\n");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        trine_tensor y = { 0 }, dbias = { 0 };
        for (int k = 1; k >= 0; k--) {
            job *j = &jobs[k];
            printf("%-14s   %s", ops[i].name, k ? "f32 " : "bf16");
            for (int apart = 0; apart < 2; apart++) {
                double bytes;
                const double spent = timed(j, apart ? ops[i].apart : ops[i].fused, &bytes);
                if (k && !apart)
                    y = convert(queue, &j->t[Y], TRINE_F32), dbias = convert(queue, &j->t[DBIAS], TRINE_F32);
                const double far = worst(off(queue, &j->t[Y], &y), ops[i].dbias ? off(queue, &j->t[DBIAS], &dbias) : 0);
                printf("   %6.2f   %5.1f   %7.1e", 1e3 * spent, 1e-6 * bytes, far);
                agree(ops[i].name, far, k ? 1e-5 : apart ? 0.1 : 0x1p-8);
            }
            printf("\n");
        }
        free(y.data), free(dbias.data);
    }
    for (int i = 0; i < 2 * TENSORS; i++) free(jobs[i / TENSORS].t[i % TENSORS].data);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
