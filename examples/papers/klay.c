/* SPDX-License-Identifier: Apache-2.0 */
/* Circuits as KLay runs them (Maene et al. 2025): layers of products and of sums in turn, each of them one gather_rows
 * and one segment_reduce, for all weightings of a batch at once. The circuit is a decision diagram of a made formula: a
 * node is what is left of it when the variables before have values, the sum of two products. The root is the weight of
 * all models of the formula, and its gradient tells the shares of literals in that; in logarithms it may be as small as
 * it likes; with the maximum for a sum both are of the best model. A walk over all assignments checks them. */
#include <string.h>

#include "papers.h"

enum { VARIABLES = 16, CLAUSES = 28, ASSIGNMENTS = 1 << VARIABLES, BATCH = 64, ROUNDS = 5 };
enum { ONE = 2 * VARIABLES, LAYERS = 2 * VARIABLES, MOST = 1 << 16 };

/* Rows of values are literals, of variable i the negative one, 2 i, and the positive one; then the constant 1; then the
 * layers from the last variable to the first, products before sums. Layer l has the rows first[l] .. first[l+1], and
 * offsets of its own from first[l] + l on. */
typedef struct circuit {
    int64_t rows, edges, layers, first[LAYERS + 1], first_edge[LAYERS + 1];
    int32_t edge[MOST], offset[MOST];
    float *value, *x, *dvalue, *dx; /* rows BATCH, and what edges read of them; the gradients of both */
} circuit;

typedef struct semiring {
    const char *name;
    int32_t product, sum; /* TRINE_SEGMENT_* */
    bool logarithms;
} semiring;

/* Of each weighting: all models' weight or the best one's, and its derivative by a literal times the literal. */
typedef struct result {
    double root[BATCH], share[BATCH][ONE], forward_seconds, backward_seconds;
} result;

static bool model[ASSIGNMENTS];

static int literal_of(int64_t assignment, int variable) {
    return 2 * variable + (int)(assignment >> (VARIABLES - 1 - variable) & 1);
}

static int64_t make_formula(void) {
    int literal[CLAUSES][3];
    int64_t models = 0;
    for (int i = 0; i < CLAUSES * 3; i++) literal[i / 3][i % 3] = (int)(uniform() * 2 * VARIABLES);
    for (int64_t a = 0; a < ASSIGNMENTS; a++) {
        model[a] = true;
        for (int i = 0; i < CLAUSES; i++) {
            bool holds = false;
            for (int j = 0; j < 3; j++) holds |= literal_of(a, literal[i][j] / 2) == literal[i][j];
            model[a] &= holds;
        }
        models += model[a];
    }
    return models;
}

static void begin_layer(circuit *c) {
    c->first[c->layers] = c->rows, c->first_edge[c->layers] = c->edges;
    c->offset[c->rows + c->layers++] = 0;
}

static void end_row(circuit *c) {
    c->rows++;
    c->offset[c->rows + c->layers - 1] = (int32_t)(c->edges - c->first_edge[c->layers - 1]);
}

/* node[a] stands for what is left of the formula after the values a of the variables before v, -1 where that has no
 * model. Nodes with the same two parts are one. */
static void compile(circuit *c) {
    static int32_t node[ASSIGNMENTS], part[ASSIGNMENTS][2];
    c->rows = ONE + 1;
    for (int64_t a = 0; a < ASSIGNMENTS; a++) node[a] = model[a] ? ONE : -1;
    for (int v = VARIABLES - 1; v >= 0; v--) {
        int32_t nodes = 0;
        for (int64_t a = 0; a < (int64_t)1 << v; a++) {
            const int32_t low = node[2 * a], high = node[2 * a + 1];
            int32_t same = low < 0 && high < 0 ? -1 : 0;
            while (same >= 0 && same < nodes && (part[same][0] != low || part[same][1] != high)) same++;
            if (same == nodes) part[nodes][0] = low, part[nodes++][1] = high;
            node[a] = same;
        }
        begin_layer(c);
        int32_t product = (int32_t)c->rows;
        for (int32_t i = 0; i < 2 * nodes; i++)
            if (part[i / 2][i % 2] >= 0)
                c->edge[c->edges++] = 2 * v + i % 2, c->edge[c->edges++] = part[i / 2][i % 2], end_row(c);
        begin_layer(c);
        const int32_t sums = (int32_t)c->rows;
        for (int32_t i = 0; i < nodes; i++) {
            for (int j = 0; j < 2; j++)
                if (part[i][j] >= 0) c->edge[c->edges++] = product++;
            end_row(c);
        }
        for (int64_t a = 0; a < (int64_t)1 << v; a++)
            if (node[a] >= 0) node[a] += sums;
    }
    c->first[LAYERS] = c->rows, c->first_edge[LAYERS] = c->edges;
    c->value = floats(c->rows * BATCH), c->x = floats(c->edges * BATCH);
    c->dvalue = floats(c->rows * BATCH), c->dx = floats(c->edges * BATCH);
}

