/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions without a matrix of all windows (Lu et al. 2023, Im2win, compare time and memory of such ways):
 * layers of ResNet's shapes by conv2d, on images stored by places or by channels, beside im2col and a product; all
 * give the same. What Im2win would have in the place of all windows is told by its size. Then a small network of
 * conv2d, pool2d and a head, with their gradients, learns which way bars in pictures lie. */
#include <string.h>

#include "papers.h"

enum { ROUNDS = 3, BATCH = 32, SIDE = 16, CHANNELS = 8, WAYS = 4, STEPS = 160, SHOWN = 40, TESTED = 512 };
enum { POOL = 4, POOLED = SIDE / POOL, FLAT = POOLED * POOLED * CHANNELS };
static trine_queue *queue;

typedef struct layer {
    const char *name;
    int64_t side, channels, out, window;
    int32_t stride;
} layer;
static const layer layers[] = {
    { "stem, 7 x 7", 112, 3, 64, 7, 2 },  { "3 x 3", 56, 64, 64, 3, 1 },   { "1 x 1", 56, 64, 256, 1, 1 },
    { "3 x 3 by 2", 56, 128, 128, 3, 2 }, { "3 x 3", 28, 128, 128, 3, 1 }, { "3 x 3", 14, 256, 256, 3, 1 },
};

/* n h w c of what lies as n c h w, or as it is named. */
static trine_tensor images(float *x, int64_t n, int64_t side, int64_t channels, bool by_channels) {
    trine_tensor t = trine_tensor_4d(x, TRINE_F32, n, side, side, channels);
    if (by_channels) t.stride[1] = side, t.stride[2] = 1, t.stride[3] = side * side;
    return t;
}

/* Each window a row, of images by places, padded by zeros. */
static void im2col(const layer *l, const float *x, int64_t side, float *rows) {
    const int64_t pad = l->window / 2, run = l->channels;
    for (int64_t p = 0; p < side * side; p++)
        for (int64_t i = 0; i < l->window; i++)
            for (int64_t j = 0; j < l->window; j++, rows += run) {
                const int64_t h = p / side * l->stride - pad + i, w = p % side * l->stride - pad + j;
                if (h < 0 || w < 0 || h >= l->side || w >= l->side)
                    memset(rows, 0, (size_t)run * sizeof *rows);
                else
                    memcpy(rows, x + (h * l->side + w) * run, (size_t)run * sizeof *rows);
            }
}

