/* SPDX-License-Identifier: Apache-2.0 */
/* Products of whole numbers of few bits with scales that are powers of two, one for each group of channels of like
 * range (ShiftQuant, 2024): argsort orders channels by their range, quantize makes codes and scales of e8m0, and
 * matmul_scaled multiplies codes exactly. Beside it one scale for a row, groups as channels happen to lie, and by
 * definition the paper's groups, which all rows share. These again as whole numbers all along: quantize gives each
 * channel a power of two in f32, argsort puts those of like shifts together, matmul multiplies the codes of a group
 * into i32, and the groups' sums are shifted and added. Then l1_norm, which needs no squares, beside layer_norm. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "papers.h"

enum { M = 128, N = 96, K = 256, GROUP = 32, GROUPS = K / GROUP, MOST = M * K, ROUNDS = 5 };
enum { ROWS = 1024, WIDTH = 1024 };
typedef enum way { WHOLE_ROW, AS_THEY_LIE, BY_RANGE, ANY_SCALE, SHARED, WAYS } way;
static const char *const names[WAYS] = { "a row a scale", "as they lie", "by range", "by range, any scale",
                                         "shared by rows" };
static trine_queue *queue;

/* An operand: a byte a code, and scales as floats too. */
typedef struct operand {
    uint8_t packed[MOST], narrow[M * GROUPS];
    int8_t codes[MOST];
    float wide[M * GROUPS], scale[M * GROUPS];
} operand;

/* Columns in the order of `order`: rows of the transposed, gathered. */
static void reorder(float *x, int64_t rows, int32_t *order, float *y) {
    float *t = floats(K * rows), *u = floats(K * rows);
    for (int64_t i = 0; i < rows * K; i++) t[i % K * rows + i / K] = x[i];
    const trine_tensor from = matrix(t, K, rows), to = matrix(u, K, rows), index = trine_tensor_1d(order, TRINE_I32, K);
    RUN(gather_rows, .x = &from, .index = &index, .y = &to);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < rows * K; i++) y[i] = u[i % K * rows + i / K];
    free(t), free(u);
}

/* Codes of so many bits; scales are powers of two unless `any`. */
static void quantize(float *x, int64_t rows, int64_t groups, int bits, bool any, operand *o) {
    const int64_t bytes = K / groups * bits / 8;
    const trine_tensor from = matrix(x, rows, K), packed = trine_tensor_3d(o->packed, TRINE_I8, rows, groups, bytes),
                       words = trine_tensor_2d(o->packed, TRINE_U8, rows, groups * bytes),
                       codes = trine_tensor_2d(o->codes, TRINE_I8, rows, K),
                       scales =
                           any ? matrix(o->wide, rows, groups) : trine_tensor_2d(o->narrow, TRINE_E8M0, rows, groups);
    RUN(quantize, .x = &from, .codes = &packed, .scales = &scales, .upward = !any);
    RUN(unpack_codes, .packed = &words, .codes = &codes);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < rows * groups; i++) o->scale[i] = any ? o->wide[i] : ldexpf(1, o->narrow[i] - 127);
}

/* d = x w^T of codes; how far it is from sums of whole numbers is checked. */
static void multiply(operand *x, operand *w, int64_t groups, bool any, float *d) {
    const trine_tensor a = trine_tensor_2d(x->codes, TRINE_I8, M, K), b = trine_tensor_2d(w->codes, TRINE_I8, N, K),
                       a_scale = any ? matrix(x->wide, M, groups) : trine_tensor_2d(x->narrow, TRINE_E8M0, M, groups),
                       b_scale = any ? matrix(w->wide, N, groups) : trine_tensor_2d(w->narrow, TRINE_E8M0, N, groups),
                       to = matrix(d, M, N);
    RUN(matmul_scaled, .a = &a, .b = &b, .a_scale = &a_scale, .b_scale = &b_scale, .d = &to);
    need(trine_queue_wait(queue));
    float *want = floats(M * N);
    for (int64_t i = 0; i < M * N; i++) {
        const int64_t row = i / N, column = i % N;
        double sum = 0;
        for (int64_t g = 0; g < groups; g++) {
            int64_t whole = 0;
            for (int64_t l = g * K / groups; l < (g + 1) * K / groups; l++)
                whole += x->codes[row * K + l] * w->codes[column * K + l];
            sum += (double)x->scale[row * groups + g] * (double)w->scale[column * groups + g] * (double)whole;
        }
        want[i] = (float)sum;
    }
    agree("matmul_scaled beside whole numbers", distance(d, want, M * N), 1e-6);
    free(want);
}

/* The paper's: one scale, and for each column a shift that all rows share, as far as `most`. What codes stand for. */
static void shared(const float *x, int64_t rows, int bits, int most, float *y) {
    float range[K] = { 0 }, largest = 0;
    for (int64_t i = 0; i < rows * K; i++) range[i % K] = fmaxf(range[i % K], fabsf(x[i]));
    for (int c = 0; c < K; c++) largest = fmaxf(largest, range[c]);
    const float top = (float)((1 << (bits - 1)) - 1), s = largest / top;
    for (int64_t i = 0; i < rows * K; i++) {
        const int shift = (int)fminf((float)most, floorf(log2f(largest / range[i % K])));
        const float code = fminf(fmaxf(rintf(ldexpf(x[i], shift) / s), -top), top);
        y[i] = ldexpf(code * s, -shift);
    }
}

