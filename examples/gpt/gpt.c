/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a small language model on real text through trine's public API: the command. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "away.h"
#include "export.h"
#include "options.h"
#include "ranks.h"
#include "share.h"
#include "trainer.h"

static volatile sig_atomic_t interrupted;
static void interrupt(int signal_number) { interrupted = signal_number; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --------------------------------------------------------------------------------------------------------- progress */

typedef struct progress {
    bool terminal, ended;          /* ended: before its last step, as it was told */
    double begun, shown, training; /* seconds spent in steps but the first, which loads code */
    double mean, weight;           /* of the loss */
    int64_t first, last, entered;
} progress;

static bool progress_due(const progress *p, const gpt_trainer *t) {
    const int64_t done = t->step - p->first, every = (p->last - p->first + 19) / 20;
    return p->terminal ? now() - p->shown >= 0.1 : done % every == 0;
}

static double tokens_of(const gpt_trainer *t, int64_t steps) {
    return (double)(steps * t->model.whole.batch * t->model.whole.context);
}

static double tokens_per_second(const progress *p, const gpt_trainer *t) {
    return p->training > 0 ? tokens_of(t, t->step - p->first - 1) / p->training : 0;
}

static void progress_show(progress *p, const gpt_trainer *t, bool finish) {
    const int64_t done = t->step - p->first;
    const double held = t->history.held_out_count ? t->history.held_out[t->history.held_out_count - 1].loss : 0;
    for (; p->entered < t->history.count; p->entered++) {
        p->mean = 0.95 * p->mean + 0.05 * (double)t->history.train[p->entered];
        p->weight = 0.95 * p->weight + 0.05;
    }
    p->shown = now();
    const double left = done > 0 ? (p->shown - p->begun) / (double)done * (double)(p->last - t->step) : 0;
    if (p->terminal) {
        char bar[31];
        const int filled = p->last > p->first ? (int)(30 * done / (p->last - p->first)) : 30;
        for (int i = 0; i < 30; i++) bar[i] = i < filled ? '#' : '.';
        bar[30] = 0;
        printf("\r[%s] ", bar);
    }
    printf("step %lld/%lld  loss %.3f  held-out %.3f  %.0f tokens/s  ETA %d:%02d%s", (long long)t->step,
           (long long)t->schedule.steps, p->mean / p->weight, held, tokens_per_second(p, t), (int)left / 60,
           (int)left % 60, p->terminal ? "\033[K" : "\n");
    if (p->terminal && finish) putchar('\n');
    fflush(stdout);
}

/* Has the run been told to end? Ranks do so at one step, which they agree on every now and then. */
static bool told_to_end(gpt_trainer *t, bool *end_out) {
    *end_out = interrupted != 0;
    if (!t->model.whole.group) return true;
    *end_out = false;
    return t->step % 16 != 0 || gpt_share_any(&t->model, interrupted != 0, end_out) ||
           (snprintf(t->error, sizeof t->error, "%s", trine_error_message()), false);
}

static bool train(gpt_trainer *t, const options *o, progress *p) {
    const int64_t often = t->schedule.steps / 14 + 1;
    double loss;
    bool shown = false;
    if (t->step == 0 && !gpt_trainer_evaluate(t, 64, true, &loss)) return false;
    while (t->step < p->last) {
        const double start = now();
        if (!told_to_end(t, &p->ended)) return false;
        if (p->ended) break;
        if (!gpt_trainer_step(t)) return false;
        const bool first = t->step == p->first + 1, evaluates = t->step % often == 0,
                   saves = o->save_every && t->step % o->save_every == 0 && t->step < p->last;
        shown = progress_due(p, t);
        if ((first || evaluates || saves || shown || t->step == p->last) && !gpt_trainer_wait(t)) return false;
        if (!first) p->training += now() - start;
        if (evaluates && !gpt_trainer_evaluate(t, 64, true, &loss)) return false;
        if (saves && !gpt_trainer_save(t, o->save)) return false;
        if (shown) progress_show(p, t, false);
    }
    if (!gpt_trainer_wait(t)) return false;
    if (t->step > p->first && (p->terminal || !shown)) progress_show(p, t, true);
    return true;
}

static bool write_losses(const gpt_trainer *t, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    for (int64_t i = 0; i < t->history.count; i++) fprintf(file, "%.9g\n", (double)t->history.train[i]);
    return fclose(file) == 0;
}

/* ------------------------------------------------------------------------------------------------------------- main */

static bool first_rank(const gpt_trainer *t) { return !t->model.whole.group || t->model.whole.group->rank == 0; }

static int run(gpt_trainer *t, const options *o) {
    progress p = { .terminal = isatty(STDOUT_FILENO),
                   .begun = now(),
                   .first = t->step,
                   .last = t->schedule.steps,
                   .entered = t->step };
    double held_out;
    if (o->stop && o->stop < p.last) p.last = o->stop > t->step ? o->stop : t->step;
    if (!train(t, o, &p)) return complain(t->error, "");
    const double seconds = now() - p.begun;
    if (o->save && !gpt_trainer_save(t, o->save)) return complain(t->error, "");
    if (first_rank(t) && o->export && !gpt_export(&t->model, o->export, t->error, sizeof t->error))
        return complain(t->error, "");
    if (p.ended) return complain("interrupted", o->save ? "the checkpoint is written" : ""), 130;
    if (!gpt_trainer_evaluate(t, 512, false, &held_out)) return complain(t->error, "");
    if (first_rank(t) && !gpt_curve_write(&t->history, o->svg, t->error, sizeof t->error))
        return complain(t->error, "");
    printf("loss curve: %s\n", o->svg);
    if (first_rank(t) && o->losses && !write_losses(t, o->losses)) return complain(o->losses, strerror(errno));
    if (o->sample) {
        printf("---- a sample of %d bytes ----\n", o->sample);
        if (!gpt_trainer_sample(t, o->prompt, o->sample, o->seed, stdout)) return complain(t->error, "");
        printf("----\n");
    }
    printf("trained: held-out %.4f nats, %.1f s, %.0f tokens/s\n", held_out, seconds, tokens_per_second(&p, t));
    return 0;
}

static void print_offload(const gpt_model *model) {
    const gpt_offload *o = model->config.away;
    printf("the optimizer's state of %lld parameters, a share of %.3f, is on the device, that of %lld in %s%s\n",
           (long long)model->kept, (double)model->kept / (double)model->parameters,
           (long long)(model->parameters - model->kept), o->file ? o->file : "the host's memory",
           model->away && gpt_away_direct(model->away) ? ", past the page cache" : "");
}

static int with_queue(const options *o, const gpt_checkpoint *from, const gpt_data *data, trine_queue *queue,
                      trine *lib, const gpt_group *group) {
    gpt_trainer t = { 0 };
    trine_device_info_t device;
    int status = 1;
    gpt_config config = o->config;
    gpt_offload offload = o->offload;
    offload.lib = lib;
    offload.threads = o->threads;
    if (o->offloads) config.away = &offload;
    if (group) config.group = group;
    if (!gpt_trainer_open(&t, queue, &config, &o->schedule, data, o->seed, from)) {
        complain(t.error, "");
    } else if (trine_device_info(lib, trine_queue_device(queue), &device) == TRINE_OK) {
        printf("%lld parameters in %d layers on %s (%s, %s); %lld bytes of text in %lld files, %lld held out\n",
               (long long)gpt_parameters(&o->config), (int)o->config.layers, device.name, device.model, device.arch,
               (long long)(data->train_size + data->held_out_size), (long long)data->files,
               (long long)data->held_out_size);
        printf("activations: %.1f MB in %.1f MB, of which at most %.1f are needed at once\n",
               1e-6 * (double)t.model.arena.separate, 1e-6 * (double)t.model.arena.bytes,
               1e-6 * (double)t.model.arena.live);
        if (t.model.config.away) print_offload(&t.model);
        if (from) printf("continuing %s at step %lld\n", o->resume, (long long)t.step);
        if (from && from->text_hash != data->hash) printf("the text is not the one the checkpoint was trained on\n");
        status = run(&t, o);
    }
    gpt_trainer_close(&t);
    return status;
}

/* The device of a rank: "cuda" and "cuda:2" are the first of some, which ranks take in turn. */
static int device_of(trine *lib, const char *name, int rank) {
    char numbered[64];
    const int length = (int)strcspn(name, ":"), first = name[length] ? atoi(name + length + 1) : 0;
    int count = 0, alone = trine_device_find(lib, name);
    do snprintf(numbered, sizeof numbered, "%.*s:%d", length, name, first + count);
    while (trine_device_find(lib, numbered) >= 0 && ++count);
    if (count == 0) return alone;
    snprintf(numbered, sizeof numbered, "%.*s:%d", length, name, first + rank % count);
    return trine_device_find(lib, numbered);
}

/* The queue of a device by its name; of a rank's, or of the best one of a name that is NULL. */
static trine_status open_queue(const options *o, trine *lib, int rank, trine_queue **queue_out) {
    trine_queue_options choices = { sizeof choices, .threads = o->threads };
    trine_device_info_t info;
    const char *name = o->device;
    int device = TRINE_BEST_DEVICE;
    if (o->ranks && !name) { /* that of rank 0 */
        if (trine_queue_open(lib, device, &choices, queue_out) != TRINE_OK ||
            trine_device_info(lib, trine_queue_device(*queue_out), &info) != TRINE_OK)
            return TRINE_ERR_DEVICE;
        trine_queue_close(*queue_out);
        *queue_out = NULL;
        name = info.name;
    }
    if (name && (device = o->ranks ? device_of(lib, name, rank) : trine_device_find(lib, name)) < 0)
        return complain(name, "no such device; trine info lists them"), TRINE_ERR_ARGUMENT;
    if (o->ranks && !o->threads && trine_device_info(lib, 0, &info) == TRINE_OK)
        choices.threads = info.units > o->ranks ? info.units / o->ranks : 1;
    const trine_status status = trine_queue_open(lib, device, &choices, queue_out);
    if (status != TRINE_OK) complain("opening a queue", trine_error_message());
    return status;
}

/* What a process needs to train; of a rank, with how it finds the others. */
typedef struct job {
    const options *o;
    const gpt_checkpoint *from;
    const gpt_data *data;
} job;

static int live(void *context, int rank, const trine_bootstrap *bootstrap) {
    const job *j = context;
    gpt_group group = j->o->group;
    trine *lib = NULL;
    trine_queue *queue = NULL;
    int status = 1;
    group.rank = rank;
    group.ranks = j->o->ranks;
    if (rank > 0 && !freopen("/dev/null", "w", stdout)) return complain("/dev/null", strerror(errno));
    if (trine_open(NULL, &lib) != TRINE_OK) return complain("opening trine", trine_error_message());
    if (open_queue(j->o, lib, rank, &queue) == TRINE_OK) {
        if (bootstrap && trine_comm_open(queue, rank, group.ranks, bootstrap, NULL, &group.comm) != TRINE_OK)
            complain("opening a group", trine_error_message());
        else
            status = with_queue(j->o, j->from, j->data, queue, lib, bootstrap ? &group : NULL);
    }
    trine_comm_close(group.comm);
    trine_queue_close(queue);
    trine_close(lib);
    return status;
}

static int with_data(const options *o, const gpt_checkpoint *from, const gpt_data *data) {
    job j = { o, from, data };
    if (o->ranks == 0) return live(&j, 0, NULL);
    const gpt_group group = { .ranks = o->ranks, .tensors = o->group.tensors, .parts = o->group.parts };
    const char *wrong = gpt_group_check(&o->config, &group);
    return wrong ? complain(wrong, "") : gpt_ranks_run(o->ranks, live, &j);
}

int main(int argc, char **argv) {
    options o = {
        .text = GPT_TEXT,
        .svg = "gpt-loss.svg",
        .prompt = "/* ",
        .sample = 300,
        .seed = 1,
        .offload = { .share = -1 },
        .config = { .context = 128,
                    .batch = 8,
                    .layers = 5,
                    .width = 128,
                    .heads = 4,
                    .kv_heads = 2,
                    .hidden = 384,
                    .vocabulary = GPT_BYTES },
        .schedule = { .steps = 1000, .rate = 3e-3f, .beta1 = 0.9f, .beta2 = 0.95f, .weight_decay = 0.1f, .max_norm = 1 }
    };
    char error[512];
    gpt_checkpoint from = { 0 };
    gpt_data data = { 0 };
    int status = options_read(&o, argc, argv);
    if (status >= 0) return status;
    o.schedule.warmup = o.schedule.steps / 14;
    if (o.resume) {
        if (!gpt_checkpoint_load(&from, o.resume, error, sizeof error)) return complain(error, "");
        from.config.memory = o.config.memory;
        o.config = from.config;
        o.schedule = from.schedule;
    }
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    if (gpt_data_load(&data, o.text, o.config.context + 1, error, sizeof error))
        status = with_data(&o, o.resume ? &from : NULL, &data);
    else
        status = complain(error, "");
    gpt_checkpoint_free(&from);
    gpt_data_free(&data);
    return status;
}
