/* SPDX-License-Identifier: Apache-2.0 */
/* The language model of matmul_free.c: HGRN layers whose matrices normalize what they are given, round it to 8 bits and
 * their own weights to -1, 0 and 1 times a number, or with WHOLE round nothing. */
#ifndef HGRN_H
#define HGRN_H

#include <string.h>

#include "papers.h"

enum { SYMBOLS = 12, D = 48, HIDDEN = 96, LAYERS = 2, BATCH = 24, LENGTH = 16, ROWS = BATCH * LENGTH };
enum { PER_LAYER = 7, HEAD = PER_LAYER * LAYERS, LARGEST = D * HIDDEN };
static const float eps = 1e-8f;

/* What a layer has, in ROWS: what its matrices make, in their order, then its input, 1 - forget, what the recurrence
 * adds, its states, what goes to the fourth matrix, and to the last one, which makes the next layer's input. */
enum { FORGET, INPUT, OUTPUT, MIDDLE, GATE, UP, DOWN, X = DOWN, KEEP, ADDED, STATE, MIXED, PRODUCT, KINDS };

/* A matrix, its gradient, its weights rounded to steps and packed, and what it was last given, and that normalized. */
typedef struct linear {
    int64_t n, k;
    float weight[LARGEST], gradient[LARGEST], moments[2][LARGEST], rounded[LARGEST], step[HIDDEN];
    float *x, z[ROWS * HIDDEN], rstd[ROWS];
    uint8_t packed[LARGEST / 4];
} linear;

typedef enum mode { WHOLE, ROUNDED, PACKED } mode;
typedef struct model {
    mode mode;
    linear table, linears[HEAD + 1]; /* table SYMBOLS x D is looked up, and never rounded */
    float layers[LAYERS + 1][KINDS][ROWS * HIDDEN], carried[2][LAYERS][BATCH * D], logits[ROWS * SYMBOLS];
} model;

static trine_queue *queue;

static void make_linear(linear *l, int64_t n, int64_t k) {
    l->n = n, l->k = k;
    for (int64_t i = 0; i < n * k; i++) l->weight[i] = normal() / sqrtf((float)k);
}

static void make_model(model *m, mode mode) {
    static const int64_t sizes[PER_LAYER][2] = { { D, D },      { D, D },      { D, D },     { D, D },
                                                 { HIDDEN, D }, { HIDDEN, D }, { D, HIDDEN } };
    random_state = 5, m->mode = mode;
    for (int i = 0; i < HEAD; i++) make_linear(&m->linears[i], sizes[i % PER_LAYER][0], sizes[i % PER_LAYER][1]);
    make_linear(&m->linears[HEAD], SYMBOLS, D), make_linear(&m->table, SYMBOLS, D);
}

/* Rounds weights to -s, 0 and s, s being the mean of their sizes, and packs them. */
static void round_weights(linear *l) {
    uint8_t codes[LARGEST];
    const trine_tensor bytes = trine_tensor_2d(codes, TRINE_U8, l->n, l->k),
                       packed = trine_tensor_2d(l->packed, TRINE_U8, l->n, l->k / 4);
    float s = 0;
    for (int64_t i = 0; i < l->n * l->k; i++) s += fabsf(l->weight[i]) / (float)(l->n * l->k);
    s = fmaxf(s, 1e-5f);
    for (int64_t i = 0; i < l->n * l->k; i++) {
        const float ternary = fmaxf(-1, fminf(1, rintf(l->weight[i] / s)));
        l->rounded[i] = s * ternary, codes[i] = (uint8_t)(ternary + 1);
    }
    for (int64_t i = 0; i < l->n; i++) l->step[i] = s;
    RUN(pack_codes, .codes = &bytes, .packed = &packed);
}

