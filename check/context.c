/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries, devices and queues of a worker, and its notes to the parent. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

double runner_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool failed(runner *r) {
    snprintf(r->shared->report.error, sizeof r->shared->report.error, "%s", trine_error_message());
    return false;
}

/* "cuda" is every device of the backend, "cuda:1" one. */
static bool device_wanted(const char *wanted, const char *name) {
    const size_t length = wanted ? strlen(wanted) : 0;
    return wanted == NULL || strcmp(wanted, name) == 0 || (strncmp(wanted, name, length) == 0 && name[length] == ':');
}

void check_no_device(const trine *lib, const char *device, char *text, size_t size) {
    trine_backend_info_t b;
    int used = snprintf(text, size, "no device \"%.64s\"", device);
    for (int i = 0; i < trine_backend_count(lib); i++)
        if (trine_backend_info(lib, i, &b) == TRINE_OK && b.refused && strcspn(device, ":") == strlen(b.name) &&
            strncmp(device, b.name, strlen(b.name)) == 0 && used < (int)size)
            used += snprintf(text + used, size - (size_t)used, ": %s: %s", b.path ? b.path : b.name, b.refused);
}

/* The devices of a library; of a second and later one, at another CPU level, only the CPU. With a cache that is taken
 * for small those that the host's caches are for. */
static bool add_contexts(runner *r, trine *lib, const char *isa, bool small) {
    const bool first = r->contexts == 0;
    bool used = false;
    for (int device = 0; device < trine_device_count(lib) && r->contexts < MAX_CONTEXTS; device++) {
        context *c = &r->context[r->contexts];
        const bool cached = device == 0 || (r->options->host_memory && !r->options->asynchronous);
        *c = (context){ .lib = lib, .device = device, .isa = isa, .paired = cached, .small = small };
        if (trine_device_info(lib, device, &c->info) != TRINE_OK) return failed(r);
        if (!device_wanted(r->options->device, c->info.name) || (small ? !cached : !first && device > 0)) continue;
        bool known = false;
        for (int i = 0; i < r->contexts; i++)
            known |= strcmp(r->context[i].info.name, c->info.name) == 0 &&
                     strcmp(r->context[i].info.arch, c->info.arch) == 0 && r->context[i].small == small;
        if (known) continue;
        const bool host = device == 0 || r->options->host_memory;
        c->memory = host ? &r->host : &r->device[r->contexts];
        c->memory->host = host;
        c->memory->exact = host ? 0 : r->options->exact;
        c->owner = !used;
        used = true;
        r->contexts++;
        if ((c->queue = runner_queue(r, c, NULL, 0, false)) == NULL) return failed(r);
        if (!host) c->memory->queue = c->queue;
    }
    if (!used) trine_close(lib);
    return true;
}

bool runner_open(runner *r) {
    static const char *const levels[] = { "baseline", "v3", "v4", "v4_bf16", "amx", "v8_bf16" };
    const bool all = r->options->isa && strcmp(r->options->isa, "all") == 0;
    trine_options options = { .struct_size = sizeof options,
                              .backends = r->options->backends,
                              .plugin_path = r->options->plugin_path,
                              .tune_file = "" };
    const size_t count = all ? sizeof levels / sizeof levels[0] : 1;
    char missing[sizeof r->shared->report.error] = "";
    for (size_t i = 0; i < 2 * count; i++) {
        trine *lib;
        const bool small = i >= count;
        options.isa = all ? levels[i % count] : r->options->isa;
        options.last_level_cache = small ? SMALL_CACHE : 0;
        const trine_status status = trine_open(&options, &lib);
        /* The levels of another kind of processor. */
        if (all && status == TRINE_ERR_ARGUMENT) continue;
        if (status != TRINE_OK) return failed(r);
        check_no_device(lib, r->options->device ? r->options->device : "", missing, sizeof missing);
        if (!add_contexts(r, lib, options.isa, small)) return false;
    }
    if (r->contexts == 0) memcpy(r->shared->report.error, missing, sizeof missing);
    return r->contexts > 0;
}

void runner_close(runner *r) {
    for (int i = 0; i < MAX_CONTEXTS; i++) memory_free(&r->device[i]);
    memory_free(&r->host);
    for (int i = 0; i < r->queues; i++) trine_queue_close(r->queue[i].queue);
    for (int i = 0; i < r->contexts; i++)
        if (r->context[i].owner) trine_close(r->context[i].lib);
}

