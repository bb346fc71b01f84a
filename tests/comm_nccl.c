/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that are opened from communicators of NCCL or RCCL, by threads, with a stand-in for it, on emulated devices:
 * that sums are right, which copy of the library is taken, and what each rank is told where something fails.
 *
 *     test-comm-nccl cuda OTHER LACKING LIBRARY    the other vendor's library, one that lacks a function, and the one
 *     test-comm-nccl-within cuda                   which is within the program */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trine/trine.h>

#include "emulators/cuda/stub.h"
#include "nccl_stub.h"
#include "tap.h"

enum { RANKS = 3, N = 1000, CUDA_NOT_READY = 600 };

static trine *lib;
static const char *kind; /* of devices */
static nccl_settings *nccl;
static nccl_meeting meeting;

/* What a rank is given, and what came of it. */
typedef struct rank {
    struct ncclComm comm;
    const trine_comm_options *options;
    int device; /* of its queue */
    trine_status status;
    char message[512];
    int number, ranks, wrong;
} rank;

static trine_queue *open_queue(int device) {
    char name[16];
    trine_queue *queue = NULL;
    snprintf(name, sizeof name, "%s:%d", kind, device);
    trine_queue_open(lib, device < 0 ? 0 : trine_device_find(lib, name), NULL, &queue);
    return queue;
}

/* The sum of i + rank, of which each rank has N. */
static trine_status sum(rank *k, trine_queue *queue, trine_comm *comm) {
    float *x = malloc(2 * N * sizeof *x), *y = x + N;
    for (int i = 0; i < N; i++) x[i] = (float)(i + k->number), y[i] = -1;
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, N), ty = trine_tensor_1d(y, TRINE_F32, N);
    trine_status status =
        trine_all_reduce(queue, &(trine_all_reduce_args){ TRINE_ARGS(all_reduce), comm, &tx, &ty, 0 });
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    for (int i = 0; i < N; i++) k->wrong += y[i] != (float)(i * k->ranks + k->ranks * (k->ranks - 1) / 2);
    free(x);
    return status;
}

static void *live(void *context) {
    rank *k = context;
    trine_queue *queue = open_queue(k->device);
    trine_comm *comm = NULL;
    k->status = trine_comm_open_nccl(queue, &k->comm, k->options, &comm);
    if (k->status != TRINE_OK) snprintf(k->message, sizeof k->message, "%s", trine_error_message());
    k->number = trine_comm_rank(comm);
    k->ranks = trine_comm_ranks(comm);
    if (k->status == TRINE_OK) k->status = sum(k, queue, comm);
    trine_comm_close(comm);
    trine_queue_close(queue);
    return NULL;
}

/* Ranks of one communicator, each on a device of its own; `spoil` may make one otherwise. */
static rank ranks[NCCL_MOST];
static void open_all(int count, const trine_comm_options *options, void (*spoil)(rank *k)) {
    pthread_t thread[NCCL_MOST];
    pthread_barrier_init(&meeting.barrier, NULL, (unsigned)count);
    for (int r = 0; r < count; r++) {
        ranks[r] = (rank){ .comm = { r, count, r % RANKS, &meeting }, .options = options, .device = r % RANKS };
        if (spoil != NULL) spoil(&ranks[r]);
    }
    for (int r = 0; r < count; r++) pthread_create(&thread[r], NULL, live, &ranks[r]);
    for (int r = 0; r < count; r++) pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&meeting.barrier);
}

static bool told(int r, trine_status status, const char *words) {
    if (ranks[r].status == status && strstr(ranks[r].message, words) != NULL) return true;
    printf("# rank %d: %s: %s\n", r, trine_status_name(ranks[r].status), ranks[r].message);
    return false;
}

static bool all_told(trine_status status, const char *words) {
    bool good = true;
    for (int r = 0; r < RANKS; r++) good &= told(r, status, words);
    return good;
}

static bool all_right(int count) {
    bool good = true;
    for (int r = 0; r < count; r++)
        good &= told(r, TRINE_OK, "") && ranks[r].number == r && ranks[r].ranks == count && ranks[r].wrong == 0;
    return good;
}

/* The group can be opened by what it failed with before. */
static void tap_failed(bool good, const char *what) {
    char words[512];
    snprintf(words, sizeof words, "%s", ranks[0].message);
    *nccl = (nccl_settings){ 0 };
    open_all(RANKS, NULL, NULL);
    tap(all_right(RANKS) && good, "%s, and then does not: %s", what, words);
}

