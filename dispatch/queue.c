/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: their device, their workspace, their memory. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "dispatch.h"
#include "queue.h"

trine_status trine_queue_check(const trine_queue *queue, const char *function) {
    if (queue == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "%s: queue is NULL", function);
    if (queue->magic != QUEUE_MAGIC) return trine_fail(TRINE_ERR_ARGUMENT, "%s: queue is not an open queue", function);
    return TRINE_OK;
}

/* TRINE_DEVICE, else the first device that is not the CPU nor emulated, else the CPU. */
static trine_status best_device(const trine *lib, int *device_out) {
    const char *name = trine_env("TRINE_DEVICE");
    if (name != NULL) {
        *device_out = trine_device_find(lib, name);
        if (*device_out < 0)
            return trine_fail(TRINE_ERR_NOT_FOUND,
                              "trine_queue_open: TRINE_DEVICE is \"%s\", but there is no such device", name);
        return TRINE_OK;
    }
    *device_out = 0;
    for (int i = lib->devices - 1; i > 0; i--)
        if (!lib->device[i].device->info.emulated) *device_out = i;
    return TRINE_OK;
}

static bool kernel_exists(const trine_queue *queue, const char *name) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const trine_kernel *kernel = trine_kernels(queue->lib, queue->device_index, (trine_op)op);
        for (; kernel != NULL && kernel->name != NULL; kernel++)
            if (strcmp(kernel->name, name) == 0) return true;
    }
    return false;
}

/* The forced kernel must exist on the device, for some op: a misspelt name is found here. */
static trine_status force_kernel(trine_queue *queue, const char *option) {
    const char *name = option != NULL ? option : trine_env("TRINE_KERNEL");
    if (name == NULL || name[0] == 0) return TRINE_OK;
    queue->kernel_source = option != NULL ? "trine_queue_options" : "TRINE_KERNEL";
    if (strlen(name) >= sizeof queue->kernel || !kernel_exists(queue, name))
        return trine_fail(TRINE_ERR_NOT_FOUND, "trine_queue_open: %s has no kernel \"%.60s\", which %s forces",
                          queue->device->info.name, name, queue->kernel_source);
    snprintf(queue->kernel, sizeof queue->kernel, "%s", name);
    return TRINE_OK;
}

/* Whether the options ask for units that the device may have. */
static trine_status check_sm_count(const trine_queue *queue, const trine_queue_options *own) {
    const trine_device_info_t *info = &queue->device->info;
    if (own->sm_count == 0) return TRINE_OK;
    if (own->stream != NULL || own->flags & TRINE_QUEUE_DEFAULT_STREAM)
        return trine_fail(TRINE_ERR_ARGUMENT,
                          "trine_queue_open: sm_count is %d, but the stream is the caller's, as are its units",
                          own->sm_count);
    if (queue->backend->queue_units == NULL)
        return trine_fail(TRINE_ERR_UNSUPPORTED, "trine_queue_open: sm_count is %d, but %s is not parted by it%s",
                          own->sm_count, info->name, info->pci == NULL ? ": it has threads" : "");
    if (own->sm_count < 0 || own->sm_count > info->units)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_open: sm_count is %d, but 0 to %d are possible on %s",
                          own->sm_count, info->units, info->name);
    return TRINE_OK;
}

trine_status trine_queue_open(trine *lib, int device, const trine_queue_options *options, trine_queue **queue_out) {
    trine_queue_options own = { .struct_size = sizeof own };
    if (lib == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_open: lib is NULL");
    if (queue_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_open: queue_out is NULL");
    if (options != NULL) {
        if (options->struct_size < sizeof(size_t) || options->struct_size % sizeof(void *) != 0)
            return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_open: struct_size is %zu", options->struct_size);
        memcpy(&own, options, options->struct_size < sizeof own ? options->struct_size : sizeof own);
    }
    if (own.threads < 0 || own.threads > 4096)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_open: threads is %d, but 0 to 4096 are possible",
                          own.threads);
    if (own.flags & ~(uint32_t)(TRINE_QUEUE_STRICT_WORKSPACE | TRINE_QUEUE_ATOMICS | TRINE_QUEUE_DEFAULT_STREAM |
                                TRINE_QUEUE_REPRODUCIBLE))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_open: flags is 0x%x, which has unknown bits", own.flags);
    if (own.flags & TRINE_QUEUE_DEFAULT_STREAM && own.stream != NULL)
        return trine_fail(TRINE_ERR_ARGUMENT,
                          "trine_queue_open: stream is %p, but flags has TRINE_QUEUE_DEFAULT_STREAM", own.stream);
    if (device == TRINE_BEST_DEVICE) {
        const trine_status status = best_device(lib, &device);
        if (status != TRINE_OK) return status;
    }
    if (device < 0 || device >= lib->devices)
        return trine_fail(TRINE_ERR_NOT_FOUND, "trine_queue_open: device is %d, but there are %d", device,
                          lib->devices);

    trine_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) return trine_fail(TRINE_ERR_MEMORY, "trine_queue_open: out of memory");
    queue->lib = lib;
    queue->device_index = device;
    queue->backend = lib->device[device].backend;
    queue->device = lib->device[device].device;
    queue->flags = own.flags;
    queue->threads = own.threads;
    const char *reproducible = trine_env("TRINE_REPRODUCIBLE");
    if (reproducible != NULL && strcmp(reproducible, "1") == 0) queue->flags |= TRINE_QUEUE_REPRODUCIBLE;
    queue->wrapped = own.stream != NULL;
    trine_status status = check_sm_count(queue, &own);
    if (status == TRINE_OK) status = force_kernel(queue, own.kernel);
    if (status == TRINE_OK) {
        status = queue->backend->queue_open(queue->device, &own, &queue->state);
        if (status == TRINE_ERR_MEMORY)
            trine_fail(status, "trine_queue_open: out of memory on %s", queue->device->info.name);
    }
    if (status != TRINE_OK) {
        free(queue);
        return status;
    }
    queue->magic = QUEUE_MAGIC;
    static _Atomic uint64_t parts;
    const int32_t units = trine_queue_sm_count(queue);
    if (units > 0 && units < queue->device->info.units) queue->part = atomic_fetch_add(&parts, 1) + 1;
    *queue_out = queue;
    return TRINE_OK;
}

