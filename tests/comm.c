/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks that are threads and processes: the ops by small pieces, and what goes wrong with other ranks.
 * Nothing may hang, each rank is told which rank did what, and nothing is left behind. One file, since all cases share
 * the place where ranks meet and what came out there.
 *
 *     test-comm             on the CPU
 *     test-comm cuda:0      on an emulated device
 *     test-comm hip:0 3     on 3 emulated devices from that one on, whose drivers take the host's memory: the ranks
 *                           have them in turn */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <trine/trine.h>

#include "emulators/cuda/stub.h"
#include "tap.h"

enum { MOST = 8, RECORD = 1024, N = 3000 };

/* ------------------------------------------------------------------------------------------------- meeting of ranks */

/* In memory that forked processes share: where they meet, and what came out. */
typedef struct result {
    trine_status status[4];
    char message[4][512];
    int wrong;
} result;

typedef struct place {
    pthread_barrier_t barrier;
    int ranks;
    char gathered[MOST][RECORD];
    _Atomic int go;
    result result[MOST];
} place;

static trine *lib;
static place *here;

/* The devices of the ranks; NULL: the CPU. */
static const char *first_device;
static int devices = 1;

static int device_of(int rank) {
    for (int i = 0; first_device != NULL && i < trine_device_count(lib); i++) {
        trine_device_info_t info;
        if (trine_device_info(lib, i, &info) == TRINE_OK && strcmp(info.name, first_device) == 0)
            return i + rank % devices;
    }
    return 0;
}

typedef struct party {
    int rank;
    int gathers; /* times that it was asked */
    void (*tamper)(char *record);
    int fail_at; /* gather that returns an error; 0: none */
} party;

static int gather(void *context, const void *mine, void *all, size_t bytes) {
    party *p = context;
    if (bytes > RECORD) return 7;
    memcpy(here->gathered[p->rank], mine, bytes);
    p->gathers++;
    if (p->tamper != NULL && p->gathers == 1) p->tamper(here->gathered[p->rank]);
    pthread_barrier_wait(&here->barrier);
    for (int r = 0; r < here->ranks; r++) memcpy((char *)all + (size_t)r * bytes, here->gathered[r], bytes);
    pthread_barrier_wait(&here->barrier);
    return p->fail_at == p->gathers ? 7 : 0;
}

