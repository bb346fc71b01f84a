/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a judgement: what the device is, build, load, agreement, trial, roofs. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "judge.h"

/* Cases that are timed where none is asked for: as many, of no more operations and elements. */
enum { TIMED = 3 };
static const double most_flops = 2.5e9, most_bytes = 1e8;

/* What the processes tell that this one asks. Each fills a copy in memory that it shares with this one: what a kernel
 * has written there can make a verdict worse, but no pointer of this process is in it. */
typedef struct answers {
    char device[160], arch[32], error[1024];
    int64_t last_level, memory;
    int threads;
    bool emulated;
    check_report report;
    bench_roofs roofs;
} answers;

typedef struct board {
    const judge_options *options;
    char backends[64];
    answers *shared;
    answers device, told; /* what ask_device() said, and the last question's answers */
} board;

static bool refuse(judge_verdict *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(judge_verdict *v, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(v->reason, sizeof v->reason, format, list);
    va_end(list);
    return false;
}

/* ---------------------------------------------------------------------------------------- in processes of their own */

static void ask_device(void *context) {
    const board *b = context;
    answers *a = b->shared;
    trine_device_info_t info;
    trine *lib;
    if (trine_open(NULL, &lib) != TRINE_OK ||
        trine_device_info(lib, trine_device_find(lib, b->options->device), &info) != TRINE_OK) {
        snprintf(a->error, sizeof a->error, "no device \"%s\": %s", b->options->device, trine_error_message());
        return;
    }
    a->threads = b->options->threads > 0 ? (int)b->options->threads : info.units;
    a->last_level = info.cache[2] > 0 ? info.cache[2] : INT64_C(32) << 20;
    a->memory = info.memory > 0 ? info.memory / 4 : INT64_C(1) << 30;
    a->emulated = info.emulated;
    snprintf(a->arch, sizeof a->arch, "%s", info.arch);
    snprintf(a->device, sizeof a->device, "%s (%s, %s)", info.name, info.model, info.arch);
}

static void ask_module(void *context) {
    const board *b = context;
    answers *a = b->shared;
    const trine_options options = { .struct_size = sizeof options,
                                    .backends = b->backends,
                                    .plugin_path = b->options->directory };
    trine *lib;
    snprintf(a->error, sizeof a->error, "the module that loads kernels is not in %s", b->options->directory);
    if (trine_open(&options, &lib) != TRINE_OK) {
        snprintf(a->error, sizeof a->error, "%s", trine_error_message());
        return;
    }
    for (int i = 0; i < trine_backend_count(lib); i++) {
        trine_backend_info_t info;
        if (trine_backend_info(lib, i, &info) != TRINE_OK ||
            strcmp(info.name, strchr(b->backends, ',') + 1) != 0) /* the module, behind the backend */
            continue;
        snprintf(a->error, sizeof a->error, "%s", info.refused != NULL ? info.refused : "");
    }
}

static void ask_suite(void *context) {
    const board *b = context;
    answers *a = b->shared;
    const judge_options *o = b->options;
    const check_options options = { .device = o->device,
                                    .op = trine_op_name(o->op),
                                    .kernel = JUDGE_KERNEL,
                                    .types = o->types,
                                    .dims = o->sizes,
                                    .only = o->only,
                                    .backends = b->backends,
                                    .plugin_path = o->directory,
                                    .seed = o->seed,
                                    .budget = o->budget,
                                    .timeout = o->timeout,
                                    .stop = true,
                                    .progress = o->progress };
    check_run(&options, &a->report);
}

static void ask_roofs(void *context) {
    const board *b = context;
    const answers *d = &b->device;
    answers *a = b->shared;
    trine *lib;
    trine_queue *queue;
    a->roofs = d->roofs;
    if (strcmp(b->options->device, "cpu") == 0)
        bench_roofs_measure(&a->roofs, d->threads, d->last_level, d->memory);
    else if (trine_open(NULL, &lib) == TRINE_OK &&
             trine_queue_open(lib, trine_device_find(lib, b->options->device), NULL, &queue) == TRINE_OK)
        bench_device_roofs_measure(&a->roofs, queue, d->last_level, d->memory);
}

/* Whatever a kernel wrote into the answers, they are numbers within their ranges and texts that end. */
static void end_texts(answers *a) {
    check_report *const r = &a->report;
    a->device[sizeof a->device - 1] = a->arch[sizeof a->arch - 1] = a->error[sizeof a->error - 1] = 0;
    r->error[sizeof r->error - 1] = 0;
    r->ops = r->ops == 1;
    r->op[0].name[sizeof r->op[0].name - 1] = 0;
    if (r->failures < 0 || r->failures > CHECK_MAX_FAILURES) r->failures = 0;
    for (int i = 0; i < CHECK_MAX_FAILURES; i++) {
        check_failure *const f = &r->failure[i];
        f->kernel[sizeof f->kernel - 1] = f->text[sizeof f->text - 1] = f->replay[sizeof f->replay - 1] = 0;
    }
}

/* Asks in a process of its own. False, with the reason, if it did not end well. */
static bool ask(board *b, double seconds, void (*question)(void *context), char *reason, size_t size) {
    memset(b->shared, 0, sizeof *b->shared);
    const bool ok = judge_apart(b->options, seconds, question, b, reason, size);
    b->told = *b->shared;
    end_texts(&b->told);
    return ok;
}

/* ------------------------------------------------------------------------------------------------------------ trial */

/* A case by its text, with the types and dimensions asked for. */
static bool make_case(const judge_options *o, trine_case *c, const char *text, char *error, size_t size) {
    trine_case_init(c, (int)o->op);
    if (text != NULL && !trine_case_parse(c, text, error, size)) return false;
    if (text != NULL && o->types != NULL) memset(c->type, 0, sizeof c->type);
    return (o->types == NULL || trine_case_parse(c, o->types, error, size)) &&
           (o->dims == NULL || trine_case_parse(c, o->dims, error, size)) && trine_case_finish(c, error, size);
}

static bool moderate(const trine_case *c) {
    return trine_plan_flops(c->plan, c->dim) <= most_flops &&
           trine_plan_bytes(c->plan, c->dim, c->type, c->present) <= most_bytes;
}

static void measure_roofs(board *b) {
    char error[256];
    if (ask(b, 120, ask_roofs, error, sizeof error)) b->device.roofs = b->told.roofs;
}

/* Against the roofs, measured again where the kernel seems to be above them: a bad moment may have lowered them. */
static bool hold_roofs(board *b, const trine_case *c, judge_trial *trial) {
    enum { ATTEMPTS = 4 };
    bench_result r = { .median = trial->median };
    bench_work(c, &r);
    const double bytes = trine_plan_bytes(c->plan, c->dim, c->type, c->present & ~c->broadcast) * trial->calls;
    if (bytes < 2 * (double)b->device.last_level)
        r.bytes = 0; /* caches hold the tensors, of which the roofs say nothing */
    for (int i = 0; i <= ATTEMPTS; i++) {
        if (i > 0 || b->device.roofs.threads == 0) measure_roofs(b);
        bench_hold(&r, &b->device.roofs);
        if (!r.above) break;
    }
    trial->bound = r.bound;
    return !r.above;
}

/* Times one case. False, with the reason, if the kernel is refused. */
static bool try_case(board *b, const trine_case *c, judge_verdict *v) {
    judge_trial *const trial = &v->trial[v->trials++];
    char reason[1536] = "";
    if (!judge_try(b->options, c, b->device.last_level, trial, reason, sizeof reason))
        return refuse(v, "in the trial of %s: %s", trial->text, reason);
    if (trial->refused[0] != 0 || b->device.emulated || hold_roofs(b, c, trial)) return true;
    return refuse(v, "%s takes it %.3g s, but what the op must move and compute takes this machine at least %.3g s",
                  trial->text, trial->median, trial->bound);
}

static bool try_all(board *b, judge_verdict *v) {
    static trine_case c;
    char error[320];
    int timed = 0;
    const trine_spec *spec = trine_specs[b->options->op];
    if (b->options->dims != NULL) {
        if (!make_case(b->options, &c, NULL, error, sizeof error)) return refuse(v, "%s", error);
        return try_case(b, &c, v);
    }
    for (int i = 0; i < TRINE_MAX_STRINGS && spec->cases[i] != NULL && timed < TIMED && v->trials < JUDGE_MAX_TRIALS;
         i++) {
        if (!make_case(b->options, &c, spec->cases[i], error, sizeof error) || !moderate(&c) ||
            (c.transposed | c.broadcast) != 0)
            continue;
        if (!try_case(b, &c, v)) return false;
        timed += v->trial[v->trials - 1].refused[0] == 0;
    }
    return true;
}

/* Over trine's kernels, and over the fastest of them and of other libraries'. */
static void mean_speedups(judge_verdict *v) {
    double sum = 0, least = 0;
    int timed = 0;
    for (int i = 0; i < v->trials; i++) {
        const judge_trial *const t = &v->trial[i];
        double own = t->trine_median / t->median;
        if (t->refused[0] != 0) continue;
        sum += log(own), timed++;
        for (int k = 0; k < t->peers; k++) own = fmin(own, judge_over(t, &t->peer[k]));
        least += log(own);
    }
    v->speedup = timed > 0 ? exp(sum / timed) : 0;
    v->best = timed > 0 ? exp(least / timed) : 0;
}

/* -------------------------------------------------------------------------------------------------------- agreement */

/* What runs the failure again: the suite's line, as options of the judge. */
static void say_again(const judge_options *o, check_failure *failure) {
    char line[256], file[128];
    const char *const options = strstr(failure->replay, " --seed");
    snprintf(file, sizeof file, "%.127s", o->file);
    snprintf(line, sizeof line, "trine judge %s --op %s --device %s%s", file, trine_op_name(o->op), o->device,
             options != NULL ? options : "");
    char *const dims = strstr(line, " --dims ");
    if (dims != NULL && strlen(line) + 1 < sizeof line) { /* those of the suite are the judge's sizes */
        memmove(dims + 9, dims + 8, strlen(dims + 8) + 1);
        memcpy(dims, " --sizes ", 9);
    }
    snprintf(failure->replay, sizeof failure->replay, "%s", line);
}

static bool agree(board *b, judge_verdict *v) {
    char reason[512];
    const judge_options *o = b->options;
    if (!ask(b, 10 * o->budget + 12 * o->timeout, ask_suite, reason, sizeof reason))
        return refuse(v, "the agreement suite: %s", reason);
    v->check = b->told.report;
    if (v->check.error[0] != 0) return refuse(v, "the agreement suite: %s", v->check.error);
    const check_count count = check_total(&v->check);
    if (count.failed > 0 && v->check.failures > 0) {
        say_again(o, &v->check.failure[0]);
        return refuse(v, "%s", v->check.failure[0].text);
    }
    if (count.failed > 0) return refuse(v, "%lld comparisons failed", (long long)count.failed);
    if (check_comparisons(&count) == 0)
        return refuse(v, "it takes none of the %lld calls that were drawn", (long long)count.cases);
    return true;
}

/* What the processes that load the kernel find in their environment. */
static void set_names(const judge_options *o, const char *path) {
    char backend[32];
    snprintf(backend, sizeof backend, "%.*s", judge_backend_length(o->device), o->device);
    setenv(JUDGE_FILE, path, 1);
    setenv(JUDGE_OP, trine_op_name(o->op), 1);
    setenv(JUDGE_BACKEND, backend, 1);
    if (o->entry != NULL) setenv(JUDGE_ENTRY, o->entry, 1);
    if (o->grid != NULL) setenv(JUDGE_GRID, o->grid, 1);
}

static bool judge(board *b, const char *work, judge_verdict *v) {
    char path[4096], reason[512];
    const judge_options *o = b->options;
    if (!ask(b, 120, ask_device, reason, sizeof reason)) return refuse(v, "the device: %s", reason);
    b->device = b->told;
    snprintf(v->device, sizeof v->device, "%s", b->device.device);
    if (b->device.error[0] != 0) return refuse(v, "%s", b->device.error);
    if (!judge_build(o, work, b->device.arch, path, v)) return false;
    set_names(o, path);
    if (!ask(b, 60 + o->timeout, ask_module, reason, sizeof reason)) return refuse(v, "it does not load: %s", reason);
    if (b->told.error[0] != 0) return refuse(v, "it does not load: %s", b->told.error);
    v->loaded = true;
    if (!agree(b, v) || (o->only == NULL && !try_all(b, v))) return false;
    if (b->device.emulated)
        snprintf(v->alone, sizeof v->alone, "the device is emulated");
    else
        judge_peers(o, v);
    mean_speedups(v);
    return v->tried = true;
}

static void remove_work(const char *work) {
    static const char *const names[] = { "judged.so", "judged.code", "log" };
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", work, names[i]);
        unlink(path);
    }
    rmdir(work);
}

bool judge_run(const judge_options *options, judge_verdict *verdict_out) {
    char work[] = "/tmp/trine-judge-XXXXXX";
    const int length = judge_backend_length(options->device);
    memset(verdict_out, 0, sizeof *verdict_out);
    static board place;
    board *const b = &place;
    b->shared = mmap(NULL, sizeof *b->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->shared == MAP_FAILED || mkdtemp(work) == NULL) {
        if (b->shared != MAP_FAILED) munmap(b->shared, sizeof *b->shared);
        return refuse(verdict_out, "no memory, or no folder in /tmp: %s", strerror(errno));
    }
    b->options = options;
    snprintf(b->backends, sizeof b->backends, "%.*s,judge_%.*s", length, options->device, length, options->device);
    const bool correct = judge(b, work, verdict_out);
    remove_work(work);
    munmap(b->shared, sizeof *b->shared);
    return correct;
}
