/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout by a tensor's key and stream of 64 bits is that by the same numbers as parameters: of dropout, and of a norm
 * and its gradient. The agreement suite's numbers have 53 bits. */
#ifndef TRINE_TESTS_TOLD_H
#define TRINE_TESTS_TOLD_H

#include <stdio.h>
#include <string.h>

#include <trine/trine.h>

enum { TOLD_ROWS = 3, TOLD_COLUMNS = 40, TOLD_COUNT = TOLD_ROWS * TOLD_COLUMNS };

/* What the ops make of one place in the device's memory, of TOLD_COUNT floats each: x, ones for rstd, y and dx. */
static inline trine_status told_run(trine_queue *queue, float *const at[4], const trine_tensor *philox, uint64_t seed,
                                    uint64_t offset, float out[3][TOLD_COUNT]) {
    const trine_tensor x = trine_tensor_2d(at[0], TRINE_F32, TOLD_ROWS, TOLD_COLUMNS),
                       rstd = trine_tensor_1d(at[1], TRINE_F32, TOLD_ROWS),
                       y = trine_tensor_2d(at[2], TRINE_F32, TOLD_ROWS, TOLD_COLUMNS),
                       dx = trine_tensor_2d(at[3], TRINE_F32, TOLD_ROWS, TOLD_COLUMNS);
    const trine_dropout_args drop = { TRINE_ARGS(dropout), .x = &x,      .philox = philox, .y = &y,
                                      .p = 0.5f,           .seed = seed, .offset = offset };
    const trine_rms_norm_args norm = { TRINE_ARGS(rms_norm), .x = &x,      .philox = philox, .y = &y,
                                       .dropout = 0.5f,      .seed = seed, .offset = offset };
    const trine_rms_norm_backward_args back = { TRINE_ARGS(rms_norm_backward),
                                                .dy = &x,
                                                .h = &x,
                                                .rstd = &rstd,
                                                .philox = philox,
                                                .dx = &dx,
                                                .dropout = 0.5f,
                                                .seed = seed,
                                                .offset = offset };
    trine_status status = trine_dropout(queue, &drop);
    if (status == TRINE_OK) status = trine_memory_read(queue, out[0], at[2], sizeof out[0]);
    if (status == TRINE_OK) status = trine_rms_norm(queue, &norm);
    if (status == TRINE_OK) status = trine_memory_read(queue, out[1], at[2], sizeof out[1]);
    if (status == TRINE_OK) status = trine_rms_norm_backward(queue, &back);
    return status == TRINE_OK ? trine_memory_read(queue, out[2], at[3], sizeof out[2]) : status;
}

static inline bool told_alike(trine_queue *queue) {
    static float numbers[TOLD_COUNT], ones[TOLD_COUNT], results[3][3][TOLD_COUNT];
    const uint64_t key = UINT64_C(0xfedcba9876543210), words[2] = { key, UINT64_MAX - 2 };
    float *at[4];
    void *memory;
    for (int i = 0; i < TOLD_COUNT; i++) numbers[i] = (float)(i % 7 + 1), ones[i] = 1;
    for (int i = 0; i < 4; i++) {
        if (trine_memory_alloc(queue, sizeof numbers, &memory) != TRINE_OK) return false;
        at[i] = memory;
    }
    trine_status status = trine_memory_alloc(queue, sizeof words, &memory);
    if (status == TRINE_OK) status = trine_memory_write(queue, memory, words, sizeof words);
    if (status == TRINE_OK) status = trine_memory_write(queue, at[0], numbers, sizeof numbers);
    if (status == TRINE_OK) status = trine_memory_write(queue, at[1], ones, sizeof ones);
    const trine_tensor philox = trine_tensor_1d(memory, TRINE_I64, 2);
    if (status == TRINE_OK) status = told_run(queue, at, NULL, key, 7 + words[1], results[0]);
    if (status == TRINE_OK) status = told_run(queue, at, &philox, 0, 7, results[1]);
    if (status == TRINE_OK) status = told_run(queue, at, NULL, key & UINT32_MAX, 7 + words[1], results[2]);
    for (int i = 0; i < 4; i++) trine_memory_free(queue, at[i]);
    trine_memory_free(queue, memory);
    if (status != TRINE_OK) fprintf(stderr, "%s\n", trine_error_message());
    return status == TRINE_OK && memcmp(results[0], results[1], sizeof results[0]) == 0 &&
           memcmp(results[0][0], results[2][0], sizeof results[0][0]) != 0;
}

#endif
