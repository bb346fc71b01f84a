/* SPDX-License-Identifier: Apache-2.0 */
/* A module that loads: one device in host memory with four kernels of `scale` for f32, of which the first that accepts
 * is not the fastest. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <trine/ops.h>

#include "backends/backend.h"
#include "spec/places/scale.h"
#include "spec/spec_hash.h"
#include "tests/host_device.h"

static const char *refuse(const trine_call *call) {
    const int given[] = { SCALE_X, SCALE_Y };
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        const trine_tensor *t = &call->tensor[given[i]];
        int64_t contiguous = 1;
        if (t->dtype != TRINE_F32) return "only f32";
        for (int k = t->rank - 1; k >= 0; contiguous *= t->shape[k--])
            if (t->shape[k] > 1 && t->stride[k] != contiguous) return "only contiguous tensors";
    }
    return NULL;
}

static const char *never(const trine_call *call) {
    (void)call;
    return "it never accepts";
}

static size_t workspace(const trine_call *call) {
    size_t bytes = 4;
    for (int i = 0; i < call->tensor[SCALE_Y].rank; i++) bytes *= (size_t)call->tensor[SCALE_Y].shape[i];
    return bytes;
}

static trine_status fast(const trine_call *call) {
    const trine_scale_args *args = call->args;
    const float *x = call->tensor[SCALE_X].data;
    float *y = call->tensor[SCALE_Y].data;
    for (size_t i = 0; i < workspace(call) / 4; i++) y[i] = args->alpha * x[i] + args->shift;
    return TRINE_OK;
}

static trine_status slow(const trine_call *call) {
    memset(call->workspace, 0, call->workspace_size);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return fast(call);
}

static trine_status fails(const trine_call *call) {
    return call->host->error(TRINE_ERR_DEVICE, "scale: the device is on fire");
}

static const trine_kernel scale_kernels[] = {
    { .name = "good_never", .refuse = never, .launch = fast },
    { .name = "good_slow", .refuse = refuse, .workspace = workspace, .launch = slow },
    { .name = "good_fast", .refuse = refuse, .launch = fast },
    { 0 },
};
static const trine_kernel add_kernels[] = { { .name = "good_fails", .launch = fails }, { 0 } };

static const trine_kernel *kernels(const trine_device *device, int op) {
    (void)device;
    return op == TRINE_OP_SCALE ? scale_kernels : op == TRINE_OP_ADD ? add_kernels : NULL;
}

static trine_status queue_open(const trine_device *device, const trine_queue_options *options, void **queue_out) {
    (void)device, (void)options;
    *queue_out = NULL;
    return TRINE_OK;
}

static void queue_close(const trine_device *device, void *queue) { (void)device, (void)queue; }

static const trine_backend *init(const trine_host *host, char *reason_out, size_t reason_size) {
    (void)host, (void)reason_out, (void)reason_size;
    static trine_device device = {
        .info = { .name = "good:0",
                  .model = "a good\tdevice",
                  .arch = "host",
                  .units = 1,
                  .numa_node = -1,
                  .memory = 1 << 20,
                  .emulated = 1 },
        .bytes_per_second = 1e9,
        .flops_per_second = 1e9,
        .driver = "1.0",
    };
    static const trine_backend backend = {
        .struct_size = sizeof backend,
        .name = "good",
        .devices = 1,
        .device = &device,
        .kernels = kernels,
        .queue_open = queue_open,
        .queue_close = queue_close,
        .queue_wait = queue_wait,
        .memory_alloc = memory_alloc,
        .memory_free = memory_free,
        .memory_write = memory_write,
        .memory_read = memory_read,
        .memory_copy = memory_copy,
        .tuned = "# A line for a call of today's, one for another device, one of a specification that was\n"
                 "0123456789abcdef\t0123456789abcdef\ta good device, host, 1 units\t0.9\tscale\tX=f32 T=f32 p=1 q=1 "
                 "r=1 n=12\tgood_fast\t1e-6\n"
                 "0123456789abcdef\t0123456789abcdef\ta better device\t0.9\tscale\tX=f32 T=f32 p=1 q=1 r=1 "
                 "n=6\tgood_fast\t1e-6\n"
                 "0123456789abcdef\t0123456789abcdef\ta good device, host, 1 units\t0.9\tscale\tX=f32 Z=f32 z=1 "
                 "n=6\tgood_fast\t1e-6\n",
    };
    return &backend;
}

extern const trine_module module __asm__(TRINE_MODULE_SYMBOL) __attribute__((visibility("default")));
const trine_module module = {
    .magic = TRINE_MODULE_MAGIC,
    .abi = TRINE_ABI,
    .struct_size = sizeof module,
    .spec_hash = TRINE_SPEC_HASH,
    .name = "good",
    .version = "1.2.3",
    .init = init,
};