static void apply(mode mode, linear *l, float *x, float *y, int64_t rows) {
    static int8_t codes[ROWS * HIDDEN];
    float scale[ROWS];
    const trine_tensor in = matrix(l->x = x, rows, l->k), z = matrix(l->z, rows, l->k), out = matrix(y, rows, l->n),
                       rstd = vector(l->rstd, rows), scales = matrix(scale, rows, 1), steps = matrix(l->step, l->n, 1),
                       bytes = trine_tensor_2d(codes, TRINE_I8, rows, l->k),
                       groups = trine_tensor_3d(codes, TRINE_I8, rows, 1, l->k),
                       packed = trine_tensor_3d(l->packed, TRINE_U8, l->n, 1, l->k / 4),
                       w = matrix(mode == WHOLE ? l->weight : l->rounded, l->n, l->k), t = trine_tensor_transpose(&w);
    RUN(rms_norm, .x = &in, .y = &z, .rstd = &rstd, .eps = eps);
    if (mode != WHOLE) RUN(rms_norm_quantize, .x = &in, .codes = &bytes, .scales = &scales, .eps = eps);
    if (mode != WHOLE) RUN(dequantize, .codes = &groups, .scales = &scales, .y = &z);
    if (mode == PACKED)
        RUN(matmul_quantized, .x = &z, .codes = &packed, .scales = &steps, .y = &out, .offset = 1);
    else
        RUN(matmul, .a = &z, .b = &t, .d = &out);
}

/* The gradients at weights and at what they were applied to; `more` of the latter is added. */
static void apply_backward(mode mode, linear *l, float *dy, float *more, float *dx) {
    static float buffer[ROWS * HIDDEN];
    const trine_tensor out = matrix(dy, ROWS, l->n), t = trine_tensor_transpose(&out), z = matrix(l->z, ROWS, l->k),
                       dw = matrix(l->gradient, l->n, l->k), dz = matrix(buffer, ROWS, l->k),
                       x = matrix(l->x, ROWS, l->k), rstd = vector(l->rstd, ROWS), add = matrix(more, ROWS, l->k),
                       to = matrix(dx, ROWS, l->k), w = matrix(mode == WHOLE ? l->weight : l->rounded, l->n, l->k);
    RUN(matmul, .a = &t, .b = &z, .d = &dw);
    RUN(matmul, .a = &out, .b = &w, .d = &dz);
    RUN(rms_norm_backward, .dy = &dz, .h = &x, .rstd = &rstd, .dresidual = more ? &add : NULL, .dx = &dz, .dh = &to);
}

static trine_tensor sequences(float *x, int64_t t) { return trine_tensor_3d(x, TRINE_F32, BATCH, t, D); }

static void swiglu(float *gate, float *up, float *y, int64_t count) {
    const trine_tensor a = vector(gate, count), b = vector(up, count), c = vector(y, count);
    RUN(swiglu, .gate = &a, .up = &b, .y = &c);
}

/* Gradients take the place of gate, and of up or dy. */
static void swiglu_backward(float *dy, float *gate, float *up, float *dup, int64_t count) {
    const trine_tensor a = vector(gate, count), b = vector(up, count), c = vector(dy, count), d = vector(dup, count);
    RUN(swiglu_backward, .dy = &c, .gate = &a, .up = &b, .dgate = &a, .dup = &d);
}

static void add(float *a, float *y, int64_t count) {
    const trine_tensor more = vector(a, count), to = vector(y, count);
    RUN(add, .a = &more, .b = &to, .y = &to);
}