static void meet(int ranks) {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    memset(here, 0, sizeof *here);
    here->ranks = ranks;
    pthread_barrier_init(&here->barrier, &shared, (unsigned)ranks);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_ms(int ms) {
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* One rank: its queue and communicator. */
typedef struct rank {
    int rank, ranks;
    party party;
    trine_queue *queue;
    trine_comm *comm;
    trine_status opened;
    char message[512];
} rank;

typedef struct settings {
    double timeout;
    size_t staging;
    int threads;
} settings;

static rank enter(int r, int ranks, const settings *s) {
    rank k = { .rank = r, .ranks = ranks, .party = { .rank = r } };
    const trine_queue_options queue = { .struct_size = sizeof queue, .threads = s->threads };
    const trine_comm_options options = { .struct_size = sizeof options,
                                         .timeout = s->timeout,
                                         .staging_bytes =
                                             s->staging > 0 || first_device == NULL ? s->staging : 1 << 20 };
    const trine_bootstrap bootstrap = { gather, &k.party };
    trine_queue_open(lib, device_of(r), &queue, &k.queue);
    k.opened = trine_comm_open(k.queue, r, ranks, &bootstrap, &options, &k.comm);
    snprintf(k.message, sizeof k.message, "%s", trine_error_message());
    return k;
}

static void leave(rank *k) {
    trine_comm_close(k->comm);
    trine_queue_close(k->queue);
}

/* Notes how call `i` of a rank went. */
static trine_status note(const rank *k, int i, trine_status status) {
    result *r = &here->result[k->rank];
    r->status[i] = status;
    if (status != TRINE_OK) snprintf(r->message[i], sizeof r->message[i], "%s", trine_error_message());
    return status;
}

/* On devices a call's end is waited for. */
static trine_status done(const rank *k, trine_status status) {
    return status == TRINE_OK ? trine_queue_wait(k->queue) : status;
}

static trine_status sum(const rank *k, float *x, float *y, int64_t n) {
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, n), ty = trine_tensor_1d(y, TRINE_F32, n);
    return done(k,
                trine_all_reduce(k->queue, &(trine_all_reduce_args){ TRINE_ARGS(all_reduce), k->comm, &tx, &ty, 0 }));
}

/* A sum of n ones; wrong if it is not `ranks` everywhere. */
static trine_status sum_ones(const rank *k, int64_t n) {
    static _Thread_local float x[N], y[N];
    for (int64_t i = 0; i < n; i++) x[i] = 1, y[i] = -1;
    const trine_status status = sum(k, x, y, n);
    for (int64_t i = 0; status == TRINE_OK && i < n; i++) here->result[k->rank].wrong += y[i] != (float)k->ranks;
    return status;
}

/* -------------------------------------------------------------------------------------------- threads and processes */

typedef void life(int rank, int ranks);

typedef struct thread {
    life *life;
    int rank, ranks;
} thread;

static void *live(void *context) {
    const thread *t = context;
    t->life(t->rank, t->ranks);
    return NULL;
}

static void in_threads(int ranks, life *l) {
    pthread_t id[MOST];
    thread t[MOST];
    meet(ranks);
    for (int r = 0; r < ranks; r++) {
        t[r] = (thread){ l, r, ranks };
        pthread_create(&id[r], NULL, live, &t[r]);
    }
    for (int r = 0; r < ranks; r++) pthread_join(id[r], NULL);
}

/* Each rank a process with a library of its own; how many ended as they should: by exit, or by a signal if that is
 * said. */
static const char *failing; /* what the emulated driver of the last rank lets fail */
static int in_processes(int ranks, life *l, int killed) {
    pid_t pid[MOST];
    int good = 0;
    meet(ranks);
    fflush(stdout);
    for (int r = 0; r < ranks; r++) {
        pid[r] = fork();
        if (pid[r] != 0) continue;
        alarm(60);
        if (r == ranks - 1 && failing != NULL) setenv("CDNA_FAIL", failing, 1);
        if (trine_open(NULL, &lib) != TRINE_OK) _exit(3);
        l(r, ranks);
        trine_close(lib);
        _exit(0);
    }
    for (int r = 0; r < ranks; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        good += r == killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

static bool told(int rank, int call, trine_status status, const char *words) {
    const result *r = &here->result[rank];
    if (r->status[call] == status && (words == NULL || strstr(r->message[call], words) != NULL)) return true;
    printf("# rank %d, call %d: %s: %s\n", rank, call, trine_status_name(r->status[call]), r->message[call]);
    return false;
}

static bool all_told(int ranks, int call, trine_status status, const char *words) {
    bool good = true;
    for (int r = 0; r < ranks; r++) good &= told(r, call, status, words);
    return good;
}

static int wrong_of(int ranks) {
    int wrong = 0;
    for (int r = 0; r < ranks; r++) wrong += here->result[r].wrong;
    return wrong;
}

static int count_entries(const char *path) {
    DIR *d = opendir(path);
    int count = 0;
    while (d != NULL && readdir(d) != NULL) count++;
    if (d != NULL) closedir(d);
    return count;
}

/* Lines of the process's mappings that are a rank's memory. */
static int count_mappings(void) {
    char line[512];
    int count = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) count += strstr(line, "trine-rank") != NULL;
    if (f != NULL) fclose(f);
    return count;
}

/* -------------------------------------------------------------------------------------------------- what goes right */

/* All ops one after the other by pieces of a page, of sizes on both sides of a piece, with numbers that say whose they
 * are. */
static void small_pieces(int r, int ranks) {
    static const int64_t sizes[] = { 0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2047, 2500 };
    const settings s = { .staging = 4096, .threads = 1 + r % 2, .timeout = 60 };
    rank k = enter(r, ranks, &s);
    if (note(&k, 0, k.opened) != TRINE_OK) return;
    int wrong = 0;
    float *x = calloc(MOST * N, sizeof *x), *y = calloc(MOST * N, sizeof *y);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && note(&k, 0, TRINE_OK) == TRINE_OK; i++) {
        const int64_t n = sizes[i];
        const trine_tensor x1 = trine_tensor_1d(x, TRINE_F32, n), y1 = trine_tensor_1d(y, TRINE_F32, n),
                           x2 = trine_tensor_2d(x, TRINE_F32, ranks, n), y2 = trine_tensor_2d(y, TRINE_F32, ranks, n);
        const int root = (int)(i % (size_t)ranks);
        for (int64_t at = 0; at < ranks * n; at++) x[at] = (float)(r * 1000000 + at);
        trine_status status =
            done(&k, trine_all_reduce(
                         k.queue, &(trine_all_reduce_args){ TRINE_ARGS(all_reduce), k.comm, &x1, &y1, (int)i % 2 }));
        for (int64_t j = 0; j < n; j++) {
            float all = (float)j;
            for (int q = 1; q < ranks; q++) all = i % 2 ? (float)(q * 1000000 + j) : all + (float)(q * 1000000 + j);
            wrong += y[j] != all;
        }
        if (status == TRINE_OK)
            status = done(&k, trine_reduce_scatter(k.queue, &(trine_reduce_scatter_args){ TRINE_ARGS(reduce_scatter),
                                                                                          k.comm, &x2, &y1, 0 }));
        for (int64_t j = 0; j < n; j++) {
            float all = (float)(r * n + j);
            for (int q = 1; q < ranks; q++) all += (float)(q * 1000000 + r * n + j);
            wrong += y[j] != all;
        }
        if (status == TRINE_OK)
            status = done(
                &k, trine_all_gather(k.queue, &(trine_all_gather_args){ TRINE_ARGS(all_gather), k.comm, &x1, &y2 }));
        for (int64_t j = 0; j < ranks * n; j++) wrong += y[j] != (float)(j / n * 1000000 + j % n);
        if (status == TRINE_OK)
            status = done(
                &k, trine_all_to_all(k.queue, &(trine_all_to_all_args){ TRINE_ARGS(all_to_all), k.comm, &x2, &y2 }));
        for (int64_t j = 0; j < ranks * n; j++) wrong += y[j] != (float)(j / n * 1000000 + r * n + j % n);
        if (status == TRINE_OK)
            status = done(
                &k, trine_broadcast(k.queue, &(trine_broadcast_args){ TRINE_ARGS(broadcast), k.comm, &x1, &x1, root }));
        for (int64_t j = 0; j < n; j++) wrong += x[j] != (float)(root * 1000000 + j);
        if (note(&k, 0, status) != TRINE_OK) break;
    }
    here->result[r].wrong = wrong;
    free(x), free(y);
    leave(&k);
}

/* Copies of any bits, those among them that devices use as signs. */
static uint32_t any_word(int rank, int64_t i) {
    const uint32_t mixed = (uint32_t)(rank * 7919 + i * 104729 + 17) * 2654435761u;
    return mixed >> 30 ? (uint32_t)-1 - (mixed >> 8) % 3 : mixed;
}

static void any_bits(int r, int ranks) {
    const settings s = { .staging = 4096, .threads = 1, .timeout = 60 };
    rank k = enter(r, ranks, &s);
    if (note(&k, 0, k.opened) != TRINE_OK) return;
    int wrong = 0;
    uint32_t *x = calloc(MOST * N, sizeof *x), *y = calloc(MOST * N, sizeof *y);
    for (int64_t n = 1; n <= N; n = n * 3 + 1) {
        const trine_tensor x1 = trine_tensor_1d(x, TRINE_I32, n), y1 = trine_tensor_1d(y, TRINE_I32, n),
                           x2 = trine_tensor_2d(x, TRINE_I32, ranks, n), y2 = trine_tensor_2d(y, TRINE_I32, ranks, n);
        const int root = (int)(n % ranks);
        for (int64_t i = 0; i < ranks * n; i++) x[i] = any_word(r, i);
        trine_status status =
            done(&k, trine_all_gather(k.queue, &(trine_all_gather_args){ TRINE_ARGS(all_gather), k.comm, &x1, &y2 }));
        for (int64_t i = 0; i < ranks * n; i++) wrong += y[i] != any_word((int)(i / n), i % n);
        if (status == TRINE_OK)
            status = done(
                &k, trine_all_to_all(k.queue, &(trine_all_to_all_args){ TRINE_ARGS(all_to_all), k.comm, &x2, &y2 }));
        for (int64_t i = 0; i < ranks * n; i++) wrong += y[i] != any_word((int)(i / n), r * n + i % n);
        if (status == TRINE_OK)
            status = done(
                &k, trine_broadcast(k.queue, &(trine_broadcast_args){ TRINE_ARGS(broadcast), k.comm, &x1, &y1, root }));
        for (int64_t i = 0; i < n; i++) wrong += y[i] != any_word(root, i);
        if (note(&k, 0, status) != TRINE_OK) break;
    }
    here->result[r].wrong = wrong;
    free(x), free(y);
    leave(&k);
}

/* Tokens go to experts and back by pieces of a page, some rows wider than that, with experts and places that have no
 * room for all. What comes back has the bits of moe_combine over the rows of all ranks. */
enum { TOKENS = 37, CHOICES = 3, EXPERTS = 2, ROWS = 60, WIDEST = 1500 };
static float token_element(int rank, int token, int64_t j) { return (float)(rank * 1000 + token) + (float)j / 2048; }
static int32_t expert_of(int rank, int token, int choice, int ranks) {
    const uint32_t mixed = (uint32_t)(rank * 7919 + token * 104729 + choice * 1299709 + 17) * 2654435761u;
    return (int32_t)(mixed >> 16) % (ranks * EXPERTS + 1); /* one beyond the last */
}

typedef struct sent {
    float x[TOKENS * WIDEST], rows[ROWS * WIDEST], back[TOKENS * WIDEST], local[TOKENS * WIDEST];
    float weights[TOKENS * CHOICES], all[MOST * ROWS * WIDEST];
    int32_t experts[TOKENS * CHOICES], places[TOKENS * CHOICES], counts[EXPERTS], offsets[EXPERTS + 1], needed[MOST];
} sent;

/* What is wrong with the rows that a rank got, by looking at all slots in their order. */
static int wrong_rows(const sent *s, int r, int ranks, int64_t n, int64_t capacity) {
    int wrong = 0, start = 0;
    for (int j = 0; j < EXPERTS; j++) {
        int count = 0;
        for (int i = 0; i < ranks * TOKENS * CHOICES; i++) {
            const int rank = i / (TOKENS * CHOICES), token = i / CHOICES % TOKENS;
            if (expert_of(rank, token, i % CHOICES, ranks) != r * EXPERTS + j) continue;
            if (++count > capacity && capacity > 0) continue;
            for (int64_t c = 0; start < ROWS && c < n; c++)
                wrong += s->rows[start * n + c] != token_element(rank, token, c);
            if (rank == r) wrong += s->places[i % (TOKENS * CHOICES)] != (start < ROWS ? r * ROWS + start : -1);
            start++;
        }
        wrong += s->counts[j] != count;
        wrong += s->offsets[j + 1] != (start < ROWS ? start : ROWS);
    }
    for (int64_t i = start; i < ROWS; i++)
        for (int64_t c = 0; c < n; c++) wrong += s->rows[i * n + c] != 0;
    return wrong + (s->needed[r] != start);
}

static trine_status send_and_collect(const rank *k, sent *s, int64_t n, int64_t capacity, bool weighted) {
    const int r = k->rank, ranks = k->ranks;
    for (int i = 0; i < TOKENS; i++) {
        for (int64_t j = 0; j < n; j++) s->x[i * n + j] = token_element(r, i, j);
        for (int a = 0; a < CHOICES; a++) {
            s->experts[i * CHOICES + a] = expert_of(r, i, a, ranks);
            s->weights[i * CHOICES + a] = 0.1f + (float)((i * 31 + a * 17 + r) % 64) / 64;
        }
    }
    const trine_tensor x = trine_tensor_2d(s->x, TRINE_F32, TOKENS, n),
                       rows = trine_tensor_2d(s->rows, TRINE_F32, ROWS, n),
                       experts = trine_tensor_2d(s->experts, TRINE_I32, TOKENS, CHOICES),
                       places = trine_tensor_2d(s->places, TRINE_I32, TOKENS, CHOICES),
                       weights = trine_tensor_2d(s->weights, TRINE_F32, TOKENS, CHOICES),
                       counts = trine_tensor_1d(s->counts, TRINE_I32, EXPERTS),
                       offsets = trine_tensor_1d(s->offsets, TRINE_I32, EXPERTS + 1),
                       needed = trine_tensor_1d(s->needed, TRINE_I32, ranks),
                       back = trine_tensor_2d(s->back, TRINE_F32, TOKENS, n),
                       local = trine_tensor_2d(s->local, TRINE_F32, TOKENS, n),
                       row = trine_tensor_1d(s->rows, TRINE_F32, ROWS * n),
                       gathered = trine_tensor_2d(s->all, TRINE_F32, ranks, ROWS * n),
                       all = trine_tensor_2d(s->all, TRINE_F32, ranks * ROWS, n);
    trine_status status = trine_moe_dispatch(
        k->queue, &(trine_moe_dispatch_args){ TRINE_ARGS(moe_dispatch), k->comm, .x = &x, .experts = &experts,
                                              .y = &rows, .counts = &counts, .offsets = &offsets, .places = &places,
                                              .needed = &needed, .capacity = capacity });
    if (status != TRINE_OK) return status;
    here->result[r].wrong += wrong_rows(s, r, ranks, n, capacity);
    for (int64_t i = 0; i < ROWS * n; i++) s->rows[i] *= 1.01f;
    status = trine_moe_collect(
        k->queue, &(trine_moe_collect_args){ TRINE_ARGS(moe_collect), k->comm, .x = &rows, .places = &places,
                                             .weights = weighted ? &weights : NULL, .y = &back });
    if (status == TRINE_OK)
        status =
            trine_all_gather(k->queue, &(trine_all_gather_args){ TRINE_ARGS(all_gather), k->comm, &row, &gathered });
    if (status == TRINE_OK)
        status = trine_moe_combine(k->queue,
                                   &(trine_moe_combine_args){ TRINE_ARGS(moe_combine), .x = &all, .places = &places,
                                                              .weights = weighted ? &weights : NULL, .y = &local });
    if (status == TRINE_OK)
        here->result[r].wrong += memcmp(s->back, s->local, (size_t)(TOKENS * n) * sizeof(float)) != 0;
    return status;
}

/* A token may have as many slots as a half of the staging has elements, and no more. */
static int wrong_choices(const rank *k, sent *s) {
    enum { MOST_CHOICES = 1024 };
    int wrong = 0;
    for (int more = 0; more < 2; more++) {
        const int64_t choices = MOST_CHOICES + more;
        int32_t *numbers = (int32_t *)(void *)s->all;
        const trine_tensor x = trine_tensor_2d(s->x, TRINE_F32, 1, 1), y = trine_tensor_2d(s->back, TRINE_F32, 1, 1),
                           places = trine_tensor_2d(numbers, TRINE_I32, 1, choices);
        s->x[0] = (float)k->rank;
        for (int64_t i = 0; i < choices; i++) numbers[i] = (int32_t)(i % k->ranks);
        const trine_status status =
            trine_moe_collect(k->queue, &(trine_moe_collect_args){ TRINE_ARGS(moe_collect), k->comm, .x = &x,
                                                                   .places = &places, .y = &y });
        float sum = 0;
        for (int64_t i = 0; i < choices; i++) sum += (float)(i % k->ranks);
        wrong += more ? status != TRINE_ERR_UNSUPPORTED : status != TRINE_OK || s->back[0] != sum;
    }
    return wrong;
}

static void experts(int r, int ranks) {
    const settings s = { .staging = 4096, .threads = 1 + r % 2, .timeout = 60 };
    static const int64_t widths[] = { 70, WIDEST, 1, 0 };
    rank k = enter(r, ranks, &s);
    if (note(&k, 0, k.opened) != TRINE_OK) return;
    sent *m = calloc(1, sizeof *m);
    for (int i = 0; i < 8 && m != NULL; i++)
        if (note(&k, 0, send_and_collect(&k, m, widths[i % 4], i % 3 == 1 ? 11 : 0, i < 6)) != TRINE_OK) break;
    here->result[r].wrong += m == NULL || wrong_choices(&k, m) > 0 || sum_ones(&k, 10) != TRINE_OK;
    free(m);
    leave(&k);
}

/* Small integers, which are whose they are. */
static float number_of(int r, int64_t at) { return (float)((at * 7 + r * 3) % 9 - 4); }

/* Element (i, j) of all ranks' products, or of rank `only`'s rows by this rank's matrix. */
static float product_of(int ranks, int only, int r, int64_t i, int64_t j, int64_t n, int64_t k) {
    float sum = 0;
    for (int s = 0; s < ranks; s++)
        for (int64_t p = 0; p < k && (only < 0 || s == only); p++)
            sum += number_of(s, i * k + p) * number_of(only < 0 ? s : r, p * n + j);
    return sum;
}

/* Products that go by pieces of rows, of columns and of k, of a few sizes. */
static void products(int r, int ranks) {
    enum { ROWS = 70, COLUMNS = 90, DEPTH = 1100 };
    static const int64_t sizes[][3] = { { 70, 90, 5 }, { 1, 90, 3 }, { 40, 2, 9 },  { 3, 0, 4 },
                                        { 0, 5, 4 },   { 5, 7, 0 },  { 2, 3, 1100 } };
    const settings s = { .staging = 4096, .threads = 1 + r % 2, .timeout = 60 };
    rank g = enter(r, ranks, &s);
    if (note(&g, 0, g.opened) != TRINE_OK) return;
    int wrong = 0;
    float *a = calloc(MOST * 4 * DEPTH, sizeof *a), *b = calloc(4 * DEPTH, sizeof *b),
          *d = calloc(MOST * ROWS * COLUMNS, sizeof *d);
    for (size_t c = 0; c < sizeof sizes / sizeof sizes[0] && note(&g, 0, TRINE_OK) == TRINE_OK; c++) {
        const int64_t m = sizes[c][0], n = sizes[c][1], k = sizes[c][2];
        for (int64_t at = 0; at < ranks * m * k; at++) a[at] = number_of(r, at);
        for (int64_t at = 0; at < k * n; at++) b[at] = number_of(r, at);
        const trine_tensor rows = { a, TRINE_F32, 3, { ranks, m, k }, { m * k, k, 1 } },
                           out = { d, TRINE_F32, 3, { ranks, m, n }, { m * n, n, 1 } },
                           ta = trine_tensor_2d(a, TRINE_F32, m, k), tb = trine_tensor_2d(b, TRINE_F32, k, n),
                           td = trine_tensor_2d(d, TRINE_F32, m, n);
        trine_status status = trine_matmul_reduce_scatter(
            g.queue, &(trine_matmul_reduce_scatter_args){ TRINE_ARGS(matmul_reduce_scatter), g.comm, &rows, &tb, &td });
        for (int64_t at = 0; at < m * n; at++) wrong += d[at] != product_of(ranks, -1, r, r * m + at / n, at % n, n, k);
        if (status == TRINE_OK)
            status = trine_matmul_all_reduce(
                g.queue, &(trine_matmul_all_reduce_args){ TRINE_ARGS(matmul_all_reduce), g.comm, &ta, &tb, &td });
        for (int64_t at = 0; at < m * n; at++) wrong += d[at] != product_of(ranks, -1, r, at / n, at % n, n, k);
        if (status == TRINE_OK)
            status = trine_all_gather_matmul(
                g.queue, &(trine_all_gather_matmul_args){ TRINE_ARGS(all_gather_matmul), g.comm, &ta, &tb, &out });
        for (int64_t at = 0; at < ranks * m * n; at++)
            wrong += d[at] != product_of(ranks, (int)(at / n / m), r, at / n % m, at % n, n, k);
        if (note(&g, 0, status) != TRINE_OK) break;
    }
    here->result[r].wrong = wrong;
    free(a), free(b), free(d);
    leave(&g);
}

/* Ops on rows by pieces of a page: rows that are shorter than a piece, and longer. */
static void small_rows(int r, int ranks) {
    static const int64_t sizes[] = { 0, 1, 63, 64, 127, 511, 1023, 1024, 1025, 2047, 2500 };
    enum { ROWS = 3 };
    const settings s = { .staging = 4096, .threads = 1 + r % 2, .timeout = 60 };
    rank k = enter(r, ranks, &s);
    if (note(&k, 0, k.opened) != TRINE_OK) return;
    int wrong = 0;
    float *x = calloc(ROWS * N, sizeof *x), *residual = calloc(ROWS * N, sizeof *x), *y = calloc(ROWS * N, sizeof *y),
          *h = calloc(ROWS * N, sizeof *h);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t n = sizes[i];
        /* rank i has i + q rows for rank q if there are that many; there is room for 2 in all */
        int32_t counts[MOST], received[MOST];
        float norm = 0;
        const trine_tensor x1 = trine_tensor_1d(x, TRINE_F32, n), y1 = trine_tensor_1d(y, TRINE_F32, n),
                           x2 = trine_tensor_2d(x, TRINE_F32, ROWS, n), y2 = trine_tensor_2d(y, TRINE_F32, 2, n),
                           y3 = trine_tensor_2d(y, TRINE_F32, ROWS, n), h2 = trine_tensor_2d(h, TRINE_F32, ROWS, n),
                           more = trine_tensor_2d(residual, TRINE_F32, ROWS, n),
                           c = trine_tensor_1d(counts, TRINE_I32, ranks),
                           got = trine_tensor_1d(received, TRINE_I32, ranks),
                           one = trine_tensor_1d(&norm, TRINE_F32, 1);
        for (int q = 0; q < ranks; q++) counts[q] = r + q, received[q] = -1;
        for (int64_t j = 0; j < ROWS * n; j++) {
            x[j] = (float)(r * 1000 + j % 97);
            residual[j] = (float)(j % 89);
            y[j] = h[j] = -1;
        }
        trine_status status = trine_all_reduce_rms_norm(
            k.queue, &(trine_all_reduce_rms_norm_args){ TRINE_ARGS(all_reduce_rms_norm), k.comm, .x = &x2,
                                                        .residual = &more, .y = &y3, .residual_out = &h2 });
        for (int64_t row = 0; row < ROWS; row++) {
            double squares = 0;
            for (int64_t j = row * n; j < (row + 1) * n; j++) {
                const double sum = ranks * (ranks - 1) / 2 * 1000.0 + (double)(ranks * (j % 97) + j % 89);
                wrong += h[j] != (float)sum;
                squares += sum * sum;
            }
            const double rstd = 1 / sqrt(squares / (double)n + 1e-6);
            for (int64_t j = row * n; j < (row + 1) * n; j++) wrong += !(fabs(y[j] - h[j] * rstd) <= 1e-5);
        }
        if (status == TRINE_OK)
            status = trine_all_to_all_v(
                k.queue, &(trine_all_to_all_v_args){ TRINE_ARGS(all_to_all_v), k.comm, &x2, &c, &y2, &got });
        int64_t at = 0;
        for (int q = 0; q < ranks; q++) {
            int first = 0, count = 0;
            for (int to = 0; to <= r; to++) {
                first += count;
                count = q + to < ROWS - first ? q + to : ROWS - first;
            }
            wrong += received[q] != count;
            for (int64_t j = first * n; j < (first + count) * n && at < 2 * n; j++)
                wrong += y[at++] != (float)(q * 1000 + j % 97);
        }
        while (at < 2 * n) wrong += y[at++] != 0;
        if (status == TRINE_OK)
            status = trine_all_reduce_quantized(
                k.queue, &(trine_all_reduce_quantized_args){ TRINE_ARGS(all_reduce_quantized), k.comm, &x1, &y1, 32 });
        for (int64_t j = 0; j < n; j++) {
            const double sum = ranks * (ranks - 1) / 2 * 1000.0 + (double)(ranks * (j % 97));
            wrong += !(fabs(y[j] - sum) <= (ranks * 1000.0 * ranks + ranks * 97) / 127);
        }
        if (status == TRINE_OK)
            status = trine_all_reduce_norm_clip(
                k.queue,
                &(trine_all_reduce_norm_clip_args){ TRINE_ARGS(all_reduce_norm_clip), k.comm, &x1, .norm = &one });
        double squares = 0;
        for (int q = 0; q < ranks; q++)
            for (int64_t j = 0; j < n; j++)
                squares += (q * 1000.0 + (double)(j % 97)) * (q * 1000.0 + (double)(j % 97));
        wrong += norm != (float)sqrt(squares);
        if (note(&k, 0, status) != TRINE_OK) break;
    }
    here->result[r].wrong = wrong;
    free(x), free(residual), free(y), free(h);
    leave(&k);
}

