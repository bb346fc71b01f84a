/* SPDX-License-Identifier: Apache-2.0 */
/* An agreement case: every kernel of every device runs it, then the reference does, then all are compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trine/ops.h>

#include "golden.h"
#include "run.h"

enum { MAX_RESULTS = 64, RUNS = 3, LISTED = 1, RECORDED = RUNS - 1 };

/* One kernel's part in a case. */
typedef struct result {
    const context *context;
    char kernel[64];
    bool failed;
    outcome outcome;
} result;

static outcome outcome_make(const problem *p) {
    outcome y = { { NULL } };
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_output(p, i))
            y.output[i] = calloc((size_t)p->operand[i].count + 1, trine_dtype_size(p->operand[i].full.dtype));
    return y;
}

static void outcome_free(outcome *y) {
    for (int i = 0; i < TRINE_MAX_TENSORS; i++) free(y->output[i]);
}

/* Runs the op and waits for it: at once, as a list of one call, or recorded into a graph that is launched with all
 * memory as before the recording, where the device has graphs and the call is not of all ranks, each of which has a
 * queue of its own. */
static trine_status run_once(const context *c, problem *p, trine_queue *queue, int run, bool workspace) {
    trine_graph *graph = NULL;
    const bool can_record = run == RECORDED && p->plan->comm < 0;
    trine_status status = can_record ? trine_graph_begin(queue) : TRINE_ERR_UNSUPPORTED, ended;
    const bool records = status == TRINE_OK;
    if (!records && status != TRINE_ERR_UNSUPPORTED) return status;
    const void *const list[] = { p->call.args };
    status = run == LISTED ? trine_run_list(queue, p->plan->op, list, 1) : trine_run(queue, p->plan->op, p->call.args);
    if (records && (ended = trine_graph_end(queue, &graph)) != TRINE_OK && status == TRINE_OK) status = ended;
    if (graph != NULL && status == TRINE_OK) {
        const bool sent =
            operands_send(c, p, queue, run, run % 2) && (!workspace || memory_send(c->memory, MEMORY_WORKSPACE, queue));
        status = sent ? trine_graph_launch(queue, graph) : TRINE_ERR_MEMORY;
    }
    if (status == TRINE_OK) status = trine_queue_wait(queue);
    trine_graph_free(graph);
    return status;
}

/* The workspace is what explain and trine_workspace both say, of exactly this size, poisoned; then the op runs. */
static bool launch(const context *c, problem *p, trine_queue *queue, int run, char *text, size_t size) {
    trine_explanation why;
    size_t bytes = 0;
    trine_status status = trine_workspace(queue, p->plan->op, p->call.args, &bytes);
    if (status == TRINE_OK) status = trine_explain(queue, p->plan->op, p->call.args, &why);
    /* cppcheck-suppress uninitStructMember ; not looked at where explain did not write it */
    if (status != TRINE_OK || why.chosen < 0) {
        snprintf(text, size, "no workspace size: %s: %s", trine_status_name(status), trine_error_message());
        return false;
    }
    if (!p->empty && bytes != why.candidate[why.chosen].workspace) {
        snprintf(text, size, "trine_workspace says %zu bytes, trine_explain %zu", bytes,
                 why.candidate[why.chosen].workspace);
        return false;
    }
    if (bytes > 0) {
        bool ok = memory_place(c->memory, MEMORY_WORKSPACE, bytes, 256, PLACE_END);
        if (ok) memory_poison(c->memory, MEMORY_WORKSPACE, run % 2);
        ok = ok && memory_send(c->memory, MEMORY_WORKSPACE, queue);
        ok = ok && trine_queue_set_workspace(queue, c->memory->slot[MEMORY_WORKSPACE].start, bytes) == TRINE_OK;
        if (!ok) {
            snprintf(text, size, "no workspace of %zu bytes: %s", bytes, trine_error_message());
            return false;
        }
    }
    status = run_once(c, p, queue, run, bytes > 0);
    if (status != TRINE_OK) snprintf(text, size, "%s: %s", trine_status_name(status), trine_error_message());
    if (bytes == 0) return status == TRINE_OK;
    trine_queue_set_workspace(queue, NULL, 0);
    if (status != TRINE_OK) return false;
    memory_slot *s = &c->memory->slot[MEMORY_WORKSPACE];
    if (!memory_fetch(c->memory, MEMORY_WORKSPACE, queue)) return false;
    memcpy(memory_sent(s), memory_back(s), bytes);
    if (memcmp(s->sent, s->back, s->frame_bytes) == 0) return true;
    snprintf(text, size, "memory outside the workspace of %zu bytes was written", bytes);
    return false;
}