static void compare(float *x, float *w, int32_t *order, int bits, const float *known, double *off_out) {
    static operand a, b;
    static float xs[MOST], ws[N * K], d[M * N];
    const trine_tensor tx = matrix(xs, M, K), tw = matrix(ws, N, K), down = trine_tensor_transpose(&tw),
                       to = matrix(d, M, N);
    for (int way = 0; way < WAYS; way++) {
        const int64_t groups = way == WHOLE_ROW ? 1 : GROUPS;
        const bool sorted = way == BY_RANGE || way == ANY_SCALE, any = way == ANY_SCALE || way == WHOLE_ROW;
        if (way == SHARED) {
            shared(x, M, bits, GROUPS - 1, xs), shared(w, N, bits, GROUPS - 1, ws);
            RUN(matmul, .a = &tx, .b = &down, .d = &to);
            need(trine_queue_wait(queue));
        } else {
            memcpy(xs, x, sizeof xs), memcpy(ws, w, sizeof ws);
            if (sorted) reorder(x, M, order, xs), reorder(w, N, order, ws);
            quantize(xs, M, groups, bits, any, &a), quantize(ws, N, groups, bits, any, &b);
            multiply(&a, &b, groups, any, d);
        }
        off_out[way] = distance(d, known, M * N);
    }
}

/* An operand of the paper: codes of channel after channel, and each channel's power of two, which is no less than what
 * its largest number asks for. */
typedef struct channels {
    uint8_t packed[MOST];
    int8_t codes[MOST], sorted[MOST];
    float scale[K];
} channels;

static void by_channels(const float *x, int64_t rows, int bits, channels *c) {
    float *turned = floats(K * rows);
    for (int64_t i = 0; i < rows * K; i++) turned[i % K * rows + i / K] = x[i];
    const int64_t bytes = rows * bits / 8;
    const trine_tensor from = matrix(turned, K, rows), packed = trine_tensor_3d(c->packed, TRINE_I8, K, 1, bytes),
                       words = trine_tensor_2d(c->packed, TRINE_U8, K, bytes),
                       codes = trine_tensor_2d(c->codes, TRINE_I8, K, rows), scales = matrix(c->scale, K, 1);
    RUN(quantize, .x = &from, .codes = &packed, .scales = &scales, .powers = TRINE_POWERS_ALL, .upward = 1);
    RUN(unpack_codes, .packed = &words, .codes = &codes);
    need(trine_queue_wait(queue));
    free(turned);
}

/* sums += the product of the channels first .. last-1 in `order`, times 2^shift. */
static void add_shifted(channels *x, channels *w, int64_t first, int64_t last, int shift, int64_t *sums) {
    static int32_t part[M * N];
    const trine_tensor a = trine_tensor_2d(x->sorted + first * M, TRINE_I8, last - first, M),
                       b = trine_tensor_2d(w->sorted + first * N, TRINE_I8, last - first, N),
                       across = trine_tensor_transpose(&a), d = trine_tensor_2d(part, TRINE_I32, M, N);
    RUN(matmul, .a = &across, .b = &b, .d = &d);
    need(trine_queue_wait(queue));
    for (int64_t i = 0; i < M * N; i++) sums[i] += (int64_t)part[i] * ((int64_t)1 << shift);
}

/* All in whole numbers: beside sums by definition they are the same, not only near. */
static void shifted(const float *x, const float *w, int bits, const float *known) {
    static channels a, b;
    static int64_t sums[M * N], want[M * N];
    static float powers[K], y[M * N];
    static int32_t order[K];
    int shift[K], groups = 0, least = INT_MAX;
    by_channels(x, M, bits, &a), by_channels(w, N, bits, &b);
    for (int c = 0; c < K; c++) powers[c] = (float)(ilogbf(a.scale[c]) + ilogbf(b.scale[c]));
    for (int c = 0; c < K; c++) least = powers[c] < (float)least ? (int)powers[c] : least;
    const trine_tensor keys = matrix(powers, 1, K), to = trine_tensor_2d(order, TRINE_I32, 1, K);
    RUN(argsort, .x = &keys, .indices = &to);
    need(trine_queue_wait(queue));
    for (int c = 0; c < K; c++) {
        shift[c] = (int)powers[order[c]] - least;
        memcpy(a.sorted + c * M, a.codes + order[c] * M, M), memcpy(b.sorted + c * N, b.codes + order[c] * N, N);
    }
    memset(sums, 0, sizeof sums), memset(want, 0, sizeof want);
    for (int first = 0, last; first < K; first = last, groups++) {
        for (last = first; last < K && shift[last] == shift[first]; last++) continue;
        add_shifted(&a, &b, first, last, shift[first], sums);
    }
    int64_t wrong = 0, largest = 0;
    for (int64_t i = 0; i < M * N; i++) {
        for (int c = 0; c < K; c++) {
            const int64_t product = (int64_t)a.codes[c * M + i / N] * b.codes[c * N + i % N];
            want[i] += product * ((int64_t)1 << ((int)powers[c] - least));
        }
        wrong += sums[i] != want[i];
        largest = llabs(sums[i]) > largest ? llabs(sums[i]) : largest;
        y[i] = (float)ldexp((double)sums[i], least);
    }
    printf("%4d  %6d  %13d  %12d  %15.2f%%\n", bits, groups, shift[0] > shift[K - 1] ? shift[0] : shift[K - 1],
           ilogb((double)largest) + 2, 100 * distance(y, known, M * N));
    agree("shifted sums that are others", (double)wrong, 0);
}

