/* SPDX-License-Identifier: Apache-2.0 */
/* Two of four weights (Yu et al. 2023, GPUSQ-ViT; Mishra et al. 2021): a classifier is trained whole, prune24
 * leaves the two largest of each four weights of its matrices, and training goes on with those; then pack24 packs
 * them, in f32, f16 and 8 bits, and matmul_sparse24 multiplies by what is packed. Accuracy on other points, bytes,
 * and time. */
#include <string.h>

#include "papers.h"

enum { ROWS = 128, IN = 64, HIDDEN = 64, CLASSES = 8, CLUSTERS = 96, TESTED = 4096, STEPS = 500, TUNED = 250 };
enum { B1 = HIDDEN * IN, W2 = B1 + HIDDEN, B2 = W2 + CLASSES * HIDDEN, COUNT = B2 + CLASSES };
enum { SIDE = 1024, BATCH = 64, ROUNDS = 3 };
static const float rate = 3e-3f;
static trine_queue *queue;

typedef struct test_set {
    classifier c;
    float points[TESTED * IN];
    int32_t labels[TESTED];
} test_set;

static double accuracy(test_set *t, const float *weights) {
    memcpy(t->c.weights, weights, COUNT * sizeof *weights);
    classify(queue, &t->c, t->points, t->labels, NULL);
    return right_answers(t->c.logits, t->labels, TESTED, CLASSES);
}

/* Prunes a matrix in place, and says what was kept: two of four, the largest in size. */
static void prune(float *weights, int64_t rows, int64_t columns, uint8_t *mask) {
    const trine_tensor w = matrix(weights, rows, columns), kept = trine_tensor_2d(mask, TRINE_U8, rows, columns);
    float *before = floats(rows * columns);
    memcpy(before, weights, (size_t)(rows * columns) * sizeof *before);
    RUN(prune24, .x = &w, .y = &w, .mask = &kept);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < rows * columns; i += 4) {
        float least = INFINITY, most = 0, count = 0;
        for (int64_t j = i; j < i + 4; j++) {
            agree("a weight that was kept, or 0", weights[j] != (mask[j] ? before[j] : 0), 0);
            if (mask[j]) least = fminf(least, fabsf(before[j])), count++;
            if (!mask[j]) most = fmaxf(most, fabsf(before[j]));
        }
        agree("kept of four, less 2", fabsf(count - 2), 0);
        agree("the largest that is left out", most, least);
    }
    free(before);
}

/* Steps of AdamW; weights whose mask is 0 stay 0. */
static void train(classifier *c, const uint8_t *mask, float most, int steps) {
    float *gradient = floats(COUNT), *m = floats(COUNT), *v = floats(COUNT), *points = floats(ROWS * IN);
    int32_t labels[ROWS];
    const trine_tensor w = vector(c->weights, COUNT), g = vector(gradient, COUNT), tm = vector(m, COUNT),
                       tv = vector(v, COUNT);
    for (int i = 1; i <= steps; i++) {
        draw_points(c, CLUSTERS, points, labels);
        classify(queue, c, points, labels, gradient);
        for (int j = 0; j < COUNT && mask; j++) gradient[j] *= mask[j];
        RUN(adamw, .param = &w, .grad = &g, .m = &tm, .v = &tv, .lr = most * (1 - (float)i / (float)(steps + 1)),
            .step = i);
        need(trine_queue_wait(queue));
    }
    free(gradient), free(m), free(v), free(points);
}

/* A matrix packed in a type; i8 with a scale for all of it. */
typedef struct packed {
    trine_dtype type;
    int64_t n, k;
    float scale;
    trine_tensor values, indices;
} packed;

static void convert(float *x, trine_dtype type, int64_t rows, int64_t columns, float *scale, void *to) {
    const trine_tensor from = matrix(x, rows, columns), y = trine_tensor_2d(to, type, rows, columns);
    const trine_tensor s = trine_tensor_2d(scale, TRINE_F32, 1, 1);
    if (type == TRINE_I8)
        RUN(quantize_blocks, .x = &from, .codes = &y, .scales = &s);
    else
        RUN(cast, .x = &from, .y = &y);
}

/* Of weights that are pruned: to pack what is rounded. Unpacked it must be that again. */
static packed pack(float *weights, int64_t n, int64_t k, trine_dtype type) {
    const size_t size = trine_dtype_size(type);
    packed p = { .type = type, .n = n, .k = k, .scale = 1 };
    void *rounded = malloc((size_t)(n * k) * size), *again = malloc((size_t)(n * k) * size);
    p.values = trine_tensor_2d(malloc((size_t)(n * k / 2) * size), type, n, k / 2);
    p.indices = trine_tensor_2d(malloc((size_t)(n * k / 8)), TRINE_U8, n, k / 8);
    const trine_tensor from = trine_tensor_2d(rounded, type, n, k), to = trine_tensor_2d(again, type, n, k);
    convert(weights, type, n, k, &p.scale, rounded);
    RUN(pack24, .x = &from, .values = &p.values, .indices = &p.indices);
    RUN(unpack24, .values = &p.values, .indices = &p.indices, .y = &to);
    need(trine_queue_wait(queue));
    agree("what was packed and unpacked", memcmp(rounded, again, (size_t)(n * k) * size) != 0, 0);
    free(rounded), free(again);
    return p;
}

static int64_t bytes(const packed *p) { return p->n * p->k / 2 * (int64_t)trine_dtype_size(p->type) + p->n * p->k / 8; }
static void free_packed(packed *p) { free(p->values.data), free(p->indices.data); }

