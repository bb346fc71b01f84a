/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the example over ranks, each a process: the losses of one rank, states in parts, checkpoints that go on with
 * other ranks, and ranks that fail. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "ranks.h"
#include "tests/tap.h"

enum { MOST = 4, HALF = CURVE / 2, DIES = 7 };

/* A run, and what it leaves; in memory that all processes have. */
typedef struct run {
    const gpt_data *data;
    gpt_config config;
    int ranks, tensors, parts; /* 0 ranks: without a group */
    const char *from, *save;
    int64_t last; /* step */
    double part;  /* of each parameter, by which it is changed before each step */
    int dies;     /* the rank that ends in the middle, or -1 */
    double product, sum;
    float losses[CURVE];
    int64_t kept[MOST], parameters;
    uint64_t weights[MOST]; /* a hash */
    char error[MOST][512];
} run;

static bool train(run *r, gpt_trainer *t, int rank) {
    while (t->step < r->last) {
        if (rank == r->dies && t->step == HALF) _exit(DIES);
        if (!gpt_trainer_step(t)) return false;
    }
    return gpt_trainer_wait(t) && (!r->save || gpt_trainer_save(t, r->save));
}

static bool leave(run *r, const gpt_trainer *t, int rank) {
    const gpt_model *m = &t->model;
    const size_t bytes = (size_t)m->parameters * trine_dtype_size(m->type);
    void *weights = malloc(bytes);
    const bool good = weights && trine_memory_read(m->queue, weights, m->weight, bytes) == TRINE_OK;
    if (good) r->weights[rank] = gpt_hash(GPT_HASH_START, weights, bytes);
    if (rank == 0) memcpy(r->losses, t->history.train, (size_t)t->history.count * sizeof(float));
    r->kept[rank] = m->kept;
    r->parameters = m->parameters;
    free(weights);
    return good;
}

static bool run_with(run *r, trine_queue *queue, const gpt_group *group, int rank) {
    gpt_trainer t = { 0 };
    gpt_checkpoint from = { 0 };
    gpt_config config = r->config;
    char error[256] = "";
    if (r->part > 0) return curve_of(queue, r->data, &config, r->part, r->losses);
    if (r->ranks) config.group = group;
    bool good = (!r->from || gpt_checkpoint_load(&from, r->from, error, sizeof error)) &&
                gpt_trainer_open(&t, queue, &config, &long_schedule, r->data, 5, r->from ? &from : NULL) &&
                train(r, &t, rank) && leave(r, &t, rank);
    if (!good) snprintf(r->error[rank], sizeof r->error[rank], "%s%s", t.error, error);
    gpt_trainer_close(&t);
    gpt_checkpoint_free(&from);
    return good;
}

static int live(void *context, int rank, const trine_bootstrap *bootstrap) {
    run *r = context;
    trine *lib = NULL;
    trine_queue *queue = NULL;
    gpt_group group = { .rank = rank, .ranks = r->ranks, .tensors = r->tensors, .parts = r->parts };
    const trine_queue_options one = { sizeof one, .threads = 1 };
    const trine_comm_options options = { sizeof options, .timeout = 60 };
    const bool good =
        trine_open(NULL, &lib) == TRINE_OK && trine_queue_open(lib, 0, &one, &queue) == TRINE_OK &&
        coefficients(queue, &r->config, &r->product, &r->sum) &&
        (!r->ranks || trine_comm_open(queue, rank, r->ranks, bootstrap, &options, &group.comm) == TRINE_OK) &&
        run_with(r, queue, &group, rank);
    if (!good && !*r->error[rank]) snprintf(r->error[rank], sizeof r->error[rank], "%s", trine_error_message());
    trine_comm_close(group.comm);
    trine_queue_close(queue);
    trine_close(lib);
    return !good;
}

static int start(run *r) {
    const int status = gpt_ranks_run(r->ranks ? r->ranks : 1, live, r);
    for (int i = 0; i < MOST; i++)
        if (*r->error[i]) printf("# rank %d: %s\n", i, r->error[i]);
    return status;
}

static run *prepare(run *r, int ranks, int tensors, int parts, const char *from, const char *save) {
    const run fresh = { .data = r->data,
                        .config = r->config,
                        .ranks = ranks,
                        .tensors = tensors,
                        .parts = parts,
                        .from = from,
                        .save = save,
                        .last = CURVE,
                        .dies = -1 };
    *r = fresh;
    return r;
}

/* The curve of one rank, what the bounds allow it, and the bound of a mean of losses. */
typedef struct curves {
    float here[CURVE], perturbed[CURVE];
    double sum;
} curves;

static void check_curve(const curves *c, run *r, const char *what) {
    double most = 0, worst = INFINITY;
    if (start(r) == 0) worst = off_by(c->here, r->losses, c->perturbed, c->sum, &most);
    tap(worst <= 1, "%s: losses off by up to %.1e, %.2f of what the bounds allow", what, most, worst);
}

