/* SPDX-License-Identifier: Apache-2.0 */
/* Bhardwaj et al. 2024 (SHiRA): an adapter that changes 2 % of a weight matrix is put on it in place, exchanged for
 * another one, and taken off to the bit, which adding it with the other sign does not do. The matrix and the adapters
 * are made up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <trine/trine.h>

enum { ROWS = 2048, COLUMNS = 2048, ALL = ROWS * COLUMNS, EACH = 50, CHANGES = ALL / EACH };

static uint16_t weights[ALL], original[ALL], saved[CHANGES], first[CHANGES], second[CHANGES];
static int64_t places[CHANGES];
static uint32_t state = 1;
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

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t drawn(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* bf16 numbers between -size and size, which is a power of two. */
static void draw(uint16_t *x, size_t count, float size) {
    for (size_t i = 0; i < count; i++) {
        const float value = size * ((float)drawn() * 0x1p-23f - 1);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        x[i] = (uint16_t)(bits >> 16);
    }
}

static void run(trine_queue *queue, uint16_t *d, uint16_t *save, int put, float alpha) {
    const trine_tensor w = trine_tensor_2d(weights, TRINE_BF16, ROWS, COLUMNS),
                       index = trine_tensor_1d(places, TRINE_I64, CHANGES),
                       from = trine_tensor_1d(d, TRINE_BF16, CHANGES), to = trine_tensor_1d(save, TRINE_BF16, CHANGES);
    must(trine_scatter_axpy(queue,
                            &(trine_scatter_axpy_args){ TRINE_ARGS(scatter_axpy), .w = &w, .index = &index, .d = &from,
                                                        .saved = save ? &to : NULL, .put = put, .alpha = alpha }));
}

/* Elements that are not what they were, of those that an adapter names and of the others. */
static int changed(int named) {
    int count = 0;
    for (int at = 0; at < CHANGES * EACH; at++)
        if ((places[at / EACH] == at) == named) count += weights[at] != original[at];
    return count;
}

int main(void) {
    trine_library *lib;
    trine_queue *queue;
    must(trine_open(NULL, &lib));
    must(trine_queue_open(lib, 0, NULL, &queue));
    draw(weights, ALL, 1);
    draw(first, CHANGES, 0.25f);
    draw(second, CHANGES, 0.25f);
    memcpy(original, weights, sizeof original);
    for (int64_t i = 0; i < CHANGES; i++) places[i] = i * EACH + drawn() % EACH;

    const double start = now();
    run(queue, first, saved, 0, 1);
    const double seconds = now() - start;
    const int on = changed(1);
    printf("# %d of %d elements changed, in %.3f ms\n", on, ALL, 1e3 * seconds);
    point(on > CHANGES * 9 / 10 && changed(0) == 0, "an adapter changes what it names, and nothing else");

    run(queue, saved, NULL, 1, 1);
    point(memcmp(weights, original, sizeof weights) == 0, "taken off by what was saved, no bit is left of it");

    run(queue, first, NULL, 0, 1);
    run(queue, first, NULL, 0, -1);
    const int left = changed(1);
    printf("# %d elements are not what they were after adding and subtracting\n", left);
    point(left > 0, "taken off by subtracting, bits are left of it");

    memcpy(weights, original, sizeof weights);
    run(queue, first, saved, 0, 1);
    run(queue, saved, NULL, 1, 1);
    run(queue, second, saved, 0, 0.5f);
    point(changed(0) == 0, "an adapter is exchanged for another");
    run(queue, saved, NULL, 1, 1);
    point(memcmp(weights, original, sizeof weights) == 0, "which is taken off to the bit too");
    printf("1..%d\n", points);
    trine_queue_close(queue);
    trine_close(lib);
    return failures != 0;
}