/* ---------------------------------------------------------------------------------------------------------- refused */

static bool refused(int device, void *comm, trine_status status, const char *words) {
    trine_queue *queue = open_queue(device);
    trine_comm *out = NULL;
    const trine_status found = trine_comm_open_nccl(queue, comm, NULL, &out);
    trine_queue_close(queue);
    if (found == status && out == NULL && strstr(trine_error_message(), words) != NULL) return true;
    printf("# %s: %s\n", trine_status_name(found), trine_error_message());
    return false;
}

static void test_arguments(void) {
    struct ncclComm comm = { .ranks = 1, .meeting = &meeting };
    trine_comm *out;
    tap(trine_comm_open_nccl(NULL, &comm, NULL, &out) == TRINE_ERR_ARGUMENT, "queue is NULL");
    tap(refused(0, NULL, TRINE_ERR_ARGUMENT, "trine_comm_open_nccl: nccl is NULL"), "nccl is NULL");
    tap(refused(-1, &comm, TRINE_ERR_UNSUPPORTED, "NCCL and RCCL have no communicators of cpu"), "a queue of the CPU");
}

/* All that is in the process is no library of the vendor's, or lacks something. */
static void test_libraries(char **path) {
    const bool cuda = strcmp(kind, "cuda") == 0;
    struct ncclComm comm = { .ranks = 1, .meeting = &meeting };
    const char *const none = cuda ? "libnccl.so.2 has not been opened" : "librccl.so.1 has not been opened";
    tap(refused(0, &comm, TRINE_ERR_UNSUPPORTED, none), "no library");
    tap(dlopen(path[0], RTLD_NOW | RTLD_GLOBAL) != NULL && refused(0, &comm, TRINE_ERR_UNSUPPORTED, none),
        "the other vendor's library, seen by all");
    void *lacks = dlopen(path[1], RTLD_NOW | RTLD_LOCAL);
    tap(lacks != NULL && refused(0, &comm, TRINE_ERR_UNSUPPORTED, "has no ncclCommGetAsyncError()"),
        "a library that lacks a function");
    dlclose(lacks);
    tap(refused(0, &comm, TRINE_ERR_UNSUPPORTED, none), "a library that has been closed");
}

/* ---------------------------------------------------------------------------------------------------------- failing */

static void another_device(rank *k) {
    if (k->comm.rank == 1) k->device = 0;
}
static void no_device(rank *k) { k->comm.device += 40; }
static void too_many(rank *k) { k->comm.ranks = TRINE_MAX_RANKS + 1; }
static void wrong_timeout(rank *k) {
    static const trine_comm_options options = { .struct_size = sizeof options, .timeout = -1 };
    if (k->comm.rank == 2) k->options = &options;
}

static void test_ranks(void) {
    open_all(RANKS, NULL, another_device);
    tap_failed(told(1, TRINE_ERR_ARGUMENT, "trine_comm_open: nccl is of ") &&
                   told(1, TRINE_ERR_ARGUMENT, ":1, but the queue of ") &&
                   told(0, TRINE_ERR_COMM, "rank 1 failed: nccl is of ") && told(2, TRINE_ERR_COMM, "rank 1 failed: "),
               "one rank's communicator is of another device than its queue");
    open_all(RANKS, NULL, no_device);
    tap_failed(told(2, TRINE_ERR_ARGUMENT, ":42, which is no device of trine's") &&
                   all_told(TRINE_ERR_ARGUMENT, "no device of trine's"),
               "the communicator is of no device");
    open_all(RANKS, NULL, too_many);
    tap_failed(all_told(TRINE_ERR_ARGUMENT, "ranks is 65, but 1 to 64 are possible"), "there are too many ranks");
    open_all(RANKS, NULL, wrong_timeout);
    tap_failed(told(2, TRINE_ERR_ARGUMENT, "timeout is -1") && told(0, TRINE_ERR_COMM, "rank 2 failed: timeout is -1"),
               "one rank's options are wrong");
}

