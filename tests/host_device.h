/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends of test modules share: a device whose memory is the host's and whose work is done when a launch
 * returns. */
#ifndef TRINE_TESTS_HOST_DEVICE_H
#define TRINE_TESTS_HOST_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

static trine_status queue_wait(const trine_device *device, void *queue) {
    (void)device, (void)queue;
    return TRINE_OK;
}

static trine_status memory_alloc(const trine_device *device, void *queue, size_t bytes, void **memory_out) {
    (void)device, (void)queue;
    return posix_memalign(memory_out, 256, bytes + 1) == 0 ? TRINE_OK : TRINE_ERR_MEMORY;
}

static trine_status memory_free(const trine_device *device, void *queue, void *memory) {
    (void)device, (void)queue;
    free(memory);
    return TRINE_OK;
}

static trine_status memory_write(const trine_device *device, void *queue, void *memory, const void *host,
                                 size_t bytes) {
    (void)device, (void)queue;
    if (bytes > 0) memcpy(memory, host, bytes);
    return TRINE_OK;
}

static trine_status memory_read(const trine_device *device, void *queue, void *host, const void *memory, size_t bytes) {
    return memory_write(device, queue, host, memory, bytes);
}

static trine_status memory_copy(const trine_device *device, void *queue, void *to, const void *from, size_t bytes) {
    return memory_write(device, queue, to, from, bytes);
}

#endif