/* With one byte less than it needs, the call must fail, name the bytes and touch nothing. */
static bool refuses_small_workspace(const context *c, problem *p, trine_queue *queue, char *text, size_t size) {
    size_t bytes = 0;
    char number[32];
    if (trine_workspace(queue, p->plan->op, p->call.args, &bytes) != TRINE_OK || bytes < 2) return true;
    snprintf(number, sizeof number, "%zu", bytes);
    if (!memory_place(c->memory, MEMORY_WORKSPACE, bytes - 1, 256, PLACE_END)) return true;
    trine_queue_set_workspace(queue, c->memory->slot[MEMORY_WORKSPACE].start, bytes - 1);
    const trine_status status = trine_run(queue, p->plan->op, p->call.args);
    trine_queue_set_workspace(queue, NULL, 0);
    if (status == TRINE_ERR_WORKSPACE && strstr(trine_error_message(), number))
        return operands_fetch(c, p, queue, true, NULL, text, size);
    snprintf(text, size, "with %zu of %zu bytes of workspace: %s: %s", bytes - 1, bytes, trine_status_name(status),
             trine_error_message());
    return false;
}

/* Three runs: with 1, 2 and 3 threads, the operands each time in other places, with other poison; the second as a list
 * of one call, and devices that have graphs run the last from one. All must return the same bits. */
static bool run_kernel(runner *r, const context *c, problem *p, result *result, char *text, size_t size) {
    outcome again = { { NULL } };
    bool ok = true;
    for (int run = 0; ok && run < RUNS; run++) {
        const int pattern = run % 2;
        trine_queue *queue = runner_queue(r, c, result->kernel, c->memory->host ? run + 1 : 0, p->plan->comm >= 0);
        char detail[640];
        if (run == 1) again = outcome_make(p);
        outcome *out = run ? &again : &result->outcome;
        ok = queue != NULL && operands_send(c, p, queue, run, pattern);
        if (!ok) snprintf(detail, sizeof detail, "not run: %s", trine_error_message());
        ok = ok && (run > 0 || refuses_small_workspace(c, p, queue, detail, sizeof detail));
        ok = ok && launch(c, p, queue, run, detail, sizeof detail);
        ok = ok && operands_fetch(c, p, queue, false, out, detail, sizeof detail);
        for (int i = 0; ok && run > 0 && i < p->plan->tensors; i++)
            ok = !problem_output(p, i) ||
                 compare_bits(p, i, result->outcome.output[i], again.output[i], detail, sizeof detail);
        if (!ok)
            snprintf(text, size,
                     c->memory->host ? "with %d thread(s)%s: %s"
                                     : "in run %d of 3%s, the last of them from a graph: %s",
                     run + 1, run == LISTED ? ", as a list" : "", detail);
    }
    outcome_free(&again);
    return ok;
}

/* The library must give the coefficient of the table. */
static bool check_coefficients(const context *c, const problem *p, char *text, size_t size) {
    for (int i = 0; i < p->plan->tensors; i++) {
        const trine_spec_tensor *spec = p->plan->tensor[i].spec;
        double coefficient = -1;
        if (!problem_output(p, i) || spec->flags & EXACT) continue;
        const trine_status status = trine_error_bound(c->queue, p->plan->op, p->call.args, spec->name, &coefficient);
        if (status == TRINE_OK && coefficient == trine_plan_coefficient(p->plan, i, p->call.dim, p->call.type))
            continue;
        snprintf(text, size, "trine_error_bound of %s: %s", spec->name,
                 status == TRINE_OK ? "another coefficient than the table's" : trine_error_message());
        return false;
    }
    return true;
}

