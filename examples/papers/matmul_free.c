/* SPDX-License-Identifier: Apache-2.0 */
/* A language model without multiplications in its matrices (Zhu et al. 2024, MatMul-free): linear_scan mixes tokens by
 * a gated recurrence, swiglu channels, and matrices have the weights -1, 0 and 1 times a number and take what
 * rms_norm_quantize has rounded to 8 bits. Gradients are those at the rounded numbers, given to the others. Beside it
 * its twin learns, the same but for the rounding. The text is drawn: a symbol follows from the two before, and what is
 * left to chance is known. At last the model reads symbol by symbol, with 2 bits a weight. */
#include "hgrn.h"

enum { STEPS = 300, SHOWN = 50 };
static const float rate = 8e-3f;
static double follows[SYMBOLS][SYMBOLS][SYMBOLS]; /* how probable a symbol is behind two others */

/* What is left to chance, in nats, if the two symbols before are known, and if one is. */
static void make_source(double *two_out, double *one_out) {
    static double pair[SYMBOLS][SYMBOLS], next[SYMBOLS][SYMBOLS];
    for (int i = 0; i < SYMBOLS * SYMBOLS; i++) {
        double *p = follows[i / SYMBOLS][i % SYMBOLS], sum = 0;
        for (int c = 0; c < SYMBOLS; c++) sum += p[c] = pow(uniform(), 8);
        for (int c = 0; c < SYMBOLS; c++) p[c] /= sum;
        pair[i / SYMBOLS][i % SYMBOLS] = 1.0 / (SYMBOLS * SYMBOLS);
    }
    for (int round = 0; round < 100; round++, memcpy(pair, next, sizeof pair)) {
        memset(next, 0, sizeof next), *two_out = *one_out = 0;
        for (int i = 0; i < SYMBOLS * SYMBOLS * SYMBOLS; i++) {
            const int a = i / SYMBOLS / SYMBOLS, b = i / SYMBOLS % SYMBOLS, c = i % SYMBOLS;
            next[b][c] += pair[a][b] * follows[a][b][c];
            *two_out -= pair[a][b] * follows[a][b][c] * log(follows[a][b][c]);
        }
        for (int b = 0; b < SYMBOLS; b++) {
            double all = 0;
            for (int c = 0; c < SYMBOLS; c++) all += next[b][c];
            for (int c = 0; c < SYMBOLS; c++) *one_out -= next[b][c] * log(next[b][c] / all);
        }
    }
}

static void draw_text(int32_t *symbols, int32_t *labels) {
    for (int s = 0; s < BATCH; s++)
        for (int t = -9, a = 0, b = 0, c; t < LENGTH; t++, a = b, b = c) {
            double u = uniform();
            for (c = 0; c < SYMBOLS - 1 && u >= follows[a][b][c]; c++) u -= follows[a][b][c];
            if (t >= 0) symbols[s * LENGTH + t] = b, labels[s * LENGTH + t] = c;
        }
}

/* The mean loss of logits, but of the first symbols, before which none is known; and the gradient, if asked for. */
static double losses(float *logits, int32_t *labels, bool gradient) {
    float loss[ROWS], part[ROWS];
    const trine_tensor z = matrix(logits, ROWS, SYMBOLS), right = trine_tensor_1d(labels, TRINE_I32, ROWS),
                       to = vector(loss, ROWS), each = vector(part, ROWS);
    for (int i = 0; i < ROWS; i++) part[i] = i % LENGTH > 0 ? 1.0f / (BATCH * (LENGTH - 1)) : 0;
    RUN(cross_entropy, .logits = &z, .labels = &right, .loss = &to, .dloss = &each, .dlogits = gradient ? &z : NULL);
    need(trine_queue_wait(queue));
    double sum = 0;
    for (int i = 0; i < ROWS; i++) sum += (double)loss[i] * (double)part[i];
    return sum;
}

static void adamw(linear *l, int64_t step) {
    const int64_t count = l->n * l->k;
    const trine_tensor w = vector(l->weight, count), g = vector(l->gradient, count), m = vector(l->moments[0], count),
                       v = vector(l->moments[1], count);
    const float left = 1 - (float)step / (STEPS + 1);
    RUN(adamw, .param = &w, .grad = &g, .m = &m, .v = &v, .lr = rate * left, .step = step, .beta2 = 0.99f);
}

