/* SPDX-License-Identifier: Apache-2.0 */
/* The largest singular value of a matrix that processes of MPI have by rows, by trine's collective ops. MPI starts the
 * processes and brings them together; its own collectives, and loops in f64, then say whether the answers are right.
 *
 *     mpicc singular.c -o singular $(pkg-config --cflags --libs trine) -lm && mpirun -n 4 ./singular [DEVICE] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <trine/trine.h>

enum { PART = 96, STEPS = 12 }; /* rows of a rank; steps of the power method */

typedef struct program {
    MPI_Comm mpi; /* the processes of this machine */
    int rank, ranks;
    trine *lib;
    trine_queue *queue;
    trine_comm *comm;
} program;

static void need(const program *p, trine_status status) {
    if (status == TRINE_OK) return;
    fprintf(stderr, "rank %d: %s: %s\n", p->rank, trine_status_name(status), trine_error_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void agree(const program *p, const char *what, int good) {
    if (good) return;
    fprintf(stderr, "rank %d: trine and MPI differ: %s\n", p->rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#define CALL(op, ...) need(p, trine_##op(p->queue, &(trine_##op##_args){ TRINE_ARGS(op), __VA_ARGS__ }))

/* ---------------------------------------------------------------------------------------------------------- opening */

/* All that trine asks of MPI. */
static int gather(void *context, const void *mine, void *all, size_t bytes) {
    MPI_Comm *mpi = context;
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, *mpi) != MPI_SUCCESS;
}

/* "cuda" is each rank's own: cuda:0, cuda:1, ... in turn. */
static int find_device(const program *p, const char *name) {
    char numbered[64];
    int devices = 0;
    if (strchr(name, ':') != NULL || strcmp(name, "cpu") == 0) return trine_device_find(p->lib, name);
    do snprintf(numbered, sizeof numbered, "%s:%d", name, devices);
    while (trine_device_find(p->lib, numbered) >= 0 && ++devices);
    snprintf(numbered, sizeof numbered, "%s:%d", name, devices > 0 ? p->rank % devices : 0);
    return trine_device_find(p->lib, numbered);
}

static void open_group(program *p, const char *device) {
    /* A group is of one machine. A program of several has one on each. */
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &p->mpi);
    MPI_Comm_set_errhandler(p->mpi, MPI_ERRORS_RETURN); /* so that what fails in gather() is an error, and no end */
    MPI_Comm_rank(p->mpi, &p->rank);
    MPI_Comm_size(p->mpi, &p->ranks);
    need(p, trine_open(NULL, &p->lib));
    const int number = find_device(p, device);
    if (number < 0) fprintf(stderr, "there is no device \"%s\"\n", device), MPI_Abort(MPI_COMM_WORLD, 2);
    need(p, trine_queue_open(p->lib, number, NULL, &p->queue));
    const trine_bootstrap bootstrap = { gather, &p->mpi };
    const trine_comm_options options = { .struct_size = sizeof options, .timeout = 60 };
    need(p, trine_comm_open(p->queue, p->rank, p->ranks, &bootstrap, &options, &p->comm));
}

/* Every rank frees what it has; the group first, as its header asks. */
static void close_group(program *p) {
    trine_comm_close(p->comm);
    trine_queue_close(p->queue);
    trine_close(p->lib);
    MPI_Comm_free(&p->mpi);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static float *host_floats(const program *p, int64_t count) {
    float *x = calloc((size_t)count, sizeof *x);
    if (x == NULL) need(p, TRINE_ERR_MEMORY);
    return x;
}

static float *device_floats(const program *p, int64_t count) {
    void *x = NULL;
    need(p, trine_memory_alloc(p->queue, (size_t)count * sizeof(float), &x));
    return x;
}

static void put(const program *p, float *device, const float *host, int64_t count) {
    need(p, trine_memory_write(p->queue, device, host, (size_t)count * sizeof *host));
}

static float *get(const program *p, const float *device, int64_t count) {
    float *host = host_floats(p, count);
    need(p, trine_memory_read(p->queue, host, device, (size_t)count * sizeof *host));
    return host;
}

static trine_tensor vector(float *data, int64_t n) { return trine_tensor_1d(data, TRINE_F32, n); }
static trine_tensor matrix(float *data, int64_t rows, int64_t columns) {
    return trine_tensor_2d(data, TRINE_F32, rows, columns);
}

/* ------------------------------------------------------------------------------------------------------ collectives */

/* Each by trine, and on what the host reads of its input by MPI. */

static void same(const program *p, const char *what, const float *device, const float *expected, int64_t count) {
    float *y = get(p, device, count);
    agree(p, what, memcmp(y, expected, (size_t)count * sizeof *y) == 0);
    free(y);
}

/* Two orders of a sum of f32: each is off by ranks 2^-24 sum |x| at most, and by its last rounding. `sums` are those of
 * the |x|. */
static void near(const program *p, const char *what, const float *device, const float *expected, const float *sums,
                 int64_t count) {
    float *y = get(p, device, count);
    for (int64_t i = 0; i < count; i++)
        agree(p, what, fabs((double)y[i] - (double)expected[i]) <= 2.0 * (p->ranks + 1) * 0x1p-24 * (double)sums[i]);
    free(y);
}

static float *magnitudes(const program *p, const float *x, int64_t count) {
    float *y = host_floats(p, count);
    for (int64_t i = 0; i < count; i++) y[i] = fabsf(x[i]);
    return y;
}

static void broadcast(const program *p, float *x, int64_t count, int root) {
    const trine_tensor tx = vector(x, count);
    float *expected = get(p, x, count);
    CALL(broadcast, .comm = p->comm, .x = &tx, .y = &tx, .root = root);
    MPI_Bcast(expected, (int)count, MPI_FLOAT, root, p->mpi);
    same(p, "broadcast", x, expected, count);
    free(expected);
}

static void all_gather(const program *p, float *x, float *y, int64_t count) {
    const trine_tensor tx = vector(x, count), ty = matrix(y, p->ranks, count);
    float *mine = get(p, x, count), *expected = host_floats(p, p->ranks * count);
    CALL(all_gather, .comm = p->comm, .x = &tx, .y = &ty);
    MPI_Allgather(mine, (int)count, MPI_FLOAT, expected, (int)count, MPI_FLOAT, p->mpi);
    same(p, "all_gather", y, expected, p->ranks * count);
    free(mine);
    free(expected);
}

static void all_to_all(const program *p, float *x, float *y, int64_t count) {
    const trine_tensor tx = matrix(x, p->ranks, count), ty = matrix(y, p->ranks, count);
    float *mine = get(p, x, p->ranks * count), *expected = host_floats(p, p->ranks * count);
    CALL(all_to_all, .comm = p->comm, .x = &tx, .y = &ty);
    MPI_Alltoall(mine, (int)count, MPI_FLOAT, expected, (int)count, MPI_FLOAT, p->mpi);
    same(p, "all_to_all", y, expected, p->ranks * count);
    free(mine);
    free(expected);
}

static void reduce_scatter(const program *p, float *x, float *y, int64_t count) {
    const trine_tensor tx = matrix(x, p->ranks, count), ty = vector(y, count);
    float *mine = get(p, x, p->ranks * count), *sizes = magnitudes(p, mine, p->ranks * count);
    float *expected = host_floats(p, count), *sums = host_floats(p, count);
    CALL(reduce_scatter, .comm = p->comm, .x = &tx, .y = &ty, .kind = TRINE_RANKS_SUM);
    MPI_Reduce_scatter_block(mine, expected, (int)count, MPI_FLOAT, MPI_SUM, p->mpi);
    MPI_Reduce_scatter_block(sizes, sums, (int)count, MPI_FLOAT, MPI_SUM, p->mpi);
    near(p, "reduce_scatter", y, expected, sums, count);
    free(mine), free(sizes), free(expected), free(sums);
}

static void all_reduce(const program *p, float *x, float *y, int64_t count, int kind) {
    const trine_tensor tx = vector(x, count), ty = vector(y, count);
    float *mine = get(p, x, count), *sizes = magnitudes(p, mine, count);
    float *expected = host_floats(p, count), *sums = host_floats(p, count);
    CALL(all_reduce, .comm = p->comm, .x = &tx, .y = &ty, .kind = kind);
    MPI_Allreduce(mine, expected, (int)count, MPI_FLOAT, kind == TRINE_RANKS_SUM ? MPI_SUM : MPI_MAX, p->mpi);
    MPI_Allreduce(sizes, sums, (int)count, MPI_FLOAT, MPI_SUM, p->mpi);
    if (kind == TRINE_RANKS_SUM)
        near(p, "all_reduce", y, expected, sums, count);
    else
        same(p, "all_reduce of the largest", y, expected, count);
    free(mine), free(sizes), free(expected), free(sums);
}

/* ------------------------------------------------------------------------------------------------------- the matrix */

/* Element (i, j): noise, and one direction that is much larger. */
static float element(int64_t i, int64_t j) {
    uint64_t h = (uint64_t)(i << 32 | j) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (float)(h >> 40) * 0x1p-24f - 0.5f + 0.25f * (float)(1 + i % 5) * (float)(1 - j % 3);
}

/* The rows of a rank, transposed: all columns, each with PART elements. So what is for another rank is in one piece. */
static void fill(const program *p, float *turned) {
    const int64_t n = (int64_t)p->ranks * PART;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < PART; i++) turned[j * PART + i] = element(p->rank * PART + i, j);
}

/* The same of the transposed matrix, from everyone's columns for this rank. */
static void transpose(const program *p, float *turned, float *other) {
    const int64_t count = (int64_t)PART * PART;
    all_to_all(p, turned, other, count);
    float *x = get(p, other, p->ranks * count), *y = host_floats(p, p->ranks * count);
    for (int64_t k = 0; k < p->ranks * count; k++) y[k / count * count + k % PART * PART + k % count / PART] = x[k];
    put(p, other, y, p->ranks * count);
    free(x);
    free(y);
}

typedef struct vectors {
    float *mine, *all, *image, *back, *square, *sum; /* PART, n, PART, n, 1, 1 */
} vectors;

/* v <- A^T A v / |A^T A v|, of which each rank has its part; |A^T A v| goes to the square of the largest singular
 * value of A. */
static float power(const program *p, float *turned, const vectors *v) {
    const int64_t n = (int64_t)p->ranks * PART;
    const trine_tensor a_t = matrix(turned, n, PART), a = trine_tensor_transpose(&a_t);
    const trine_tensor all = matrix(v->all, n, 1), image = matrix(v->image, PART, 1), back = matrix(v->back, n, 1),
                       row = matrix(v->mine, 1, PART), column = matrix(v->mine, PART, 1), part = vector(v->mine, PART),
                       square = matrix(v->square, 1, 1);
    float norm = 0;
    for (int64_t i = 0; i < PART && p->rank == 0; i++) /* only one rank knows where to begin */
        put(p, v->mine + i, &(float){ 1 + (float)(i % 7) }, 1);
    broadcast(p, v->mine, PART, 0);
    for (int step = 0; step < STEPS; step++) {
        all_gather(p, v->mine, v->all, PART);
        CALL(matmul, .a = &a, .b = &all, .d = &image);
        CALL(matmul, .a = &a_t, .b = &image, .d = &back);
        reduce_scatter(p, v->back, v->mine, PART);
        CALL(matmul, .a = &row, .b = &column, .d = &square);
        all_reduce(p, v->square, v->sum, 1, TRINE_RANKS_SUM);
        need(p, trine_memory_read(p->queue, &norm, v->sum, sizeof norm));
        norm = sqrtf(norm);
        CALL(scale, .x = &part, .y = &part, .alpha = 1 / norm);
    }
    all_reduce(p, v->mine, v->image, PART, TRINE_RANKS_MAX);
    return sqrtf(norm);
}

/* By loops in f64 and MPI's sums. */
static double expected(const program *p) {
    const int64_t n = (int64_t)p->ranks * PART;
    double *v = malloc((size_t)n * sizeof *v), *w = malloc((size_t)n * sizeof *w), norm = 0;
    if (v == NULL || w == NULL) need(p, TRINE_ERR_MEMORY);
    for (int64_t j = 0; j < n; j++) v[j] = 1 + (double)(j % PART % 7);
    for (int step = 0; step < STEPS; step++) {
        memset(w, 0, (size_t)n * sizeof *w);
        for (int64_t i = p->rank * PART; i < (p->rank + 1) * PART; i++) {
            double u = 0;
            for (int64_t j = 0; j < n; j++) u += (double)element(i, j) * v[j];
            for (int64_t j = 0; j < n; j++) w[j] += (double)element(i, j) * u;
        }
        MPI_Allreduce(w, v, (int)n, MPI_DOUBLE, MPI_SUM, p->mpi);
        norm = 0;
        for (int64_t j = 0; j < n; j++) norm += v[j] * v[j];
        norm = sqrt(norm);
        for (int64_t j = 0; j < n; j++) v[j] /= norm;
    }
    free(v);
    free(w);
    return sqrt(norm);
}

int main(int argc, char **argv) {
    program p = { .rank = -1 };
    MPI_Init(&argc, &argv);
    open_group(&p, argc > 1 ? argv[1] : "cpu");
    const int64_t n = (int64_t)p.ranks * PART;
    float *rows = host_floats(&p, n * PART), *turned = device_floats(&p, n * PART),
          *other = device_floats(&p, n * PART);
    const vectors v = { device_floats(&p, PART), device_floats(&p, n), device_floats(&p, PART),
                        device_floats(&p, n),    device_floats(&p, 1), device_floats(&p, 1) };
    fill(&p, rows);
    put(&p, turned, rows, n * PART);
    transpose(&p, turned, other);
    const float of_matrix = power(&p, turned, &v), of_transposed = power(&p, other, &v);
    const double right = expected(&p);
    if (p.rank == 0)
        printf("%d ranks: the largest singular value of %lld x %lld is %.6f, of its transpose %.6f, by MPI %.6f\n",
               p.ranks, (long long)n, (long long)n, (double)of_matrix, (double)of_transposed, right);
    agree(&p, "the singular value", fabs((double)of_matrix - right) <= 1e-5 * right);
    agree(&p, "the transpose's singular value", fabs((double)of_transposed - right) <= 1e-5 * right);
    void *const memory[] = { turned, other, v.mine, v.all, v.image, v.back, v.square, v.sum };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) trine_memory_free(p.queue, memory[i]);
    free(rows);
    close_group(&p);
    MPI_Finalize();
    return 0;
}
