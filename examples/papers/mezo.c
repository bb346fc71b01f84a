/* SPDX-License-Identifier: Apache-2.0 */
/* Training without gradients (Malladi et al. 2023, MeZO), as ZO2 (2025) trains OPT-175B in 18 GB: the losses of the
 * weights with a little noise z added and taken away tell the slope along z, and a step goes down it. gaussian_axpy
 * makes z anew each time, so that it is never stored; nor are gradients, moments, or what they would need of the
 * forward. A classifier of made points is trained so, and beside it by AdamW. */
#include <string.h>

#include "papers.h"

enum {
    ROWS = 128,
    IN = 16,
    HIDDEN = 32,
    CLASSES = 4,
    CLUSTERS = 8,
    STEPS = 2000,
    SHOWN = 250,
    UNDONE = 1000,
    TEST = 4096
};
static const float eps = 1e-3f, rate = 0.012f, adamw_rate = 0.01f;

static void add_noise(trine_queue *queue, void *weights, trine_dtype type, int64_t count, float alpha, uint64_t draw) {
    const trine_tensor w = trine_tensor_1d(weights, type, count);
    need(trine_gaussian_axpy(queue, &(trine_gaussian_axpy_args){ TRINE_ARGS(gaussian_axpy), .x = &w, .y = &w,
                                                                 .alpha = alpha, .seed = 1, .offset = draw }));
}

/* A step: up by eps z, down by 2 eps z, and back with the step itself in one. */
static void step(trine_queue *queue, classifier *c, float *points, int32_t *labels, float lr, uint64_t draw) {
    add_noise(queue, c->weights, TRINE_F32, c->count, eps, draw);
    const double above = classify(queue, c, points, labels, NULL);
    add_noise(queue, c->weights, TRINE_F32, c->count, -2 * eps, draw);
    const double below = classify(queue, c, points, labels, NULL);
    const float slope = (float)((above - below) / (2 * (double)eps));
    add_noise(queue, c->weights, TRINE_F32, c->count, eps - lr * slope, draw);
}

static void adamw_step(trine_queue *queue, classifier *c, float *points, int32_t *labels, float *state,
                       int64_t number) {
    const trine_tensor w = vector(c->weights, c->count), g = vector(state, c->count),
                       m = vector(state + c->count, c->count), v = vector(state + 2 * c->count, c->count);
    classify(queue, c, points, labels, state);
    need(trine_adamw(queue, &(trine_adamw_args){ TRINE_ARGS(adamw), .param = &w, .grad = &g, .m = &m, .v = &v,
                                                 .lr = adamw_rate, .step = number }));
}

/* Adds and takes away the noise of some draws, of weights in a type. Says how far this leaves them from what they were,
 * which after one draw is three roundings, each of a weight and of eps z, z being 6.6 at most. */
static void undo(trine_queue *queue, const classifier *c, trine_dtype type, uint64_t draws) {
    const double unit = type == TRINE_F32 ? 0x1p-24 : 0x1p-8 + 0x1p-24;
    float *before = floats(c->count), *after = floats(c->count);
    void *weights = floats(c->count);
    const trine_tensor start = vector(c->weights, c->count), w = trine_tensor_1d(weights, type, c->count),
                       from = vector(before, c->count), to = vector(after, c->count);
    need(trine_cast(queue, &(trine_cast_args){ TRINE_ARGS(cast), .x = &start, .y = &w }));
    need(trine_cast(queue, &(trine_cast_args){ TRINE_ARGS(cast), .x = &w, .y = &from }));
    for (uint64_t i = 0; i < draws; i++)
        for (int way = 0; way < 3; way++) add_noise(queue, weights, type, c->count, way == 1 ? -2 * eps : eps, i);
    need(trine_cast(queue, &(trine_cast_args){ TRINE_ARGS(cast), .x = &w, .y = &to }));
    need(trine_queue_wait(queue));
    double largest = 0, changed = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const double apart = fabs((double)after[i] - (double)before[i]);
        changed += apart > 0, largest = worst(largest, apart);
        if (draws == 1) agree("an undone weight", apart, 3 * unit * (fabs((double)before[i]) + 6.6 * (double)eps));
    }
    printf("%s   %7d   %16.1f %%   %14.1e   %8.1e\n", type == TRINE_F32 ? "f32 " : "bf16", (int)draws,
           100 * changed / (double)c->count, largest, distance(after, before, c->count));
    free(before), free(after), free(weights);
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    classifier c = make_classifier(ROWS, IN, HIDDEN, CLASSES), d = make_classifier(ROWS, IN, HIDDEN, CLASSES),
               test = make_classifier(TEST, IN, HIDDEN, CLASSES);
    float *points = floats(ROWS * IN), *others = floats(TEST * IN), *state = floats(3 * c.count);
    int32_t labels[ROWS], truth[TEST];
    double spent[2] = { 0 }, loss[2] = { 0 }, first = 0;
    memcpy(d.weights, c.weights, (size_t)c.count * sizeof *c.weights);
    free(c.h), c.h = NULL;
    draw_points(&test, CLUSTERS, others, truth);
    printf("%d weights that tell %d classes of points\n\nstep   loss by MeZO   by AdamW\n", (int)c.count, CLASSES);
    for (int64_t i = 0; i <= STEPS; i++) {
        for (int k = 0; k < 2 && i % SHOWN == 0; k++) {
            memcpy(test.weights, k ? d.weights : c.weights, (size_t)c.count * sizeof *c.weights);
            loss[k] = classify(queue, &test, others, truth, NULL);
        }
        if (i == 0) first = loss[0];
        if (i % SHOWN == 0) printf("%4d   %12.3f   %8.3f\n", (int)i, loss[0], loss[1]);
        draw_points(&c, CLUSTERS, points, labels);
        const double start = seconds();
        step(queue, &c, points, labels, rate * (1 - (float)i / STEPS), (uint64_t)i);
        const double between = seconds();
        adamw_step(queue, &d, points, labels, state, i + 1);
        spent[1] += seconds() - between, spent[0] += between - start;
    }
    agree("loss without gradients", loss[0], 0.25 * first);
    const int64_t activations = 4 * ROWS * (HIDDEN + CLASSES + 1);
    printf("\n                    MeZO   AdamW\n");
    printf("bytes a weight    %6d %7d\n", 4, 16);
    printf("all activations   %6d %7d\n", (int)activations, (int)(activations + 4 * ROWS * HIDDEN));
    printf("ms a step         %6.2f %7.2f\n\n", 1e3 * spent[0] / STEPS, 1e3 * spent[1] / STEPS);
    printf("type   undone   weights changed      by at most   distance\n");
    for (int k = 0; k < 4; k++) undo(queue, &c, k < 2 ? TRINE_F32 : TRINE_BF16, k % 2 ? UNDONE : 1);
    free_classifier(&c), free_classifier(&d), free_classifier(&test), free(points), free(others), free(state);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
