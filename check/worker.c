/* SPDX-License-Identifier: Apache-2.0 */
/* The parent and its worker: the worker runs case after case, the parent watches, and starts another one where it
 * died. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "spec/number.h"

/* Crashes and time-outs of one op after which it is given up. */
enum { MAX_DEATHS = 12 };

/* ----------------------------------------------------------------------------------------------------------- worker */

static bool op_over(const runner *r, double deadline) {
    const shared *s = r->shared;
    const check_count *count = &s->report.op[s->op].count;
    if (r->options->stop && count->failed > 0) return true;
    return r->options->budget > 0 && s->kind == CASE_AGREEMENT && runner_time() > deadline;
}

static bool run_case(runner *r, const trine_plan *plan, int kind, int64_t index) {
    r->shared->kind = kind;
    r->shared->index = index;
    r->shared->kernel = 0;
    switch (kind) {
    case CASE_ARGUMENTS: return run_arguments(r, plan, index);
    case CASE_HUGE: return r->possible && run_huge(r, plan, index);
    case CASE_GOLDEN: return r->options->golden && run_golden(r, plan, index);
    case CASE_EDGE: r->shared->number = index; return r->possible && run_edge(r, plan, index, &r->asked);
    default: return r->possible && run_agreement(r, plan, index);
    }
}

static bool enough(const runner *r) {
    return r->options->cases > 0 && r->shared->report.op[r->shared->op].count.cases >= r->options->cases;
}

/* After each drawn case one at an edge of a kernel, if there are any. */
static void run_turn(runner *r, const trine_plan *plan) {
    shared *s = r->shared;
    if (enough(r) || (r->options->stop && s->report.op[s->op].count.failed > 0)) return;
    s->kind = CASE_EDGE;
    s->kernel = 0;
    const bool ran = edges_run(r, plan, s->turn);
    s->report.op[s->op].count.cases += ran;
    s->drawn += ran;
    s->first_kernel = 0;
    s->turn++;
}

/* The cases of one kind from `index` on. */
static void run_kind(runner *r, const trine_plan *plan, int kind, int64_t index, double deadline) {
    shared *s = r->shared;
    check_count *count = &s->report.op[s->op].count;
    int64_t impossible = 0;
    for (;; index++) {
        s->kind = kind;
        if (op_over(r, deadline) || (kind == CASE_AGREEMENT && enough(r))) return;
        if (run_case(r, plan, kind, index)) {
            count->cases += kind != CASE_ARGUMENTS;
            s->drawn += kind == CASE_AGREEMENT;
            s->first_kernel = 0;
            impossible = 0;
            if (kind == CASE_AGREEMENT) run_turn(r, plan);
        } else if (kind != CASE_AGREEMENT || ++impossible > 4 * plan->combos + 16) {
            return; /* four times round all rows of types: there are no such cases */
        }
        s->first_kernel = 0;
    }
}

/* "45,a17": the cases asked for, from the one on at which a worker died. */
static void run_items(runner *r, const trine_plan *plan) {
    shared *s = r->shared;
    int item = 0;
    for (const char *at = r->options->only; *at; at += strcspn(at, ","), at += *at == ',') {
        if (item++ < s->item) continue;
        s->item = item - 1;
        const int kind = isalpha((unsigned char)*at) ? *at++ : CASE_AGREEMENT;
        s->report.op[s->op].count.cases += run_case(r, plan, kind, strtoll(at, NULL, 10)) && kind != CASE_ARGUMENTS;
        s->first_kernel = 0;
    }
}

/* The seconds from now that the op may take: its share of what is left. */
static double share(const runner *r, double start) {
    const int left = r->shared->report.ops - r->shared->op;
    return (r->options->budget - (runner_time() - start)) / left;
}

static void begin_op(shared *s) {
    s->kind = CASE_ARGUMENTS;
    s->index = 0;
    s->turn = 0;
    s->item = 0;
    s->first_kernel = 0;
    s->op_start = 0;
}

/* Reads what the options ask of an op's cases: types and dimensions, and nothing else. False if it has no such. */
static bool ask(runner *r, const trine_plan *plan) {
    const char *const texts[] = { r->options->types, r->options->dims };
    char error[160];
    trine_case *c = &r->asked;
    trine_case_init(c, plan->op);
    const uint32_t present = c->present;
    for (int i = 0; i < 2; i++)
        if (texts[i] != NULL && !trine_case_parse(c, texts[i], error, sizeof error)) return false;
    return c->present == present && (c->set | c->transposed | c->broadcast) == 0;
}

