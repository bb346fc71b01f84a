/* SPDX-License-Identifier: Apache-2.0 */
/* How a test tells the stand-in for NCCL or RCCL what to be, and makes its communicators. */
#ifndef TRINE_NCCL_STUB_H
#define TRINE_NCCL_STUB_H

#include <pthread.h>

enum { NCCL_MOST = 8 };

/* Where ranks that are threads meet. */
typedef struct nccl_meeting {
    pthread_barrier_t barrier;
    const void *given[NCCL_MOST];
} nccl_meeting;

/* An ncclComm_t. */
struct ncclComm {
    int rank, ranks, device;
    nccl_meeting *meeting;
    int gathers; /* calls of ncclAllGather() */
    int asked;   /* of ncclCommGetAsyncError() */
};

typedef struct nccl_settings {
    const char *fail; /* the function that fails, "ncclCommCount"; NULL: none */
    int fails_on;     /* rank; -1: all */
    int after;        /* calls of ncclAllGather() that still succeed */
    int result;       /* ncclResult_t of what fails */
    int absent;       /* ncclAllGather() returns at once, and what it began never ends */
    int progress;     /* times that ncclCommGetAsyncError() says that ncclAllGather() has not launched yet */
    int broken;       /* what it says afterwards */
    int type;         /* ncclDataType_t of the last ncclAllGather() */
} nccl_settings;

/* The variable of this name in the library. */
#define NCCL_SETTINGS "nccl_stub"

#endif