/* More bytes than a launch takes. */
static void several_launches(int r, int ranks) {
    enum { LARGE = (70 << 20) / sizeof(float), PERIOD = 99991 };
    const settings s = { .threads = 1, .timeout = 60 };
    rank k = enter(r, ranks, &s);
    if (note(&k, 0, k.opened) != TRINE_OK) return;
    int wrong = 0;
    float *x = calloc(LARGE, sizeof *x), *y = calloc((size_t)ranks * LARGE, sizeof *y);
    const trine_tensor own = trine_tensor_1d(x, TRINE_F32, LARGE), all = trine_tensor_2d(y, TRINE_F32, ranks, LARGE);
    for (int i = 0; i < LARGE; i++) x[i] = (float)(i % PERIOD * 2 + r);
    trine_status status =
        done(&k, trine_all_gather(k.queue, &(trine_all_gather_args){ TRINE_ARGS(all_gather), k.comm, &own, &all }));
    for (int64_t i = 0; i < (int64_t)ranks * LARGE; i++) wrong += y[i] != (float)(i % LARGE % PERIOD * 2 + i / LARGE);
    if (status == TRINE_OK) status = sum(&k, x, x, LARGE);
    for (int i = 0; i < LARGE; i++) wrong += x[i] != (float)(i % PERIOD * 2 * ranks + ranks * (ranks - 1) / 2);
    note(&k, 0, status);
    here->result[r].wrong = wrong;
    free(x), free(y);
    leave(&k);
}

