/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks whose heads have a matrix each (Poppel et al. 2024, FlashRNN): what they are for is to track a
 * state. Elman's network, the GRU, the LSTM and the sLSTM learn to tell, bit by bit, whether the ones so far are odd in
 * number, from sequences of TRAINED bits, and go on with longer ones; a layer of attention with all places known does
 * not learn it. Gradients are the ops', held against losses along them. Then steps are timed by the number of heads. */
#include "cells.h"

enum { TRAINED = 12, STEPS = 400, SHOWN = 80, ROWS = BATCH * LONGER };
enum { TIMED = 128, WIDE = 256, TIMED_BATCH = 8, ROUNDS = 3 };
static const char *const names[CELLS] = { "elman", "gru", "lstm", "slstm", "attention" };
static const float rate = 1e-2f;

/* The mean loss on bits drawn, its gradients if wanted, and the share of right answers at the last `shown` places. */
static double learn(model *m, int64_t steps, bool gradients, int64_t shown, double *right_out) {
    static int32_t ids[ROWS], odd[ROWS];
    const int64_t rows = BATCH * steps, w = inputs[m->cell] * WIDTH;
    for (int64_t i = 0; i < rows; i++) {
        const int bit = uniform() < 0.5;
        ids[i] = (int32_t)(m->cell == ATTENTION ? 2 * (i % steps) + bit : bit);
        odd[i] = bit ^ (i % steps > 0 && odd[i - 1]);
    }
    float share = 1 / (float)rows;
    const trine_tensor id = trine_tensor_1d(ids, TRINE_I32, rows), label = trine_tensor_1d(odd, TRINE_I32, rows),
                       table = matrix(m->parts[TABLE].weight, m->ids, w), wx = matrix(m->wx, rows, w),
                       dtable = matrix(m->parts[TABLE].gradient, m->ids, w), dwx = matrix(m->dwx, rows, w),
                       head = matrix(m->parts[HEAD].weight, 2, WIDTH), down = trine_tensor_transpose(&head),
                       dhead = matrix(m->parts[HEAD].gradient, 2, WIDTH), y = matrix(m->y, rows, WIDTH),
                       dy = matrix(m->dy, rows, WIDTH), logits = matrix(m->logits, rows, 2),
                       turned = trine_tensor_transpose(&logits), loss = vector(m->loss, rows), part = vector(&share, 1);
    RUN(embedding, .table = &table, .ids = &id, .y = &wx);
    run_cell(m, BATCH, steps, HEADS, D, false);
    RUN(matmul, .a = &y, .b = &down, .d = &logits);
    need(trine_queue_wait(queue));
    double sum = 0, right = 0;
    for (int64_t i = 0; i < rows; i++)
        right += i % steps >= steps - shown && (m->logits[2 * i] < m->logits[2 * i + 1]) == odd[i];
    if (right_out) *right_out = right / (double)(BATCH * shown);
    RUN(cross_entropy, .logits = &logits, .labels = &label, .loss = &loss, .dloss = &part,
        .dlogits = gradients ? &logits : NULL);
    if (gradients) {
        RUN(matmul, .a = &turned, .b = &y, .d = &dhead);
        RUN(matmul, .a = &logits, .b = &head, .d = &dy);
        run_cell(m, BATCH, steps, HEADS, D, true);
        RUN(embedding_backward, .dy = &dwx, .ids = &id, .dtable = &dtable);
    }
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < rows; i++) sum += (double)m->loss[i] / (double)rows;
    return sum;
}

static void adamw(part *p, int64_t step) {
    const trine_tensor w = vector(p->weight, p->count), g = vector(p->gradient, p->count), m = vector(p->m, p->count),
                       v = vector(p->v, p->count);
    RUN(adamw, .param = &w, .grad = &g, .m = &m, .v = &v, .lr = rate, .step = step, .beta2 = 0.99f);
}

