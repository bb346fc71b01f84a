/* SPDX-License-Identifier: Apache-2.0 */
/* NanoFlow (Zhu et al. 2024): of a model's steps some are bound by arithmetic and some by memory, and a device that
 * does one at a time wastes what the other would use. Here two queues have a part of its SMs each (sm_count) and work
 * at once, from two threads: a product of bf16, and a scale that only moves memory. Printed is what each reaches alone
 * on the whole device, alone on its part, and on its part while the other works; and that each result has the same bits
 * all along.
 *
 *     papers-nanoflow [--small] [DEVICE [SMS-OF-THE-PRODUCT [SMS-OF-THE-SCALE]]]
 *
 * Of the CPU, which is what it takes by itself, queues have a part of the threads, and sizes are small. */
#include <pthread.h>
#include <string.h>

#include "papers.h"

/* What a queue repeats. */
typedef struct job {
    const char *name, *unit;
    double amount; /* of a call, in 1e12 of the unit */
    int32_t units; /* SMs, CUs or threads of its part */
    trine_queue *queue;
    trine_tensor a, b, d; /* d = a b, or d = 2 a if there is no b */
    size_t bytes;         /* of d */
    double window;        /* seconds of a measurement */
    int batch;            /* calls between two looks at the clock */
    double rate;          /* out: of the last measurement */
} job;

typedef struct machine {
    trine_library *lib;
    int device;
    bool cpu;
    int32_t units;
} machine;

static trine_queue *open_queue(const machine *m, int32_t units) {
    trine_queue *queue;
    const trine_queue_options options = { .struct_size = sizeof options,
                                          .threads = m->cpu ? units : 0,
                                          .sm_count = m->cpu ? 0 : units };
    need(trine_queue_open(m->lib, m->device, &options, &queue));
    return queue;
}

static void once(const job *j) {
    trine_queue *const queue = j->queue;
    if (j->b.data != NULL)
        RUN(matmul, .a = &j->a, .b = &j->b, .d = &j->d);
    else
        RUN(scale, .x = &j->a, .y = &j->d, .alpha = 2);
}

/* Calls one after the other until the time is up; of those that end before, the amount per second. */
static void *measure(void *context) {
    job *j = context;
    const double start = seconds();
    double now = start;
    int64_t calls = 0;
    while (now < start + j->window) {
        for (int i = 0; i < j->batch; i++) once(j);
        need(trine_queue_wait(j->queue));
        calls += j->batch;
        now = seconds();
    }
    j->rate = (double)calls * j->amount / (now - start);
    return NULL;
}

/* Calls that take a twentieth of a measurement, so that waiting for them costs little. */
static void prepare(job *j) {
    once(j);
    need(trine_queue_wait(j->queue));
    j->batch = 1;
    for (double taken = 0; taken < j->window / 20; j->batch *= 2) {
        const double start = seconds();
        for (int i = 0; i < j->batch; i++) once(j);
        need(trine_queue_wait(j->queue));
        taken = seconds() - start;
    }
    j->batch = j->batch > 1 ? j->batch / 2 : 1;
}

static double alone(job *j) {
    prepare(j);
    measure(j);
    return j->rate;
}

static void at_once(job jobs[2]) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, measure, &jobs[i]) != 0) exit(1);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

/* Notes what the job's last call left, or compares it with that. */
static void look(const char *when, const job *j, char *kept, bool first) {
    char *found = malloc(j->bytes);
    if (found == NULL) exit(1);
    need(trine_memory_read(j->queue, found, j->d.data, j->bytes));
    if (first) memcpy(kept, found, j->bytes);
    char what[96];
    snprintf(what, sizeof what, "%s, %s: other bits than on the whole device", j->name, when);
    agree(what, memcmp(kept, found, j->bytes) != 0, 0);
    need(trine_memory_copy(j->queue, j->d.data, j->a.data, j->bytes < 4096 ? j->bytes : 4096)); /* of no result */
    free(found);
}

/* Small integers in bf16, whose sums of products are exact in any order. */
static void *integers(trine_queue *queue, int64_t count) {
    uint16_t *x = malloc((size_t)count * sizeof *x);
    void *memory;
    if (x == NULL) exit(1);
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)(int)(uniform() * 5) - 2;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        x[i] = (uint16_t)(bits >> 16);
    }
    need(trine_memory_alloc(queue, (size_t)count * sizeof *x, &memory));
    need(trine_memory_write(queue, memory, x, (size_t)count * sizeof *x));
    free(x);
    return memory;
}