static bool same_weights(const run *r) {
    bool same = true;
    for (int i = 1; i < r->ranks; i++) same &= r->weights[i] == r->weights[0];
    return same;
}

static void check_data(const curves *c, run *r) {
    check_curve(c, prepare(r, 1, 0, 0, NULL, NULL), "a group of one rank");
    tap(!memcmp(c->here, r->losses, sizeof c->here), "which are the very same bits");
    check_curve(c, prepare(r, 4, 0, 0, NULL, NULL), "four ranks with a sequence each");
    tap(same_weights(r), "all have the same weights");
    check_curve(c, prepare(r, 4, 0, 1, NULL, "straight"), "four ranks with a part of the state each");
    int64_t kept = 0;
    for (int i = 0; i < 4; i++) kept += r->kept[i];
    tap(same_weights(r) && kept == r->parameters && r->kept[0] <= r->parameters / 4 + 64,
        "all have the same weights, and the state of %lld parameters of %lld", (long long)r->kept[0],
        (long long)r->parameters);
    check_curve(c, prepare(r, 2, 1, 0, NULL, NULL), "two ranks with half of the heads and columns each");
    const int64_t all = gpt_parameters(&r->config), common = (GPT_BYTES + 2 * r->config.layers + 1) * r->config.width;
    tap(r->parameters == common + (all - common) / 2, "and of %lld parameters, %lld of them common, %lld each",
        (long long)all, (long long)common, (long long)r->parameters);
}

/* Half of the steps, then the rest by others. */
static void check_resume(const curves *c, run *r) {
    prepare(r, 4, 0, 1, NULL, "half")->last = HALF;
    tap(start(r) == 0, "half of the steps by four ranks with parts of the state");
    check_curve(c, prepare(r, 4, 0, 1, "half", "resumed"), "the other half likewise");
    tap(same_files("straight", "resumed"), "both end in the same bits");
    check_curve(c, prepare(r, 2, 0, 1, "half", NULL), "by two ranks");
    check_curve(c, prepare(r, 1, 0, 0, "half", NULL), "by one");
    check_curve(c, prepare(r, 0, 0, 0, "half", NULL), "by a program without ranks");
    check_curve(c, prepare(r, 2, 1, 0, "half", "resumed"), "by two that share tensors");
    prepare(r, 2, 1, 0, NULL, "half")->last = HALF;
    tap(start(r) == 0, "half of the steps by two ranks that share tensors");
    check_curve(c, prepare(r, 4, 0, 1, "half", NULL), "the other half by four with parts of the state");
    prepare(r, 2, 1, 0, "half", "part")->last = HALF;
    tap(start(r) == 0 && same_files("half", "part"), "a checkpoint that two ranks read and write again is the same");
    prepare(r, 4, 0, 1, "half", "part")->last = HALF;
    tap(start(r) == 0 && same_files("half", "part"), "and one that four do");
}

static void check_failures(run *r) {
    prepare(r, 3, 0, 0, NULL, NULL)->config.batch = 3;
    r->dies = 1;
    tap(start(r) != 0 && strstr(r->error[0], "rank 1") && strstr(r->error[2], "rank 1"),
        "a rank that ends in the middle is named by the others");
    r->config.batch = 4;
    prepare(r, 4, 0, 1, NULL, "missing/file")->last = 2;
    tap(start(r) != 0 && strstr(r->error[0], "missing") && strstr(r->error[3], "first rank"),
        "all ranks know of a checkpoint that the first one cannot write");
    const gpt_group three = { .ranks = 3 }, tensors = { .ranks = 4, .tensors = 1 };
    tap(gpt_group_check(&r->config, &three) && gpt_group_check(&r->config, &tensors),
        "ranks that do not divide the batch, or the heads, are refused");
}

int main(void) {
    char folder[] = "/tmp/trine-gpt-XXXXXX", error[256] = "";
    gpt_data data = { 0 };
    curves c;
    run *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED || !mkdtemp(folder) || chdir(folder) != 0 || !make_text(&data, error, sizeof error)) {
        printf("Bail out! %s: %s%s\n", folder, strerror(errno), error);
        return 1;
    }
    r->data = &data;
    r->config = tiny;
    r->config.batch = 4;
    bool good = start(prepare(r, 0, 0, 0, NULL, NULL)) == 0;
    const double product = r->product;
    memcpy(c.here, r->losses, sizeof c.here);
    c.sum = r->sum;
    prepare(r, 0, 0, 0, NULL, NULL)->part = product;
    good = good && start(r) == 0;
    memcpy(c.perturbed, r->losses, sizeof c.perturbed);
    if (tap(good, "one rank")) {
        check_data(&c, r);
        check_resume(&c, r);
        check_failures(r);
    }
    gpt_data_free(&data);
    munmap(r, sizeof *r);
    for (const char *const *name = (const char *const[]){ "text", "straight", "half", "part", "resumed", NULL }; *name;
         name++)
        unlink(*name);
    if (chdir("/") == 0) rmdir(folder);
    return tap_end();
}
