/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated HIP driver's memory. */
#include <stdlib.h>
#include <string.h>

#include "hip.h"

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, ANY_DIRECTION };

/* What is allocated: freeing gives its size back. */
typedef struct block {
    void *memory;
    size_t bytes;
    struct block *next;
} block;
static block *blocks;

static hipError_t allocate(void **memory_out, size_t bytes) {
    if (memory_out == NULL) return hipErrorInvalidValue;
    *memory_out = NULL;
    if (the_driver.captures) return hipErrorStreamCaptureUnsupported;
    if (bytes == 0) return hipSuccess;
    if (bytes > the_driver.memory - the_driver.used) return hipErrorOutOfMemory;
    block *b = malloc(sizeof *b);
    void *memory = b ? cdna_memory_alloc(the_driver.machine, bytes) : NULL;
    if (memory == NULL) {
        free(b);
        return hipErrorOutOfMemory;
    }
    *b = (block){ memory, bytes, blocks };
    blocks = b;
    the_driver.used += bytes;
    *memory_out = memory;
    return hipSuccess;
}

static hipError_t release(void *memory) {
    if (memory == NULL) return hipSuccess;
    if (the_driver.captures) return hipErrorStreamCaptureUnsupported;
    for (block **link = &blocks; *link; link = &(*link)->next) {
        block *b = *link;
        if (b->memory != memory) continue;
        *link = b->next;
        the_driver.used -= b->bytes;
        cdna_memory_free(the_driver.machine, memory);
        free(b);
        return hipSuccess;
    }
    return hipErrorInvalidDevicePointer;
}

API hipError_t hipMalloc(void **memory, size_t bytes) {
    ENTER(hipMalloc);
    return leave(allocate(memory, bytes));
}
API hipError_t hipFree(void *memory) {
    ENTER(hipFree);
    return leave(release(memory));
}
API hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    ENTER(hipHostMalloc);
    return leave(allocate(memory, bytes));
}
API hipError_t hipHostFree(void *memory) {
    ENTER(hipHostFree);
    return leave(release(memory));
}
API hipError_t hipMallocAsync(void **memory, size_t bytes, stream *where) {
    (void)where;
    ENTER(hipMallocAsync);
    return leave(allocate(memory, bytes));
}
API hipError_t hipFreeAsync(void *memory, stream *where) {
    (void)where;
    ENTER(hipFreeAsync);
    return leave(release(memory));
}
API hipError_t hipMemGetInfo(size_t *available, size_t *total) {
    ENTER(hipMemGetInfo);
    *available = the_driver.memory - the_driver.used;
    *total = the_driver.memory;
    return leave(hipSuccess);
}

/* ------------------------------------------------------------------------------------------------- copies and fills */

hipError_t perform_copy(const operation *work) {
    const int direction = work->copy.direction;
    const size_t bytes = work->copy.bytes;
    if (bytes == 0) return hipSuccess;
    const bool to_device = direction == HOST_TO_DEVICE || direction == DEVICE_TO_DEVICE,
               from_device = direction == DEVICE_TO_HOST || direction == DEVICE_TO_DEVICE;
    if ((to_device && !cdna_memory_contains(the_driver.machine, work->copy.to, bytes)) ||
        (from_device && !cdna_memory_contains(the_driver.machine, work->copy.from, bytes)))
        return hipErrorInvalidValue;
    memmove(work->copy.to, work->copy.from, bytes);
    return hipSuccess;
}

hipError_t perform_fill(const operation *work) {
    const size_t width = work->fill.width, bytes = width * work->fill.count;
    if (bytes == 0) return hipSuccess;
    if (!cdna_memory_contains(the_driver.machine, work->fill.to, bytes)) return hipErrorInvalidValue;
    for (size_t at = 0; at < bytes; at += width) memcpy((char *)work->fill.to + at, &work->fill.value, width);
    return hipSuccess;
}

static hipError_t copy(stream *where, void *to, const void *from, size_t bytes, int direction) {
    return submit(where, &(operation){ .kind = COPY, .copy = { to, from, bytes, direction } });
}
static hipError_t fill(stream *where, void *to, uint32_t value, size_t width, size_t count) {
    return submit(where, &(operation){ .kind = FILL, .fill = { to, value, width, count } });
}

#define COPIES(name, parameters, ...) \
    API hipError_t name parameters { \
        ENTER(name); \
        return leave(copy(__VA_ARGS__)); \
    }
#define FILLS(name, parameters, ...) \
    API hipError_t name parameters { \
        ENTER(name); \
        return leave(fill(__VA_ARGS__)); \
    }
COPIES(hipMemcpy, (void *to, const void *from, size_t bytes, int direction), NULL, to, from, bytes, direction)
COPIES(hipMemcpyAsync, (void *to, const void *from, size_t bytes, int direction, stream *where), where, to, from, bytes,
       direction)
COPIES(hipMemcpyHtoD, (void *to, void *from, size_t bytes), NULL, to, from, bytes, HOST_TO_DEVICE)
COPIES(hipMemcpyDtoH, (void *to, void *from, size_t bytes), NULL, to, from, bytes, DEVICE_TO_HOST)
COPIES(hipMemcpyDtoD, (void *to, void *from, size_t bytes), NULL, to, from, bytes, DEVICE_TO_DEVICE)
COPIES(hipMemcpyHtoDAsync, (void *to, void *from, size_t bytes, stream *where), where, to, from, bytes, HOST_TO_DEVICE)
COPIES(hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, stream *where), where, to, from, bytes, DEVICE_TO_HOST)
COPIES(hipMemcpyDtoDAsync, (void *to, void *from, size_t bytes, stream *where), where, to, from, bytes,
       DEVICE_TO_DEVICE)
FILLS(hipMemset, (void *to, int value, size_t bytes), NULL, to, (uint32_t)value, 1, bytes)
FILLS(hipMemsetAsync, (void *to, int value, size_t bytes, stream *where), where, to, (uint32_t)value, 1, bytes)
FILLS(hipMemsetD8Async, (void *to, unsigned char value, size_t count, stream *where), where, to, value, 1, count)
FILLS(hipMemsetD16Async, (void *to, unsigned short value, size_t count, stream *where), where, to, value, 2, count)
FILLS(hipMemsetD32Async, (void *to, int value, size_t count, stream *where), where, to, (uint32_t)value, 4, count)
