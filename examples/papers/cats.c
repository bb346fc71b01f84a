/* SPDX-License-Identifier: Apache-2.0 */
/* Lee et al. 2024 (CATS): a gated layer, y = (silu(x Wg) * (x Wu)) Wd, of which half of the neurons are left out, by a
 * threshold that is the median of |silu(x Wg)| over other tokens. The weights and the tokens are made up; what is
 * printed is the error, the share of the weights that is read, and the time beside the whole layer's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <trine/trine.h>

enum { WIDTH = 768, NEURONS = 3072, CALIBRATION = 32, TOKENS = 16, ROUNDS = 9 };
static const double sparsity = 0.5;

static float gate_weights[NEURONS][WIDTH], up_weights[NEURONS][WIDTH], down_weights[NEURONS][WIDTH];
static float calibration[CALIBRATION][WIDTH], tokens[TOKENS][WIDTH];
static int points, failures;

static void point(int good, const char *name) {
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++points, name);
    failures += !good;
}

static void must(trine_status status) {
    if (status == TRINE_OK) return;
    printf("Bail out! %s\n", trine_error_message());
    exit(1);
}

/* Twelve uniform numbers make one that is nearly normal (Irwin and Hall). */
static void draw(float *x, size_t count, double size, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        double sum = -6;
        for (int j = 0; j < 12; j++) {
            seed = seed * 1664525u + 1013904223u;
            sum += (seed >> 8) * 0x1p-24;
        }
        x[i] = (float)(size * sum);
    }
}

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* y = x times w, which is stored by outputs as it lies in memory, or by inputs. */
static void product(trine_queue *queue, float *x, int64_t rows, int64_t inputs, float *w, int by_inputs,
                    int64_t outputs, float *y, int activation) {
    const trine_tensor a = trine_tensor_2d(x, TRINE_F32, rows, inputs),
                       d = trine_tensor_2d(y, TRINE_F32, rows, outputs);
    trine_tensor b = trine_tensor_2d(w, TRINE_F32, inputs, outputs);
    if (!by_inputs) b.stride[0] = 1, b.stride[1] = inputs;
    must(trine_matmul(queue,
                      &(trine_matmul_args){ TRINE_ARGS(matmul), .a = &a, .b = &b, .d = &d, .activation = activation }));
}

static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* What so many of the neurons' activations do not exceed in size. */
static float calibrated(trine_queue *queue) {
    static float a[CALIBRATION * NEURONS];
    const int count = CALIBRATION * NEURONS;
    product(queue, calibration[0], CALIBRATION, WIDTH, gate_weights[0], 0, NEURONS, a, TRINE_ACTIVATION_SILU);
    for (int i = 0; i < count; i++) a[i] = fabsf(a[i]);
    qsort(a, (size_t)count, sizeof a[0], ascending);
    return a[(int)(sparsity * count)];
}

/* A layer's memory for one token. */
typedef struct layer {
    float gate[NEURONS], up[NEURONS], y[WIDTH];
    int32_t kept;
} layer;

static void whole(trine_queue *queue, float *x, layer *l) {
    product(queue, x, 1, WIDTH, gate_weights[0], 0, NEURONS, l->gate, TRINE_ACTIVATION_NONE);
    product(queue, x, 1, WIDTH, up_weights[0], 0, NEURONS, l->up, TRINE_ACTIVATION_NONE);
    const trine_tensor gate = trine_tensor_1d(l->gate, TRINE_F32, NEURONS),
                       up = trine_tensor_1d(l->up, TRINE_F32, NEURONS);
    must(trine_swiglu(queue, &(trine_swiglu_args){ TRINE_ARGS(swiglu), .gate = &gate, .up = &up, .y = &up }));
    product(queue, l->up, 1, NEURONS, down_weights[0], 1, WIDTH, l->y, TRINE_ACTIVATION_NONE);
}