/* More rows than a device holds blocks, where some devices have more ranks than others. */
static void uneven(int r, int ranks) {
    enum { ROWS = 700, COLUMNS = 4 };
    const settings s = { .staging = 64 << 20, .timeout = 20 };
    rank k = enter(r, ranks, &s);
    if (note(&k, 0, k.opened) != TRINE_OK) return;
    float *x = calloc(ROWS * COLUMNS, sizeof *x), *y = calloc(ROWS * COLUMNS, sizeof *y),
          *h = calloc(ROWS * COLUMNS, sizeof *h);
    const trine_tensor x2 = trine_tensor_2d(x, TRINE_F32, ROWS, COLUMNS),
                       y2 = trine_tensor_2d(y, TRINE_F32, ROWS, COLUMNS),
                       h2 = trine_tensor_2d(h, TRINE_F32, ROWS, COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(r + i);
    note(&k, 0,
         done(&k, trine_all_reduce_rms_norm(
                      k.queue, &(trine_all_reduce_rms_norm_args){ TRINE_ARGS(all_reduce_rms_norm), k.comm, .x = &x2,
                                                                  .residual = &x2, .y = &y2, .residual_out = &h2 })));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        here->result[r].wrong += h[i] != (float)(ranks * (ranks - 1) / 2 + ranks * i + r + i);
    free(x), free(y), free(h);
    leave(&k);
}

/* A list's calls come in its order, and may be of other sizes. */
static void lists(int r, int ranks) {
    const settings s = { .timeout = 60 };
    rank k = enter(r, ranks, &s);
    float x[3][7], y[3][7];
    trine_tensor tx[3], ty[3];
    trine_all_reduce_args args[3];
    const void *list[3];
    for (int i = 0; i < 3; i++) {
        tx[i] = trine_tensor_1d(x[i], TRINE_F32, 5 + i), ty[i] = trine_tensor_1d(y[i], TRINE_F32, 5 + i);
        args[i] = (trine_all_reduce_args){ TRINE_ARGS(all_reduce), k.comm, &tx[i], &ty[i], 0 };
        list[i] = &args[i];
        for (int j = 0; j < 7; j++) x[i][j] = (float)(i + 1), y[i][j] = 0;
    }
    note(&k, 0, done(&k, trine_run_list(k.queue, TRINE_OP_ALL_REDUCE, list, 3)));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 5 + i; j++) here->result[r].wrong += y[i][j] != (float)((i + 1) * ranks);
    if (r == 1) args[2].kind = 9;
    note(&k, 1, done(&k, trine_run_list(k.queue, TRINE_OP_ALL_REDUCE, list, 3)));
    note(&k, 2, sum_ones(&k, 10));
    leave(&k);
}

/* -------------------------------------------------------------------------------------------------- what goes wrong */

/* Rank 1's arguments are refused, in several ways; the group goes on. */
static void refused(int r, int ranks) {
    const settings s = { .timeout = 30 };
    rank k = enter(r, ranks, &s);
    float x[8] = { 0 }, y[8];
    const trine_tensor tx = trine_tensor_1d(x, TRINE_F32, 8), ty = trine_tensor_1d(y, TRINE_F32, r == 1 ? 7 : 8);
    trine_all_reduce_args args = { TRINE_ARGS(all_reduce), k.comm, &tx, &ty, 0 };
    note(&k, 0, done(&k, trine_all_reduce(k.queue, &args)));
    args.x = r == 1 ? NULL : &tx, args.y = &tx;
    for (int again = 0; again < 4; again++) note(&k, 1, done(&k, trine_all_reduce(k.queue, &args)));
    note(&k, 2, sum_ones(&k, 100));
    leave(&k);
}

