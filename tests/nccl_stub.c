/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NCCL or RCCL: ranks that are threads, over devices in host memory, failures on demand. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "nccl_stub.h"

#pragma GCC visibility push(default)

typedef struct ncclComm *ncclComm_t;
typedef enum { ncclSuccess = 0, ncclInProgress = 7 } ncclResult_t;
typedef enum { ncclInt8 = 0, ncclUint8 = 1 } ncclDataType_t;

extern nccl_settings nccl_stub;
nccl_settings nccl_stub;

ncclResult_t ncclCommCount(ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result);
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           void *stream);
const char *ncclGetErrorString(ncclResult_t result);

static bool fails(const struct ncclComm *comm, const char *name) {
    const nccl_settings *s = &nccl_stub;
    return s->fail != NULL && strcmp(s->fail, name) == 0 && (s->fails_on < 0 || s->fails_on == comm->rank) &&
           comm->gathers >= s->after;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count) {
    *count = comm->ranks;
    return fails(comm, "ncclCommCount") ? (ncclResult_t)nccl_stub.result : ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
    *rank = comm->rank;
    return fails(comm, "ncclCommUserRank") ? (ncclResult_t)nccl_stub.result : ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device) {
    *device = comm->device;
    return fails(comm, "ncclCommCuDevice") ? (ncclResult_t)nccl_stub.result : ncclSuccess;
}

#ifndef NCCL_LACKS
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    *result = comm->asked++ < nccl_stub.progress ? ncclInProgress : (ncclResult_t)nccl_stub.broken;
    return fails(comm, "ncclCommGetAsyncError") ? (ncclResult_t)nccl_stub.result : ncclSuccess;
}
#endif

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           void *stream) {
    nccl_meeting *m = comm->meeting;
    if (fails(comm, "ncclAllGather")) return (ncclResult_t)nccl_stub.result;
    comm->gathers++;
    comm->asked = 0;
    nccl_stub.type = stream != NULL ? (int)type : -1;
    if (nccl_stub.absent) return ncclSuccess;
    m->given[comm->rank] = send;
    pthread_barrier_wait(&m->barrier);
    for (int r = 0; r < comm->ranks; r++) memcpy((char *)receive + (size_t)r * count, m->given[r], count);
    pthread_barrier_wait(&m->barrier);
    return nccl_stub.progress > 0 ? ncclInProgress : ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    static const char *const words[] = { "no error",
                                         "unhandled cuda error",
                                         "unhandled system error",
                                         "internal error",
                                         "invalid argument",
                                         "invalid usage",
                                         "remote process exited or there was a network error",
                                         "NCCL operation in progress" };
    return (int)result < (int)(sizeof words / sizeof words[0]) ? words[result] : "unknown result code";
}