static void run_op(runner *r, const trine_plan *plan, double start) {
    static const int order[] = { CASE_ARGUMENTS, CASE_AGREEMENT, CASE_HUGE };
    shared *s = r->shared;
    check_count *count = &s->report.op[s->op].count;
    const bool resumed = s->op_start > 0;
    const int kind = s->kind;
    const int64_t index = s->index;
    int first = 0;
    if (!resumed) s->op_start = runner_time();
    r->possible = ask(r, plan);
    const double begun = s->op_start,
                 deadline = begun + (r->options->budget > 0 ? share(r, start) + (runner_time() - begun) : 0);
    if (r->options->only) {
        run_items(r, plan);
    } else if (r->options->golden) {
        run_kind(r, plan, CASE_GOLDEN, resumed ? index : 0, deadline);
    } else {
        const bool turned = resumed && kind == CASE_EDGE;
        edges_find(r, plan);
        if (turned) run_turn(r, plan);
        while (resumed && order[first] != (turned ? CASE_AGREEMENT : kind)) first++;
        for (int k = first; k < 3; k++) {
            if (order[k] == CASE_HUGE && !r->options->huge) continue;
            run_kind(r, plan, order[k], resumed && k == first ? index + turned : 0, deadline);
            s->first_kernel = 0;
        }
    }
    count->seconds = runner_time() - begun;
    begin_op(s);
}

static void work(const check_options *options, shared *s, double start) {
    runner *r = calloc(1, sizeof *r);
    r->options = options;
    r->shared = s;
    memory_watch(&s->fault);
    if (runner_open(r)) {
        for (; s->op < s->report.ops; s->op++)
            run_op(r, trine_plan_get(trine_op_find(s->report.op[s->op].name)), start);
        runner_close(r);
    }
    free(r->edges.edge);
    free(r);
    s->finished = true;
}

/* ----------------------------------------------------------------------------------------------------------- parent */

static void draw_progress(const check_options *options, const shared *s, double start) {
    const check_count total = check_total(&s->report);
    const double elapsed = runner_time() - start;
    double done = (double)s->op / s->report.ops;
    if (options->budget > 0) done = elapsed / options->budget;
    done = done > 1 ? 1 : done;
    char bar[31];
    for (int i = 0; i < 30; i++) bar[i] = i < (int)(done * 30) ? '#' : '.';
    bar[30] = 0;
    trine_fprintf(options->progress, "\r[%s] %3.0f%%  %-22s %" PRId64 " passed, %" PRId64 " failed  %.0f s\x1b[K", bar,
                  100 * done, s->op < s->report.ops ? s->report.op[s->op].name : "", total.passed, total.failed,
                  elapsed);
    fflush(options->progress);
}

/* Waits for the worker; kills it if a kernel takes longer than the time-out. Returns its wait status. */
static int watch_worker(const check_options *options, shared *s, pid_t worker, double start, bool *hung) {
    double drawn = 0;
    int status = 0;
    useconds_t nap = 200;
    *hung = false;
    for (;;) {
        const pid_t done = waitpid(worker, &status, WNOHANG);
        if (done == worker || (done < 0 && errno != EINTR)) return status;
        const double now = runner_time(),
                     limit = (options->timeout > 0 ? options->timeout : 120) * (s->kind == CASE_HUGE ? 20 : 1);
        if (!*hung && s->beat > 0 && now - s->beat > limit) {
            kill(worker, SIGKILL);
            *hung = true;
        }
        if (options->progress && now - drawn > 0.1) {
            draw_progress(options, s, start);
            drawn = now;
        }
        usleep(nap);
        if (nap < 20000) nap += nap / 4;
    }
}

/* What killed the worker, in words. */
static void describe_death(const check_options *options, const shared *s, int status, bool hung, char *text,
                           size_t size) {
    if (hung) {
        trine_snprintf(text, size, "still running after %.0f s", options->timeout > 0 ? options->timeout : 120);
        return;
    }
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == 0) {
        snprintf(text, size, "the process exited with status %d", WEXITSTATUS(status));
        return;
    }
    size_t used = (size_t)snprintf(text, size, "killed by signal %d (%s)", number, strsignal(number));
    const int slot = s->fault.slot;
    if ((number != SIGSEGV && number != SIGBUS) || slot < 0 || used >= size) return;
    const trine_plan *plan = trine_plan_get(trine_op_find(s->report.op[s->op].name));
    const int64_t distance = s->fault.distance;
    if (s->fault.between && slot != MEMORY_WORKSPACE) {
        snprintf(text + used, size - used, ": it touched byte %" PRId64 " of %s, where nothing is", distance,
                 plan->tensor[slot].spec->name);
        return;
    }
    snprintf(text + used, size - used, ": it touched byte %" PRId64 " %s %s", distance < 0 ? -distance : distance,
             distance < 0 ? "before the first of" : "behind the last of",
             slot == MEMORY_WORKSPACE ? "the workspace" : plan->tensor[slot].spec->name);
}