static trine_status drop_workspace(trine_queue *queue) {
    trine_status status = TRINE_OK;
    if (queue->workspace != NULL && !queue->workspace_borrowed) {
        status = queue->backend->queue_wait(queue->device, queue->state);
        const trine_status freed = queue->backend->memory_free(queue->device, queue->state, queue->workspace);
        if (status == TRINE_OK) status = freed;
    }
    queue->workspace = NULL;
    queue->workspace_size = 0;
    queue->workspace_borrowed = false;
    return status;
}

void trine_queue_close(trine_queue *queue) {
    bool recording;
    if (queue == NULL || queue->magic != QUEUE_MAGIC) return;
    if (trine_queue_recording(queue, &recording) != TRINE_OK || !recording)
        queue->backend->queue_wait(queue->device, queue->state);
    drop_workspace(queue);
    trine_list_free(queue->list);
    trine_whole_free(queue->whole);
    queue->backend->queue_close(queue->device, queue->state);
    queue->magic = 0;
    free(queue);
}

trine_status trine_queue_wait(trine_queue *queue) {
    trine_status status = trine_queue_check(queue, "trine_queue_wait");
    if (status == TRINE_OK) status = trine_queue_immediate(queue, "trine_queue_wait");
    return status == TRINE_OK ? queue->backend->queue_wait(queue->device, queue->state) : status;
}

int trine_queue_device(const trine_queue *queue) {
    return queue != NULL && queue->magic == QUEUE_MAGIC ? queue->device_index : -1;
}

int32_t trine_queue_sm_count(const trine_queue *queue) {
    if (queue == NULL || queue->magic != QUEUE_MAGIC || queue->backend->queue_units == NULL) return 0;
    return queue->backend->queue_units(queue->device, queue->state);
}

/* With the backend's words, if it had any. `messages`: trine_error_count() before it was asked. */
static trine_status no_memory(const trine_queue *queue, const char *function, size_t bytes, const char *use,
                              unsigned messages) {
    char words[256] = "";
    if (trine_error_count() != messages) snprintf(words, sizeof words, ": %s", trine_error_message());
    return trine_fail(TRINE_ERR_MEMORY, "%s: no %zu bytes%s are left on %s%s", function, bytes, use,
                      queue->device->info.name, words);
}

trine_status trine_queue_reserve(trine_queue *queue, size_t bytes) {
    trine_status status = trine_queue_check(queue, "trine_queue_reserve");
    if (status != TRINE_OK || bytes <= queue->workspace_size) return status;
    if (queue->workspace_borrowed)
        return trine_fail(TRINE_ERR_WORKSPACE,
                          "trine_queue_reserve: %zu bytes are asked for, but the caller lent a workspace of %zu", bytes,
                          queue->workspace_size);
    if ((status = trine_queue_immediate(queue, "trine_queue_reserve")) != TRINE_OK) return status;
    void *memory;
    const unsigned messages = trine_error_count();
    status = queue->backend->memory_alloc(queue->device, queue->state, bytes, &memory);
    if (status == TRINE_ERR_MEMORY) return no_memory(queue, "trine_queue_reserve", bytes, " of workspace", messages);
    if (status != TRINE_OK) return status;
    status = drop_workspace(queue);
    queue->workspace = memory;
    queue->workspace_size = bytes;
    return status;
}

