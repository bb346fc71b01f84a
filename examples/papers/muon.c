/* SPDX-License-Identifier: Apache-2.0 */
/* Muon (Jordan et al. 2024) beside AdamW where directions are badly scaled: a matrix is learnt from its products with
 * inputs that are large along few directions and small along the others, which a rotation hides. Muon's step has all
 * singular values near 1, so that small directions are learnt as fast; those of one step are held against what the
 * iteration's polynomial makes of the gradient's, in f64. At last steps of larger matrices are timed. */
#include <string.h>

#include "papers.h"

enum { OUT = 48, IN = 96, BATCH = 256, STEPS = 300, SHOWN = 50, RATES = 3, ROUNDS = 3 };
typedef enum kind { ADAMW, MUON, MUON_BF16, KINDS } kind;
static const char *const names[KINDS] = { "adamw", "muon", "muon, bf16" };
static const float rates[KINDS][RATES] = { { 0.01f, 0.03f, 0.1f }, { 0.01f, 0.03f, 0.1f }, { 0.01f, 0.03f, 0.1f } };
static trine_queue *queue;

typedef struct problem {
    float *turn, *truth, *x, *y, *error, *gradient, *weight, *m, *v;
} problem;

/* Rows that are orthogonal, of random ones. */
static void orthogonal(float *q, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double squares = 0;
        for (int64_t c = 0; c < n; c++) q[i * n + c] = normal();
        for (int64_t j = 0; j < i; j++) {
            double z = 0;
            for (int64_t c = 0; c < n; c++) z += (double)q[i * n + c] * q[j * n + c];
            for (int64_t c = 0; c < n; c++) q[i * n + c] -= (float)z * q[j * n + c];
        }
        for (int64_t c = 0; c < n; c++) squares += (double)q[i * n + c] * q[i * n + c];
        for (int64_t c = 0; c < n; c++) q[i * n + c] /= (float)sqrt(squares);
    }
}

static problem make_problem(void) {
    problem p = { floats(IN * IN),  floats(OUT * IN), floats(BATCH * IN), floats(BATCH * OUT), floats(BATCH * OUT),
                  floats(OUT * IN), floats(OUT * IN), floats(OUT * IN),   floats(OUT * IN) };
    orthogonal(p.turn, IN);
    for (int i = 0; i < OUT * IN; i++) p.truth[i] = normal() / sqrtf(IN);
    return p;
}

static void free_problem(problem *p) {
    free(p->turn), free(p->truth), free(p->x), free(p->y), free(p->error), free(p->gradient);
    free(p->weight), free(p->m), free(p->v);
}

/* Inputs, direction i of which is 100 to 1 in size, and the loss of the weights on them; the gradient, too. */
static double learn(problem *p) {
    float *z = floats(BATCH * IN);
    for (int i = 0; i < BATCH * IN; i++) z[i] = normal() * powf(100, -(float)(i % IN) / (IN - 1));
    const trine_tensor raw = matrix(z, BATCH, IN), turn = matrix(p->turn, IN, IN), x = matrix(p->x, BATCH, IN),
                       w = matrix(p->weight, OUT, IN), truth = matrix(p->truth, OUT, IN),
                       down = trine_tensor_transpose(&w), known = trine_tensor_transpose(&truth),
                       y = matrix(p->y, BATCH, OUT), error = matrix(p->error, BATCH, OUT),
                       turned = trine_tensor_transpose(&error), g = matrix(p->gradient, OUT, IN);
    RUN(matmul, .a = &raw, .b = &turn, .d = &x);
    RUN(matmul, .a = &x, .b = &known, .d = &y);
    RUN(matmul, .a = &x, .b = &down, .c = &y, .beta = -1, .d = &error);
    RUN(matmul, .a = &turned, .b = &x, .d = &g, .alpha = 1.0f / BATCH);
    need(trine_queue_wait(queue));
    double sum = 0;
    for (int i = 0; i < BATCH * OUT; i++) sum += (double)p->error[i] * p->error[i] / (2 * BATCH);
    free(z);
    return sum;
}

static void step(kind k, float *weight, float *gradient, float *m, float *v, int64_t rows, int64_t columns, float lr,
                 int64_t number) {
    const int64_t n = rows * columns;
    const trine_tensor w = vector(weight, n), g = vector(gradient, n), tm = vector(m, n), tv = vector(v, n),
                       whole = matrix(weight, rows, columns), dwhole = matrix(gradient, rows, columns),
                       moment = matrix(m, rows, columns);
    if (k == ADAMW)
        RUN(adamw, .param = &w, .grad = &g, .m = &tm, .v = &tv, .lr = lr, .step = number);
    else
        RUN(muon, .param = &whole, .grad = &dwhole, .moment = &moment, .lr = lr,
            .precision = k == MUON_BF16 ? TRINE_MUON_BF16 : TRINE_MUON_FULL);
    need(trine_queue_wait(queue));
}

/* Losses of a run at one rate, which falls to 0. */
static double train(problem *p, kind k, float rate, double *loss_out) {
    memset(p->weight, 0, OUT * IN * sizeof(float));
    memset(p->m, 0, OUT * IN * sizeof(float)), memset(p->v, 0, OUT * IN * sizeof(float));
    random_state = 11;
    for (int i = 0; i <= STEPS; i++) {
        const double loss = learn(p);
        if (i % SHOWN == 0) loss_out[i / SHOWN] = loss;
        step(k, p->weight, p->gradient, p->m, p->v, OUT, IN, rate * (1 - (float)i / (STEPS + 1)), i + 1);
    }
    return loss_out[STEPS / SHOWN];
}

