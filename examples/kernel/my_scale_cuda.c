/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA kernel of your own for an op of trine's: docs/kernels.md explains it. Build it against an installed trine,
 * with nvcc and neither a driver nor a GPU:
 *     nvcc -std=c++17 -fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_80,code=compute_80 my_scale.cu
 *       -o my_scale.fatbin
 *     cc -O2 -shared -fPIC my_scale_cuda.c -o trine-my_scale_cuda.so $(pkg-config --cflags trine)
 * For HIP it is the same with a code object, .extends = "hip", and a row for each architecture, which `takes` tells
 * apart by device->info.arch. */
#include <string.h>

#include <trine/kernel/backend.h>
#include <trine/kernel/spec/places/scale.h>
#include <trine/kernel/spec/spec_hash.h>

#include "my_scale.h"

/* The device code as data; it is loaded with the first launch on a device. */
extern const unsigned char fatbin[] __asm__("my_scale_fatbin") __attribute__((visibility("hidden")));
__asm__(".section .rodata\n"
        ".balign 64\n"
        "my_scale_fatbin: .incbin \"my_scale.fatbin\"\n"
        ".previous");

static const trine_code code = { fatbin, "my_scale" };

static const char *refuse(const trine_call *call) {
    return call->type[SCALE_TYPE_X] == TRINE_F32 && call->type[SCALE_TYPE_T] == TRINE_F32 ? NULL : "only f32";
}

/* Puts the launch on the call's queue; it must not wait. The kernel's own data is in call->self. */
static trine_status launch(const trine_call *call) {
    enum { THREADS = 256, MOST_BLOCKS = 1 << 16 };
    const trine_scale_args *args = call->args;
    const trine_tensor *x = &call->tensor[SCALE_X], *y = &call->tensor[SCALE_Y];
    my_scale_params params = { .x = x->data, .y = y->data, .alpha = args->alpha, .shift = args->shift };
    const int64_t count = y->shape[0] * y->shape[1] * y->shape[2] * y->shape[3],
                  blocks = (count + THREADS - 1) / THREADS;
    memcpy(params.size, y->shape, sizeof params.size);
    memcpy(params.x_stride, x->stride, sizeof params.x_stride);
    memcpy(params.y_stride, y->stride, sizeof params.y_stride);
    const trine_launch launch = { .blocks = { (uint32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1 },
                                  .threads = { THREADS, 1, 1 },
                                  .params = &params,
                                  .params_size = sizeof params };
    return call->host->launch(call, call->self, &launch);
}

static const trine_kernel kernels[] = { { .name = "my_scale", .refuse = refuse, .launch = launch, .self = &code },
                                        { 0 } };

static const trine_extension *extend(const trine_host *host, char *reason_out, size_t reason_size) {
    static const trine_extension_row rows[] = { { TRINE_OP_SCALE, TRINE_OP_HASH_SCALE, kernels, NULL } };
    static const trine_extension extension = { .struct_size = sizeof extension, .rows = 1, .row = rows };
    (void)host, (void)reason_out, (void)reason_size;
    return &extension;
}

TRINE_MODULE(.name = "my_scale_cuda", .version = "1.0", .extends = "cuda", .extend = extend);
