/* SPDX-License-Identifier: Apache-2.0 */
/* A linear layer's products in MXFP4 (Castro et al. 2025, Quartet): y = x w^T, dx = dy w, dw = dy^T x, each of whose
 * operands is cut into groups of 32 along what is summed over, turned by a Hadamard matrix, with signs drawn anew in
 * the backward pass, and rounded to e2m1 with scales of e8m0. Forward goes to the nearest; gradients go up or down by
 * chance under scales that clamp nothing, so that they are right on average. Scales of the forward pass are the OCP's,
 * of the largest numbers, or QuEST's, which are fitted to a group's deviation: as the paper's code has them, and for
 * 4.25 deviations. Errors, what is left of them in the mean of many draws, and then the layer learns, with each way of
 * rounding. */
#include <string.h>

#include "papers.h"

enum { M = 256, N = 128, K = 192, GROUP = 32, MOST = K * M, DRAWS = 256, STEPS = 200, SHOWN = 40 };
typedef enum way { WHOLE, BF16, NEAREST, TURNED, CHANCE, PAPER, FITTED, WAYS } way;
static const char *const names[WAYS] = {
    "f32", "bf16", "nearest", "turned, nearest", "turned, by chance", "paper's, by chance", "fitted, by chance"
};
static trine_queue *queue;
static uint64_t drawn; /* how many operands so far */

/* An operand in e2m1: rows of k/2 bytes and k/GROUP scales. */
typedef struct codes {
    uint8_t bytes[MOST / 2], scales[MOST / GROUP];
} codes;

/* y = x of which each group is turned, its elements' signs having been drawn. */
static void turn(float *x, int64_t rows, int64_t k, float *signs, float *y) {
    const trine_tensor from = matrix(x, rows, k), by = vector(signs, k), to = matrix(y, rows, k),
                       groups = matrix(y, rows * k / GROUP, GROUP);
    RUN(mul, .a = &from, .b = &by, .y = &to);
    RUN(hadamard, .x = &groups, .y = &groups, .scale = 1 / sqrtf(GROUP));
}

static void round_to(float *x, int64_t rows, int64_t k, bool chance, float deviations, codes *c) {
    const trine_tensor from = matrix(x, rows, k), to = trine_tensor_3d(c->bytes, TRINE_U8, rows, k / GROUP, GROUP / 2),
                       scales = trine_tensor_2d(c->scales, TRINE_E8M0, rows, k / GROUP);
    RUN(quantize, .x = &from, .codes = &to, .scales = &scales, .format = TRINE_CODES_E2M1, .stochastic = chance,
        .upward = chance, .powers = deviations > 0 ? TRINE_POWERS_FITTED : TRINE_POWERS_E8M0,
        .ties = deviations > 0 ? TRINE_TIES_ZERO : TRINE_TIES_EVEN, .deviations = deviations, .seed = 1,
        .stream = ++drawn);
}

/* How far the product of what codes stand for, in f64, is from d. */
static double off(codes *a, codes *b, int64_t m, int64_t n, int64_t k, const float *d) {
    static float x[2][MOST], want[MOST];
    for (int i = 0; i < 2; i++) {
        codes *c = i ? b : a;
        const int64_t rows = i ? n : m;
        const trine_tensor from = trine_tensor_3d(c->bytes, TRINE_U8, rows, k / GROUP, GROUP / 2),
                           scales = trine_tensor_2d(c->scales, TRINE_E8M0, rows, k / GROUP), to = matrix(x[i], rows, k);
        RUN(dequantize, .codes = &from, .scales = &scales, .y = &to, .format = TRINE_CODES_E2M1);
    }
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0;
        for (int64_t l = 0; l < k; l++) sum += (double)x[0][i / n * k + l] * x[1][i % n * k + l];
        want[i] = (float)sum;
    }
    return distance(d, want, m * n);
}

/* d = a b^T, a m k and b n k. Backward, signs are drawn. */
static void product(way way, bool back, float *a, float *b, int64_t m, int64_t n, int64_t k, float *d) {
    static codes x, y;
    static float turned[2][MOST], signs[MOST];
    static uint16_t narrow[2][MOST];
    const trine_tensor ta = matrix(a, m, k), tb = matrix(b, n, k), to = matrix(d, m, n);
    if (way <= BF16) {
        const trine_tensor na = trine_tensor_2d(narrow[0], TRINE_BF16, m, k),
                           nb = trine_tensor_2d(narrow[1], TRINE_BF16, n, k),
                           down = trine_tensor_transpose(way == BF16 ? &nb : &tb);
        if (way == BF16) RUN(cast, .x = &ta, .y = &na);
        if (way == BF16) RUN(cast, .x = &tb, .y = &nb);
        RUN(matmul, .a = way == BF16 ? &na : &ta, .b = &down, .d = &to);
        need(trine_queue_wait(queue));
        return;
    }
    for (int64_t i = 0; i < k; i++) signs[i] = back && uniform() < 0.5 ? -1 : 1;
    if (way >= TURNED) turn(a, m, k, signs, turned[0]), turn(b, n, k, signs, turned[1]);
    const float deviations = back ? 0 : way == PAPER ? 2.92247856f : way == FITTED ? 4.25f : 0;
    round_to(way >= TURNED ? turned[0] : a, m, k, way >= CHANCE && back, deviations, &x);
    round_to(way >= TURNED ? turned[1] : b, n, k, way >= CHANCE && back, deviations, &y);
    const trine_tensor xs = trine_tensor_2d(x.bytes, TRINE_U8, m, k / 2),
                       ys = trine_tensor_2d(y.bytes, TRINE_U8, n, k / 2),
                       x_scale = trine_tensor_2d(x.scales, TRINE_E8M0, m, k / GROUP),
                       y_scale = trine_tensor_2d(y.scales, TRINE_E8M0, n, k / GROUP);
    RUN(matmul_scaled, .a = &xs, .b = &ys, .a_scale = &x_scale, .b_scale = &y_scale, .d = &to,
        .format = TRINE_SCALED_E2M1_BOTH);
    need(trine_queue_wait(queue));
    if (drawn <= 40) agree("matmul_scaled beside f64", off(&x, &y, m, n, k, d), 1e-6);
}

