/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch: the bytes of each lane, and which of them are defined. Spills put there whatever a register holds, so that
 * only the use of what comes back can tell. */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

static size_t size_of(const wave *w) { return (size_t)LANES * w->group->kernel->private_size; }

static size_t at(const wave *w, int lane, uint64_t offset) {
    return (size_t)lane * w->group->kernel->private_size + offset;
}

bool scratch_open(wave *w, uint32_t bytes) {
    w->scratch = bytes ? malloc(2 * (size_t)LANES * bytes) : NULL;
    return w->scratch != NULL || bytes == 0;
}

/* All ones are a NaN of each type, and -1. */
void scratch_forget(wave *w) {
    if (w->scratch == NULL) return;
    memset(w->scratch, 0xff, size_of(w));
    memset(w->scratch + size_of(w), false, size_of(w));
}

void *scratch_at(wave *w, int lane, uint64_t offset, uint32_t bytes) {
    const uint32_t size = w->group->kernel->private_size;
    if (offset + bytes > size) stop(w, lane, "scratch at %llu, of %u bytes", (unsigned long long)offset, size);
    return w->scratch + at(w, lane, offset);
}

bool scratch_defined(const wave *w, int lane, uint64_t offset, uint32_t bytes) {
    return memchr(w->scratch + size_of(w) + at(w, lane, offset), 0, bytes) == NULL;
}

void scratch_define(wave *w, int lane, uint64_t offset, uint32_t bytes, bool defined) {
    memset(w->scratch + size_of(w) + at(w, lane, offset), defined, bytes);
}