/* Singular values of a step of muon at lr 1 from weights of 0, by Jacobi's rotations of u u^T, and those of the moment,
 * as shares of its length. Each is what five rounds of the polynomial make of it; in bf16 to two digits. */
static void values(const float *u, double *value_out) {
    static double a[OUT][OUT];
    for (int i = 0; i < OUT; i++)
        for (int j = 0; j < OUT; j++) {
            a[i][j] = 0;
            for (int c = 0; c < IN; c++) a[i][j] += (double)u[i * IN + c] * u[j * IN + c];
        }
    for (int sweep = 0; sweep < 12; sweep++)
        for (int p = 0; p < OUT; p++)
            for (int q = p + 1; q < OUT; q++) {
                const double angle = 0.5 * atan2(2 * a[p][q], a[q][q] - a[p][p]), c = cos(angle), s = sin(angle);
                for (int i = 0; i < OUT; i++) {
                    const double x = a[i][p], y = a[i][q];
                    a[i][p] = c * x - s * y, a[i][q] = s * x + c * y;
                }
                for (int i = 0; i < OUT; i++) {
                    const double x = a[p][i], y = a[q][i];
                    a[p][i] = c * x - s * y, a[q][i] = s * x + c * y;
                }
            }
    for (int i = 0; i < OUT; i++) {
        const double value = sqrt(fmax(0, a[i][i]));
        int at = i;
        for (; at > 0 && value_out[at - 1] < value; at--) value_out[at] = value_out[at - 1];
        value_out[at] = value;
    }
}

static void check_values(problem *p, kind k) {
    double before[OUT] = { 0 }, after[OUT] = { 0 }, want[OUT] = { 0 }, length = 0, off = 0;
    memset(p->weight, 0, OUT * IN * sizeof(float)), memset(p->m, 0, OUT * IN * sizeof(float));
    random_state = 11;
    learn(p);
    step(k, p->weight, p->gradient, p->m, p->v, OUT, IN, 1, 1);
    values(p->gradient, before), values(p->weight, after);
    for (int i = 0; i < OUT; i++) length += before[i] * before[i];
    for (int i = 0; i < OUT; i++) {
        double x = before[i] / sqrt(length);
        for (int round = 0; round < 5; round++) x = 3.4445 * x - 4.7750 * pow(x, 3) + 2.0315 * pow(x, 5);
        int at = i; /* the polynomial is not monotonic */
        for (; at > 0 && want[at - 1] < x; at--) want[at] = want[at - 1];
        want[at] = x;
    }
    for (int i = 0; i < OUT; i++) off = worst(off, fabs(after[i] - want[i]));
    printf("%-10s  %9.1e .. %7.1e   %8.3f .. %5.3f   %9.0e\n", names[k], before[OUT - 1] / sqrt(length),
           before[0] / sqrt(length), after[OUT - 1], after[0], off);
    agree("singular values beside the polynomial's", off, k == MUON ? 1e-4 : 0.1);
    agree("the largest one", after[0], k == MUON ? 1.25 : 1.35);
    agree("what is left of their spread", after[0] / after[OUT - 1], 0.01 * before[0] / before[OUT - 1]);
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    problem p = make_problem();
    double best[KINDS] = { INFINITY, INFINITY, INFINITY };
    printf("%d x %d weights of inputs of sizes 1 to 100\n\noptimizer      lr   loss at", OUT, IN);
    for (int i = 0; i <= STEPS; i += SHOWN) printf("  %8d", i);
    printf("\n");
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < RATES; i++) {
            double loss[STEPS / SHOWN + 1] = { 0 };
            best[k] = fmin(best[k], train(&p, (kind)k, rates[k][i], loss));
            printf("%-10s  %5g          ", names[k], (double)rates[k][i]);
            for (int j = 0; j <= STEPS / SHOWN; j++) printf("  %8.1e", loss[j]);
            printf("\n");
        }
    agree("muon beside adamw", best[MUON], 0.5 * best[ADAMW]);
    agree("muon in bf16 beside adamw", best[MUON_BF16], 0.5 * best[ADAMW]);
    printf("\n            of the gradient: all, by its length   of the step         off by\n");
    check_values(&p, MUON), check_values(&p, MUON_BF16);
    free_problem(&p);
    printf("\nms a step of n x n weights:\n     n    adamw     muon\n");
    for (int64_t n = 128; n <= 512; n *= 2) {
        float *a[4] = { floats(n * n), floats(n * n), floats(n * n), floats(n * n) };
        double least[2] = { INFINITY, INFINITY };
        for (int64_t i = 0; i < n * n; i++) a[1][i] = normal();
        for (int round = 0; round < 2 * ROUNDS; round++) {
            const double start = seconds();
            step(round % 2 ? MUON : ADAMW, a[0], a[1], a[2], a[3], n, n, 1e-3f, 1);
            least[round % 2] = fmin(least[round % 2], seconds() - start);
        }
        printf("%6d  %7.2f  %7.2f\n", (int)n, 1e3 * least[0], 1e3 * least[1]);
        for (int i = 0; i < 4; i++) free(a[i]);
    }
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