static void transpose(const float *x, int64_t rows, int64_t columns, float *y) {
    for (int64_t i = 0; i < rows * columns; i++) y[i % columns * rows + i / columns] = x[i];
}

typedef struct step {
    float x[M * K], w[N * K], y[M * N], dy[M * N], dx[M * K], dw[N * K];
    float wt[K * N], dyt[N * M], xt[K * M]; /* transposed, as what is summed over must come last */
} step;

static void forward(step *s, way way) { product(way, false, s->x, s->w, M, N, K, s->y); }
static void backward(step *s, way way, bool dx) {
    transpose(s->w, N, K, s->wt), transpose(s->dy, M, N, s->dyt), transpose(s->x, M, K, s->xt);
    if (dx) product(way, true, s->dy, s->wt, M, K, N, s->dx);
    product(way, true, s->dyt, s->xt, N, K, M, s->dw);
}

/* Inputs of which some columns are large, as those of language models are. */
static void draw_inputs(float *x) {
    for (int i = 0; i < M * K; i++) x[i] = normal() * (i % K % 29 == 0 ? 10 : 1);
}

/* SGD with momentum towards known weights: the losses. */
static double learn(step *s, float *truth, way way) {
    static float want[M * N], moment[N * K];
    double sum = 0, last = 0;
    memset(s->w, 0, sizeof s->w), memset(moment, 0, sizeof moment);
    random_state = 5;
    printf("%-19s", names[way]);
    for (int i = 1; i <= STEPS; i++) {
        draw_inputs(s->x);
        product(WHOLE, false, s->x, truth, M, N, K, want);
        forward(s, way);
        double loss = 0;
        for (int j = 0; j < M * N; j++) {
            s->dy[j] = (s->y[j] - want[j]) / M;
            loss += 0.5 * M * (double)s->dy[j] * s->dy[j] / N;
        }
        sum += loss / SHOWN;
        backward(s, way, false);
        for (int j = 0; j < N * K; j++) moment[j] = 0.9f * moment[j] + s->dw[j] * (j % K % 29 == 0 ? 0.01f : 1);
        for (int j = 0; j < N * K; j++) s->w[j] -= 0.03f * (1 - (float)i / (STEPS + 1)) * moment[j];
        if (i % SHOWN == 0) printf("  %8.5f", sum), last = sum, sum = 0;
    }
    printf("  %8.1f%%\n", 100 * distance(s->w, truth, N * K));
    return last;
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    static step s, whole;
    static float mean[M * K], truth[N * K];
    double bias[WAYS][3] = { 0 }, loss[WAYS], forwards[WAYS];
    draw_inputs(s.x);
    for (int i = 0; i < N * K; i++) truth[i] = s.w[i] = normal() / sqrtf(K);
    for (int i = 0; i < M * N; i++) s.dy[i] = normal() * (float)exp(1.5 * (double)normal());
    whole = s;
    forward(&whole, WHOLE), backward(&whole, WHOLE, true);
    printf("%d x %d inputs, %d outputs; off by, of itself:\n\n", M, K, N);
    printf("                          y        dx        dw   mean of 16 dx   of 256\n");
    for (int way = BF16; way < WAYS; way++) {
        memset(mean, 0, sizeof mean);
        forward(&s, (enum way)way), backward(&s, (enum way)way, true);
        forwards[way] = distance(s.y, whole.y, M * N);
        printf("%-19s  %5.1f%%  %7.1f%%  %7.1f%%", names[way], 100 * forwards[way],
               100 * distance(s.dx, whole.dx, M * K), 100 * distance(s.dw, whole.dw, N * K));
        for (int draw = 1; draw <= DRAWS; draw++) {
            product((enum way)way, true, s.dy, s.wt, M, K, N, s.dx);
            for (int i = 0; i < M * K; i++) mean[i] += (s.dx[i] - mean[i]) / (float)draw;
            if (draw == 1 || draw == 16 || draw == DRAWS)
                bias[way][draw == 1 ? 0 : draw == 16 ? 1 : 2] = distance(mean, whole.dx, M * K);
        }
        printf("   %12.2f%%  %6.2f%%\n", 100 * bias[way][1], 100 * bias[way][2]);
    }
    agree("16 draws by chance, of what one is off by", bias[CHANCE][1] / bias[CHANCE][0], 0.3);
    agree("256 draws", bias[CHANCE][2] / bias[CHANCE][0], 0.075);
    agree("by chance, beside nearest", bias[CHANCE][2], 0.5 * bias[TURNED][2]);
    printf("\nLosses of learning, over %d steps each; at last most is the forward's. Then how far weights are off.\n",
           SHOWN);
    for (int way = WHOLE; way < WAYS; way++) loss[way] = learn(&s, truth, (enum way)way);
    agree("by chance beside nearest", loss[CHANCE], loss[NEAREST]);
    agree("fitted beside the paper's", forwards[FITTED], forwards[PAPER]);
    agree("fitted beside nearest", loss[FITTED], loss[NEAREST]);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
