/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers of less state than AdamW's, on one problem: moments in bf16 or in codes of 8 bits (Dettmers et al. 2022),
 * rows and columns in place of a second moment (Adafactor, Shazeer and Stern 2018), and one moment instead of two
 * (Lion, Chen et al. 2023). A classifier of made points learns with each of them from the same weights; then a step of
 * a matrix is timed. */
#include <string.h>

#include "papers.h"

enum { ROWS = 128, IN = 32, HIDDEN = 128, CLASSES = 8, CLUSTERS = 64, STEPS = 500, SHOWN = 100, PARTS = 4 };
enum { SIDE = 2048, ROUNDS = 7 };

/* A tensor of weights, and what optimizers keep of it. */
typedef struct part {
    int64_t rows, columns;
    float *weight, *gradient, *m, *v, *m_most, *v_most;
} part;

typedef enum kind { ADAMW, ADAMW_BF16, ADAMW_CODES, ADAFACTOR, LION, LION_BF16, KINDS } kind;
static const struct {
    const char *name;
    float lr;
} optimizers[KINDS] = { { "adamw", 5e-3f },     { "adamw, bf16", 5e-3f }, { "adamw_quantized", 5e-3f },
                        { "adafactor", 3e-2f }, { "lion", 1e-3f },        { "lion, bf16", 1e-3f } };

/* A step. Returns the bytes of its state; m and v have room for any. */
static double step(trine_queue *queue, kind k, part *p, int64_t number) {
    const int64_t n = p->rows * p->columns, blocks = (n + 255) / 256;
    const trine_dtype type = k == ADAMW_BF16 || k == LION_BF16 ? TRINE_BF16 : k == ADAMW_CODES ? TRINE_U8 : TRINE_F32;
    const trine_tensor w = vector(p->weight, n), g = vector(p->gradient, n), m = trine_tensor_1d(p->m, type, n),
                       v = trine_tensor_1d(p->v, type, n), m_most = vector(p->m_most, blocks),
                       v_most = vector(p->v_most, blocks), whole = matrix(p->weight, p->rows, p->columns),
                       dwhole = matrix(p->gradient, p->rows, p->columns), row_var = vector(p->m, p->rows),
                       col_var = vector(p->v, p->columns);
    const float lr = optimizers[k].lr;
    switch (k) {
    case ADAMW:
    case ADAMW_BF16:
        need(trine_adamw(queue, &(trine_adamw_args){ TRINE_ARGS(adamw), .param = &w, .grad = &g, .m = &m, .v = &v,
                                                     .lr = lr, .step = number }));
        return 2.0 * (double)n * (double)trine_dtype_size(type);
    case ADAMW_CODES:
        RUN(adamw_quantized, .param = &w, .grad = &g, .m = &m, .v = &v, .m_most = &m_most, .v_most = &v_most, .lr = lr,
            .step = number);
        return 2.0 * (double)n + 8.0 * (double)blocks;
    case ADAFACTOR:
        need(trine_adafactor(queue, &(trine_adafactor_args){ TRINE_ARGS(adafactor), .param = &whole, .grad = &dwhole,
                                                             .row_var = p->rows > 1 ? &row_var : NULL,
                                                             .col_var = &col_var, .lr = lr, .step = number }));
        return 4.0 * (double)((p->rows > 1 ? p->rows : 0) + p->columns);
    default:
        need(trine_lion(queue, &(trine_lion_args){ TRINE_ARGS(lion), .param = &w, .grad = &g, .m = &m, .lr = lr }));
        return (double)n * (double)trine_dtype_size(type);
    }
}

static part make_part(float *weight, float *gradient, int64_t rows, int64_t columns) {
    const int64_t n = rows * columns;
    return (part){
        rows, columns, weight, gradient, floats(n + rows), floats(n + columns), floats(n / 256 + 1), floats(n / 256 + 1)
    };
}

static void free_part(part *p) { free(p->m), free(p->v), free(p->m_most), free(p->v_most); }

/* Seconds of a step of a large matrix, the least of some, and the bytes of its state. */
static double timed(trine_queue *queue, kind k, double *bytes_out) {
    part p = make_part(floats(SIDE * SIDE), floats(SIDE * SIDE), SIDE, SIDE);
    double least = INFINITY;
    for (int64_t i = 0; i < SIDE * SIDE; i++) p.gradient[i] = (float)(uniform() - 0.5);
    for (int round = 1; round <= ROUNDS; round++) {
        const double start = seconds();
        *bytes_out = step(queue, k, &p, round);
        need(trine_queue_wait(queue));
        least = fmin(least, seconds() - start);
    }
    free(p.weight), free(p.gradient), free_part(&p);
    return least;
}

/* Trains from the weights `start`; losses are those of the test points. */
static void train(trine_queue *queue, kind k, const float *start, double *loss_out) {
    classifier c = make_classifier(ROWS, IN, HIDDEN, CLASSES), test = make_classifier(16 * ROWS, IN, HIDDEN, CLASSES);
    float *gradient = floats(c.count), *points = floats(ROWS * IN), *others = floats(16 * ROWS * IN), *w = c.weights;
    int32_t labels[ROWS], truth[16 * ROWS];
    memcpy(w, start, (size_t)c.count * sizeof *w);
    const int64_t b1 = HIDDEN * IN, w2 = b1 + HIDDEN, b2 = w2 + CLASSES * HIDDEN;
    part parts[PARTS] = { make_part(w, gradient, HIDDEN, IN), make_part(w + b1, gradient + b1, 1, HIDDEN),
                          make_part(w + w2, gradient + w2, CLASSES, HIDDEN),
                          make_part(w + b2, gradient + b2, 1, CLASSES) };
    random_state = 7;
    draw_points(&test, CLUSTERS, others, truth);
    for (int64_t i = 0; i <= STEPS; i++) {
        if (i % SHOWN == 0) {
            memcpy(test.weights, w, (size_t)c.count * sizeof *w);
            loss_out[i / SHOWN] = classify(queue, &test, others, truth, NULL);
        }
        draw_points(&c, CLUSTERS, points, labels);
        classify(queue, &c, points, labels, gradient);
        for (int j = 0; j < PARTS; j++) step(queue, k, &parts[j], i + 1);
        need(trine_queue_wait(queue));
    }
    for (int j = 0; j < PARTS; j++) free_part(&parts[j]);
    free_classifier(&c), free_classifier(&test), free(gradient), free(points), free(others);
}

int main(void) {
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    classifier c = make_classifier(ROWS, IN, HIDDEN, CLASSES);
    double best = INFINITY;
    printf("a step of %d x %d weights, and losses of %d that tell %d classes of points\n\n", SIDE, SIDE, (int)c.count,
           CLASSES);
    printf("optimizer             lr   state bytes a weight   ms a step   loss at");
    for (int i = 0; i <= STEPS; i += SHOWN) printf("  %5d", i);
    printf("\n");
    for (int k = 0; k < KINDS; k++) {
        double loss[STEPS / SHOWN + 1], bytes;
        const double least = timed(queue, (kind)k, &bytes);
        train(queue, (kind)k, c.weights, loss);
        printf("%-15s   %6g   %20.3f   %9.1f          ", optimizers[k].name, (double)optimizers[k].lr,
               bytes / (SIDE * SIDE), 1e3 * least);
        for (int i = 0; i <= STEPS / SHOWN; i++) printf("  %5.3f", loss[i]);
        printf("\n");
        if (k == 0) best = loss[STEPS / SHOWN];
        agree(optimizers[k].name, loss[STEPS / SHOWN], 1.5 * best);
    }
    free_classifier(&c);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