/* What the last rank calls is another op, size, type, parameter. */
static int difference;
static void differs(int r, int ranks) {
    const settings s = { .timeout = 30 };
    rank k = enter(r, ranks, &s);
    const bool other = r == ranks - 1;
    float x[64] = { 0 }, y[64];
    const trine_dtype T = difference == 2 && other ? TRINE_BF16 : TRINE_F32;
    const trine_tensor tx = trine_tensor_1d(x, T, difference == 1 && other ? 6 : 5),
                       ty = trine_tensor_1d(y, T, difference == 1 && other ? 6 : 5),
                       all = trine_tensor_2d(y, TRINE_F32, ranks, 5);
    const int32_t kind = difference == 3 && other;
    if (difference == 0 && other)
        note(
            &k, 0,
            done(&k, trine_all_gather(k.queue, &(trine_all_gather_args){ TRINE_ARGS(all_gather), k.comm, &tx, &all })));
    else
        note(&k, 0,
             done(&k, trine_all_reduce(k.queue,
                                       &(trine_all_reduce_args){ TRINE_ARGS(all_reduce), k.comm, &tx, &ty, kind })));
    const double start = now();
    note(&k, 1, sum_ones(&k, 5));
    here->result[r].wrong += now() - start > 1;
    leave(&k);
}

/* The last rank does not come to the second call. */
static void missing(int r, int ranks) {
    const settings s = { .timeout = first_device == NULL ? 0.5 : 2.5 };
    rank k = enter(r, ranks, &s);
    note(&k, 0, sum_ones(&k, N));
    if (r < ranks - 1) {
        note(&k, 1, sum_ones(&k, N));
        atomic_fetch_add(&here->go, 1);
    }
    while (r == ranks - 1 && atomic_load(&here->go) < ranks - 1) pause_ms(5);
    leave(&k);
}

/* It closes its communicator instead, or dies: before it calls, or amid a call of many pieces. */
static void closes(int r, int ranks) {
    const settings s = { .timeout = 30 };
    rank k = enter(r, ranks, &s);
    note(&k, 0, sum_ones(&k, N));
    if (r < ranks - 1) note(&k, 1, sum_ones(&k, N));
    leave(&k);
}

static void dies_before(int r, int ranks) {
    const settings s = { .timeout = 30 };
    rank k = enter(r, ranks, &s);
    note(&k, 0, sum_ones(&k, N));
    if (r == 1) raise(SIGKILL);
    note(&k, 1, sum_ones(&k, N));
    leave(&k);
}

static void *kill_soon(void *context) {
    (void)context;
    pause_ms(100);
    raise(SIGKILL);
    return NULL;
}

static void dies_within(int r, int ranks) {
    enum { LARGE = 1 << 22 };
    const settings s = { .timeout = 30, .staging = 4096 };
    rank k = enter(r, ranks, &s);
    float *x = calloc(LARGE, sizeof *x);
    pthread_t killer;
    if (r == 1) pthread_create(&killer, NULL, kill_soon, NULL);
    trine_status status = TRINE_OK;
    while (status == TRINE_OK) status = sum(&k, x, x, LARGE);
    note(&k, 1, status);
    free(x);
    leave(&k);
}

static void *abort_soon(void *context) {
    pause_ms(100);
    trine_comm_abort(context);
    return NULL;
}