/* One layer by three ways: milliseconds, and bytes beside the tensors. */
static void compare(const layer *l) {
    const int64_t side = (l->side - 1) / l->stride + 1, in = l->side * l->side * l->channels, places = side * side,
                  depth = l->window * l->window * l->channels;
    float *x[2] = { floats(in), floats(in) },
          *y[3] = { floats(places * l->out), floats(places * l->out), floats(places * l->out) };
    float *w = floats(l->out * depth), *windows = floats(places * depth);
    const int32_t pad = (int32_t)(l->window / 2);
    double taken[3] = { INFINITY, INFINITY, INFINITY };
    size_t extra[3];
    for (int64_t i = 0; i < in; i++) x[0][i] = x[1][i % l->channels * l->side * l->side + i / l->channels] = normal();
    for (int64_t i = 0; i < l->out * depth; i++) w[i] = normal() / sqrtf((float)depth);
    const trine_tensor weight = trine_tensor_4d(w, TRINE_F32, l->out, l->window, l->window, l->channels);
    for (int way = 0; way < 2; way++) {
        const trine_tensor from = images(x[way], 1, l->side, l->channels, way),
                           to = images(y[way], 1, side, l->out, way);
        const trine_conv2d_args args = { TRINE_ARGS(conv2d),    .x = &from,
                                         .weight = &weight,     .y = &to,
                                         .stride_h = l->stride, .stride_w = l->stride,
                                         .pad_top = pad,        .pad_left = pad };
        need(trine_workspace(queue, TRINE_OP_CONV2D, &args, &extra[way]));
        for (int round = 0; round < ROUNDS; round++) {
            const double start = seconds();
            need(trine_conv2d(queue, &args));
            need(trine_queue_wait(queue));
            taken[way] = fmin(taken[way], seconds() - start);
        }
    }
    const trine_tensor rows = matrix(windows, places, depth), flat = matrix(w, l->out, depth),
                       across = trine_tensor_transpose(&flat), to = matrix(y[2], places, l->out);
    const trine_matmul_args product = { TRINE_ARGS(matmul), .a = &rows, .b = &across, .d = &to };
    need(trine_workspace(queue, TRINE_OP_MATMUL, &product, &extra[2]));
    for (int round = 0; round < ROUNDS; round++) {
        const double start = seconds();
        im2col(l, x[0], side, windows);
        need(trine_matmul(queue, &product));
        need(trine_queue_wait(queue));
        taken[2] = fmin(taken[2], seconds() - start);
    }
    extra[2] += (size_t)(places * depth) * sizeof *windows;
    float *turned = floats(places * l->out);
    for (int64_t i = 0; i < places * l->out; i++) turned[i] = y[1][i % l->out * places + i / l->out];
    agree("by places beside im2col", distance(y[0], y[2], places * l->out), 1e-6);
    agree("by channels beside im2col", distance(turned, y[2], places * l->out), 1e-6);
    printf("%-12s %4d^2 x %3d -> %3d", l->name, (int)l->side, (int)l->channels, (int)l->out);
    for (int way = 0; way < 3; way++)
        printf(" %8.2f %6.1f %7.2f", 1e3 * taken[way], 2e-9 * (double)(places * depth * l->out) / taken[way],
               (double)extra[way] / 1048576);
    printf("  %6.2f\n", (double)(side * l->side * l->window * l->channels) * 4 / 1048576);
    free(x[0]), free(x[1]), free(y[0]), free(y[1]), free(y[2]), free(w), free(windows), free(turned);
}

/* Weights CHANNELS x 5 x 5, their biases, and those of the head, WAYS x FLAT. */
typedef struct part {
    int64_t count;
    float *weight, *gradient, *m, *v;
} part;
enum { FILTERS, BIASES, HEAD, PARTS };

/* A bar that is level, upright or leans one way or the other, somewhere, and noise. */
static void draw(float *x, int32_t *ways, int64_t count) {
    static const double slopes[WAYS][2] = { { 0, 1 }, { 1, 0 }, { 0.7, 0.7 }, { 0.7, -0.7 } };
    for (int64_t n = 0; n < count; n++) {
        const double *s = slopes[ways[n] = (int32_t)(uniform() * WAYS)];
        const double y = SIDE * (0.3 + 0.4 * uniform()), z = SIDE * (0.3 + 0.4 * uniform());
        for (int i = 0; i < SIDE * SIDE; i++) {
            const double a = i / SIDE - y, b = i % SIDE - z;
            x[n * SIDE * SIDE + i] = 0.5f * normal() + (fabs(a * s[1] - b * s[0]) < 1 && fabs(a * s[0] + b * s[1]) < 5);
        }
    }
}

