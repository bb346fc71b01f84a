/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the emulated HIP driver: a library with the entry points of libamdhip64 that a backend uses, over the
 * interpreter. Work is done when it is submitted, but for launches whose arguments point to memory that peers reach: a
 * thread runs those, once and in one order, while others may run. Such memory is what hipExtMallocWithFlags gives; a
 * file without a name holds it, which another process maps by its handle. Selected by its path, and told by the
 * environment:
 *
 *     CDNA_CHIP=gfx942          the chip of its devices
 *     CDNA_DEVICES=1            how many there are
 *     CDNA_MEMORY=BYTES         what the device has (4 GiB)
 *     CDNA_SHARE=1              the device may touch all memory of the process
 *     CDNA_ORDERS=2             run each kernel in both wave orders, which must agree
 *     CDNA_FAIL=CALL:N:ERROR    the N-th call of an entry point gives ERROR and does nothing; with "+" after N, all
 *       later ones too; several, with commas between
 *     CDNA_PROFILE=1            print what was counted, per kernel, at the end
 *     LAUNCHES=FILE             append "ran NAME" at a kernel's first launch
 *     CDNA_TRACE=FILE           write there each instruction that wave 0 of a workgroup executes, below each kernel's
 *       name
 *     CDNA_WAVES=all            and those of the others
 *     CDNA_ARCH=gfx908          what the device calls its architecture
 *     CDNA_PCI=0000:c1:00.0     where the first device says it is; others are on the next buses
 */
#ifndef CDNA_HIP_H
#define CDNA_HIP_H

#include <pthread.h>

#include "cdna.h"

#define API __attribute__((visibility("default")))

/* As in hip_runtime_api.h. */
typedef enum hipError_t {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidDevicePointer = 17,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorNoBinaryForGpu = 209,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorPeerAccessAlreadyEnabled = 704,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorStreamCaptureUnsupported = 900,
    hipErrorStreamCaptureUnmatched = 903,
    hipErrorUnknown = 999
} hipError_t;

/* As CDNA_FAIL, from now on, and on a device that is not lost; NULL: nothing fails.
 * And how many calls were made to fail since. */
API void cdna_hip_fail(const char *failures);
API int cdna_hip_failed(void);

/* The compute units of the last launch's stream, and those that two streams with masks share. */
API int cdna_hip_units(void);
API int cdna_hip_shared(void);

typedef struct event event;
typedef struct stream stream;

/* A piece of work: done at once, or kept in a graph. */
typedef struct operation {
    enum { COPY, FILL, LAUNCH, RECORD, CALL } kind;
    union {
        struct {
            void *to;
            const void *from;
            size_t bytes;
            int direction;
        } copy;
        struct {
            void *to;
            uint32_t value;
            size_t width, count; /* of an element, in bytes; elements */
        } fill;
        struct {
            const cdna_kernel *kernel;
            cdna_grid grid;
            unsigned char *arguments;
            size_t bytes;
            int units, device; /* compute units of the stream, and its device, set when it is submitted */
        } launch;
        event *event;
        struct {
            void (*function)(void *);
            void *data;
        } call;
    };
    struct operation *next;
} operation;

typedef struct graph {
    operation *first, *last;
} graph;

struct event {
    double seconds;
    bool recorded;
};

enum { MASK_WORDS = 16 };
struct stream {
    graph *capture; /* NULL: not capturing */
    int device;
    int units; /* of its mask; 0: it has none */
    uint32_t mask[MASK_WORDS];
    stream *next; /* of those with a mask */
    /* A launch that runs meanwhile, and has ended once `done` is set; those of all streams are a list. */
    pthread_t thread;
    bool busy, done;
    operation running;
    stream *next_busy;
};

typedef struct driver {
    pthread_mutex_t mutex;
    cdna_machine *machine; /* NULL: no device */
    int devices;
    size_t memory, used;
    bool orders;
    FILE *trace;     /* NULL: none */
    int trace_wave;  /* -1: all */
    hipError_t lost; /* what a failed kernel left: every later call gives it */
    int captures;
    stream *masked, *busy; /* the streams with a mask; those with a launch that may run */
    int units;             /* of the last launch's stream */
    cdna_profile *profile; /* NULL, or one for each kernel that ran */
    const cdna_kernel **profiled;
    int profiles;
} driver;

extern driver the_driver;

/* What the thread may do while a stream captures: with CAPTURE_RELAXED, what is unsafe too. */
enum { CAPTURE_RELAXED = 2 };
extern _Thread_local int capture_mode, current_device;

/* Opens the driver, takes its lock, and gives the error that this call must fail with, if any. */
hipError_t enter(const char *call);
/* Gives back the lock, and remembers the error for the thread. */
hipError_t leave(hipError_t error);

#define ENTER(call) \
    do { \
        const hipError_t entered = enter(#call); \
        if (entered) return leave(entered); \
    } while (0)

/* Does the operation, or captures a copy of it. */
hipError_t submit(stream *where, const operation *work);
hipError_t perform(const operation *work);
void graph_free(graph *g);
/* Waits for what a stream runs; NULL: for what all do. The lock is free meanwhile. */
void settle(stream *s);

/* hip_device.c: the chip's compute units, and the chiplets that they are on. */
int device_units(void);
int device_chiplets(void);

/* hip_memory.c: does a kernel's block of arguments point to memory that peers reach? */
bool points_to_peers(const unsigned char *arguments, size_t bytes);

/* hip_memory.c, hip_module.c */
hipError_t perform_copy(const operation *work);
hipError_t perform_fill(const operation *work);
hipError_t perform_launch(const operation *work);

#endif
