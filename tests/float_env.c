/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's floating-point environment changes no result, on one thread or several, and is as it was when a call
 * returns. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "tap.h"

#if defined(__x86_64__)
/* Flush results, and take operands, as zero; round toward zero; the flag of an inexact result. */
enum { FLUSH = 0x8040, TOWARD_ZERO = 0x6000, INEXACT = 0x20 };
static uint64_t control_get(void) {
    uint32_t x;
    __asm__ volatile("stmxcsr %0" : "=m"(x));
    return x;
}
static void control_set(uint64_t x) {
    const uint32_t word = (uint32_t)x;
    __asm__ volatile("ldmxcsr %0" : : "m"(word));
}
static uint64_t flags_get(void) { return 0; }
#elif defined(__aarch64__)
enum { FLUSH = 1 << 24, TOWARD_ZERO = 3 << 22, INEXACT = 0 };
static uint64_t control_get(void) {
    uint64_t x;
    __asm__ volatile("mrs %0, fpcr" : "=r"(x));
    return x;
}
static void control_set(uint64_t x) { __asm__ volatile("msr fpcr, %0" : : "r"(x)); }
static uint64_t flags_get(void) {
    uint64_t x;
    __asm__ volatile("mrs %0, fpsr" : "=r"(x));
    return x;
}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
enum { N = 40000, OPS = 5 };

static uint32_t input[N];
static const char *const names[OPS] = { "cast to f64", "scale", "dropout with p 0", "adamw's v", "softmax" };

typedef struct outputs {
    double wide[N];
    float scaled[N], kept[N], param[N], m[N], v[N], rows[N];
} outputs;

static bool run(trine_queue *queue, outputs *y) {
    trine_tensor x = trine_tensor_1d(input, TRINE_F32, N), wide = trine_tensor_1d(y->wide, TRINE_F64, N),
                 scaled = trine_tensor_1d(y->scaled, TRINE_F32, N);
    trine_tensor kept = trine_tensor_1d(y->kept, TRINE_F32, N), param = trine_tensor_1d(y->param, TRINE_F32, N),
                 m = trine_tensor_1d(y->m, TRINE_F32, N);
    trine_tensor v = trine_tensor_1d(y->v, TRINE_F32, N), matrix = trine_tensor_2d(y->scaled, TRINE_F32, 100, N / 100);
    trine_tensor rows = trine_tensor_2d(y->rows, TRINE_F32, 100, N / 100);
    /* without arithmetic, which would flush */
    for (int i = 0; i < N; i++) memcpy(&y->v[i], &input[i], sizeof input[i]);
    return trine_cast(queue, &(trine_cast_args){ TRINE_ARGS(cast), .x = &x, .y = &wide }) == TRINE_OK &&
           trine_dropout(queue, &(trine_dropout_args){ TRINE_ARGS(dropout), .x = &x, .y = &kept }) == TRINE_OK &&
           trine_adamw(queue, &(trine_adamw_args){ TRINE_ARGS(adamw), .param = &param, .m = &m, .v = &v, .grad = &kept,
                                                   .step = 1, .lr = 0.1f }) == TRINE_OK &&
           trine_scale(queue, &(trine_scale_args){ TRINE_ARGS(scale), .x = &x, .y = &scaled, .alpha = 1.7f }) ==
               TRINE_OK &&
           trine_softmax(queue, &(trine_softmax_args){ TRINE_ARGS(softmax), .x = &matrix, .y = &rows,
                                                       .scale = 1e37f }) == TRINE_OK;
}

/* In the default environment: does each op keep its subnormals? Of adamw, v starts as one. */
static bool right(int op, const outputs *y) {
    for (int i = 0; i < N; i++) {
        float x;
        memcpy(&x, &input[i], sizeof x);
        const bool good[OPS] = { y->wide[i] == (double)x, y->scaled[i] == x * 1.7f, y->kept[i] == x, y->v[i] != 0,
                                 y->rows[i] > 0 };
        if (!good[op]) return false;
    }
    return true;
}

static bool same(int op, const outputs *a, const outputs *b) {
    switch (op) {
    case 0: return memcmp(a->wide, b->wide, sizeof a->wide) == 0;
    case 1: return memcmp(a->scaled, b->scaled, sizeof a->scaled) == 0;
    case 2: return memcmp(a->kept, b->kept, sizeof a->kept) == 0;
    case 3: return memcmp(a->v, b->v, sizeof a->v) == 0 && memcmp(a->param, b->param, sizeof a->param) == 0;
    default: return memcmp(a->rows, b->rows, sizeof a->rows) == 0;
    }
}

static void try_environment(trine_queue *queue, const char *what, uint64_t bits, const outputs *expected) {
    outputs *y = calloc(1, sizeof *y);
    const uint64_t before = control_get(), set = (before & ~(uint64_t)INEXACT) | bits;
    control_set(set);
    const uint64_t flags = flags_get();
    const bool ran = run(queue, y);
    const uint64_t after = control_get(), flags_after = flags_get();
    control_set(before);
    tap(ran, "%s: %s", what, ran ? "five ops ran" : trine_error_message());
    tap(after == set && flags_after == flags, "%s: the environment and its flags are as they were", what);
    for (int op = 0; op < OPS; op++) tap(same(op, y, expected), "%s: the same bits of %s", what, names[op]);
    free(y);
}

static void try_queue(trine *lib, int threads, outputs *expected) {
    trine_queue *queue;
    char what[64];
    if (!tap(trine_queue_open(lib, 0,
                              &(trine_queue_options){ .struct_size = sizeof(trine_queue_options), .threads = threads },
                              &queue) == TRINE_OK,
             "queue"))
        return;
    if (threads == 1) {
        tap(run(queue, expected), "five ops ran: %s", trine_error_message());
        for (int op = 0; op < OPS; op++) tap(right(op, expected), "%s keeps subnormals", names[op]);
    }
    snprintf(what, sizeof what, "%d threads, subnormals flushed", threads);
    try_environment(queue, what, FLUSH, expected);
    snprintf(what, sizeof what, "%d threads, rounding toward zero", threads);
    try_environment(queue, what, TOWARD_ZERO, expected);
    snprintf(what, sizeof what, "%d threads, default", threads);
    try_environment(queue, what, 0, expected);
    trine_queue_close(queue);
}

int main(void) {
    alarm(120);
    trine *lib, *other;
    outputs *expected = calloc(1, sizeof *expected);
    for (uint32_t i = 0; i < N; i++) input[i] = i * 200 + 1000; /* subnormals, all positive */
    if (!tap(trine_open(NULL, &lib) == TRINE_OK, "opened")) return tap_end();
    try_queue(lib, 1, expected);
    const uint64_t before = control_get(), odd = (before & ~(uint64_t)INEXACT) | FLUSH | TOWARD_ZERO;
    control_set(odd); /* the tables are read, and threads are made, in it too */
    const bool opened = trine_open(NULL, &other) == TRINE_OK, kept = control_get() == odd;
    control_set(before);
    if (!tap(opened && kept, "opened in another environment, which is as it was")) return tap_end();
    try_queue(other, 4, expected);
    trine_close(other);
    trine_close(lib);
    free(expected);
    return tap_end();
}
#else
int main(void) { return tap_skip_all("no way to set the floating-point environment is known for this processor"); }
#endif