static void run_layer(trine_queue *queue, circuit *c, const semiring *s, int64_t l, bool backward) {
    const int64_t first = c->first[l], count = c->first[l + 1] - first, edges = c->first_edge[l + 1] - c->first_edge[l];
    const int32_t kind = l % 2 ? s->sum : s->product;
    const trine_tensor offsets = trine_tensor_1d(c->offset + first + l, TRINE_I32, count + 1),
                       index = trine_tensor_1d(c->edge + c->first_edge[l], TRINE_I32, edges),
                       x = matrix(c->x + c->first_edge[l] * BATCH, edges, BATCH), dx = matrix(c->dx, edges, BATCH),
                       in = matrix(c->value, first, BATCH), din = matrix(c->dvalue, first, BATCH),
                       y = matrix(c->value + first * BATCH, count, BATCH),
                       dy = matrix(c->dvalue + first * BATCH, count, BATCH);
    const trine_gather_rows_args gather = { TRINE_ARGS(gather_rows), .x = &in, .index = &index, .y = &x };
    const trine_segment_reduce_args reduce = { TRINE_ARGS(segment_reduce), &x, &offsets, &y, kind };
    trine_segment_reduce_backward_args grad = { TRINE_ARGS(segment_reduce_backward), .dy = &dy, .x = &x, .dx = &dx };
    grad.offsets = &offsets, grad.kind = kind;
    const trine_scatter_add_rows_args scatter = { TRINE_ARGS(scatter_add_rows), .x = &dx, .index = &index, .y = &din };
    need(backward ? trine_segment_reduce_backward(queue, &grad) : trine_gather_rows(queue, &gather));
    need(backward ? trine_scatter_add_rows(queue, &scatter) : trine_segment_reduce(queue, &reduce));
}

static void run(trine_queue *queue, circuit *c, const semiring *s, const double *weight, result *to) {
    for (int64_t i = 0; i < (ONE + 1) * BATCH; i++) {
        const double w = i < ONE * BATCH ? weight[i] : 1;
        c->value[i] = (float)(s->logarithms ? log(w) : w);
    }
    to->forward_seconds = to->backward_seconds = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < c->rows * BATCH; i++) c->dvalue[i] = i >= (c->rows - 1) * BATCH;
        const double start = seconds();
        for (int64_t l = 0; l < LAYERS; l++) run_layer(queue, c, s, l, false);
        need(trine_queue_wait(queue));
        const double between = seconds();
        for (int64_t l = LAYERS - 1; l >= 0; l--) run_layer(queue, c, s, l, true);
        need(trine_queue_wait(queue));
        to->forward_seconds = fmin(to->forward_seconds, between - start);
        to->backward_seconds = fmin(to->backward_seconds, seconds() - between);
    }
    for (int64_t i = 0; i < ONE * BATCH; i++) {
        to->root[i % BATCH] = c->value[(c->rows - 1) * BATCH + i % BATCH];
        to->share[i % BATCH][i / BATCH] = c->dvalue[i] * (s->logarithms ? 1 : c->value[i] / to->root[i % BATCH]);
    }
}

/* The same by a walk over all assignments. */
static void enumerate(const semiring *s, const double *weight, result *r) {
    const bool best = s->sum == TRINE_SEGMENT_MAX;
    memset(r, 0, sizeof *r);
    for (int64_t a = 0; a < ASSIGNMENTS; a++)
        for (int b = 0; b < BATCH && model[a]; b++) {
            double w = 1;
            for (int v = 0; v < VARIABLES; v++) w *= weight[literal_of(a, v) * BATCH + b];
            if (best && w <= r->root[b]) continue;
            if (best) memset(r->share[b], 0, sizeof r->share[b]), r->root[b] = 0;
            r->root[b] += w;
            for (int v = 0; v < VARIABLES; v++) r->share[b][literal_of(a, v)] += w;
        }
    for (int b = 0; b < BATCH; b++) {
        for (int i = 0; i < ONE; i++) r->share[b][i] /= r->root[b];
        if (s->logarithms) r->root[b] = log(r->root[b]);
    }
}

static void show(trine_queue *queue, circuit *c, const semiring *s, const double *weight) {
    static result got, want;
    double root = 0, share = 0;
    run(queue, c, s, weight, &got);
    enumerate(s, weight, &want);
    for (int b = 0; b < BATCH; b++) {
        root = worst(root, fabs(got.root[b] / want.root[b] - 1));
        for (int i = 0; i < ONE; i++) share = worst(share, fabs(got.share[b][i] - want.share[b][i]));
    }
    agree("roots and those of a walk over all assignments", root, 1e-5);
    agree("shares of literals", share, 1e-4);
    printf("%-22s   %9.5g   %7.1e   %8.1e   %7.2f   %11.2f\n", s->name, got.root[0], root, share,
           1e3 * got.forward_seconds, 1e3 * got.backward_seconds);
}

int main(void) {
    static circuit c;
    static double weight[ONE * BATCH], small[ONE * BATCH];
    const semiring semirings[] = { { "real", TRINE_SEGMENT_PRODUCT, TRINE_SEGMENT_SUM, false },
                                   { "log", TRINE_SEGMENT_SUM, TRINE_SEGMENT_LOGSUMEXP, true },
                                   { "max-product", TRINE_SEGMENT_PRODUCT, TRINE_SEGMENT_MAX, false },
                                   { "log, of small weights", TRINE_SEGMENT_SUM, TRINE_SEGMENT_LOGSUMEXP, true } };
    trine_library *lib;
    trine_queue *queue = cpu_queue(&lib);
    const int64_t models = make_formula();
    compile(&c);
    for (int64_t i = 0; i < ONE * BATCH; i++) {
        weight[i] = i / BATCH % 2 ? 1 - weight[i - BATCH] : uniform();
        small[i] = 1e-4 * weight[i];
    }
    printf("%d clauses of %d variables have %d models, the circuit %d nodes and %d edges in %d layers\n\n", CLAUSES,
           VARIABLES, (int)models, (int)(c.rows - ONE - 1), (int)c.edges, LAYERS);
    printf("semiring                      root    off by   share off   time ms   gradient ms\n");
    for (int i = 0; i < 4; i++) show(queue, &c, &semirings[i], i < 3 ? weight : small);
    free(c.value), free(c.x), free(c.dvalue), free(c.dx);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