/* Returns the loss, and leaves the gradients. */
static double learn(model *m, int32_t *symbols, int32_t *labels) {
    for (int i = 0; i <= HEAD && m->mode != WHOLE; i++) round_weights(&m->linears[i]);
    forward(m, symbols, LENGTH, 0);
    const double loss = losses(m->logits, labels, true);
    backward(m, symbols);
    return loss;
}

static double train(model *m, int32_t *symbols, int32_t *labels, int64_t step) {
    const double loss = learn(m, symbols, labels);
    for (int i = 0; i <= HEAD; i++) adamw(&m->linears[i], step);
    adamw(&m->table, step);
    return loss;
}

/* How far losses along the gradients of a matrix are from what these promise. The matrix is left a little off. */
static double slope_off(model *m, linear *l) {
    int32_t symbols[ROWS], labels[ROWS];
    double squares = 0, loss[2];
    draw_text(symbols, labels);
    learn(m, symbols, labels);
    for (int64_t i = 0; i < l->n * l->k; i++) squares += (double)l->gradient[i] * (double)l->gradient[i];
    const float h = (float)(0.02 / sqrt(squares));
    for (int way = 0; way < 2; way++) {
        for (int64_t i = 0; i < l->n * l->k; i++) l->weight[i] += (float)(way ? -2 : 1) * h * l->gradient[i];
        forward(m, symbols, LENGTH, 0);
        loss[way] = losses(m->logits, labels, false);
    }
    return fabs((loss[0] - loss[1]) / (2 * (double)h * squares) - 1);
}

/* Reads a text symbol by symbol by packed weights, and as in training. Prints how far logits and loss are apart. */
static void read_packed(model *m) {
    static float logits[ROWS * SYMBOLS];
    int32_t symbols[ROWS], labels[ROWS], column[BATCH];
    int64_t weights = 0;
    for (int i = 0; i <= HEAD; i++) round_weights(&m->linears[i]), weights += m->linears[i].n * m->linears[i].k;
    draw_text(symbols, labels);
    m->mode = PACKED;
    for (int t = 0; t < LENGTH; t++) {
        for (int s = 0; s < BATCH; s++) column[s] = symbols[s * LENGTH + t];
        forward(m, column, 1, t);
        for (int s = 0; s < BATCH; s++)
            memcpy(&logits[(s * LENGTH + t) * SYMBOLS], &m->logits[s * SYMBOLS], SYMBOLS * sizeof *logits);
    }
    m->mode = ROUNDED;
    forward(m, symbols, LENGTH, 0);
    const double apart = distance(logits, m->logits, ROWS * SYMBOLS), packed = losses(logits, labels, false),
                 rounded = losses(m->logits, labels, false);
    printf("\n%d bytes of packed weights, %d of f32\n", (int)weights / 4, 4 * (int)weights);
    printf("read symbol by symbol: loss %.4f, as in training %.4f; logits apart by %.1e\n", packed, rounded, apart);
    agree("logits by packed weights", apart, 1e-2);
    agree("loss by packed weights", fabs(packed - rounded), 1e-3);
}

int main(void) {
    static model ternary, twin;
    static int32_t symbols[ROWS], labels[ROWS];
    double two, one, sums[2] = { 0 }, last[2] = { 0 };
    trine_library *lib;
    queue = cpu_queue(&lib);
    make_source(&two, &one);
    make_model(&ternary, ROUNDED), make_model(&twin, WHOLE);
    printf("step   loss   of the twin\n");
    for (int i = 1; i <= STEPS; i++) {
        draw_text(symbols, labels);
        sums[0] += train(&ternary, symbols, labels, i) / SHOWN, sums[1] += train(&twin, symbols, labels, i) / SHOWN;
        if (i % SHOWN > 0) continue;
        printf("%4d  %5.3f   %11.3f\n", i, sums[0], sums[1]);
        memcpy(last, sums, sizeof last), memset(sums, 0, sizeof sums);
    }
    printf("left to chance: %.3f, and %.3f where the last symbol alone is known\n", two, one);
    agree("loss beside the twin's", last[0], last[1] + 0.15);
    agree("loss beside what the last symbol leaves to chance", last[0], one - 0.3);
    agree("what is left to chance beside the loss", two, fmin(last[0], last[1]) + 0.05);
    double off = slope_off(&twin, &twin.table);
    for (int i = 0; i <= HEAD; i++) off = worst(off, slope_off(&twin, &twin.linears[i]));
    printf("the twin's gradients are off by %.1e\n", off);
    agree("gradients beside losses along them", off, 0.03);
    read_packed(&ternary);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
