/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded memory: one slot for each operand and one for the workspace, kept from case to case. */
#include "memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BAND = 512, GUARD = 1 << 16 };

static const unsigned char poison[2] = { 0xff, 0x5a };

/* ----------------------------------------------------------------------------------------------------------- faults */

/* The slots of the host, for the signal handler. */
static struct {
    char *base;
    size_t capacity;
    char *region; /* of windows; NULL: there are none */
    size_t region_bytes;
} watched[MEMORY_SLOTS];
static memory_fault *watch;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *at = info->si_addr;
    for (int i = 0; i < MEMORY_SLOTS; i++) {
        const char *base = watched[i].base, *end = base + watched[i].capacity, *region = watched[i].region;
        if (region != NULL && at >= region && at < region + watched[i].region_bytes) {
            watch->distance = at - region - GUARD;
            watch->between = true;
            watch->slot = i;
        }
        if (base == NULL || at < base - GUARD || at >= end + GUARD) continue;
        watch->distance = at < base ? at - base : at - end + 1;
        watch->between = false;
        watch->slot = i;
    }
    signal(number, SIG_DFL);
    raise(number);
}

void memory_watch(memory_fault *fault) {
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
    watch = fault;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* ------------------------------------------------------------------------------------------------------------ slots */

static bool grow_host(memory *m, int slot, size_t bytes) {
    memory_slot *s = &m->slot[slot];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), capacity = (bytes + bytes / 2 + 4 * page) / page * page;
    if (s->base) munmap(s->base - GUARD, s->capacity + 2 * GUARD);
    s->base = NULL;
    watched[slot].base = NULL;
    char *all = mmap(NULL, capacity + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return false;
    s->base = all + GUARD;
    s->capacity = capacity;
    watched[slot].base = s->base;
    watched[slot].capacity = capacity;
    return mprotect(s->base, capacity, PROT_READ | PROT_WRITE) == 0;
}

static char *align_down(char *at, size_t align) { return at - (uintptr_t)at % align; }

static bool grow_frame(memory_slot *s) {
    if (s->sent && s->host_capacity >= s->frame_bytes) return true;
    free(s->sent), free(s->back);
    s->host_capacity = s->frame_bytes + s->frame_bytes / 2 + 1;
    s->sent = malloc(s->host_capacity);
    s->back = malloc(s->host_capacity);
    return s->sent && s->back;
}

static bool allocate(memory *m, memory_slot *s, size_t capacity) {
    void *base = NULL;
    trine_memory_free(m->queue, s->base);
    s->base = NULL;
    if (trine_memory_alloc(m->queue, capacity, &base) != TRINE_OK) return false;
    s->base = base;
    s->capacity = capacity;
    return true;
}

static bool grow_device(memory *m, int slot, size_t bytes) {
    return allocate(m, &m->slot[slot], bytes + bytes / 2 + 4 * BAND);
}

/* What is not written is not read back either. */
static bool left_alone(const memory *m, int slot) { return m->exact > 0 && slot == MEMORY_WORKSPACE; }

/* An allocation that ends where the extent does, or with its last unit, whose rest is framed; one of that size is kept,
 * since graphs hold addresses. */
static bool place_alone(memory *m, int slot, size_t bytes, size_t lead) {
    memory_slot *s = &m->slot[slot];
    const size_t unit = (size_t)m->exact, units = (lead + bytes + unit - 1) / unit,
                 capacity = units > 0 ? units * unit : unit;
    if ((s->base == NULL || s->capacity != capacity) && !allocate(m, s, capacity)) return false;
    s->start = s->frame = s->base + lead;
    s->bytes = bytes;
    s->frame_bytes = left_alone(m, slot) ? bytes : capacity - lead;
    return grow_frame(s);
}

static void drop_windows(memory *m, int slot) {
    memory_slot *s = &m->slot[slot];
    watched[slot].region = NULL;
    if (s->region != NULL) munmap(s->region, s->region_bytes);
    s->region = NULL;
    s->windows.count = 0;
}

bool memory_place(memory *m, int slot, size_t bytes, size_t align, placement where) {
    memory_slot *s = &m->slot[slot];
    drop_windows(m, slot);
    if (m->exact > 0) return place_alone(m, slot, bytes, where == PLACE_SHIFTED && align < 256 ? align : 0);
    const size_t needed = bytes + 4 * BAND;
    if ((s->base == NULL || s->capacity < needed) && !(m->host ? grow_host : grow_device)(m, slot, needed)) {
        s->capacity = 0;
        return false;
    }
    const size_t lead = m->host && where == PLACE_BEGIN ? 0 : BAND;
    s->start = s->base + lead + (where == PLACE_SHIFTED && align < 256 ? align : 0);
    s->frame = s->start - lead;
    char *end = s->start + bytes + BAND;
    if (m->host && where == PLACE_END) {
        s->start = align_down(s->base + s->capacity - bytes, align);
        s->frame = s->start - lead;
        end = s->base + s->capacity;
    }
    s->bytes = bytes;
    s->frame_bytes = (size_t)(end - s->frame);
    return grow_frame(s);
}

/* Windows like those that are there are kept, since graphs hold addresses. */
static bool open_windows(memory *m, int slot, const memory_windows *windows) {
    memory_slot *s = &m->slot[slot];
    if (s->region != NULL && s->windows.count == windows->count && s->windows.apart == windows->apart &&
        s->windows.frame == windows->frame)
        return true;
    drop_windows(m, slot);
    s->region_bytes = (size_t)((windows->count - 1) * windows->apart) + windows->frame + 2 * GUARD;
    char *region = mmap(NULL, s->region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) return false;
    s->region = region;
    for (int64_t i = 0; i < windows->count; i++)
        if (mprotect(region + GUARD + i * windows->apart, windows->frame, PROT_READ | PROT_WRITE) != 0) return false;
    return true;
}

bool memory_place_windows(memory *m, int slot, const memory_windows *windows, size_t align, placement where) {
    memory_slot *s = &m->slot[slot];
    if (!open_windows(m, slot, windows)) return false;
    s->windows = *windows;
    s->frame = s->region + GUARD;
    const size_t most = windows->frame - windows->bytes,
                 lead = where == PLACE_BEGIN ? 0
                        : where == PLACE_END ? most - most % align
                                             : most / 2 - most / 2 % align + (where == PLACE_SHIFTED ? align : 0);
    s->start = s->frame + (lead < most ? lead : most - most % align);
    s->bytes = windows->bytes;
    s->frame_bytes = (size_t)windows->count * windows->frame;
    watched[slot].region = s->region;
    watched[slot].region_bytes = s->region_bytes;
    return grow_frame(s);
}

/* Between the frame and memory. */
static void copy_windows(const memory_slot *s, unsigned char *frame, bool send) {
    for (int64_t i = 0; i < s->windows.count; i++) {
        char *window = s->frame + i * s->windows.apart;
        unsigned char *part = frame + (size_t)i * s->windows.frame;
        memcpy(send ? (void *)window : part, send ? (void *)part : window, s->windows.frame);
    }
}

unsigned char *memory_poison(memory *m, int slot, int pattern) {
    memory_slot *s = &m->slot[slot];
    memset(s->sent, poison[pattern], s->frame_bytes);
    return memory_sent(s);
}

bool memory_send(memory *m, int slot, trine_queue *queue) {
    memory_slot *s = &m->slot[slot];
    if (left_alone(m, slot)) return true;
    if (!m->host) return trine_memory_write(queue, s->frame, s->sent, s->frame_bytes) == TRINE_OK;
    if (s->windows.count > 0)
        copy_windows(s, s->sent, true);
    else
        memcpy(s->frame, s->sent, s->frame_bytes);
    return true;
}

bool memory_fetch(memory *m, int slot, trine_queue *queue) {
    memory_slot *s = &m->slot[slot];
    if (left_alone(m, slot)) return true;
    if (!m->host) return trine_memory_read(queue, s->back, s->frame, s->frame_bytes) == TRINE_OK;
    if (s->windows.count > 0)
        copy_windows(s, s->back, false);
    else
        memcpy(s->back, s->frame, s->frame_bytes);
    return true;
}

void memory_free(memory *m) {
    for (int i = 0; i < MEMORY_SLOTS; i++) {
        memory_slot *s = &m->slot[i];
        drop_windows(m, i);
        if (s->base && m->host) munmap(s->base - GUARD, s->capacity + 2 * GUARD), watched[i].base = NULL;
        if (s->base && !m->host) trine_memory_free(m->queue, s->base);
        free(s->sent), free(s->back);
        *s = (memory_slot){ 0 };
    }
}
