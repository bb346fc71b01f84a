/* SPDX-License-Identifier: Apache-2.0 */
/* trine-peers-mpi: all_reduce of f32 on CPUs beside MPI_Allreduce, in turns, between the processes that mpirun has
 * started. A line for each size: how many times faster trine is, by the median of the rounds' ratios, and from which to
 * which the middle half of them goes. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>
#include <trine/trine.h>

enum { ROUNDS = 61, MOST = 4 << 20 };

static int rank, ranks;

static void need(trine_status status) {
    if (status == TRINE_OK) return;
    fprintf(stderr, "rank %d: %s\n", rank, trine_error_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int gather(void *context, const void *mine, void *all, size_t bytes) {
    (void)context;
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD) != MPI_SUCCESS;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct job {
    trine_queue *queue;
    trine_comm *comm;
    float *x, *y;
} job;

static void by_trine(const job *j, int n) {
    const trine_tensor x = trine_tensor_1d(j->x, TRINE_F32, n), y = trine_tensor_1d(j->y, TRINE_F32, n);
    need(trine_all_reduce(j->queue,
                          &(trine_all_reduce_args){ TRINE_ARGS(all_reduce), .comm = j->comm, .x = &x, .y = &y }));
}

static void by_mpi(const job *j, int n) { MPI_Allreduce(j->x, j->y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

/* Seconds of a call, of the rank that takes longest. */
static double timed(void (*call)(const job *, int), const job *j, int n, int calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) call(j, n);
    double mine = (MPI_Wtime() - start) / calls, longest;
    MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static void compare(const job *j, int n) {
    double ratio[ROUNDS];
    const int calls = n < 1 << 12 ? 200 : n < 1 << 18 ? 20 : 2;
    by_trine(j, n); /* pages that were not there yet */
    by_mpi(j, n);
    for (int round = 0; round < ROUNDS; round++) {
        const double ours = timed(by_trine, j, n, calls);
        ratio[round] = timed(by_mpi, j, n, calls) / ours;
    }
    qsort(ratio, ROUNDS, sizeof *ratio, by_size);
    if (rank == 0)
        printf("%8d %6.2f   %.2f to %.2f\n", n, ratio[ROUNDS / 2], ratio[ROUNDS / 4], ratio[ROUNDS - 1 - ROUNDS / 4]);
    fflush(stdout);
}

int main(int argc, char **argv) {
    trine *lib = NULL;
    job j = { .x = malloc(MOST * sizeof(float)), .y = malloc(MOST * sizeof(float)) };
    const trine_bootstrap bootstrap = { gather, NULL };
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    trine_device_info_t info;
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(library, &length);
    if (j.x == NULL || j.y == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < MOST; i++) j.x[i] = (float)(i % 9 - 4);
    need(trine_open(NULL, &lib));
    need(trine_queue_open(lib, 0, NULL, &j.queue));
    need(trine_device_info(lib, 0, &info));
    need(trine_comm_open(j.queue, rank, ranks, &bootstrap, NULL, &j.comm));
    if (rank == 0)
        printf("%s, %s, %d ranks with %d threads each; %.40s\nelements  trine is as fast, the middle half\n",
               info.model, info.arch, ranks, info.units, library);
    for (int n = 1; n <= MOST; n *= n < 1 << 18 ? 8 : 4) compare(&j, n);
    trine_comm_close(j.comm);
    trine_queue_close(j.queue);
    trine_close(lib);
    free(j.x);
    free(j.y);
    MPI_Finalize();
    return 0;
}