/* After a death: notes the failure, and moves on to the next kernel, or after many deaths to the next op. */
static void bury(const check_options *options, shared *s, int status, bool hung, int *deaths) {
    char text[512];
    describe_death(options, s, status, hung, text, sizeof text);
    report_failure(s, options, text);
    if ((s->kind == CASE_AGREEMENT || s->kind == CASE_EDGE) && s->in_kernel) {
        s->first_kernel = s->kernel + 1;
    } else if (s->kind == CASE_EDGE && options->only == NULL) {
        s->first_kernel = 0;
        s->kind = CASE_AGREEMENT;
        s->index++;
        s->turn++;
    } else {
        s->first_kernel = 0;
        s->index++;
        s->item++;
    }
    if (++*deaths < MAX_DEATHS) return;
    s->op++;
    begin_op(s);
    *deaths = 0;
}

static bool choose_ops(const check_options *options, check_report *report) {
    const trine_plan *plan = trine_plan_get((trine_op)1);
    if (plan == NULL && TRINE_OP_COUNT > 1) {
        snprintf(report->error, sizeof report->error, "the specification is malformed: %s", trine_plan_error());
        return false;
    }
    for (const char *at = options->op; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char name[sizeof report->op[0].name];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (trine_op_find(name) == TRINE_OP_NONE) {
            snprintf(report->error, sizeof report->error, "there is no op \"%s\"", name);
            return false;
        }
        if (report->ops == TRINE_OP_COUNT) {
            snprintf(report->error, sizeof report->error, "more names of ops than there are ops");
            return false;
        }
        snprintf(report->op[report->ops++].name, sizeof report->op[0].name, "%s", name);
    }
    for (int op = 1; options->op == NULL && op < TRINE_OP_COUNT; op++)
        snprintf(report->op[report->ops++].name, sizeof report->op[0].name, "%s", trine_op_name((trine_op)op));
    return true;
}

/* A hole in the time of the fork: what the parent has printed must not be printed twice. */
static pid_t start_worker(const check_options *options, shared *s, double start) {
    fflush(NULL);
    s->beat = 0;
    s->fault.slot = -1;
    const pid_t worker = fork();
    if (worker != 0) return worker;
    work(options, s, start);
    fflush(NULL);
    _exit(0);
}

bool check_run(const check_options *options, check_report *report_out) {
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(report_out, 0, sizeof *report_out);
    if (s == MAP_FAILED) {
        snprintf(report_out->error, sizeof report_out->error, "out of memory");
        return false;
    }
    const double start = runner_time();
    int deaths = 0, op = 0;
    s->fault.slot = -1;
    begin_op(s);
    bool ready = choose_ops(options, &s->report);
    if (ready && options->exact > 0) work(options, s, start);
    while (ready && !s->finished && s->op < s->report.ops) {
        bool hung;
        const pid_t worker = start_worker(options, s, start);
        const int status = worker > 0 ? watch_worker(options, s, worker, start, &hung) : 0;
        if (worker < 0)
            snprintf(s->report.error, sizeof s->report.error, "no process could be started: %s", strerror(errno));
        if (s->report.error[0] || worker < 0) break;
        if (s->finished) break;
        if (s->beat == 0) {
            snprintf(s->report.error, sizeof s->report.error,
                     "the library could not be opened: its process ended with wait status %d", status);
            break;
        }
        if (s->op != op) deaths = 0;
        op = s->op;
        bury(options, s, status, hung, &deaths);
    }
    if (options->progress) fprintf(options->progress, "\r\x1b[K");
    if ((options->types || options->dims) && !options->only && s->drawn == 0 && s->report.error[0] == 0 &&
        check_total(&s->report).failed == 0)
        snprintf(s->report.error, sizeof s->report.error, "no case of these types and dimensions has run");
    *report_out = s->report;
    munmap(s, sizeof *s);
    return report_out->error[0] == 0;
}

bool check_list(const check_options *options, FILE *file, check_report *report_out) {
    shared *s = calloc(1, sizeof *s);
    runner *r = calloc(1, sizeof *r);
    r->options = options;
    r->shared = s;
    const bool ok = choose_ops(options, &s->report) && runner_open(r);
    for (int op = 0; ok && op < s->report.ops; op++) {
        const trine_plan *plan = trine_plan_get(trine_op_find(s->report.op[op].name));
        problem p;
        fprintf(file, "%-24s %3d type combination%s ", s->report.op[op].name, plan->combos,
                plan->combos == 1 ? " " : "s");
        if (problem_make(&p, plan, NULL, options->seed, 0, PROBLEM_PLAIN)) {
            for (int i = 0; i < r->contexts; i++) {
                trine_explanation why;
                if (r->context[i].small) continue;
                if (trine_explain(r->context[i].queue, plan->op, p.call.args, &why) != TRINE_OK) continue;
                for (int k = 0; k < why.count; k++)
                    fprintf(file, " %s:%s", r->context[i].info.name, why.candidate[k].kernel);
            }
            problem_free(&p);
        }
        fprintf(file, "\n");
    }
    runner_close(r);
    *report_out = s->report;
    free(r), free(s);
    return ok;
}
