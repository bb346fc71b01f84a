/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that do nothing but multiply-adds, one per instruction set, and streaming stores. */
#ifndef TRINE_PEAK_H
#define TRINE_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct peak_loop {
    const char *name;     /* NULL ends the list */
    unsigned types;       /* set of the bench_peaks it serves */
    double operations;    /* of one round, a multiply-add counting two */
    bool (*usable)(void); /* on this processor */
    void (*run)(int64_t rounds);
} peak_loop;

extern const peak_loop peak_loops[];

/* Fill and copy with stores that bypass the caches, where the processor has them;
 * addresses and sizes are multiples of 4096. */
void peak_stream_fill(void *to, size_t bytes);
void peak_stream_copy(void *to, const void *from, size_t bytes);

#endif
