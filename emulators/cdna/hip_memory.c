/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated HIP driver's memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hip.h"

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, ANY_DIRECTION };

/* What is allocated: freeing gives its size back. */
typedef struct block {
    void *memory;
    size_t bytes;
    int file;      /* of memory that peers reach; -1: other memory */
    bool of_other; /* mapped from another process */
    struct block *next;
} block;
static block *blocks;
static int shared_blocks; /* that have a file */

/* Between pages that nothing can touch. */
enum { MARGIN = 4096 };
static size_t mapped_bytes(size_t bytes) { return (bytes + MARGIN - 1) / MARGIN * MARGIN + 2 * MARGIN; }

static void *map(int file, size_t bytes) {
    char *base = mmap(NULL, mapped_bytes(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    void *memory = mmap(base + MARGIN, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (memory != MAP_FAILED) return memory;
    munmap(base, mapped_bytes(bytes));
    return NULL;
}

static void forget(const block *b) {
    cdna_memory_free(the_driver.machine, b->memory);
    if (b->file < 0) return;
    shared_blocks--;
    munmap((char *)b->memory - MARGIN, mapped_bytes(b->bytes));
    close(b->file);
}

/* Makes it known as memory of a device, or if that is -1 of whoever; what it cannot keep, it gives back. */
static hipError_t keep(block made, int device) {
    block *b = malloc(sizeof *b);
    const bool known = b != NULL && made.memory != NULL &&
                       (made.file < 0 || cdna_memory_register(the_driver.machine, made.memory, made.bytes, true));
    shared_blocks += made.memory != NULL && made.file >= 0;
    if (!known) {
        if (made.memory != NULL) forget(&made);
        if (made.memory == NULL && made.file >= 0) close(made.file);
        free(b);
        return hipErrorOutOfMemory;
    }
    cdna_memory_place(the_driver.machine, made.memory, device, made.file >= 0 ? CDNA_FOR_PEERS : CDNA_ANY_USE);
    *b = made;
    b->next = blocks;
    blocks = b;
    if (!made.of_other) the_driver.used += made.bytes;
    return hipSuccess;
}

static hipError_t allocate(void **memory_out, size_t bytes, int device, bool for_peers) {
    if (memory_out == NULL) return hipErrorInvalidValue;
    *memory_out = NULL;
    if (the_driver.captures) return hipErrorStreamCaptureUnsupported;
    if (bytes == 0) return hipSuccess;
    if (bytes > the_driver.memory - the_driver.used) return hipErrorOutOfMemory;
    block b = { .bytes = bytes, .file = -1 };
    if (for_peers) {
        b.file = memfd_create("hip", MFD_CLOEXEC);
        if (b.file >= 0 && ftruncate(b.file, (off_t)bytes) == 0) b.memory = map(b.file, bytes);
    } else {
        b.memory = cdna_memory_alloc(the_driver.machine, bytes);
    }
    const hipError_t error = keep(b, device);
    if (error == hipSuccess) *memory_out = b.memory;
    return error;
}

/* The block that starts there: one of this process, or one of another. */
static block **find(const void *memory, bool of_other) {
    block **link = &blocks;
    while (*link && ((*link)->memory != memory || (*link)->of_other != of_other)) link = &(*link)->next;
    return link;
}

static hipError_t drop(block **link) {
    block *b = *link;
    if (b == NULL) return hipErrorInvalidDevicePointer;
    *link = b->next;
    if (!b->of_other) the_driver.used -= b->bytes;
    forget(b);
    free(b);
    return hipSuccess;
}

static hipError_t release(void *memory) {
    if (memory == NULL) return hipSuccess;
    if (the_driver.captures) return hipErrorStreamCaptureUnsupported;
    return drop(find(memory, false));
}

bool points_to_peers(const unsigned char *arguments, size_t bytes) {
    for (size_t at = 0; shared_blocks > 0 && at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, arguments + at, sizeof word);
        for (const block *b = blocks; b; b = b->next)
            if (b->file >= 0 && word >= (uintptr_t)b->memory && word < (uintptr_t)b->memory + b->bytes) return true;
    }
    return false;
}

API hipError_t hipMalloc(void **memory, size_t bytes) {
    ENTER(hipMalloc);
    return leave(allocate(memory, bytes, current_device, false));
}
API hipError_t hipFree(void *memory) {
    ENTER(hipFree);
    return leave(release(memory));
}
/* hipDeviceMallocDefault, and Finegrained and Uncached, which peers reach while launches run. */
API hipError_t hipExtMallocWithFlags(void **memory, size_t bytes, unsigned flags) {
    ENTER(hipExtMallocWithFlags);
    if (flags != 0 && flags != 1 && flags != 3) return leave(hipErrorInvalidValue);
    return leave(allocate(memory, bytes, current_device, flags != 0));
}
/* Not coherent by itself, as where HIP_HOST_COHERENT is not set. */
API hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned flags) {
    enum { COHERENT = 0x40000000 };
    ENTER(hipHostMalloc);
    const hipError_t error = allocate(memory, bytes, -1, false);
    if (error == hipSuccess && *memory != NULL && !(flags & COHERENT))
        cdna_memory_place(the_driver.machine, *memory, -1, CDNA_INCOHERENT);
    return leave(error);
}
API hipError_t hipHostFree(void *memory) {
    ENTER(hipHostFree);
    return leave(release(memory));
}
API hipError_t hipMallocAsync(void **memory, size_t bytes, stream *where) {
    (void)where;
    ENTER(hipMallocAsync);
    return leave(allocate(memory, bytes, current_device, false));
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

/* -------------------------------------------------------------------------------------------------- other processes */

typedef union ipc_handle {
    struct {
        char magic[8];
        int process, file;
        size_t bytes;
    };
    char all[64];
} ipc_handle;
static const char magic[8] = "cdna-ipc";

/* Of memory that peers reach while launches run: other memory has no file. */
API hipError_t hipIpcGetMemHandle(ipc_handle *out, void *memory) {
    ENTER(hipIpcGetMemHandle);
    const block *b = *find(memory, false);
    if (out == NULL || b == NULL) return leave(hipErrorInvalidValue);
    if (b->file < 0) return leave(hipErrorNotSupported);
    *out = (ipc_handle){ .all = { 0 } };
    memcpy(out->magic, magic, sizeof magic);
    out->process = (int)getpid();
    out->file = b->file;
    out->bytes = b->bytes;
    return leave(hipSuccess);
}

/* Not in the process that the memory is of, as with the real one. */
API hipError_t hipIpcOpenMemHandle(void **out, ipc_handle handle, unsigned flags) {
    char path[64];
    ENTER(hipIpcOpenMemHandle);
    if (out == NULL || flags != 1 || memcmp(handle.magic, magic, sizeof magic) != 0 || handle.process == (int)getpid())
        return leave(hipErrorInvalidValue);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
    block b = { .bytes = handle.bytes, .file = open(path, O_RDWR | O_CLOEXEC), .of_other = true };
    if (b.file < 0) return leave(hipErrorInvalidValue);
    b.memory = map(b.file, b.bytes);
    const hipError_t error = keep(b, -1);
    if (error == hipSuccess) *out = b.memory;
    return leave(error);
}

API hipError_t hipIpcCloseMemHandle(void *memory) {
    ENTER(hipIpcCloseMemHandle);
    return leave(drop(find(memory, true)));
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
    if (width == 1) memset(work->fill.to, (int)work->fill.value, bytes);
    for (size_t at = 0; width > 1 && at < bytes; at += width)
        memcpy((char *)work->fill.to + at, &work->fill.value, width);
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
API hipError_t hipMemcpy2DAsync(void *to, size_t to_step, const void *from, size_t from_step, size_t width,
                                size_t height, int direction, stream *where) {
    ENTER(hipMemcpy2DAsync);
    hipError_t error = to_step < width || from_step < width ? hipErrorInvalidValue : hipSuccess;
    for (size_t i = 0; i < height && error == hipSuccess; i++)
        error = copy(where, (char *)to + i * to_step, (const char *)from + i * from_step, width, direction);
    return leave(error);
}
FILLS(hipMemset, (void *to, int value, size_t bytes), NULL, to, (uint32_t)value, 1, bytes)
FILLS(hipMemsetAsync, (void *to, int value, size_t bytes, stream *where), where, to, (uint32_t)value, 1, bytes)
FILLS(hipMemsetD8Async, (void *to, unsigned char value, size_t count, stream *where), where, to, value, 1, count)
FILLS(hipMemsetD16Async, (void *to, unsigned short value, size_t count, stream *where), where, to, value, 2, count)
FILLS(hipMemsetD32Async, (void *to, int value, size_t count, stream *where), where, to, (uint32_t)value, 4, count)
