/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks: processes or threads, each with a queue and tensors of its own, that call ops together. */
#ifndef TRINE_GROUP_H
#define TRINE_GROUP_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRINE_MAX_RANKS 64

/* How the ranks of a group find each other: by MPI, a store, a file or a test's threads. trine_comm_open() alone calls
 * it, twice. Who has a communicator of NCCL or RCCL needs none: trine_comm_open_nccl(). */
typedef struct trine_bootstrap {
    /* Gathers `bytes` bytes of every rank, in the order of ranks, to `all` of every rank. 0, or another number where
     * that failed, which must then be so on every rank. */
    int (*all_gather)(void *context, const void *mine, void *all, size_t bytes);
    void *context;
} trine_bootstrap;

/* Choices for trine_comm_open(). Zero everywhere means the defaults. */
typedef struct trine_comm_options {
    size_t struct_size;   /* sizeof(trine_comm_options) */
    double timeout;       /* seconds that a call waits for another rank; 0: 300 */
    size_t staging_bytes; /* of this rank's memory through which tensors go to and from the others, in pieces if they
                           * are larger; the same on all ranks, and rounded to what the device can use; 0: what suits
                           * it, 1 MiB on a CPU and 216 MB on an H200 */
} trine_comm_options;

/* Opens this rank's part of a group of `ranks`, 1 to TRINE_MAX_RANKS, on the queue's device. All ranks call it, and it
 * returns on each when all are there: TRINE_OK on all, or an error on all. `options` may be NULL.
 *
 * A collective op takes the communicator among its arguments. All ranks call the same ops of a group in the same order,
 * with tensors of the same types and sizes and the same parameters; a call returns when this rank's outputs are there.
 * A communicator serves any queue of its device, and one thread at a time. Ranks may be processes of one machine, of
 * one user and in one PID namespace, or threads of a process, and more than there are cores.
 *
 * A rank whose arguments are wrong returns TRINE_ERR_ARGUMENT, or what else its call was refused for; the others return
 * TRINE_ERR_COMM with its words, nothing is written, and the group goes on. Any other failure, a rank that does not
 * come within the timeout, that has ended, or that calls something else, breaks the group: each rank returns
 * TRINE_ERR_COMM with a message that names the rank and what it did, outputs may have been written in part, and so does
 * each later call at once. The way out is to close the communicator and to open another.
 *
 * On devices a call is asynchronous, as all calls are, and may be recorded into a graph: what another rank did is told
 * by trine_queue_wait() or by the next call; "nothing is written" does not hold; and a refused call breaks the group
 * too. All devices must be of one kind and reach each other's memory. Ranks of a process may share a device, as in
 * calls of all ranks, if each of the streams there has a hardware queue: of HIP 4 unless GPU_MAX_HW_QUEUES says more,
 * of CUDA 8 unless CUDA_DEVICE_MAX_CONNECTIONS does, up to 32. Otherwise ranks are told that others are late. What
 * waits for all of a device, as cudaFree(), may not be called while a rank waits; what trine frees then goes later.
 *
 * Without a communicator, comm NULL, a call of a collective op is of all ranks at once: each tensor has one dimension
 * more, `ranks`, in front, and threads of the library do what each rank would, on the queue's device. So a group is
 * tried, and the specification tested. trine_workspace(), trine_explain() and trine_error_bound() answer either.
 *
 * Errors: TRINE_ERR_ARGUMENT (ranks, rank, a timeout that is negative or not finite), TRINE_ERR_UNSUPPORTED (the
 * device's backend has no groups; ranks of several machines), TRINE_ERR_MEMORY, TRINE_ERR_COMM (the bootstrap failed;
 * two ranks with one number; other versions, devices or options; one that failed, with its words).
 *
 * Since 0.1. */
TRINE_API trine_status trine_comm_open(trine_queue *queue, int rank, int ranks, const trine_bootstrap *bootstrap,
                                       const trine_comm_options *options, trine_comm **comm_out);

/* The same for the ranks of a communicator of NCCL or RCCL: `nccl` is the caller's ncclComm_t, whose device is the
 * queue's. It says this rank's number and how many there are, and ncclAllGather() is what the ranks find each other by,
 * on a stream and in memory that are taken for that. All ranks of the communicator call it, each from a thread of its
 * own, and all that is said above holds for the group. This needs the communicator no longer once it is open: either
 * may be closed first.
 *
 * The functions are those of the library that the communicator is of, NCCL's for CUDA devices and RCCL's for HIP
 * devices. That library is in the process already, and another copy of it would take the communicator for something
 * else; so trine opens none. It takes the functions that all of the process sees, as of a library that the program is
 * linked with, or that it has within itself and exports; else those of what has been opened as libnccl.so.2 or
 * librccl.so.1, by whomever, as by PyTorch. A process that has several copies is to have the communicator's so.
 *
 * The communicator must be ready, whether its calls block or not (ncclConfig_t), its device the thread's current one,
 * and for as long as this takes no other thread may use it. The call must not stand between ncclGroupStart() and
 * ncclGroupEnd(). A rank that never calls is noticed by the timeout, and an error that NCCL finds meanwhile at once;
 * then its kernel may go on waiting on the device until ncclCommAbort(), with up to 64 KB of memory and a stream, which
 * stay with the process. Not so in the first collective of a communicator whose calls block: NCCL waits in it until
 * all ranks are there. As ncclCommDestroy() waits for all devices, ranks of one process call it all before the group's
 * first op, or when the group is closed.
 *
 * Errors: TRINE_ERR_ARGUMENT (nccl is NULL; it is of another device than the queue, which the other ranks are told as
 * TRINE_ERR_COMM; it has more than TRINE_MAX_RANKS ranks), TRINE_ERR_UNSUPPORTED (the queue is neither of CUDA nor of
 * HIP; the library is not in the process, or lacks a function), TRINE_ERR_COMM (a function of NCCL failed, with its
 * name and the words of ncclGetErrorString(); a rank that did not come), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE, and those
 * of trine_comm_open(). A rank that fails before it gathers leaves the others to their timeout.
 *
 * Since 0.1. */
TRINE_API trine_status trine_comm_open_nccl(trine_queue *queue, void *nccl, const trine_comm_options *options,
                                            trine_comm **comm_out);

/* Closes this rank's part; NULL is allowed. It waits for nobody, but on devices for the calls that this rank has made:
 * others that still wait for this rank return TRINE_ERR_COMM, by the timeout if its process goes on and they are on
 * devices. It must come before trine_queue_close() of the queue that it was opened with. Since 0.1. */
TRINE_API void trine_comm_close(trine_comm *comm);

/* Breaks the group, from any thread: what waits in a call of any of its ranks returns TRINE_ERR_COMM within a tenth of
 * a second, and so does each later call; on devices of this rank, and of the others by the timeout. The communicator
 * must still be closed. Since 0.1. */
TRINE_API trine_status trine_comm_abort(trine_comm *comm);

/* This rank's number and how many there are; -1 if comm is NULL or closed. Since 0.1. */
TRINE_API int trine_comm_rank(const trine_comm *comm);
TRINE_API int trine_comm_ranks(const trine_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