static void thinned(trine_queue *queue, float *x, float threshold, layer *l) {
    const trine_tensor in = trine_tensor_2d(x, TRINE_F32, 1, WIDTH),
                       gate = trine_tensor_2d(l->gate, TRINE_F32, 1, NEURONS),
                       kept = trine_tensor_1d(&l->kept, TRINE_I32, 1),
                       h = trine_tensor_2d(l->up, TRINE_F32, 1, NEURONS),
                       up = trine_tensor_2d(up_weights, TRINE_F32, NEURONS, WIDTH),
                       down = trine_tensor_2d(down_weights, TRINE_F32, NEURONS, WIDTH),
                       y = trine_tensor_2d(l->y, TRINE_F32, 1, WIDTH);
    product(queue, x, 1, WIDTH, gate_weights[0], 0, NEURONS, l->gate, TRINE_ACTIVATION_NONE);
    must(trine_gated_threshold(
        queue, &(trine_gated_threshold_args){ TRINE_ARGS(gated_threshold), .x = &gate, .y = &gate, .counts = &kept,
                                              .activation = TRINE_ACTIVATION_SILU, .threshold = threshold }));
    must(trine_matvec_masked(
        queue, &(trine_matvec_masked_args){ TRINE_ARGS(matvec_masked), .x = &in, .w = &up, .gate = &gate, .y = &h }));
    must(trine_matvec_sparse(queue,
                             &(trine_matvec_sparse_args){ TRINE_ARGS(matvec_sparse), .h = &h, .w = &down, .y = &y }));
}

/* The thinned layer in float64, of the gate's values that the op left. */
static double defect(const float *x, const layer *l) {
    double worst = 0;
    static double h[NEURONS];
    for (int j = 0; j < NEURONS; j++) {
        h[j] = 0;
        for (int i = 0; l->gate[j] != 0 && i < WIDTH; i++) h[j] += (double)x[i] * up_weights[j][i];
        h[j] *= l->gate[j];
    }
    for (int i = 0; i < WIDTH; i++) {
        double y = 0, size = 0;
        for (int j = 0; j < NEURONS; j++) y += h[j] * down_weights[j][i], size += fabs(h[j] * down_weights[j][i]);
        worst = fmax(worst, fabs(y - l->y[i]) / size);
    }
    return worst;
}

static double median_seconds(trine_queue *queue, int thin, float threshold, layer *l) {
    double seconds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const double start = now();
        for (int t = 0; t < TOKENS; t++) {
            if (thin)
                thinned(queue, tokens[t], threshold, l);
            else
                whole(queue, tokens[t], l);
        }
        seconds[i] = (now() - start) / TOKENS;
        for (int j = i; j > 0 && seconds[j] < seconds[j - 1]; j--) {
            const double x = seconds[j];
            seconds[j] = seconds[j - 1], seconds[j - 1] = x;
        }
    }
    return seconds[ROUNDS / 2];
}

int main(void) {
    static layer dense, sparse;
    trine_library *lib;
    trine_queue *queue;
    double wrong = 0, size = 0, kept = 0, worst = 0;
    must(trine_open(NULL, &lib));
    must(trine_queue_open(lib, 0, NULL, &queue));
    draw(gate_weights[0], NEURONS * WIDTH, 1 / sqrt(WIDTH), 1);
    draw(up_weights[0], NEURONS * WIDTH, 1 / sqrt(WIDTH), 2);
    draw(down_weights[0], NEURONS * WIDTH, 1 / sqrt(NEURONS), 3);
    draw(calibration[0], CALIBRATION * WIDTH, 1, 4);
    draw(tokens[0], TOKENS * WIDTH, 1, 5);
    const float threshold = calibrated(queue);
    for (int t = 0; t < TOKENS; t++) {
        whole(queue, tokens[t], &dense);
        thinned(queue, tokens[t], threshold, &sparse);
        for (int i = 0; i < WIDTH; i++) {
            wrong += pow((double)sparse.y[i] - (double)dense.y[i], 2);
            size += pow((double)dense.y[i], 2);
        }
        kept += (double)sparse.kept / NEURONS / TOKENS;
        if (t < 2) worst = fmax(worst, defect(tokens[t], &sparse));
    }
    const double error = sqrt(wrong / size), read = (1 + 2 * kept) / 3;
    const double dense_time = median_seconds(queue, 0, 0, &dense),
                 thin_time = median_seconds(queue, 1, threshold, &sparse);
    printf("# threshold %.4f, %.1f %% of the neurons kept, %.1f %% of the weights read\n", (double)threshold,
           100 * kept, 100 * read);
    printf("# error %.3f of the whole layer's output\n", error);
    printf("# a token takes %.3f ms, the whole layer %.3f ms\n", 1e3 * thin_time, 1e3 * dense_time);
    point(fabs(kept - (1 - sparsity)) < 0.03, "the threshold keeps the share of neurons that it was made for");
    point(worst < 1e-5, "the thinned layer is that of float64 with the same neurons");
    point(error > 0 && error < 0.3, "the small neurons count little");
    printf("1..%d\n", points);
    trine_queue_close(queue);
    trine_close(lib);
    return failures != 0;
}
