/* SPDX-License-Identifier: Apache-2.0 */
/* Calls for the device of the module tests/plugins/good.c. */
#ifndef TRINE_TESTS_GOOD_H
#define TRINE_TESTS_GOOD_H

#include "support.h"

static float small_x[16], small_y[16];

/* A call of `scale` for the module's device. */
static inline trine_scale_args small_call(trine_tensor *tx, trine_tensor *ty, int64_t n) {
    *tx = trine_tensor_1d(small_x, TRINE_F32, n);
    *ty = trine_tensor_1d(small_y, TRINE_F32, n);
    return (trine_scale_args){ TRINE_ARGS(scale), .x = tx, .y = ty, .alpha = 3 };
}

static inline trine_queue *open_good(trine *of, const char *kernel, uint32_t flags) {
    trine_queue *good;
    const trine_queue_options options = { .struct_size = sizeof options, .kernel = kernel, .flags = flags };
    assert_ok(trine_queue_open(of, trine_device_find(of, "good"), &options, &good));
    return good;
}

#endif
