/* SPDX-License-Identifier: Apache-2.0 */
/* Halos of a grid by packed messages (Pearson et al. 2020, TEMPI): two blocks of a periodic grid side by side take
 * their neighbours' planes, rows, columns and corners, each of the 26 as one message that pack_strided gathers and
 * unpack_strided scatters. The same by a copy for each contiguous run, as a library does that knows nothing of layouts.
 * Bytes and times of a face of each kind; after it each halo must be what the whole grid has there. With MPI two ranks
 * have a block each, and MPI's own subarrays must give the same messages. */
#include <string.h>

#include "papers.h"

#ifdef PAPERS_MPI
#include <mpi.h>
#endif

enum { SIDE = 48, WIDE = SIDE + 2, VOLUME = WIDE * WIDE * WIDE, ROUNDS = 20 };
static trine_queue *queue;

/* A box of a block, z y x, x being innermost. */
typedef struct part {
    int64_t from[3], size[3];
} part;

static int64_t place(int64_t z, int64_t y, int64_t x) { return (z * WIDE + y) * WIDE + x; }
static int64_t count(const part *p) { return p->size[0] * p->size[1] * p->size[2]; }

/* What is sent towards d, each of -1, 0, 1; or where what comes from there is put. */
static part towards(const int *d, bool halo) {
    part p;
    for (int i = 0; i < 3; i++) {
        p.size[i] = d[i] == 0 ? SIDE : 1;
        p.from[i] = d[i] == 0 ? 1 : d[i] < 0 ? !halo : SIDE + halo;
    }
    return p;
}

static trine_tensor message(double *data, const part *p) {
    return trine_tensor_3d(data, TRINE_F64, p->size[0], p->size[1], p->size[2]);
}

static void pack(double *block, const part *p, double *to) {
    const trine_tensor x = trine_tensor_1d(block, TRINE_F64, VOLUME), packed = message(to, p);
    RUN(pack_strided, .x = &x, .packed = &packed, .start = place(p->from[0], p->from[1], p->from[2]), .stride_i = WIDE,
        .stride_j = WIDE * WIDE);
    need(trine_queue_wait(queue));
}

static void unpack(double *block, const part *p, double *from) {
    const trine_tensor x = trine_tensor_1d(block, TRINE_F64, VOLUME), packed = message(from, p);
    RUN(unpack_strided, .packed = &packed, .x = &x, .start = place(p->from[0], p->from[1], p->from[2]),
        .stride_i = WIDE, .stride_j = WIDE * WIDE);
    need(trine_queue_wait(queue));
}

/* A copy for each run; volatile, so that none is left out or joined. */
static void pack_by_runs(const double *block, const part *p, double *to) {
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    for (int64_t z = 0; z < p->size[0]; z++)
        for (int64_t y = 0; y < p->size[1]; y++, to += p->size[2])
            copy(to, block + place(p->from[0] + z, p->from[1] + y, p->from[2]), (size_t)p->size[2] * sizeof *to);
}

/* The number of a cell of the whole grid, two blocks wide along x. */
static double number(int64_t z, int64_t y, int64_t x) {
    z = (z + SIDE) % SIDE, y = (y + SIDE) % SIDE, x = (x + 2 * SIDE) % (2 * SIDE);
    return (double)((z * SIDE + y) * 2 * SIDE + x);
}

static double *block_of(int rank) {
    double *block = malloc(VOLUME * sizeof *block);
    for (int64_t i = 0; i < VOLUME; i++) block[i] = -1;
    for (int64_t z = 1; z <= SIDE; z++)
        for (int64_t y = 1; y <= SIDE; y++)
            for (int64_t x = 1; x <= SIDE; x++) block[place(z, y, x)] = number(z - 1, y - 1, rank * SIDE + x - 1);
    return block;
}

static double wrong_cells(const double *block, int rank) {
    double wrong = 0;
    for (int64_t z = 0; z < WIDE; z++)
        for (int64_t y = 0; y < WIDE; y++)
            for (int64_t x = 0; x < WIDE; x++)
                wrong += block[place(z, y, x)] != number(z - 1, y - 1, rank * SIDE + x - 1);
    return wrong;
}

