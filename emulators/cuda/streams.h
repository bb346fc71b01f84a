/* SPDX-License-Identifier: Apache-2.0 */
/* What the stub driver's entry points share: how they begin, and work that goes to a stream. */
#ifndef TRINE_STUB_STREAMS_H
#define TRINE_STUB_STREAMS_H

#include <cuda.h>
#include <stdbool.h>

#include "chip.h"
#include "device/emulator.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define MAY_FAIL(name) \
    do { \
        const CUresult result_ = stub_verdict(STRING(name)); \
        if (result_ != CUDA_SUCCESS) return result_; \
    } while (0)
/* Works in the current context, and only there. */
#define IN_CONTEXT(name) \
    do { \
        MAY_FAIL(name); \
        if (!stub_in_context()) return CUDA_ERROR_INVALID_CONTEXT; \
    } while (0)

/* libcuda.c: has the thread a context? */
bool stub_in_context(void);

/* A launch, or a copy if there is no entry. */
typedef struct stub_work {
    struct stub_work *next;
    emulator_entry *entry;
    int64_t blocks;
    int threads, cluster;
    void *to;
    const void *from;
    size_t bytes;
    char params[4096];
} stub_work;

/* Does it, or keeps it for the graph that the stream is captured for. */
CUresult stub_submit(CUstream stream, const stub_work *work);

/* What cannot be captured ends a capture of the stream, or of any (NULL), without a graph: is there one? */
bool stub_breaks_capture(CUstream stream);

/* Is there a launch that waits for others, of any thread? */
bool stub_meanwhile(void);

/* Waits for those that have begun by now, as a device does before it frees memory. */
void stub_drain(void);

/* Launches of this thread that wait for others, and have not been waited for: a device would not load code before they
 * have ended, nor begin what ranks that share it launch meanwhile. With $STUB_LOADS it would. */
bool stub_waits(void);

#endif