/* All wait for the last rank, which aborts by another thread; and then open a new group. */
static void aborts(int r, int ranks) {
    const settings s = { .timeout = 30 };
    rank k = enter(r, ranks, &s);
    const double start = now();
    if (r == 0) {
        pthread_t other;
        pthread_create(&other, NULL, abort_soon, k.comm);
        note(&k, 0, sum_ones(&k, N));
        pthread_join(other, NULL);
    } else if (r < ranks - 1) {
        note(&k, 0, sum_ones(&k, N));
    } else {
        pause_ms(300);
        note(&k, 0, sum_ones(&k, N));
    }
    here->result[r].wrong += now() - start > 5;
    note(&k, 1, sum_ones(&k, N));
    leave(&k);
    k = enter(r, ranks, &s);
    note(&k, 2, k.opened == TRINE_OK ? sum_ones(&k, N) : k.opened);
    leave(&k);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* What one rank does otherwise when the group is opened. */
static int oddity;
static void flip_magic(char *record) { record[0] ^= 1; }
static void flip_hash(char *record) { record[8] ^= 1; }

static void odd(int r, int ranks) {
    const bool one = r == ranks - 1;
    struct rlimit before, few = { 0 };
    rank k = { .rank = r, .ranks = ranks, .party = { .rank = r } };
    trine_comm_options options = { .struct_size = sizeof options, .timeout = 30 };
    const trine_bootstrap bootstrap = { gather, &k.party };
    int said = r, of = ranks;
    trine_queue_open(lib, device_of(r), NULL, &k.queue);
    if (one && oddity == 0) k.party.tamper = flip_magic;
    if (one && oddity == 1) k.party.tamper = flip_hash;
    if (one && oddity == 2) said = 0;
    if (one && oddity == 3) options.staging_bytes = 8192;
    if (one && oddity == 4) options.timeout = -1;
    if (oddity == 5) k.party.fail_at = 1;
    if (one && oddity == 6) of = ranks + 1;
    getrlimit(RLIMIT_NOFILE, &before);
    few.rlim_max = before.rlim_max;
    if (one && oddity == 7) setrlimit(RLIMIT_NOFILE, &few);
    note(&k, 0, trine_comm_open(k.queue, said, of, &bootstrap, &options, &k.comm));
    if (one && oddity == 7) setrlimit(RLIMIT_NOFILE, &before);
    here->result[r].wrong += k.comm != NULL;
    leave(&k);
}

static void test_opening(void) {
    const struct {
        const char *words;
        trine_status own;
    } expected[] = {
        { "rank 2 is not of trine_comm_open()", TRINE_ERR_COMM },
        { "rank 2 is trine 0", TRINE_ERR_COMM },
        { "two ranks say that they are rank 0 of 3", TRINE_ERR_COMM },
        { "staging_bytes of rank 2 is 8192, of rank 0 0", TRINE_ERR_COMM },
        { "timeout is -1", TRINE_ERR_ARGUMENT },
        { "the bootstrap's all_gather returned 7", TRINE_ERR_COMM },
        { " ranks, this one ", TRINE_ERR_COMM },
        { first_device == NULL ? "no shared memory" : "out of memory", TRINE_ERR_MEMORY },
    };
    for (oddity = 0; oddity < (int)(sizeof expected / sizeof expected[0]); oddity++) {
        const int ended = in_processes(3, odd, -1);
        const bool good = told(0, 0, TRINE_ERR_COMM, expected[oddity].words) &&
                          told(1, 0, TRINE_ERR_COMM, expected[oddity].words) &&
                          told(2, 0, expected[oddity].own, expected[oddity].words);
        tap(ended == 3 && good && wrong_of(3) == 0, "no rank opens: %s", here->result[0].message[0]);
    }
}

/* ------------------------------------------------------------------------------------------------------------ tests */

static void test_calls(void) {
    in_threads(4, refused);
    bool good = told(1, 0, TRINE_ERR_ARGUMENT, "all_reduce: y has shape [7], but n = 8 from x") &&
                told(1, 1, TRINE_ERR_ARGUMENT, "all_reduce: x is NULL") && all_told(4, 2, TRINE_OK, NULL);
    for (int r = 0; r < 4; r++)
        good &= r == 1 || (told(r, 0, TRINE_ERR_COMM, "all_reduce: rank 1 was refused: all_reduce: y has shape [7]") &&
                           told(r, 1, TRINE_ERR_COMM, "rank 1 was refused: all_reduce: x is NULL"));
    tap(good && wrong_of(4) == 0, "a rank is refused: %s", here->result[0].message[0]);

    in_threads(3, lists);
    good = all_told(3, 0, TRINE_OK, NULL) && told(0, 1, TRINE_ERR_COMM, "rank 1 was refused: call 2 of the list") &&
           told(1, 1, TRINE_ERR_ARGUMENT, "call 2 of the list") && all_told(3, 2, TRINE_OK, NULL);
    tap(good && wrong_of(3) == 0, "lists: %s", here->result[0].message[1]);

    static const char *const words[] = { "rank 2 calls all_gather, rank 0 all_reduce", "rank 2 has n = 6, rank 0 5",
                                         "rank 2 has T = bf16, rank 0 f32", "rank 2 has kind = 1, rank 0 0" };
    for (difference = 0; difference < 4; difference++) {
        in_threads(3, differs);
        good = told(0, 0, TRINE_ERR_COMM, words[difference]) && all_told(3, 0, TRINE_ERR_COMM, "rank 2") &&
               all_told(3, 1, TRINE_ERR_COMM, "the group is broken: ");
        tap(good && wrong_of(3) == 0, "another call: %s", here->result[0].message[0]);
    }
    const int ended = in_processes(3, differs, -1);
    tap(ended == 3 && all_told(3, 0, TRINE_OK, NULL), "processes that agree are not refused");
}

static void test_losses(void) {
    in_threads(3, missing);
    tap(told(0, 1, TRINE_ERR_COMM, "all_reduce: rank 2 of 3 did not come within 0.5 s") &&
            told(1, 1, TRINE_ERR_COMM, "rank 2 of 3 did not come within 0.5 s") && wrong_of(3) == 0,
        "a rank does not come: %s", here->result[0].message[1]);
    in_threads(3, closes);
    tap(told(0, 1, TRINE_ERR_COMM, "rank 2 has closed its communicator") &&
            told(1, 1, TRINE_ERR_COMM, "rank 2 has closed"),
        "a rank closes: %s", here->result[1].message[1]);
    int ended = in_processes(3, dies_before, 1);
    tap(ended == 3 && told(0, 1, TRINE_ERR_COMM, "rank 1 (process ") && told(2, 1, TRINE_ERR_COMM, ") has ended"),
        "a rank dies before a call: %s", here->result[0].message[1]);
    ended = in_processes(4, dies_within, 1);
    tap(ended == 4 && told(0, 1, TRINE_ERR_COMM, "rank 1 (process ") && told(2, 1, TRINE_ERR_COMM, ") has ended") &&
            told(3, 1, TRINE_ERR_COMM, "rank 1"),
        "a rank dies in a call: %s", here->result[2].message[1]);
    in_threads(3, aborts);
    tap(all_told(3, 0, TRINE_ERR_COMM, "rank 0 aborted the group") &&
            all_told(3, 1, TRINE_ERR_COMM, "rank 0 aborted") && all_told(3, 2, TRINE_OK, NULL) && wrong_of(3) == 0,
        "a rank aborts, and a new group is opened: %s", here->result[1].message[0]);
}

/* A call without a communicator, with more ranks than cores; and a child of its process. */
static void test_whole(void) {
    enum { RANKS = 8 };
    float x[RANKS * 5], y[RANKS * 5];
    trine_queue *queue;
    for (int i = 0; i < RANKS * 5; i++) x[i] = (float)i;
    const trine_tensor tx = trine_tensor_2d(x, TRINE_F32, RANKS, 5), ty = trine_tensor_2d(y, TRINE_F32, RANKS, 5);
    const trine_all_reduce_args args = { TRINE_ARGS(all_reduce), .x = &tx, .y = &ty };
    const trine_broadcast_args odd_root = { TRINE_ARGS(broadcast), .x = &tx, .y = &ty, .root = RANKS };
    trine_queue_open(lib, 0, NULL, &queue);
    tap(trine_all_reduce(queue, &args) == TRINE_OK && y[0] == 140 && y[RANKS * 5 - 1] == 172, "a call of all ranks");
    tap(trine_broadcast(queue, &odd_root) == TRINE_ERR_ARGUMENT &&
            strstr(trine_error_message(), "broadcast: root is 8, but must be less than ranks = 8"),
        "a root that is no rank: %s", trine_error_message());
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        memset(y, 0, sizeof y);
        const bool good = trine_all_reduce(queue, &args) == TRINE_OK && y[0] == 140;
        trine_queue_close(queue);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a call of all ranks in a child");
    tap(trine_all_reduce(queue, &args) == TRINE_OK, "and then in its parent");
    tap(trine_tune_call(queue, TRINE_OP_ALL_REDUCE, &args) == TRINE_ERR_UNSUPPORTED, "no tuning: %s",
        trine_error_message());
    trine_queue_close(queue);
}

/* One step and two give the same bits, and all ranks have them. */
static void test_steps(void) {
    enum { RANKS = 4, ROWS = 5, LENGTH = 3001, ALL = ROWS * LENGTH };
    static const char *const ways[] = { "_one_step", "_two_steps" };
    float *x = calloc(RANKS * ALL, sizeof *x), *residual = calloc(RANKS * ALL, sizeof *x),
          *y[2] = { calloc(RANKS * ALL, sizeof *x), calloc(RANKS * ALL, sizeof *x) };
    for (int i = 0; i < RANKS * ALL; i++)
        x[i] = (float)(i * 7919LL % 1009) / 997, residual[i] = (float)(i % ALL * 613LL % 811) / 797;
    const trine_tensor tx = trine_tensor_3d(x, TRINE_F32, RANKS, ROWS, LENGTH),
                       more = trine_tensor_3d(residual, TRINE_F32, RANKS, ROWS, LENGTH);
    bool good = true;
    for (int i = 0; i < 2; i++) {
        const trine_tensor ty = trine_tensor_3d(y[i], TRINE_F32, RANKS, ROWS, LENGTH);
        const trine_all_reduce_rms_norm_args args = { TRINE_ARGS(all_reduce_rms_norm), .x = &tx, .residual = &more,
                                                      .y = &ty };
        static trine_explanation told;
        trine_queue *queue;
        char name[64] = "";
        trine_queue_open(lib, 0, NULL, &queue);
        good &= trine_explain(queue, TRINE_OP_ALL_REDUCE_RMS_NORM, &args, &told) == TRINE_OK;
        for (int k = 0; good && k < told.count; k++)
            if (strstr(told.candidate[k].kernel, ways[i]) && name[0] == 0)
                snprintf(name, sizeof name, "%s", told.candidate[k].kernel);
        trine_queue_close(queue);
        const trine_queue_options options = { .struct_size = sizeof options, .kernel = name };
        good &= name[0] != 0 && trine_queue_open(lib, 0, &options, &queue) == TRINE_OK;
        if (!good) break;
        good &= trine_all_reduce_rms_norm(queue, &args) == TRINE_OK;
        trine_queue_close(queue);
    }
    tap(good && memcmp(y[0], y[1], RANKS * ALL * sizeof(float)) == 0, "one step and two give the same bits");
    for (int r = 1; r < RANKS; r++) good &= memcmp(y[0], y[0] + r * ALL, ALL * sizeof(float)) == 0;
    tap(good && y[0][0] != 0, "and all ranks have them");
    free(x), free(residual), free(y[0]), free(y[1]);
}

/* Labels of a row that are out of range, or not the same on all ranks, fail on all, and the next call does not. */
static void labels_differ(int r, int ranks) {
    const settings s = { .timeout = 10 };
    rank k = enter(r, ranks, &s);
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[2];
    int64_t labels[2] = { 5, r == 1 ? 3 : 2 };
    const trine_tensor logits = trine_tensor_2d(x, TRINE_F32, 2, 3), loss = trine_tensor_1d(y, TRINE_F32, 2),
                       given = trine_tensor_1d(labels, TRINE_I64, 2);
    const trine_vocab_parallel_cross_entropy_args args = { TRINE_ARGS(vocab_parallel_cross_entropy), k.comm, &logits,
                                                           &given, &loss };
    here->result[r].wrong += trine_vocab_parallel_cross_entropy(k.queue, &args) != TRINE_ERR_ARGUMENT ||
                             !strstr(trine_error_message(), "labels[1] is 2 of rank 0, but 3 of rank 1");
    labels[1] = r == 2 ? 9 : 2;
    here->result[r].wrong += trine_vocab_parallel_cross_entropy(k.queue, &args) != TRINE_ERR_ARGUMENT ||
                             !strstr(trine_error_message(), "labels[1] = 9 of rank 2 is neither in [0, ranks v = 9)");
    labels[1] = 2;
    here->result[r].wrong += trine_vocab_parallel_cross_entropy(k.queue, &args) != TRINE_OK;
    note(&k, 0, sum_ones(&k, 4));
    leave(&k);
}

enum { PARAMETERS = 5000, PART = 1700, LONGEST = 3 * PART };

static void fill_numbers(float *x, int count, int r) {
    for (int i = 0; i < count; i++) x[i] = (float)((i + 1) * (7919LL + 31 * r) % 1009 - 500) / 997;
}

/* A step has the bits of reduce_scatter, all_reduce_norm_clip, adamw and all_gather one after the other. */
static void steps_alike(int r, int ranks) {
    const settings s = { .timeout = 10 };
    rank k = enter(r, ranks, &s);
    static float grad[3][LONGEST], copy[3][2][LONGEST], state[3][2][3][PART], sum[3][PART];
    float norm[2], coefficient;
    fill_numbers(grad[r], PARAMETERS, r);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) fill_numbers(state[r][i][j], PART, r + 3 * j);
    for (int i = 0; i < PART; i++) state[r][0][2][i] = state[r][1][2][i] = fabsf(state[r][0][2][i]);
    trine_tensor t[2][3];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) t[i][j] = trine_tensor_1d(state[r][i][j], TRINE_F32, PART);
    const trine_tensor g = trine_tensor_1d(grad[r], TRINE_F32, PARAMETERS),
                       all = trine_tensor_1d(copy[r][0], TRINE_F32, PARAMETERS),
                       n0 = trine_tensor_1d(&norm[0], TRINE_F32, 1), n1 = trine_tensor_1d(&norm[1], TRINE_F32, 1),
                       c = trine_tensor_1d(&coefficient, TRINE_F32, 1), x = trine_tensor_1d(sum[r], TRINE_F32, PART),
                       rows = trine_tensor_2d(grad[r], TRINE_F32, ranks, PART),
                       gathered = trine_tensor_2d(copy[r][1], TRINE_F32, ranks, PART);
    const trine_adamw_sharded_args whole = { TRINE_ARGS(adamw_sharded),
                                             .comm = k.comm,
                                             .param = &t[0][0],
                                             .grad = &g,
                                             .m = &t[0][1],
                                             .v = &t[0][2],
                                             .copy = &all,
                                             .norm = &n0,
                                             .lr = 0.01f,
                                             .weight_decay = 0.1f,
                                             .max_norm = 1,
                                             .step = 3 };
    const trine_reduce_scatter_args first = { TRINE_ARGS(reduce_scatter), k.comm, &rows, &x, TRINE_RANKS_SUM };
    const trine_all_reduce_norm_clip_args second = {
        TRINE_ARGS(all_reduce_norm_clip), .comm = k.comm, .x = &x, .norm = &n1, .coefficient = &c, .max_norm = 1
    };
    const trine_adamw_args third = { TRINE_ARGS(adamw), .param = &t[1][0],    .grad = &x,
                                     .m = &t[1][1],     .v = &t[1][2],        .grad_scale = &c,
                                     .lr = 0.01f,       .weight_decay = 0.1f, .step = 3 };
    const trine_all_gather_args fourth = { TRINE_ARGS(all_gather), k.comm, &t[1][0], &gathered };
    const int own = r + 1 < ranks ? PART : PARAMETERS - r * PART;
    here->result[r].wrong +=
        trine_adamw_sharded(k.queue, &whole) != TRINE_OK || trine_reduce_scatter(k.queue, &first) != TRINE_OK ||
        trine_all_reduce_norm_clip(k.queue, &second) != TRINE_OK || trine_adamw(k.queue, &third) != TRINE_OK ||
        trine_all_gather(k.queue, &fourth) != TRINE_OK || norm[0] != norm[1] || !(norm[0] > 1) ||
        memcmp(copy[r][0], copy[r][1], PARAMETERS * sizeof(float)) != 0;
    for (int j = 0; j < 3; j++)
        here->result[r].wrong += memcmp(state[r][0][j], state[r][1][j], (size_t)own * sizeof(float)) != 0;
    note(&k, 0, sum_ones(&k, 4));
    leave(&k);
}

