/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and expected results of the kernels of kernels.hip. */
#include "kernels.h"
#include "number.h"

char *kernels_source(void) {
    FILE *file = fopen(CDNA_KERNELS, "r");
    char *text = file ? calloc(1, 1 << 16) : NULL;
    if (text != NULL && fread(text, 1, (1 << 16) - 1, file) == 0) text[0] = 0;
    if (file != NULL) fclose(file);
    return text;
}

static float *random_floats(bench *b, int count) {
    float *x = cdna_memory_alloc(b->machine, (size_t)count * sizeof *x);
    for (int i = 0; i < count; i++) x[i] = (float)(int32_t)random_bits() * 0x1p-31f;
    return x;
}

static void *poisoned(bench *b, size_t bytes) { return memset(cdna_memory_alloc(b->machine, bytes), 0xa5, bytes); }

static bool wrong(bench *b, const char *what, int at, double got, double want) {
    snprintf(b->failure.message, sizeof b->failure.message, "%s: element %d is %.9g, not %.9g", what, at, got, want);
    return false;
}

/* Within `slack`; a NaN never is. */
static bool compare(bench *b, const char *what, int at, double got, double want, double slack) {
    return fabs(got - want) <= slack || wrong(b, what, at, got, want);
}

static void release(bench *b, void *const *memory, int count) {
    for (int i = 0; i < count; i++) cdna_memory_free(b->machine, memory[i]);
}

static bool check_vector_add(bench *b) {
    enum { N = 1000 };
    const struct {
        float *x, *y, *z;
        int n;
    } args = { random_floats(b, N), random_floats(b, N), poisoned(b, N * sizeof(float)), N };
    bool good = bench_run(b, "vector_add", 4, 256, &args, offsetof(typeof(args), n) + sizeof args.n);
    for (int i = 0; good && i < N; i++)
        good = compare(b, "vector_add", i, (double)args.z[i], (double)(args.x[i] + args.y[i]), 0);
    release(b, (void *const *)&args, 3);
    return good;
}

static bool check_wave_sums(bench *b) {
    enum { GROUPS = 3, N = 256 * GROUPS };
    float *const args[2] = { random_floats(b, N), poisoned(b, N / 64 * sizeof(float)) };
    bool good = bench_run(b, "wave_sums", GROUPS, 256, args, sizeof args);
    for (int w = 0; good && w < N / 64; w++) {
        double sum = 0;
        for (int l = 0; l < 64; l++) sum += (double)args[0][64 * w + l];
        good = compare(b, "wave_sums", w, (double)args[1][w], sum, 64 * 0x1p-24 * 64);
    }
    release(b, (void *const *)args, 2);
    return good;
}

static bool check_row_sum(bench *b) {
    enum { ROWS = 3, N = 700 };
    const struct {
        float *x;
        double *sums;
        int n;
    } args = { random_floats(b, ROWS * N), poisoned(b, ROWS * sizeof(double)), N };
    bool good = bench_run(b, "row_sum", ROWS, 256, &args, offsetof(typeof(args), n) + sizeof args.n);
    for (int r = 0; good && r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < N; i++) sum += (double)args.x[r * N + i];
        good = compare(b, "row_sum", r, args.sums[r], sum, 1e-10);
    }
    release(b, (void *const *)&args, 2);
    return good;
}

static bool check_transpose(bench *b) {
    enum { ROWS = 70, COLUMNS = 45 };
    const struct {
        float *x, *y;
        int rows, columns;
    } args = { random_floats(b, ROWS * COLUMNS), poisoned(b, ROWS * COLUMNS * sizeof(float)), ROWS, COLUMNS };
    bool good = bench_run(b, "transpose", (ROWS + 31) / 32 * ((COLUMNS + 31) / 32), 256, &args, sizeof args);
    for (int i = 0; good && i < ROWS * COLUMNS; i++)
        good = compare(b, "transpose", i, (double)args.y[i], (double)args.x[i % ROWS * COLUMNS + i / ROWS], 0);
    release(b, (void *const *)&args, 2);
    return good;
}

static bool check_softmax(bench *b) {
    enum { ROWS = 2, N = 2700 };
    const struct {
        float *x, *y;
        int n;
    } args = { random_floats(b, ROWS * N), poisoned(b, ROWS * N * sizeof(float)), N };
    bool good = bench_run(b, "softmax", ROWS, 256, &args, offsetof(typeof(args), n) + sizeof args.n);
    for (int i = 0; good && i < ROWS * N; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++) sum += exp((double)args.x[i / N * N + j] - (double)args.x[i]);
        good = compare(b, "softmax", i, (double)args.y[i], 1 / sum, 1e-6 / sum);
    }
    release(b, (void *const *)&args, 2);
    return good;
}

/* With k, and with none. */
static bool check_matmul(bench *b) {
    enum { M = 128, N = 64, K = 96 };
    struct {
        uint16_t *a, *b;
        float *c;
        int n, k;
    } args = { poisoned(b, M * K * sizeof(uint16_t)), poisoned(b, N * K * sizeof(uint16_t)),
               poisoned(b, M * N * sizeof(float)), N, K };
    for (int i = 0; i < M * K; i++) args.a[i] = float_bfloat((float)(int)(random_bits() % 15) - 7);
    for (int i = 0; i < N * K; i++) args.b[i] = float_bfloat((float)(int)(random_bits() % 15) - 7);
    bool good = true;
    for (; good && args.k >= 0; args.k -= K) {
        good = bench_run(b, "matmul", M / 64 * (N / 64), 256, &args, sizeof args);
        for (int i = 0; good && i < M * N; i++) {
            float sum = 0;
            for (int k = 0; k < args.k; k++)
                sum += bfloat_float(args.a[i / N * K + k]) * bfloat_float(args.b[i % N * K + k]);
            good = compare(b, "matmul", i, (double)args.c[i], (double)sum, 0);
        }
    }
    release(b, (void *const *)&args, 3);
    return good;
}

static bool check_scatter(bench *b) {
    const struct {
        int *index;
        float *y;
    } args = { poisoned(b, 64 * sizeof(int)), poisoned(b, 64 * sizeof(float)) };
    for (int i = 0; i < 64; i++) args.index[i] = (int)(random_bits() % 16);
    bool good = bench_run(b, "scatter", 1, 64, &args, sizeof args);
    for (int i = 0; good && i < 64; i++) good = compare(b, "scatter", i, (double)args.y[i], args.index[i] * i, 0);
    release(b, (void *const *)&args, 2);
    return good;
}

static bool check_histogram(bench *b) {
    enum { N = 3000 };
    const struct {
        uint32_t *x, *bins;
        int n;
    } args = { poisoned(b, N * sizeof(uint32_t)), memset(poisoned(b, 64), 0, 64), N };
    int want[16] = { 0 };
    for (int i = 0; i < N; i++) want[(args.x[i] = random_bits()) % 16]++;
    bool good = bench_run(b, "histogram", 4, 256, &args, offsetof(typeof(args), n) + sizeof args.n);
    for (int i = 0; good && i < 16; i++) good = compare(b, "histogram", i, args.bins[i], want[i], 0);
    release(b, (void *const *)&args, 2);
    return good;
}

const kernel_case kernel_cases[] = {
    { "vector_add", check_vector_add }, { "wave_sums", check_wave_sums }, { "row_sum", check_row_sum },
    { "transpose", check_transpose },   { "softmax", check_softmax },     { "matmul", check_matmul },
    { "scatter", check_scatter },       { "histogram", check_histogram }, { 0 },
};