#ifdef PAPERS_MPI
/* The message as MPI packs it. */
static void pack_by_mpi(double *block, const part *p, double *to) {
    const int whole[3] = { WIDE, WIDE, WIDE }, size[3] = { (int)p->size[0], (int)p->size[1], (int)p->size[2] },
              from[3] = { (int)p->from[0], (int)p->from[1], (int)p->from[2] };
    MPI_Datatype type;
    int at = 0;
    MPI_Type_create_subarray(3, whole, size, from, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Pack(block, 1, type, to, (int)(count(p) * (int64_t)sizeof *to), &at, MPI_COMM_WORLD);
    MPI_Type_free(&type);
}
#endif

/* Sends `out` to the block towards d, and has what comes from there. */
static void exchange(double *const *block, int blocks, int rank, const int *d, double *out, double *in) {
    const int back[3] = { -d[0], -d[1], -d[2] };
    const part sent = towards(d, false), halo = towards(back, true);
    for (int b = 0; b < blocks; b++) {
        pack(block[b], &sent, out);
#ifdef PAPERS_MPI
        if (blocks == 1) {
            const int other = d[2] == 0 ? rank : 1 - rank;
            pack_by_mpi(block[b], &sent, in);
            agree("the message of MPI_Pack", memcmp(in, out, (size_t)count(&sent) * sizeof *in) != 0, 0);
            MPI_Sendrecv(out, (int)count(&sent), MPI_DOUBLE, other, 0, in, (int)count(&halo), MPI_DOUBLE, other, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            unpack(block[b], &halo, in);
            continue;
        }
#endif
        pack_by_runs(block[b], &sent, in);
        agree("the message of single copies", memcmp(in, out, (size_t)count(&sent) * sizeof *in) != 0, 0);
        unpack(block[d[2] == 0 ? b : 1 - b], &halo, out);
    }
    (void)rank;
}

/* The least time of some packings, in microseconds. */
static double least(double *block, const part *p, double *to, bool runs) {
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = seconds();
        if (runs)
            pack_by_runs(block, p, to);
        else
            pack(block, p, to);
        best = fmin(best, seconds() - start);
    }
    return 1e6 * best;
}

static void table(double *block, double *to) {
    static const struct {
        const char *name;
        int d[3];
    } rows[] = { { "face z", { 1, 0, 0 } },  { "face y", { 0, 1, 0 } },  { "face x", { 0, 0, 1 } },
                 { "edge yx", { 0, 1, 1 } }, { "edge zy", { 1, 1, 0 } }, { "corner", { 1, 1, 1 } } };
    printf("message    runs   bytes   us, run by run   us, one call\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const part p = towards(rows[i].d, false);
        printf("%-8s %6d %7d %16.2f %14.2f\n", rows[i].name, (int)(p.size[0] * p.size[1]), (int)(8 * count(&p)),
               least(block, &p, to, true), least(block, &p, to, false));
    }
}

int main(void) {
    trine_library *lib;
    int rank = 0, blocks = 2;
#ifdef PAPERS_MPI
    int ranks = 1;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 2) blocks = 1;
#endif
    queue = cpu_queue(&lib);
    double *block[2] = { block_of(rank), blocks == 2 ? block_of(1) : NULL }, *out = malloc(WIDE * WIDE * sizeof *out),
           *in = malloc(WIDE * WIDE * sizeof *in);
    for (int i = 0; i < 27; i++) {
        const int d[3] = { i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1 };
        if (i != 13) exchange(block, blocks, rank, d, out, in);
    }
    for (int b = 0; b < blocks; b++) agree("cells that are not the whole grid's", wrong_cells(block[b], rank + b), 0);
    if (rank == 0) {
        if (disagreements == 0)
            printf("two blocks of %d x %d x %d f64: halos are the whole grid's\n\n", SIDE, SIDE, SIDE);
        table(block[0], out);
    }
    for (int b = 0; b < blocks; b++) free(block[b]);
    free(out), free(in);
    trine_queue_close(queue);
    trine_close(lib);
#ifdef PAPERS_MPI
    MPI_Finalize();
#endif
    return disagreements > 0;
}