trine_status trine_queue_set_workspace(trine_queue *queue, void *memory, size_t bytes) {
    trine_status status = trine_queue_check(queue, "trine_queue_set_workspace");
    if (status != TRINE_OK) return status;
    if ((memory == NULL) != (bytes == 0))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_set_workspace: memory is %p, but bytes is %zu", memory,
                          bytes);
    if ((uintptr_t)memory % 256 != 0)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_queue_set_workspace: memory is %p, not aligned to 256 bytes",
                          memory);
    if (queue->workspace != NULL && !queue->workspace_borrowed)
        status = trine_queue_immediate(queue, "trine_queue_set_workspace");
    if (status != TRINE_OK) return status;
    status = drop_workspace(queue);
    queue->workspace = memory;
    queue->workspace_size = bytes;
    queue->workspace_borrowed = memory != NULL;
    return status;
}

trine_status trine_memory_alloc(trine_queue *queue, size_t bytes, void **memory_out) {
    trine_status status = trine_queue_check(queue, "trine_memory_alloc");
    if (status != TRINE_OK) return status;
    if (memory_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_memory_alloc: memory_out is NULL");
    if ((status = trine_queue_immediate(queue, "trine_memory_alloc")) != TRINE_OK) return status;
    const unsigned messages = trine_error_count();
    status = queue->backend->memory_alloc(queue->device, queue->state, bytes, memory_out);
    return status == TRINE_ERR_MEMORY ? no_memory(queue, "trine_memory_alloc", bytes, "", messages) : status;
}

trine_status trine_memory_free(trine_queue *queue, void *memory) {
    trine_status status = trine_queue_check(queue, "trine_memory_free");
    if (status != TRINE_OK || memory == NULL) return status;
    if ((status = trine_queue_immediate(queue, "trine_memory_free")) != TRINE_OK) return status;
    return queue->backend->memory_free(queue->device, queue->state, memory);
}

trine_status trine_memory_alloc_host(trine_queue *queue, size_t bytes, void **memory_out) {
    trine_status status = trine_queue_check(queue, "trine_memory_alloc_host");
    if (status != TRINE_OK) return status;
    if (memory_out == NULL) return trine_fail(TRINE_ERR_ARGUMENT, "trine_memory_alloc_host: memory_out is NULL");
    if ((status = trine_queue_immediate(queue, "trine_memory_alloc_host")) != TRINE_OK) return status;
    const unsigned messages = trine_error_count();
    if (queue->backend->host_alloc != NULL)
        status = queue->backend->host_alloc(queue->device, queue->state, bytes, memory_out);
    else
        status = posix_memalign(memory_out, 256, bytes ? bytes : 1) == 0 ? TRINE_OK : TRINE_ERR_MEMORY;
    return status == TRINE_ERR_MEMORY ? no_memory(queue, "trine_memory_alloc_host", bytes, " of the host", messages)
                                      : status;
}

trine_status trine_memory_free_host(trine_queue *queue, void *memory) {
    trine_status status = trine_queue_check(queue, "trine_memory_free_host");
    if (status != TRINE_OK || memory == NULL) return status;
    if ((status = trine_queue_immediate(queue, "trine_memory_free_host")) != TRINE_OK) return status;
    if (queue->backend->host_free != NULL) return queue->backend->host_free(queue->device, queue->state, memory);
    free(memory);
    return TRINE_OK;
}

trine_status trine_memory_write(trine_queue *queue, void *memory, const void *host, size_t bytes) {
    trine_status status = trine_queue_check(queue, "trine_memory_write");
    if (status != TRINE_OK) return status;
    if (bytes > 0 && (memory == NULL || host == NULL))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_memory_write: %s is NULL", memory ? "host" : "memory");
    if ((status = trine_queue_immediate(queue, "trine_memory_write")) != TRINE_OK) return status;
    return queue->backend->memory_write(queue->device, queue->state, memory, host, bytes);
}

trine_status trine_memory_read(trine_queue *queue, void *host, const void *memory, size_t bytes) {
    trine_status status = trine_queue_check(queue, "trine_memory_read");
    if (status != TRINE_OK) return status;
    if (bytes > 0 && (memory == NULL || host == NULL))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_memory_read: %s is NULL", memory ? "host" : "memory");
    if ((status = trine_queue_immediate(queue, "trine_memory_read")) != TRINE_OK) return status;
    return queue->backend->memory_read(queue->device, queue->state, host, memory, bytes);
}

trine_status trine_memory_copy(trine_queue *queue, void *to, const void *from, size_t bytes) {
    const trine_status status = trine_queue_check(queue, "trine_memory_copy");
    if (status != TRINE_OK) return status;
    if (bytes > 0 && (to == NULL || from == NULL))
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_memory_copy: %s is NULL", to ? "from" : "to");
    const uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
    if (bytes > 0 && (a < b ? b - a : a - b) < bytes)
        return trine_fail(TRINE_ERR_ARGUMENT, "trine_memory_copy: to and from are %zu bytes apart, but %zu are copied",
                          (size_t)(a < b ? b - a : a - b), bytes);
    return queue->backend->memory_copy(queue->device, queue->state, to, from, bytes);
}
