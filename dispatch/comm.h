/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks: a rank's part, and calls of their ops. */
#ifndef TRINE_DISPATCH_COMM_H
#define TRINE_DISPATCH_COMM_H

#include <string.h>
#include <sys/types.h>

#include <trine/group.h>

#include "dispatch.h"

struct trine_comm {
    uint64_t magic; /* COMM_MAGIC; anything else is a foreign or closed pointer */
    trine *lib;
    int device_index;
    const trine_backend *backend;
    void *state; /* the backend's part */
    int rank, ranks;
    pid_t process; /* that opened it: a child has no part in the group */
    /* what it was opened by, if that was a communicator of NCCL: to free memory waits for all devices, and others may
     * wait for this rank by then */
    trine_queue *opener;
    void *opener_memory;
};

#define COMM_MAGIC 0x7472696e65636f6du

/* The communicator among the arguments of an op of a group; NULL: the call is of all ranks. */
static inline trine_comm *trine_comm_of(const trine_plan *plan, const void *args) {
    trine_comm *comm;
    memcpy(&comm, (const char *)args + plan->spec->params[plan->comm].offset, sizeof comm);
    return comm;
}

/* comm.c: the options with their defaults; TRINE_ERR_ARGUMENT. */
trine_status trine_comm_read_options(const trine_comm_options *options, trine_comm_options *own);

/* trine_comm_open(), of a rank that is to fail if `refused` is not TRINE_OK: with the thread's message, which it then
 * tells the others. */
trine_status trine_comm_open_unless(trine_status refused, trine_queue *queue, int rank, int ranks,
                                    const trine_bootstrap *bootstrap, const trine_comm_options *options,
                                    trine_comm **comm_out);

/* Is a checked call's communicator one of this queue's device and this process? */
trine_status trine_comm_check(const trine_queue *queue, const trine_call *call);

/* Checks and runs a call of an op of a group; where it is refused, the other ranks are told. A call of all ranks goes
 * to a group of the queue's own, or at once to the kernel if the backend has no groups. */
trine_status trine_comm_run(trine_queue *queue, trine_op op, const void *args);

/* Tells the other ranks that a list was refused, with the thread's message; returns `status`. */
trine_status trine_comm_refuse_list(trine_op op, const void *const *args, int64_t count, trine_status status);

/* whole.c: is the call one of all ranks, each of which makes its own? Its workspace is that of every rank, `own` bytes,
 * side by side. */
bool trine_whole_is(const trine_call *call);
size_t trine_whole_workspace(const trine_call *call, size_t own);

/* Runs it, once it has been checked; the queue has its workspace. */
trine_status trine_whole_run(trine_queue *queue, const trine_call *call, const void *args);
void trine_whole_free(trine_whole *whole);

#endif