/* Each function, and the second gather. */
static void test_functions(void) {
    static const char *const names[] = { "ncclCommCount", "ncclCommUserRank", "ncclCommCuDevice", "ncclAllGather" };
    for (int i = 0; i < 4; i++) {
        char words[96];
        *nccl = (nccl_settings){ .fail = names[i], .fails_on = -1, .result = i + 1 };
        open_all(RANKS, NULL, NULL);
        snprintf(words, sizeof words, "trine_comm_open_nccl: %s(): %s", names[i],
                 (const char *const[]){ "unhandled cuda error", "unhandled system error", "internal error",
                                        "invalid argument" }[i]);
        tap_failed(all_told(TRINE_ERR_COMM, words), names[i]);
    }
    *nccl = (nccl_settings){ .fail = "ncclAllGather", .fails_on = -1, .after = 1, .result = 5 };
    open_all(RANKS, NULL, NULL);
    tap_failed(all_told(TRINE_ERR_COMM, "ncclAllGather(): invalid usage"), "the second ncclAllGather");

    *nccl = (nccl_settings){ .progress = 20 };
    open_all(RANKS, NULL, NULL);
    tap(all_right(RANKS), "calls that do not block");
    *nccl = (nccl_settings){ .progress = 20, .broken = 6 };
    open_all(RANKS, NULL, NULL);
    tap_failed(all_told(TRINE_ERR_COMM, "ncclAllGather(): remote process exited or"), "a call that does not block");
    *nccl = (nccl_settings){ .absent = 1 };
    open_all(RANKS, NULL, NULL);
    tap_failed(all_told(TRINE_ERR_COMM, "ncclAllGather() has gathered nothing"), "a call within a group of calls");
}

/* The device has not ended what was begun. */
static void test_waiting(stub_settings *stub) {
    const trine_comm_options brief = { .struct_size = sizeof brief, .timeout = 0.3 };
    stub->result = CUDA_NOT_READY;

    stub->fail = "cuStreamQuery";
    *nccl = (nccl_settings){ .absent = 1 };
    open_all(RANKS, &brief, NULL);
    stub->fail = NULL;
    tap_failed(
        all_told(TRINE_ERR_COMM, "trine_comm_open_nccl: not all of the communicator's 3 ranks came within 0.3 s"),
        "a rank does not come");

    stub->fail = "cuStreamQuery";
    *nccl = (nccl_settings){ .absent = 1, .broken = 6 };
    open_all(RANKS, NULL, NULL);
    stub->fail = NULL;
    tap_failed(all_told(TRINE_ERR_COMM, "ncclAllGather(): remote process exited or there was a network error"),
               "the network fails");

    stub->fail = "cuStreamQuery";
    *nccl = (nccl_settings){ .absent = 1, .fail = "ncclCommGetAsyncError", .fails_on = -1, .result = 3 };
    open_all(RANKS, NULL, NULL);
    stub->fail = NULL;
    tap_failed(all_told(TRINE_ERR_COMM, "ncclCommGetAsyncError(): internal error"), "ncclCommGetAsyncError");

    stub->fail = "cuStreamQuery";
    *nccl = (nccl_settings){ .absent = 1, .fail = "ncclAllGather", .fails_on = 1, .result = 2 };
    open_all(RANKS, &brief, NULL);
    stub->fail = NULL;
    tap_failed(told(1, TRINE_ERR_COMM, "ncclAllGather(): unhandled system error") &&
                   told(0, TRINE_ERR_COMM, "ranks came within 0.3 s") && told(2, TRINE_ERR_COMM, "came within 0.3 s"),
               "ncclAllGather of one rank");

    stub->fail = "cuMemAlloc_v2";
    stub->result = 2;
    *nccl = (nccl_settings){ .absent = 1 };
    open_all(RANKS, NULL, NULL);
    stub->fail = NULL;
    tap_failed(all_told(TRINE_ERR_MEMORY, ""), "memory runs out");
}

int main(int argc, char **argv) {
    alarm(240);
    kind = argc > 1 ? argv[1] : "cuda";
    stub_settings *stub = dlsym(RTLD_DEFAULT, STUB_SETTINGS);
    if (stub != NULL) stub->devices = RANKS;
    if (trine_open(NULL, &lib) != TRINE_OK || trine_device_find(lib, kind) < 0) {
        tap(false, "there is no %s", kind);
        return tap_end();
    }
    test_arguments();
    if (argc > 4) test_libraries(argv + 2);
    void *library = argc > 4 ? dlopen(argv[4], RTLD_NOW | RTLD_LOCAL) : NULL;
    nccl = dlsym(argc > 4 ? library : RTLD_DEFAULT, NCCL_SETTINGS);
    if (!tap(nccl != NULL, "the library is there")) return tap_end();
    for (int count = 1; count <= RANKS; count++) {
        open_all(count, NULL, NULL);
        tap(all_right(count) && nccl->type == 1, "%d ranks", count);
    }
    test_ranks();
    test_functions();
    if (stub != NULL) test_waiting(stub);
    trine_close(lib);
    return tap_end();
}