/* l1_norm by definition, and beside layer_norm, whose results of normal numbers it has times sqrt(pi/2). */
static void norms(void) {
    float *x = floats(ROWS * WIDTH), *y[2] = { floats(ROWS * WIDTH), floats(ROWS * WIDTH) },
          *want = floats(ROWS * WIDTH);
    double least[2] = { INFINITY, INFINITY };
    const trine_tensor from = matrix(x, ROWS, WIDTH), l1 = matrix(y[0], ROWS, WIDTH), l2 = matrix(y[1], ROWS, WIDTH);
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = 3 + 2 * normal();
    for (int round = 0; round < 2 * ROUNDS; round++) {
        const double start = seconds();
        if (round % 2)
            RUN(layer_norm, .x = &from, .y = &l2);
        else
            RUN(l1_norm, .x = &from, .y = &l1);
        need(trine_queue_wait(queue));
        least[round % 2] = fmin(least[round % 2], seconds() - start);
    }
    for (int64_t row = 0; row < ROWS; row++) {
        double mean = 0, apart = 0;
        for (int i = 0; i < WIDTH; i++) mean += (double)x[row * WIDTH + i] / WIDTH;
        for (int i = 0; i < WIDTH; i++) apart += fabs((double)x[row * WIDTH + i] - mean) / WIDTH;
        for (int i = 0; i < WIDTH; i++)
            want[row * WIDTH + i] = (float)(((double)x[row * WIDTH + i] - mean) / (apart + 1e-5));
    }
    const double off = distance(y[0], want, ROWS * WIDTH);
    for (int i = 0; i < ROWS * WIDTH; i++) y[1][i] *= sqrtf(1.5707963f);
    const double alike = distance(y[0], y[1], ROWS * WIDTH);
    printf("\nl1_norm of %d x %d: off by %.0e; %.1f%% from layer_norm times sqrt(pi/2); %.2f ms, layer_norm %.2f\n",
           ROWS, WIDTH, off, 100 * alike, 1e3 * least[0], 1e3 * least[1]);
    agree("l1_norm beside the definition", off, 1e-6);
    agree("l1_norm beside layer_norm", alike, 0.05);
    free(x), free(y[0]), free(y[1]), free(want);
}

int main(void) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    static float x[MOST], w[N * K], known[M * N], range[K];
    static int32_t order[K];
    for (int c = 0; c < K; c++) range[c] = expf(1.5f * normal());
    for (int i = 0; i < M * K; i++) x[i] = range[i % K] * normal();
    for (int i = 0; i < N * K; i++) w[i] = normal() / sqrtf(K);
    memset(range, 0, sizeof range);
    for (int i = 0; i < M * K; i++) range[i % K] = fmaxf(range[i % K], fabsf(x[i]));
    const trine_tensor ranges = matrix(range, 1, K), to = trine_tensor_2d(order, TRINE_I32, 1, K), tx = matrix(x, M, K),
                       tw = matrix(w, N, K), down = trine_tensor_transpose(&tw), d = matrix(known, M, N);
    RUN(argsort, .x = &ranges, .indices = &to);
    RUN(matmul, .a = &tx, .b = &down, .d = &d);
    need(trine_queue_wait(queue));
    printf("A product's error, of itself, by bits of both operands; %d channels in groups of %d:\n\nbits", K, GROUP);
    for (int way = 0; way < WAYS; way++) printf("  %s", names[way]);
    printf("\n");
    for (int bits = 4; bits <= 8; bits += 2) {
        double off[WAYS];
        compare(x, w, order, bits, known, off);
        printf("%4d", bits);
        for (int way = 0; way < WAYS; way++) printf("  %*.2f%%", (int)strlen(names[way]) - 1, 100 * off[way]);
        printf("\n");
        agree("by range beside a scale for a row", off[BY_RANGE], off[WHOLE_ROW]);
        agree("by range beside groups as they lie", off[BY_RANGE], off[AS_THEY_LIE]);
    }
    printf("\nWhole numbers, a power of two for each channel, which all rows share; sums are exact:\n\n");
    printf("bits  groups  largest shift  bits of sums  off, of itself\n");
    for (int bits = 4; bits <= 8; bits += 2) shifted(x, w, bits, known);
    norms();
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
