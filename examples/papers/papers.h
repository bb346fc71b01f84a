/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples of papers share: a queue on the CPU, made numbers, a clock, the end of a program that failed,
 * and a small classifier. */
#ifndef PAPERS_H
#define PAPERS_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <trine/trine.h>

/* Ends the program if a call did not go well. */
static inline void need(trine_status status) {
    if (status == TRINE_OK) return;
    fprintf(stderr, "%s: %s\n", trine_status_name(status), trine_error_message());
    exit(1);
}

/* Runs an op on `queue`. */
#define RUN(op, ...) need(trine_##op(queue, &(trine_##op##_args){ TRINE_ARGS(op), __VA_ARGS__ }))

static inline trine_queue *cpu_queue(trine_library **lib_out) {
    trine_queue *queue = NULL;
    need(trine_open(NULL, lib_out));
    need(trine_queue_open(*lib_out, 0, NULL, &queue));
    return queue;
}

/* Uniform in [0, 1), and normal with mean 0 and deviation 1: the same numbers in each run. */
static uint64_t random_state = 1;
static inline double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}
static inline float normal(void) { return (float)(sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform())); }

static inline float *floats(int64_t count) {
    float *x = calloc((size_t)count, sizeof *x);
    if (x == NULL) exit(1);
    return x;
}

/* A tensor of f32. */
static inline trine_tensor vector(float *x, int64_t n) { return trine_tensor_1d(x, TRINE_F32, n); }
static inline trine_tensor matrix(float *x, int64_t rows, int64_t columns) {
    return trine_tensor_2d(x, TRINE_F32, rows, columns);
}

/* The time since some moment. */
static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The larger one, or NaN if one is. */
static inline double worst(double a, double b) { return b > a || isnan(b) ? b : a; }

/* |a - b| / |b| */
static inline double distance(const float *a, const float *b, int64_t count) {
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(apart / size);
}

/* Says what is too large, the distance from a direct computation as a rule, and remembers that something was. */
static int disagreements;
static inline void agree(const char *what, double apart, double most) {
    if (apart <= most) return;
    printf("%s: %g, more than %g\n", what, apart, most);
    disagreements++;
}

/* h = gelu(x w1^T + b1), logits = h w2^T + b2: `count` weights one behind the other, w1 of hidden x in, b1, w2 of
 * out x hidden, and b2. u, h and logits are of a batch's rows: its sums before gelu, and what gelu makes of them. */
typedef struct classifier {
    int64_t rows, in, hidden, out, count;
    float *weights, *u, *h, *logits, *loss;
} classifier;

static inline classifier make_classifier(int64_t rows, int64_t in, int64_t hidden, int64_t out) {
    classifier c = { rows, in, hidden, out, (in + 1) * hidden + (hidden + 1) * out, NULL, NULL, NULL, NULL, NULL };
    c.weights = floats(c.count), c.u = floats(rows * hidden), c.h = floats(rows * hidden);
    c.logits = floats(rows * out), c.loss = floats(rows);
    for (int64_t i = 0; i < hidden * in; i++) c.weights[i] = normal() / sqrtf((float)in);
    for (int64_t i = 0; i < out * hidden; i++) c.weights[(in + 1) * hidden + i] = normal() / sqrtf((float)hidden);
    return c;
}

static inline void free_classifier(classifier *c) {
    free(c->weights), free(c->u), free(c->h), free(c->logits), free(c->loss);
}

/* The mean loss of a batch, and its gradient, unless that is NULL: then c->h is not used. */
static inline double classify(trine_queue *queue, classifier *c, float *points, int32_t *labels, float *gradient) {
    const int64_t b1 = c->hidden * c->in, w2 = b1 + c->hidden, b2 = w2 + c->out * c->hidden;
    const trine_tensor x = matrix(points, c->rows, c->in), u = matrix(c->u, c->rows, c->hidden),
                       h = matrix(gradient ? c->h : c->u, c->rows, c->hidden),
                       logits = matrix(c->logits, c->rows, c->out), loss = vector(c->loss, c->rows),
                       label = trine_tensor_1d(labels, TRINE_I32, c->rows),
                       first = matrix(c->weights, c->hidden, c->in), first_bias = vector(c->weights + b1, c->hidden),
                       second = matrix(c->weights + w2, c->out, c->hidden),
                       second_bias = vector(c->weights + b2, c->out), across = trine_tensor_transpose(&first),
                       down = trine_tensor_transpose(&second), turned = trine_tensor_transpose(&logits);
    float part = 1 / (float)c->rows;
    const trine_tensor share = vector(&part, 1);
    need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &x, .b = &across, .d = &u }));
    need(trine_gelu_bias(queue,
                         &(trine_gelu_bias_args){ TRINE_ARGS(gelu_bias), .x = &u, .bias = &first_bias, .y = &h }));
    need(trine_matmul(
        queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &h, .b = &down, .bias = &second_bias, .d = &logits }));
    need(trine_cross_entropy(queue, &(trine_cross_entropy_args){ TRINE_ARGS(cross_entropy), .logits = &logits,
                                                                 .labels = &label, .loss = &loss, .dloss = &share,
                                                                 .dlogits = gradient ? &logits : NULL }));
    if (gradient) {
        const trine_tensor dfirst = matrix(gradient, c->hidden, c->in), dfirst_bias = vector(gradient + b1, c->hidden),
                           dsecond = matrix(gradient + w2, c->out, c->hidden),
                           dsecond_bias = vector(gradient + b2, c->out), dh = trine_tensor_transpose(&h);
        need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &turned, .b = &h, .d = &dsecond }));
        need(trine_reduce_sum(
            queue, &(trine_reduce_sum_args){ TRINE_ARGS(reduce_sum), .x = &logits, .column_sums = &dsecond_bias }));
        need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &logits, .b = &second, .d = &h }));
        need(trine_gelu_bias_backward(queue, &(trine_gelu_bias_backward_args){ TRINE_ARGS(gelu_bias_backward), .dy = &h,
                                                                               .x = &u, .bias = &first_bias, .dx = &h,
                                                                               .dbias = &dfirst_bias }));
        need(trine_matmul(queue, &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &dh, .b = &x, .d = &dfirst }));
    }
    need(trine_queue_wait(queue));
    double sum = 0;
    for (int64_t i = 0; i < c->rows; i++) sum += c->loss[i];
    return sum / (double)c->rows;
}

/* The share of rows whose largest logit is the label's. */
static inline double right_answers(const float *logits, const int32_t *labels, int64_t rows, int64_t classes) {
    double right = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (logits[i * classes + k] > logits[i * classes + best]) best = k;
        right += best == labels[i];
    }
    return right / (double)rows;
}

/* Points about `clusters` places that are the same in every call, of the classes 0, 1, .. `out` - 1 in turn. */
static inline void draw_points(const classifier *c, int clusters, float *points, int32_t *labels) {
    const uint64_t now = random_state;
    float *places = floats(clusters * c->in);
    random_state = 12345;
    for (int64_t i = 0; i < clusters * c->in; i++) places[i] = normal();
    random_state = now;
    for (int64_t i = 0; i < c->rows; i++) {
        const int64_t cluster = (int64_t)(uniform() * clusters);
        labels[i] = (int32_t)(cluster % c->out);
        for (int64_t j = 0; j < c->in; j++) points[i * c->in + j] = places[cluster * c->in + j] + normal();
    }
    free(places);
}

#endif
