/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of operations on memory as one kernel (Wahib and Maruyama 2014; Shi et al. 2023, Welder, count what moves
 * through memory): ten ops on 64 MiB one by one, each of which reads and writes all of it, and the same as a program of
 * trine_chain, which reads the inputs once and writes the output once. Then a row's softmax of a sum likewise, and the
 * logarithm of its sum beside it; and many small tensors by one call, as a list. */
#include "papers.h"

enum { ROWS = 4096, COLUMNS = 4096, ROUNDS = 5, SMALL = 512 /* tensors, of so many rows each: */, SMALL_ROWS = 8 };
static trine_queue *queue;
static trine_tensor x, bias, a, y, logsum;
static trine_tensor small[2 * SMALL];
static trine_chain_args calls[SMALL];
static const void *list[SMALL];

static void one_by_one(void) {
    RUN(scale, .x = &x, .y = &a, .alpha = 0.75f);
    RUN(add, .a = &a, .b = &bias, .y = &a);
    RUN(gelu, .x = &a, .y = &a);
    RUN(mul, .a = &a, .b = &x, .y = &a);
    RUN(add, .a = &a, .b = &x, .y = &a);
    RUN(scale, .x = &a, .y = &a, .alpha = 1.25f);
    RUN(relu2, .x = &a, .y = &a);
    RUN(add, .a = &a, .b = &x, .beta = -1, .y = &a);
    RUN(mul, .a = &a, .b = &bias, .y = &a);
    RUN(scale, .x = &a, .y = &a, .alpha = 0.5f);
}

static void as_one(void) {
    RUN(chain, .x0 = &x, .x1 = &bias, .y0 = &y,
        .program = "a = gelu_tanh(x0 * 0.75 + x1);"
                   "a = relu((a * x0 + x0) * 1.25);"
                   "y0 = (a * a - x0) * x1 * 0.5");
}

static void softmax_one_by_one(void) {
    RUN(add, .a = &x, .b = &bias, .y = &a);
    RUN(softmax, .x = &a, .y = &a);
}

static void softmax_as_one(void) {
    RUN(chain, .x0 = &x, .x1 = &bias, .y0 = &y, .r0 = &logsum,
        .program = "t = x0 + x1; m = max_row(t); e = exp(t - m); s = sum_row(e); y0 = e / s; r0 = m + log(s)");
}

/* y = gelu(x) of each row of a matrix over its largest: of all small tensors, into a or into y. */
static void make_calls(trine_tensor *to) {
    for (int i = 0; i < SMALL; i++) {
        const int64_t first = (int64_t)i * SMALL_ROWS * COLUMNS;
        small[2 * i] = matrix((float *)x.data + first, SMALL_ROWS, COLUMNS);
        small[2 * i + 1] = matrix((float *)to->data + first, SMALL_ROWS, COLUMNS);
        calls[i] = (trine_chain_args){ TRINE_ARGS(chain), .x0 = &small[2 * i], .y0 = &small[2 * i + 1],
                                       .program = "g = gelu_tanh(x0); y0 = g / max_row(g)" };
        list[i] = &calls[i];
    }
}

static void small_one_by_one(void) {
    make_calls(&a);
    for (int i = 0; i < SMALL; i++) need(trine_chain(queue, &calls[i]));
}

static void small_as_a_list(void) {
    make_calls(&y);
    need(trine_run_list(queue, TRINE_OP_CHAIN, list, SMALL));
}

/* The logarithm of the sum in float64, of some rows. */
static double off_by(void) {
    double most = 0;
    for (int i = 0; i < ROWS; i += 500) {
        double sum = 0;
        for (int k = 0; k < COLUMNS; k++)
            sum += exp((double)((float *)x.data)[(int64_t)i * COLUMNS + k] + ((float *)bias.data)[k]);
        most = fmax(most, fabs(log(sum) - ((float *)logsum.data)[i]));
    }
    return most;
}

/* The least of some rounds. */
static double time_of(void (*run)(void)) {
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = seconds();
        run();
        need(trine_queue_wait(queue));
        least = fmin(least, seconds() - start);
    }
    return least;
}

static void compare(const char *what, void (*apart)(void), void (*together)(void)) {
    const double first = time_of(apart), second = time_of(together);
    printf("%-24s one by one %7.1f ms, as one %7.1f ms: %.1f times as fast\n", what, 1e3 * first, 1e3 * second,
           first / second);
    agree(what, distance(y.data, a.data, (int64_t)ROWS * COLUMNS), 1e-6);
}

int main(void) {
    trine_library *lib;
    const int64_t count = (int64_t)ROWS * COLUMNS;
    float *memory[3], b[COLUMNS], sums[ROWS];
    for (int i = 0; i < 3; i++) memory[i] = floats(count);
    for (int64_t i = 0; i < count; i++) memory[0][i] = (float)(4 * uniform() - 2);
    for (int i = 0; i < COLUMNS; i++) b[i] = (float)(2 * uniform() - 1);
    queue = cpu_queue(&lib);
    x = matrix(memory[0], ROWS, COLUMNS), bias = vector(b, COLUMNS);
    a = matrix(memory[1], ROWS, COLUMNS), y = matrix(memory[2], ROWS, COLUMNS), logsum = vector(sums, ROWS);
    compare("ten elementwise ops", one_by_one, as_one);
    compare("softmax of a sum", softmax_one_by_one, softmax_as_one);
    agree("the logarithm of its sum", off_by(), 1e-5);
    compare("512 small matrices", small_one_by_one, small_as_a_list);
    for (int i = 0; i < 3; i++) free(memory[i]);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements != 0;
}