trine_queue *runner_queue(runner *r, const context *c, const char *kernel, int threads, bool groups) {
    const char *name = kernel ? kernel : "";
    for (int i = 0; i < r->queues; i++)
        if (r->queue[i].context == c && r->queue[i].threads == threads && strcmp(r->queue[i].kernel, name) == 0)
            return r->queue[i].queue;
    const bool part = r->options->sm_count > 0 && c->info.pci != NULL;
    /* parts of a device do not suffice for many: that of the context and one more; nor does memory for groups */
    const int most = part ? r->contexts + 1 : groups ? r->contexts + 2 : MAX_QUEUES;
    while (r->queues >= most) trine_queue_close(r->queue[--r->queues].queue);
    trine_queue_options options = { .struct_size = sizeof options,
                                    .flags = TRINE_QUEUE_STRICT_WORKSPACE,
                                    .threads = threads,
                                    .kernel = kernel,
                                    .sm_count = part ? (int32_t)r->options->sm_count : 0 };
    trine_queue *queue;
    if (trine_queue_open(c->lib, c->device, &options, &queue) != TRINE_OK) return NULL;
    r->queue[r->queues].context = c;
    r->queue[r->queues].threads = threads;
    r->queue[r->queues].queue = queue;
    snprintf(r->queue[r->queues++].kernel, sizeof r->queue[0].kernel, "%s", name);
    return queue;
}

/* ------------------------------------------------------------------------------------------------------------ notes */

/* The command line that runs again what runs now. */
static void replay_line(const shared *s, const check_options *options, char *out, size_t size) {
    const char letter[2] = { (char)s->kind, 0 };
    const char *const own = s->kind == CASE_EDGE ? s->dims : "", *const asked = options->dims ? options->dims : "";
    const bool dims = own[0] || asked[0];
    char part[32] = "";
    if (options->sm_count > 0) snprintf(part, sizeof part, " --sm-count %" PRId64, options->sm_count);
    snprintf(out, size, "trine check --op %s%s%s --seed %" PRIu64 " --case %s%" PRId64 "%s%s%s%s%s%s%s%s%s%s",
             s->report.op[s->op].name, s->where, part, options->seed, letter,
             s->kind == CASE_EDGE ? s->number : s->index, options->types ? " --types " : "",
             options->types ? options->types : "", dims ? " --dims \"" : "", asked, asked[0] && own[0] ? " " : "", own,
             dims ? "\"" : "", s->kind == CASE_HUGE ? " --huge" : "", options->golden ? " --golden " : "",
             options->golden ? options->golden : "");
}

static void note(shared *s, const context *c, const char *kernel, const problem *p) {
    snprintf(s->where, sizeof s->where, " --device %s%s%s%s%s", c->info.name, kernel ? " --kernel " : "",
             kernel ? kernel : "", c->isa ? " --isa " : "", c->isa ? c->isa : "");
    snprintf(s->kernel_name, sizeof s->kernel_name, "%s", kernel ? kernel : "");
    if (p) problem_text(p, s->what, sizeof s->what);
    s->fault.slot = -1;
    s->in_kernel = kernel != NULL;
    s->beat = runner_time();
}

void runner_enter(runner *r, const context *c, const char *kernel, const problem *p) {
    char line[sizeof r->shared->report.failure[0].replay];
    note(r->shared, c, kernel, p);
    if (r->options->log == NULL || kernel == NULL) return;
    replay_line(r->shared, r->options, line, sizeof line);
    fprintf(r->options->log, "%s\n", line);
    fflush(r->options->log);
}

/* The count that another result belongs to. */
static check_count *next_result(shared *s) {
    check_count *count = &s->report.op[s->op].count;
    count->mistakes += s->kind == CASE_ARGUMENTS;
    return count;
}

void runner_pass(runner *r) { next_result(r->shared)->passed++; }

void runner_skip(runner *r) { r->shared->report.op[r->shared->op].count.skipped++; }

void report_failure(shared *s, const check_options *options, const char *text) {
    check_report *report = &s->report;
    next_result(s)->failed++;
    if (report->failures == CHECK_MAX_FAILURES) return;
    check_failure *f = &report->failure[report->failures++];
    f->op = s->op;
    snprintf(f->kernel, sizeof f->kernel, "%s", s->kernel_name);
    snprintf(f->text, sizeof f->text, "%s\n    %s", text, s->what);
    replay_line(s, options, f->replay, sizeof f->replay);
}

void runner_fail(runner *r, const context *c, const char *kernel, const problem *p, const char *text) {
    note(r->shared, c, kernel, p);
    report_failure(r->shared, r->options, text);
}
