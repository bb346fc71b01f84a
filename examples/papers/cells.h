/* SPDX-License-Identifier: Apache-2.0 */
/* The models of flashrnn.c: a table, a cell over its rows, and a head. */
#ifndef CELLS_H
#define CELLS_H

#include "papers.h"

enum { BATCH = 64, LONGER = 96, WIDTH = 32, HEADS = 2, D = WIDTH / HEADS, GATES = 4, PARTS = 4 };
typedef enum cell { ELMAN, GRU, LSTM, SLSTM, ATTENTION, CELLS } cell;
static const int64_t inputs[CELLS] = { 1, 3, 4, 4, 3 }, matrices[CELLS] = { 1, 3, 4, 4, 0 },
                     biases[CELLS] = { 1, 4, 4, 4, 0 }, kept[CELLS] = { 1, 4, 4, 4, 0 };

/* wx = table[id], y = cell(wx), logits = y head^T. Of attention, wx is q, k and v, and a bit has an id at each
 * place. */
typedef struct part {
    int64_t count;
    float *weight, *gradient, *m, *v;
} part;
typedef struct model {
    cell cell;
    int64_t ids;
    part parts[PARTS]; /* table ids x inputs WIDTH, r HEADS matrices D D, bias biases WIDTH, head 2 x WIDTH */
    float *wx, *dwx, *gates, *c, *n, *mm, *y, *dy, *lse, *logits, *loss;
} model;
enum { TABLE, R, BIAS, HEAD };

static trine_queue *queue;

static part make_part(int64_t count, float size) {
    part p = { count, floats(count), floats(count), floats(count), floats(count) };
    for (int64_t i = 0; i < count; i++) p.weight[i] = size * normal();
    return p;
}

static model make_model(cell cell, int64_t rows) {
    const int64_t ids = cell == ATTENTION ? 2 * LONGER : 2;
    return (model){ cell,
                    ids,
                    { make_part(ids * inputs[cell] * WIDTH, 0.5f), make_part(matrices[cell] * HEADS * D * D, 0.25f),
                      make_part(biases[cell] * WIDTH, 0), make_part(2 * WIDTH, 0.2f) },
                    floats(rows * inputs[cell] * WIDTH),
                    floats(rows * inputs[cell] * WIDTH),
                    floats(rows * kept[cell] * WIDTH),
                    floats(rows * WIDTH),
                    floats(rows * WIDTH),
                    floats(rows * WIDTH),
                    floats(rows * WIDTH),
                    floats(rows * WIDTH),
                    floats(rows * HEADS),
                    floats(rows * 2),
                    floats(rows) };
}

static void free_model(model *m) {
    for (int i = 0; i < PARTS; i++)
        free(m->parts[i].weight), free(m->parts[i].gradient), free(m->parts[i].m), free(m->parts[i].v);
    free(m->wx), free(m->dwx), free(m->gates), free(m->c), free(m->n), free(m->mm), free(m->y), free(m->dy);
    free(m->lse), free(m->logits), free(m->loss);
}

static trine_tensor five(float *x, int64_t b, int64_t t, int64_t gates, int64_t heads, int64_t d) {
    trine_tensor y = { .data = x, .dtype = TRINE_F32, .rank = 5, .shape = { b, t, gates, heads, d } };
    y.stride[4] = 1, y.stride[3] = d, y.stride[2] = heads * d, y.stride[1] = gates * heads * d;
    y.stride[0] = t * gates * heads * d;
    return y;
}

/* The cell over `batch` sequences of `steps`, or with `back` its gradient from m->dy. */
static void run_cell(model *m, int64_t batch, int64_t steps, int64_t heads, int64_t d, bool back) {
    const int64_t g = inputs[m->cell], w = heads * d;
#define STATES(x) trine_tensor_4d(x, TRINE_F32, batch, steps, heads, d)
    const trine_tensor wx5 = five(m->wx, batch, steps, g, heads, d), dwx5 = five(m->dwx, batch, steps, g, heads, d),
                       gates5 = five(m->gates, batch, steps, kept[m->cell], heads, d),
                       r4 = trine_tensor_4d(m->parts[R].weight, TRINE_F32, heads, g, d, d),
                       dr4 = trine_tensor_4d(m->parts[R].gradient, TRINE_F32, heads, g, d, d),
                       b = trine_tensor_3d(m->parts[BIAS].weight, TRINE_F32, GATES, heads, d),
                       db = trine_tensor_3d(m->parts[BIAS].gradient, TRINE_F32, GATES, heads, d), y = STATES(m->y),
                       dy = STATES(m->dy), c = STATES(m->c), n = STATES(m->n), mm = STATES(m->mm);
    if (m->cell == ELMAN) {
        const trine_tensor wx = STATES(m->wx), dwx = STATES(m->dwx), gates = STATES(m->gates),
                           r = trine_tensor_3d(r4.data, TRINE_F32, heads, d, d), bias = matrix(b.data, heads, d),
                           dr = trine_tensor_3d(dr4.data, TRINE_F32, heads, d, d), dbias = matrix(db.data, heads, d);
        if (!back) RUN(elman, .wx = &wx, .r = &r, .bias = &bias, .y = &y, .gates = &gates);
        if (back)
            RUN(elman_backward, .dy = &dy, .gates = &gates, .y = &y, .r = &r, .dwx = &dwx, .dr = &dr, .dbias = &dbias);
    } else if (m->cell == GRU) {
        if (!back) RUN(gru, .wx = &wx5, .r = &r4, .bias = &b, .y = &y, .gates = &gates5);
        if (back)
            RUN(gru_backward, .dy = &dy, .gates = &gates5, .y = &y, .r = &r4, .dwx = &dwx5, .dr = &dr4, .dbias = &db);
    } else if (m->cell == LSTM) {
        if (!back) RUN(lstm, .wx = &wx5, .r = &r4, .bias = &b, .y = &y, .gates = &gates5, .c = &c);
        if (back)
            RUN(lstm_backward, .dy = &dy, .gates = &gates5, .c = &c, .y = &y, .r = &r4, .dwx = &dwx5, .dr = &dr4,
                .dbias = &db);
    } else if (m->cell == SLSTM) {
        if (!back) RUN(slstm, .wx = &wx5, .r = &r4, .bias = &b, .y = &y, .gates = &gates5, .c = &c, .n = &n, .m = &mm);
        if (back)
            RUN(slstm_backward, .dy = &dy, .gates = &gates5, .c = &c, .n = &n, .m = &mm, .y = &y, .r = &r4,
                .dwx = &dwx5, .dr = &dr4, .dbias = &db);
    } else {
        trine_tensor in[3], out[3]; /* views of wx and dwx */
        for (int i = 0; i < 3; i++) {
            in[i] = STATES(m->wx + i * w), out[i] = STATES(m->dwx + i * w);
            in[i].stride[1] = out[i].stride[1] = 3 * w, in[i].stride[0] = out[i].stride[0] = steps * 3 * w;
        }
        const trine_tensor lse = trine_tensor_3d(m->lse, TRINE_F32, batch, heads, steps);
        if (!back) RUN(attention, .q = &in[0], .k = &in[1], .v = &in[2], .o = &y, .lse = &lse, .causal = 1);
        if (back)
            RUN(attention_backward, .dout = &dy, .q = &in[0], .k = &in[1], .v = &in[2], .o = &y, .lse = &lse,
                .dq = &out[0], .dk = &out[1], .dv = &out[2], .causal = 1);
    }
}

#endif
