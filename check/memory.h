/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded memory for operands: on the host pages that fault next to the first or the last byte, on devices bands that
 * must stay as they were. */
#ifndef TRINE_CHECK_MEMORY_H
#define TRINE_CHECK_MEMORY_H

#include "spec/spec.h"

enum { MEMORY_SLOTS = TRINE_MAX_TENSORS + 1, MEMORY_WORKSPACE = TRINE_MAX_TENSORS };

/* Where in its slot an extent lies. */
typedef enum placement {
    PLACE_END,     /* its last byte before the guard page */
    PLACE_BEGIN,   /* its first byte behind the guard page */
    PLACE_SHIFTED, /* one element off an aligned address */
    PLACEMENTS
} placement;

/* Where a guard page was touched; in memory shared with the parent process. */
typedef struct memory_fault {
    volatile int slot; /* -1: none of ours */
    /* bytes behind the last byte of the slot, or negative: before its first; or `between` its windows, behind the first
     * byte */
    volatile int64_t distance;
    volatile bool between;
} memory_fault;

/* An extent in so many windows of `frame` bytes each, whole pages, that lie `apart` bytes from each other, whole pages
 * too, with nothing between them that may be touched. In frames they follow each other. */
typedef struct memory_windows {
    int64_t count, apart;
    size_t frame, bytes; /* bytes: of the extent in each */
} memory_windows;

typedef struct memory_slot {
    char *base; /* first usable byte */
    size_t capacity;
    char *start; /* the extent */
    size_t bytes;
    char *frame; /* what is written before a run and read after it: extent and surroundings */
    size_t frame_bytes;
    unsigned char *sent; /* the frame as written before the run */
    unsigned char *back; /* and as read after it */
    size_t host_capacity;
    memory_windows windows; /* count 0: the extent is in one piece */
    char *region;           /* where windows are */
    size_t region_bytes;
} memory_slot;

typedef struct memory {
    bool host;
    /* not 0: on a device no bands, an allocation of a multiple of so many bytes for each extent, and a workspace that
     * is not written, for tools that watch memory themselves */
    int64_t exact;
    trine_queue *queue; /* of the device; its allocations belong to it */
    memory_slot slot[MEMORY_SLOTS];
} memory;

/* Gives a slot an extent of `bytes` aligned to `align`; its frame is not written yet. False if out of memory. */
bool memory_place(memory *m, int slot, size_t bytes, size_t align, placement where);

/* The same in windows, of memory of the host. False if there is no room for them in the address space. */
bool memory_place_windows(memory *m, int slot, const memory_windows *windows, size_t align, placement where);

/* Fills frame `sent` of a slot with poison: 0 is the NaN pattern, 1 another one.
 * Returns where the extent starts in it. */
unsigned char *memory_poison(memory *m, int slot, int pattern);

/* Writes the frame `sent` to memory; reads it to `back`. */
bool memory_send(memory *m, int slot, trine_queue *queue);
bool memory_fetch(memory *m, int slot, trine_queue *queue);

/* The extent in `back`, and in `sent`. */
static inline unsigned char *memory_back(memory_slot *s) { return s->back + (s->start - s->frame); }
static inline unsigned char *memory_sent(memory_slot *s) { return s->sent + (s->start - s->frame); }

void memory_free(memory *m);

/* From now on a fault is recorded in `fault` before the process dies of it. */
void memory_watch(memory_fault *fault);

#endif