/* A step_tensor of one rank that is no number of a step fails on all, and nothing is written. */
static void step_of_none(int r, int ranks) {
    const settings s = { .timeout = 10 };
    rank k = enter(r, ranks, &s);
    float grad[5] = { 1, 2, 3, 4, 5 }, copy[5] = { 0 }, param[2] = { 1, 2 }, m[2] = { 0 }, v[2] = { 0 };
    int64_t number = r == 1 ? 0 : 3;
    const trine_tensor tg = trine_tensor_1d(grad, TRINE_F32, 5), tc = trine_tensor_1d(copy, TRINE_F32, 5),
                       tp = trine_tensor_1d(param, TRINE_F32, 2), tm = trine_tensor_1d(m, TRINE_F32, 2),
                       tv = trine_tensor_1d(v, TRINE_F32, 2), tn = trine_tensor_1d(&number, TRINE_I64, 1);
    const trine_adamw_sharded_args args = {
        TRINE_ARGS(adamw_sharded), .comm = k.comm, .param = &tp, .grad = &tg, .m = &tm, .v = &tv, .copy = &tc,
        .step_tensor = &tn,        .lr = 1
    };
    here->result[r].wrong += trine_adamw_sharded(k.queue, &args) != TRINE_ERR_ARGUMENT ||
                             !strstr(trine_error_message(), "step_tensor of rank 1 is 0, but must be at least 1") ||
                             param[0] != 1 || m[0] != 0 || copy[4] != 0;
    number = 3;
    here->result[r].wrong += trine_adamw_sharded(k.queue, &args) != TRINE_OK || copy[0] == 0 || copy[4] == 0;
    note(&k, 0, sum_ones(&k, 4));
    leave(&k);
}

static void stale(int r, int ranks) {
    const settings s = { .timeout = 10 };
    rank k = enter(r, ranks, &s);
    float x[4] = { 0 };
    const trine_tensor t = trine_tensor_1d(x, TRINE_F32, 4);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        const trine_status status =
            trine_all_reduce(k.queue, &(trine_all_reduce_args){ TRINE_ARGS(all_reduce), k.comm, &t, &t, 0 });
        trine_comm_close(k.comm);
        _exit(status == TRINE_ERR_ARGUMENT ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    here->result[r].wrong += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    here->result[r].wrong += trine_comm_rank(k.comm) != r || trine_comm_ranks(k.comm) != ranks;
    note(&k, 0, sum_ones(&k, 4));
    leave(&k);
}

/* Rank 0 aborts its group while it waits for the others, which it alone is told of; and then all open a new one. */
static void aborts_alone(int r, int ranks) {
    const settings s = { .timeout = 60 };
    rank k = enter(r, ranks, &s);
    if (r == 0) {
        pthread_t other;
        pthread_create(&other, NULL, abort_soon, k.comm);
        note(&k, 0, sum_ones(&k, N));
        note(&k, 1, sum_ones(&k, N));
        pthread_join(other, NULL);
    }
    leave(&k);
    k = enter(r, ranks, &s);
    note(&k, 2, k.opened == TRINE_OK ? sum_ones(&k, N) : k.opened);
    leave(&k);
}

static void test_calls_on_devices(void) {
    in_threads(4, refused);
    bool good = told(1, 0, TRINE_ERR_ARGUMENT, "all_reduce: y has shape [7], but n = 8 from x") &&
                all_told(4, 2, TRINE_ERR_COMM, "the group is broken: all_reduce: ");
    for (int r = 0; r < 4; r++) good &= r == 1 || told(r, 0, TRINE_ERR_COMM, "all_reduce: rank 1 was refused a call");
    tap(good, "a rank is refused: %s", here->result[0].message[0]);

    in_threads(3, lists);
    good = all_told(3, 0, TRINE_OK, NULL) && told(0, 1, TRINE_ERR_COMM, "rank 1 was refused a call") &&
           told(1, 1, TRINE_ERR_ARGUMENT, "call 2 of the list");
    tap(good && wrong_of(3) == 0, "lists: %s", here->result[0].message[1]);

    for (difference = 0; difference < 4; difference++) {
        in_threads(3, differs);
        good = told(0, 0, TRINE_ERR_COMM, "rank 2 calls another op, or this with other sizes, types or parameters") &&
               all_told(3, 0, TRINE_ERR_COMM, "calls another op, or this with") &&
               all_told(3, 1, TRINE_ERR_COMM, "the group is broken: ");
        tap(good && wrong_of(3) == 0, "another call: %s", here->result[0].message[0]);
    }
    in_threads(3, missing);
    tap(told(0, 1, TRINE_ERR_COMM, "all_reduce: rank 2 of 3 did not come within 2.5 s") &&
            told(1, 1, TRINE_ERR_COMM, "rank 2 of 3 did not come within 2.5 s") && wrong_of(3) == 0,
        "a rank does not come: %s", here->result[0].message[1]);
    in_threads(3, aborts_alone);
    tap(told(0, 0, TRINE_ERR_COMM, "rank 0 aborted the group") && told(0, 1, TRINE_ERR_COMM, "rank 0 aborted") &&
            all_told(3, 2, TRINE_OK, NULL) && wrong_of(3) == 0,
        "a rank aborts, and a new group is opened: %s", here->result[0].message[0]);
}

/* Only opens. */
static size_t staging;
static void opens(int r, int ranks) {
    const settings s = { .timeout = 60, .staging = staging };
    rank k = enter(r, ranks, &s);
    here->result[r].status[0] = k.opened;
    snprintf(here->result[r].message[0], sizeof here->result[r].message[0], "%s", k.message);
    if (k.opened == TRINE_OK) note(&k, 1, sum_ones(&k, 10));
    leave(&k);
}

/* One rank is told of the driver's failure, the others of that rank; another group opens then. */
static bool fails_to_open(const char *entry) {
    const int ranks = 3;
    char words[64];
    int own = 0, of_others = 0;
    snprintf(words, sizeof words, "%s: unknown error", entry);
    for (int r = 0; r < ranks; r++) {
        const result *q = &here->result[r];
        own += q->status[0] == TRINE_ERR_DEVICE && strstr(q->message[0], words) != NULL;
        of_others += q->status[0] == TRINE_ERR_COMM && strstr(q->message[0], words) != NULL;
    }
    return own == 1 && of_others == ranks - 1;
}

static void test_failures(void) {
    static const char *const entries[] = { "hipExtMallocWithFlags",  "hipMemsetD8Async",
                                           "hipIpcGetMemHandle",     "hipDeviceGetByPCIBusId",
                                           "hipDeviceCanAccessPeer", "hipDeviceEnablePeerAccess" };
    void (*fail)(const char *failures);
    *(void **)&fail = dlsym(RTLD_DEFAULT, "cdna_hip_fail");
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s:1:999", entries[i]);
        staging = (i + 2) << 20; /* of no group before */
        fail(text);
        in_threads(3, opens);
        const bool told_all = fails_to_open(entries[i]);
        fail(NULL);
        in_threads(3, opens);
        tap(told_all && all_told(3, 0, TRINE_OK, NULL) && all_told(3, 1, TRINE_OK, NULL) && wrong_of(3) == 0,
            "%s fails, and then does not", entries[i]);
    }
}