/* What is left after BATCH x t symbols: PACKED goes on from the states that step `at` - 1 of t symbols left. */
static void forward(model *m, int32_t *symbols, int64_t t, int at) {
    const int64_t rows = BATCH * t;
    const trine_tensor table = matrix(m->table.weight, SYMBOLS, D), ids = trine_tensor_1d(symbols, TRINE_I32, rows),
                       first = matrix(m->layers[0][X], rows, D);
    RUN(embedding, .table = &table, .ids = &ids, .y = &first);
    for (int i = 0; i < LAYERS; i++) {
        float(*a)[ROWS * HIDDEN] = m->layers[i], *next = m->layers[i + 1][X];
        linear *l = &m->linears[PER_LAYER * i];
        const trine_tensor x = sequences(a[ADDED], t), g = sequences(a[FORGET], t), y = sequences(a[STATE], t),
                           h0 = matrix(m->carried[at % 2][i], BATCH, D),
                           last = matrix(m->carried[(at + 1) % 2][i], BATCH, D);
        for (int j = FORGET; j <= OUTPUT; j++) apply(m->mode, &l[j], a[X], a[j], rows);
        for (int64_t j = 0; j < rows * D; j++)
            a[FORGET][j] = 1 / (1 + expf(-a[FORGET][j])), a[KEEP][j] = 1 - a[FORGET][j];
        swiglu(a[INPUT], a[KEEP], a[ADDED], rows * D);
        if (m->mode == PACKED)
            RUN(linear_scan, .x = &x, .g = &g, .y = &y, .h0 = &h0, .last = &last);
        else
            RUN(linear_scan, .x = &x, .g = &g, .y = &y);
        swiglu(a[OUTPUT], a[STATE], a[MIXED], rows * D);
        apply(m->mode, &l[MIDDLE], a[MIXED], a[MIDDLE], rows);
        add(a[X], a[MIDDLE], rows * D);
        for (int j = GATE; j <= UP; j++) apply(m->mode, &l[j], a[MIDDLE], a[j], rows);
        swiglu(a[GATE], a[UP], a[PRODUCT], rows * HIDDEN);
        apply(m->mode, &l[DOWN], a[PRODUCT], next, rows);
        add(a[MIDDLE], next, rows * D);
    }
    apply(m->mode, &m->linears[HEAD], m->layers[LAYERS][X], m->logits, rows);
}

/* All gradients, of m->logits that are those of the last forward's. What layers have is overwritten. */
static void backward(model *m, int32_t *symbols) {
    static float d[ROWS * D], other[ROWS * HIDDEN];
    const trine_tensor ids = trine_tensor_1d(symbols, TRINE_I32, ROWS), stream = matrix(d, ROWS, D),
                       dtable = matrix(m->table.gradient, SYMBOLS, D);
    apply_backward(m->mode, &m->linears[HEAD], m->logits, NULL, d);
    for (int i = LAYERS - 1; i >= 0; i--) {
        float(*a)[ROWS * HIDDEN] = m->layers[i];
        linear *l = &m->linears[PER_LAYER * i];
        const trine_tensor dy = sequences(other, LENGTH), g = sequences(a[FORGET], LENGTH),
                           y = sequences(a[STATE], LENGTH), dx = sequences(a[ADDED], LENGTH),
                           dg = sequences(a[MIXED], LENGTH);
        apply_backward(m->mode, &l[DOWN], d, NULL, other);
        swiglu_backward(other, a[GATE], a[UP], a[UP], ROWS * HIDDEN);
        for (int j = GATE; j <= UP; j++) apply_backward(m->mode, &l[j], a[j], d, d);
        apply_backward(m->mode, &l[MIDDLE], d, NULL, other);
        swiglu_backward(other, a[OUTPUT], a[STATE], other, ROWS * D);
        RUN(linear_scan_backward, .dy = &dy, .g = &g, .y = &y, .dx = &dx, .dg = &dg);
        swiglu_backward(a[ADDED], a[INPUT], a[KEEP], a[KEEP], ROWS * D);
        for (int64_t j = 0; j < ROWS * D; j++) a[FORGET][j] *= (1 - a[FORGET][j]) * (a[MIXED][j] - a[KEEP][j]);
        for (int j = FORGET; j <= OUTPUT; j++) apply_backward(m->mode, &l[j], a[j], d, d);
    }
    RUN(embedding_backward, .dy = &stream, .ids = &ids, .dtable = &dtable);
}

#endif