/* How far losses along the gradients of a part are from what these promise. */
static double slope_off(model *m, part *p) {
    const uint64_t start = random_state;
    double squares = 0, loss[2];
    learn(m, TRAINED, true, 1, NULL);
    for (int64_t i = 0; i < p->count; i++) squares += (double)p->gradient[i] * (double)p->gradient[i];
    const float h = (float)(0.01 / sqrt(squares));
    for (int way = 0; way < 2; way++) {
        for (int64_t i = 0; i < p->count; i++) p->weight[i] += (float)(way ? -2 : 1) * h * p->gradient[i];
        random_state = start;
        loss[way] = learn(m, TRAINED, false, 1, NULL);
    }
    for (int64_t i = 0; i < p->count; i++) p->weight[i] += h * p->gradient[i];
    return fabs((loss[0] - loss[1]) / (2 * (double)h * squares) - 1);
}

static void train(cell cell) {
    model m = make_model(cell, ROWS);
    double first = 0, last = 0, sum = 0, right[2], off = 0;
    for (int j = 0; j < PARTS; j++)
        if (m.parts[j].count > 0) off = worst(off, slope_off(&m, &m.parts[j]));
    printf("%-9s ", names[cell]);
    for (int i = 1; i <= STEPS; i++) {
        last = learn(&m, TRAINED, true, 1, NULL), sum += last / SHOWN;
        for (int j = 0; j < PARTS; j++)
            if (m.parts[j].count > 0) adamw(&m.parts[j], i);
        if (i == 1) first = last;
        if (i % SHOWN == 0) printf("  %6.4f", sum), sum = 0;
    }
    learn(&m, TRAINED, false, 1, &right[0]), learn(&m, LONGER, false, LONGER / 2, &right[1]);
    printf("   %9.1f%% %9.1f%%   %8.0e\n", 100 * right[0], 100 * right[1], off);
    agree("gradients beside losses along them", off, 0.02);
    if (cell == ATTENTION) {
        agree("attention: right answers of longer sequences", right[1], 0.7);
    } else {
        agree("the loss beside the first", last, 0.1 * first);
        agree("wrong answers at the length of training", 1 - right[0], 0.02);
        agree("wrong answers of longer sequences", 1 - right[1], 0.2);
    }
    free_model(&m);
}

/* Microseconds of a step, forward and back, of a width that has so many heads. */
static void timed(cell cell, int64_t heads) {
    const int64_t d = WIDE / heads, wide = (WIDE + WIDTH - 1) / WIDTH;
    model m = make_model(cell, TIMED_BATCH * TIMED * wide);
    for (int64_t i = 0; i < TIMED_BATCH * TIMED * inputs[cell] * WIDE; i++) m.wx[i] = normal();
    for (int64_t i = 0; i < TIMED_BATCH * TIMED * WIDE; i++) m.dy[i] = normal();
    for (int j = R; j <= BIAS; j++) {
        free(m.parts[j].weight), free(m.parts[j].gradient);
        m.parts[j].weight = floats(GATES * WIDE * d), m.parts[j].gradient = floats(GATES * WIDE * d);
    }
    for (int64_t i = 0; i < matrices[cell] * WIDE * d; i++) m.parts[R].weight[i] = normal() / sqrtf((float)d);
    double least[2] = { INFINITY, INFINITY };
    for (int round = 0; round < 2 * ROUNDS; round++) {
        const double start = seconds();
        run_cell(&m, TIMED_BATCH, TIMED, heads, d, round % 2);
        need(trine_queue_wait(queue));
        least[round % 2] = fmin(least[round % 2], seconds() - start);
    }
    printf("  %8.1f %7.1f", 1e6 * least[0] / TIMED, 1e6 * least[1] / TIMED);
    free_model(&m);
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    printf("Parity of %d bits: loss over %d steps each, right answers at the end, and at places %d to %d.\n", TRAINED,
           SHOWN, LONGER / 2 + 1, LONGER);
    printf("The last column is how far gradients are from losses along them.\n\n");
    for (int c = 0; c < CELLS; c++) train((cell)c);
    printf("\nA step of width %d and batch %d in us, forward and back:\n", WIDE, TIMED_BATCH);
    printf("                 1 head            4 heads           16 heads\n");
    for (int c = 0; c < ATTENTION; c++) {
        printf("%-6s", names[c]);
        for (int64_t heads = 1; heads <= 16; heads *= 4) timed((cell)c, heads);
        printf("\n");
    }
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