/* Before this process has an open driver, which no child may use. */
static void test_device_processes(void) {
    int ended = in_processes(4, small_pieces, -1);
    tap(ended == 4 && all_told(4, 0, TRINE_OK, NULL) && wrong_of(4) == 0, "all ops by small pieces, 4 processes");
    test_opening();
    difference = -1;
    ended = in_processes(3, differs, -1);
    tap(ended == 3 && all_told(3, 0, TRINE_OK, NULL) && all_told(3, 1, TRINE_OK, NULL), "processes that agree");
    failing = "hipIpcOpenMemHandle:2:999";
    ended = in_processes(3, opens, -1);
    tap(ended == 3 && fails_to_open("hipIpcOpenMemHandle"), "hipIpcOpenMemHandle fails");
    failing = NULL;
    ended = in_processes(3, dies_before, 1);
    tap(ended == 3 && told(0, 1, TRINE_ERR_COMM, "rank 1 (process ") && told(2, 1, TRINE_ERR_COMM, ") has ended"),
        "a rank dies before a call: %s", here->result[0].message[1]);
    ended = in_processes(3, dies_within, 1);
    tap(ended == 3 && told(0, 1, TRINE_ERR_COMM, "rank 1 (process ") && told(2, 1, TRINE_ERR_COMM, ") has ended"),
        "a rank dies in a call: %s", here->result[2].message[1]);
}

/* The stand-in for NVIDIA's driver shares no memory between processes. */
static int test_devices(void) {
    if (strncmp(first_device, "cuda", 4) != 0) test_device_processes();
    if (trine_open(NULL, &lib) != TRINE_OK) return 1;
    if (device_of(0) == 0) {
        tap(false, "there is no %s", first_device);
        return tap_end();
    }
    for (int ranks = 1; ranks <= MOST; ranks += ranks < 3 ? 1 : 5) {
        in_threads(ranks, small_pieces);
        tap(all_told(ranks, 0, TRINE_OK, NULL) && wrong_of(ranks) == 0, "all ops by small pieces, %d threads", ranks);
        in_threads(ranks, any_bits);
        tap(all_told(ranks, 0, TRINE_OK, NULL) && wrong_of(ranks) == 0, "copies of any bits, %d threads", ranks);
    }
    in_threads(4, uneven);
    tap(all_told(4, 0, TRINE_OK, NULL) && wrong_of(4) == 0, "4 ranks of %d devices", devices);
    if (strncmp(first_device, "cuda", 4) == 0) {
        in_threads(2, several_launches);
        tap(all_told(2, 0, TRINE_OK, NULL) && wrong_of(2) == 0, "calls of several launches");
    }
    test_calls_on_devices();
    if (devices > 1) test_failures();
    trine_close(lib);
    const stub_settings *stub = dlsym(RTLD_DEFAULT, STUB_SETTINGS);
    if (stub != NULL) tap(stub->uncut == 0, "no launch has an SM's memory cut anew: %d do", stub->uncut);
    return tap_end();
}

int main(int count, char **argument) {
    alarm(240);
    if (count > 1) first_device = argument[1];
    if (count > 2) devices = atoi(argument[2]);
    here = mmap(NULL, sizeof *here, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (here == MAP_FAILED) return 1;
    if (first_device != NULL) return test_devices();
    /* Processes first: they are made before this one has threads. */
    int ended = in_processes(4, small_pieces, -1);
    tap(ended == 4 && all_told(4, 0, TRINE_OK, NULL) && wrong_of(4) == 0, "all ops by small pieces, 4 processes");
    ended = in_processes(8, small_pieces, -1);
    tap(ended == 8 && all_told(8, 0, TRINE_OK, NULL) && wrong_of(8) == 0, "the same, 8 processes");
    ended = in_processes(4, any_bits, -1);
    tap(ended == 4 && all_told(4, 0, TRINE_OK, NULL) && wrong_of(4) == 0, "copies of any bits, 4 processes");
    ended = in_processes(4, experts, -1);
    tap(ended == 4 && all_told(4, 0, TRINE_OK, NULL) && wrong_of(4) == 0,
        "tokens to experts and back by small pieces, 4 processes");
    ended = in_processes(3, products, -1);
    tap(ended == 3 && all_told(3, 0, TRINE_OK, NULL) && wrong_of(3) == 0, "products by small pieces, 3 processes");
    ended = in_processes(3, small_rows, -1);
    tap(ended == 3 && all_told(3, 0, TRINE_OK, NULL) && wrong_of(3) == 0, "ops on rows by small pieces, 3 processes");
    test_opening();

    if (trine_open(NULL, &lib) != TRINE_OK) return 1;
    in_threads(1, small_pieces);
    tap(all_told(1, 0, TRINE_OK, NULL) && wrong_of(1) == 0, "all ops by small pieces, alone");
    const int files = count_entries("/proc/self/fd");
    for (int ranks = 2; ranks <= MOST; ranks += 3) {
        in_threads(ranks, small_pieces);
        tap(all_told(ranks, 0, TRINE_OK, NULL) && wrong_of(ranks) == 0, "all ops by small pieces, %d threads", ranks);
        in_threads(ranks, experts);
        tap(all_told(ranks, 0, TRINE_OK, NULL) && wrong_of(ranks) == 0, "tokens to experts and back, %d threads",
            ranks);
        in_threads(ranks, products);
        tap(all_told(ranks, 0, TRINE_OK, NULL) && wrong_of(ranks) == 0, "products by small pieces, %d threads", ranks);
    }
    for (int ranks = 1; ranks <= MOST; ranks += 7) {
        in_threads(ranks, small_rows);
        tap(all_told(ranks, 0, TRINE_OK, NULL) && wrong_of(ranks) == 0, "ops on rows by small pieces, %d threads",
            ranks);
    }
    in_threads(2, stale);
    tap(all_told(2, 0, TRINE_OK, NULL) && wrong_of(2) == 0, "a child has no part in its parent's group");
    in_threads(3, labels_differ);
    tap(all_told(3, 0, TRINE_OK, NULL) && wrong_of(3) == 0, "labels that differ, or are out of range, fail on all");
    in_threads(3, steps_alike);
    tap(all_told(3, 0, TRINE_OK, NULL) && wrong_of(3) == 0, "adamw_sharded has the bits of its parts");
    in_threads(3, step_of_none);
    tap(all_told(3, 0, TRINE_OK, NULL) && wrong_of(3) == 0, "a step_tensor of 0 on one rank fails on all");
    test_calls();
    test_losses();
    test_whole();
    test_steps();
    tap(count_entries("/proc/self/fd") == files, "no file is left open");
    tap(count_mappings() == 0, "no rank's memory is left mapped");
    trine_close(lib);
    return tap_end();
}