/* conv2d, the largest of POOL by POOL, and the head; with `gradients` also back. Returns the mean loss. */
static double learn(part *parts, float *x, int32_t *ways, int64_t n, bool gradients, double *right_out) {
    float *u = floats(n * SIDE * SIDE * CHANNELS), *h = floats(n * FLAT), *z = floats(n * WAYS), *loss = floats(n);
    float share = 1 / (float)n;
    const trine_tensor in = images(x, n, SIDE, 1, false), conv = images(u, n, SIDE, CHANNELS, false),
                       pool = images(h, n, POOLED, CHANNELS, false), flat = matrix(h, n, FLAT),
                       w = trine_tensor_4d(parts[FILTERS].weight, TRINE_F32, CHANNELS, 5, 5, 1),
                       bias = vector(parts[BIASES].weight, CHANNELS), head = matrix(parts[HEAD].weight, WAYS, FLAT),
                       down = trine_tensor_transpose(&head), logits = matrix(z, n, WAYS), losses = vector(loss, n),
                       label = trine_tensor_1d(ways, TRINE_I32, n), part = vector(&share, 1);
    RUN(conv2d, .x = &in, .weight = &w, .bias = &bias, .y = &conv, .pad_top = 2, .pad_left = 2);
    RUN(pool2d, .x = &conv, .y = &pool, .kernel_h = POOL, .kernel_w = POOL);
    RUN(matmul, .a = &flat, .b = &down, .d = &logits);
    need(trine_queue_wait(queue));
    double sum = 0;
    *right_out = right_answers(z, ways, n, WAYS);
    RUN(cross_entropy, .logits = &logits, .labels = &label, .loss = &losses, .dloss = &part, .dlogits = &logits);
    if (gradients) {
        float *du = floats(n * SIDE * SIDE * CHANNELS), *dh = floats(n * FLAT);
        const trine_tensor dconv = images(du, n, SIDE, CHANNELS, false), dpool = images(dh, n, POOLED, CHANNELS, false),
                           dflat = matrix(dh, n, FLAT), turned = trine_tensor_transpose(&logits),
                           dw = trine_tensor_4d(parts[FILTERS].gradient, TRINE_F32, CHANNELS, 5, 5, 1),
                           dbias = vector(parts[BIASES].gradient, CHANNELS),
                           dhead = matrix(parts[HEAD].gradient, WAYS, FLAT);
        RUN(matmul, .a = &turned, .b = &flat, .d = &dhead);
        RUN(matmul, .a = &logits, .b = &head, .d = &dflat);
        RUN(pool2d_backward, .dy = &dpool, .x = &conv, .dx = &dconv, .kernel_h = POOL, .kernel_w = POOL);
        RUN(conv2d_backward, .dy = &dconv, .x = &in, .weight = &w, .dweight = &dw, .dbias = &dbias, .pad_top = 2,
            .pad_left = 2);
        need(trine_queue_wait(queue));
        free(du), free(dh);
    }
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < n; i++) sum += loss[i];
    free(u), free(h), free(z), free(loss);
    return sum / (double)n;
}

/* Trains on pictures that are new in each step, and returns the share of right answers on others. */
static double train(void) {
    static float x[TESTED * SIDE * SIDE];
    static int32_t ways[TESTED];
    const int64_t counts[PARTS] = { CHANNELS * 25, CHANNELS, WAYS * FLAT };
    const float sizes[PARTS] = { 0.2f, 0, 0.1f };
    part parts[PARTS];
    double sum = 0, right, shown = 0;
    for (int j = 0; j < PARTS; j++) {
        parts[j] = (part){ counts[j], floats(counts[j]), floats(counts[j]), floats(counts[j]), floats(counts[j]) };
        for (int64_t i = 0; i < counts[j]; i++) parts[j].weight[i] = sizes[j] * normal();
    }
    printf("\n  step   loss   right\n");
    for (int i = 1; i <= STEPS; i++) {
        draw(x, ways, BATCH);
        sum += learn(parts, x, ways, BATCH, true, &right) / SHOWN, shown += right / SHOWN;
        for (int j = 0; j < PARTS; j++) {
            const trine_tensor w = vector(parts[j].weight, counts[j]), g = vector(parts[j].gradient, counts[j]),
                               m = vector(parts[j].m, counts[j]), v = vector(parts[j].v, counts[j]);
            RUN(adamw, .param = &w, .grad = &g, .m = &m, .v = &v, .lr = 1e-2f, .step = i);
        }
        if (i % SHOWN == 0) printf("%6d  %5.3f  %5.1f%%\n", i, sum, 100 * shown), sum = shown = 0;
    }
    draw(x, ways, TESTED);
    learn(parts, x, ways, TESTED, false, &right);
    for (int j = 0; j < PARTS; j++) free(parts[j].weight), free(parts[j].gradient), free(parts[j].m), free(parts[j].v);
    return right;
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    printf("                                       conv2d by places          by channels       im2col and product  "
           "im2win\n");
    printf("layer, of one image                  ms  GFLOP/s     MiB      ms GFLOP/s     MiB       ms GFLOP/s     MiB  "
           "   MiB\n");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) compare(&layers[i]);
    const double right = train();
    printf("Which way a bar lies in %d other pictures: %.1f%% right\n", TESTED, 100 * right);
    agree("wrong answers", 1 - right, 0.15);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