/* y = x w^T of f32 x and y, rows of x being rounded to the type of w. */
static void multiply(const packed *p, float *x, int64_t rows, float *y) {
    int32_t *sums = calloc((size_t)(rows * p->n), sizeof *sums);
    void *rounded = malloc((size_t)(rows * p->k) * sizeof(float));
    float scale = 1;
    const trine_tensor in = trine_tensor_2d(rounded, p->type, rows, p->k), out = matrix(y, rows, p->n),
                       whole = trine_tensor_2d(sums, TRINE_I32, rows, p->n);
    convert(x, p->type, rows, p->k, &scale, rounded);
    RUN(matmul_sparse24, .x = &in, .values = &p->values, .indices = &p->indices,
        .y = p->type == TRINE_I8 ? &whole : &out);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < rows * p->n && p->type == TRINE_I8; i++) y[i] = (float)sums[i] * scale * p->scale;
    free(sums), free(rounded);
}

/* The test's accuracy by packed matrices; how far logits are from those of the pruned weights in f32; bytes. */
static double by_packed(test_set *t, float *weights, trine_dtype type, double *apart_out, int64_t *bytes_out) {
    packed first = pack(weights, HIDDEN, IN, type), second = pack(weights + W2, CLASSES, HIDDEN, type);
    float *h = floats(TESTED * HIDDEN), *logits = floats(TESTED * CLASSES);
    const trine_tensor u = matrix(h, TESTED, HIDDEN), z = matrix(logits, TESTED, CLASSES),
                       b1 = vector(weights + B1, HIDDEN), b2 = vector(weights + B2, CLASSES);
    multiply(&first, t->points, TESTED, h);
    RUN(gelu_bias, .x = &u, .bias = &b1, .y = &u);
    need(trine_queue_wait(queue));
    multiply(&second, h, TESTED, logits);
    RUN(add, .a = &z, .b = &b2, .y = &z);
    need(trine_queue_wait(queue));
    accuracy(t, weights);
    *apart_out = distance(logits, t->c.logits, TESTED * CLASSES), *bytes_out = bytes(&first) + bytes(&second);
    const double right = right_answers(logits, t->labels, TESTED, CLASSES);
    free(h), free(logits), free_packed(&first), free_packed(&second);
    return right;
}

/* Times of a product of a larger matrix, in f32, and bytes of its weights. */
static void timed(void) {
    float *w = floats(SIDE * SIDE), *x = floats(BATCH * SIDE), *y = floats(BATCH * SIDE), *z = floats(BATCH * SIDE);
    uint8_t *mask = calloc(SIDE * SIDE, 1);
    for (int i = 0; i < SIDE * SIDE; i++) w[i] = normal();
    for (int i = 0; i < BATCH * SIDE; i++) x[i] = normal();
    prune(w, SIDE, SIDE, mask);
    packed p = pack(w, SIDE, SIDE, TRINE_F32);
    for (int64_t rows = 1; rows <= BATCH; rows *= 8) {
        const trine_tensor in = matrix(x, rows, SIDE), dense = matrix(w, SIDE, SIDE),
                           down = trine_tensor_transpose(&dense), out = matrix(y, rows, SIDE),
                           sparse = matrix(z, rows, SIDE);
        double least[2] = { INFINITY, INFINITY };
        for (int round = 0; round < 2 * ROUNDS; round++) {
            const double start = seconds();
            if (round % 2)
                RUN(matmul_sparse24, .x = &in, .values = &p.values, .indices = &p.indices, .y = &sparse);
            else
                RUN(matmul, .a = &in, .b = &down, .d = &out);
            need(trine_queue_wait(queue));
            least[round % 2] = fmin(least[round % 2], seconds() - start);
        }
        printf("%5d %10.2f %10.2f\n", (int)rows, 1e3 * least[0], 1e3 * least[1]);
        agree("the packed product beside the dense one", distance(z, y, rows * SIDE), 1e-5);
    }
    free(w), free(x), free(y), free(z), free(mask), free_packed(&p);
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    static test_set t;
    static uint8_t mask[COUNT];
    classifier c = make_classifier(ROWS, IN, HIDDEN, CLASSES);
    t.c = make_classifier(TESTED, IN, HIDDEN, CLASSES);
    draw_points(&t.c, CLUSTERS, t.points, t.labels);
    train(&c, NULL, rate, STEPS);
    const double whole = accuracy(&t, c.weights);
    memset(mask, 1, sizeof mask);
    prune(c.weights, HIDDEN, IN, mask), prune(c.weights + W2, CLASSES, HIDDEN, mask + W2);
    const double pruned = accuracy(&t, c.weights);
    train(&c, mask, rate / 2, TUNED);
    const double tuned = accuracy(&t, c.weights);
    printf("weights of the matrices   right   bytes   logits off by\n");
    printf("all, f32                 %5.1f%%   %5d\n", 100 * whole, (B1 + CLASSES * HIDDEN) * 4);
    printf("pruned, f32              %5.1f%%\npruned and tuned, f32    %5.1f%%\n", 100 * pruned, 100 * tuned);
    static const trine_dtype types[] = { TRINE_F32, TRINE_F16, TRINE_I8 };
    static const double most[] = { 1e-5, 5e-3, 0.1 };
    for (int i = 0; i < 3; i++) {
        double apart;
        int64_t size;
        const double right = by_packed(&t, c.weights, types[i], &apart, &size);
        printf("these packed, %-4s       %5.1f%%   %5d   %13.1e\n", trine_dtype_name(types[i]), 100 * right, (int)size,
               apart);
        agree("logits by what is packed", apart, most[i]);
        agree("packed: right answers lost", tuned - right, 0.02);
    }
    agree("pruned: right answers beside those of all", pruned, whole);
    agree("tuned: right answers lost", whole - tuned, 0.05);
    printf("\n%d x %d weights, ms: rows, dense, sparse\n", SIDE, SIDE);
    timed();
    free_classifier(&c), free_classifier(&t.c);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