/* Runs the kernels of one context that take the case; returns the number of results. */
static int run_context(runner *r, const context *c, problem *p, result *results, int count, int *ordinal) {
    trine_explanation why;
    char text[1024];
    bool any = false;
    operands_spread(c, p);
    runner_enter(r, c, NULL, p);
    if (trine_explain(c->queue, p->plan->op, p->call.args, &why) != TRINE_OK) {
        snprintf(text, sizeof text, "a valid call was refused: %s", trine_error_message());
        runner_fail(r, c, NULL, p, text);
        return count;
    }
    if (!check_coefficients(c, p, text, sizeof text)) runner_fail(r, c, NULL, p, text);
    for (int i = 0; i < why.count && count < MAX_RESULTS; i++) {
        const trine_candidate *candidate = &why.candidate[i];
        bool known = false;
        if (candidate->refused || (r->options->kernel && strcmp(r->options->kernel, candidate->kernel) != 0)) continue;
        for (int k = 0; k < count; k++)
            known |= strcmp(results[k].kernel, candidate->kernel) == 0 &&
                     strcmp(results[k].context->info.name, c->info.name) == 0;
        any = true;
        if (known || (*ordinal)++ < r->shared->first_kernel) continue;
        result *result = &results[count++];
        *result = (struct result){ .context = c, .outcome = outcome_make(p) };
        snprintf(result->kernel, sizeof result->kernel, "%s", candidate->kernel);
        r->shared->kernel = *ordinal - 1;
        runner_enter(r, c, result->kernel, p);
        result->failed = !run_kernel(r, c, p, result, text, sizeof text);
        if (result->failed) runner_fail(r, c, result->kernel, p, text);
    }
    if (!any) runner_skip(r);
    return count;
}

/* Holds the reference of a golden case against the oracle, whose values then take the place of its own: kernels are
 * held against these. */
static void adopt_golden(runner *r, problem *p) {
    char text[1024];
    if (compare_golden(p, text, sizeof text))
        runner_pass(r);
    else
        runner_fail(r, &r->context[0], "reference", p, text);
    for (int i = 0; i < p->plan->tensors; i++)
        if (problem_output(p, i))
            memcpy(p->operand[i].value, p->operand[i].golden,
                   sizeof *p->operand[i].value * (size_t)p->operand[i].count);
}

static void run_problem(runner *r, problem *p) {
    result results[MAX_RESULTS];
    int count = 0, ordinal = 0;
    char text[1024], detail[800];
    for (int i = 0; i < r->contexts; i++)
        if (!r->context[i].paired || r->context[i].small == p->small)
            count = run_context(r, &r->context[i], p, results, count, &ordinal);
    r->shared->first_kernel = 0;
    r->shared->kernel = ordinal;
    r->shared->in_kernel = false;
    snprintf(r->shared->kernel_name, sizeof r->shared->kernel_name, "reference");
    bool any = p->kind == PROBLEM_GOLDEN;
    for (int i = 0; i < count; i++) any |= !results[i].failed;
    if (any) problem_reference(p);
    if (p->kind == PROBLEM_GOLDEN) adopt_golden(r, p);
    for (int i = 0; i < count; i++) {
        result *y = &results[i];
        if (y->failed) continue;
        y->failed = !compare_reference(p, &y->outcome, text, sizeof text);
        for (int k = 0; k < i && !y->failed; k++) {
            if (results[k].failed || compare_pair(p, &results[k].outcome, &y->outcome, detail, sizeof detail)) continue;
            snprintf(text, sizeof text, "against %s: %s", results[k].kernel, detail);
            y->failed = true;
        }
        if (y->failed)
            runner_fail(r, y->context, y->kernel, p, text);
        else
            runner_pass(r);
    }
    for (int i = 0; i < count; i++) outcome_free(&results[i].outcome);
}

bool run_agreement(runner *r, const trine_plan *plan, int64_t index) {
    problem p;
    if (!problem_make(&p, plan, &r->asked, r->options->seed, index, PROBLEM_DRAWN)) return false;
    run_problem(r, &p);
    problem_free(&p);
    return true;
}

bool run_edge(runner *r, const trine_plan *plan, int64_t number, const trine_case *asked) {
    problem p;
    if (!problem_make(&p, plan, asked, r->options->seed, number, PROBLEM_EDGE)) return false;
    run_problem(r, &p);
    problem_free(&p);
    return true;
}

bool run_golden(runner *r, const trine_plan *plan, int64_t index) {
    problem p;
    char text[1024];
    const golden_status status = golden_make(&p, plan, r->options->golden, index, text, sizeof text);
    if (status == GOLDEN_END) return false;
    if (status == GOLDEN_WRONG) {
        snprintf(r->shared->what, sizeof r->shared->what, "golden vectors of %s", r->options->golden);
        runner_fail(r, &r->context[0], NULL, NULL, text);
        return true;
    }
    run_problem(r, &p);
    problem_free(&p);
    return true;
}