static void *empty(trine_queue *queue, size_t bytes) {
    void *memory;
    need(trine_memory_alloc(queue, bytes, &memory));
    return memory;
}

static machine open_machine(const char *name) {
    machine m = { .device = 0 };
    trine_device_info_t info;
    need(trine_open(NULL, &m.lib));
    if ((m.device = trine_device_find(m.lib, name)) < 0) {
        fprintf(stderr, "no device \"%s\"\n", name);
        exit(1);
    }
    need(trine_device_info(m.lib, m.device, &info));
    m.cpu = m.device == 0, m.units = info.units;
    printf("%s, %d %s\n", info.model, m.units, m.cpu ? "cores" : "SMs or CUs");
    return m;
}

int main(int argc, char **argv) {
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    argc -= small, argv += small;
    const machine m = open_machine(argc > 1 ? argv[1] : "cpu");
    trine_device_info_t info;
    need(trine_device_info(m.lib, m.device, &info));
    small |= m.cpu || info.emulated;
    const int64_t side = small ? 128 : 4096, n = small ? 1 << 16 : 1 << 27;
    trine_queue *whole = open_queue(&m, 0);
    const int32_t three = (int32_t)((m.units * 3 + 3) / 4);
    job jobs[2] = {
        { .name = "product",
          .unit = "TFLOP/s",
          .amount = 2e-12 * (double)(side * side * side),
          .bytes = (size_t)(2 * side * side) },
        { .name = "scale", .unit = "TB/s", .amount = 8e-12 * (double)n, .bytes = (size_t)n * sizeof(float) },
    };
    jobs[0].units = argc > 2 ? atoi(argv[2]) : three;
    jobs[0].a = trine_tensor_2d(integers(whole, side * side), TRINE_BF16, side, side);
    jobs[0].b = trine_tensor_2d(integers(whole, side * side), TRINE_BF16, side, side);
    jobs[0].d = trine_tensor_2d(empty(whole, jobs[0].bytes), TRINE_BF16, side, side);
    jobs[1].a = trine_tensor_1d(integers(whole, 2 * n), TRINE_F32, n);
    jobs[1].d = trine_tensor_1d(empty(whole, jobs[1].bytes), TRINE_F32, n);

    char *kept[2];
    double rate[3][2]; /* on the whole, alone on a part, and beside the other */
    for (int i = 0; i < 2; i++) {
        jobs[i].queue = whole, jobs[i].window = small ? 0.02 : 2;
        if ((kept[i] = malloc(jobs[i].bytes)) == NULL) exit(1);
        rate[0][i] = alone(&jobs[i]);
        look("alone", &jobs[i], kept[i], true);
    }
    for (int i = 0; i < 2; i++) {
        if (i == 1) jobs[1].units = argc > 3 ? atoi(argv[3]) : m.units > jobs[0].units ? m.units - jobs[0].units : 1;
        jobs[i].queue = open_queue(&m, jobs[i].units);
        if (!m.cpu) jobs[i].units = trine_queue_sm_count(jobs[i].queue);
    }
    for (int i = 0; i < 2; i++) {
        rate[1][i] = alone(&jobs[i]);
        look("on a part", &jobs[i], kept[i], false);
    }
    at_once(jobs);
    for (int i = 0; i < 2; i++) {
        rate[2][i] = jobs[i].rate;
        look("beside the other", &jobs[i], kept[i], false);
    }

    printf("%-8s %8s %12s %12s %12s\n", "", "units", "whole device", "part, alone", "both at once");
    double of_parts = 0, of_whole = 0;
    for (int i = 0; i < 2; i++) {
        printf("%-8s %8d %12.4g %12.4g %12.4g %s\n", jobs[i].name, (int)jobs[i].units, rate[0][i], rate[1][i],
               rate[2][i], jobs[i].unit);
        of_parts += rate[2][i] / rate[1][i] / 2, of_whole += rate[2][i] / rate[0][i];
    }
    printf("both at once: %.1f %% of the sum of the parts alone; %.2f times what turns on the whole device give\n",
           100 * of_parts, of_whole);
    for (int i = 0; i < 2; i++) {
        trine_queue_close(jobs[i].queue);
        need(trine_memory_free(whole, jobs[i].a.data));
        need(trine_memory_free(whole, jobs[i].b.data));
        need(trine_memory_free(whole, jobs[i].d.data));
        free(kept[i]);
    }
    trine_queue_close(whole);
    trine_close(m.lib);
    return disagreements != 0;
}
