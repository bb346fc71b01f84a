/* SPDX-License-Identifier: Apache-2.0 */
/* trine tune: times all kernels of calls and records the fastest in the tuning cache. */
#include <string.h>

#include "bench/bench.h"
#include "tool.h"

typedef struct tune {
    target target;
    selection which;
    bench_plan plan;
    int tuned, single, failed;
} tune;

/* Candidates that take the case. */
static int candidates(const tune *t, const trine_case *c, trine_explanation *e) {
    int count = 0;
    if (trine_explain(t->target.queue, c->plan->op, c->args, e) != TRINE_OK) return -1;
    for (int i = 0; i < e->count; i++) count += e->candidate[i].refused == NULL;
    return count;
}

static void report(const trine_case *c, const char *result) {
    char words[2048];
    trine_case_text(c, words, sizeof words);
    printf("%-24s %-70s %s\n", c->plan->spec->name, words, result);
    fflush(stdout);
}

/* The median time of a kernel, as the bench measures it: calls in a row, on fresh inputs. */
static bool time_kernel(const tune *t, const char *kernel, const bench_sets *sets, double *seconds_out) {
    static bench_result result;
    const trine_queue_options options = { .struct_size = sizeof options,
                                          .threads = (int32_t)t->target.threads,
                                          .kernel = kernel };
    bench_sets same = *sets;
    if (trine_queue_open(t->target.lib, trine_queue_device(t->target.queue), &options, &same.queue) != TRINE_OK)
        return false;
    const bool ok = bench_time_sets(&same, &t->plan, &result);
    trine_queue_close(same.queue);
    *seconds_out = result.median;
    return ok;
}

/* What is predicted to take so many times as long as another is not timed. */
static const double hopeless = 6;

static double least_predicted(const trine_explanation *e) {
    double least = 0;
    for (int i = 0; i < e->count; i++)
        if (e->candidate[i].refused == NULL && (least == 0 || e->candidate[i].seconds < least))
            least = e->candidate[i].seconds;
    return least;
}

/* Times the candidates and records the fastest; within the noise, the earlier in the list is the better guess. */
static bool tune_sets(tune *t, const trine_explanation *e, const bench_sets *sets, char *error, size_t size) {
    const char *best = NULL;
    double least = 0, seconds;
    bool ok = trine_queue_wait(t->target.queue) == TRINE_OK;
    for (int i = 0; i < e->count && ok; i++) {
        if (e->candidate[i].refused != NULL || e->candidate[i].seconds > hopeless * least_predicted(e)) continue;
        ok = time_kernel(t, e->candidate[i].kernel, sets, &seconds);
        if (ok && (best == NULL || seconds < 0.98 * least)) best = e->candidate[i].kernel, least = seconds;
    }
    ok = ok && trine_tune_choose(t->target.queue, sets->c->plan->op, sets->set[0].args, best, least) == TRINE_OK;
    if (ok)
        snprintf(error, size, "%.2f us by %s", 1e6 * least, best);
    else
        snprintf(error, size, "%s", trine_error_message());
    return ok;
}

static void tune_case(void *context, trine_op op, const char *text) {
    tune *t = context;
    static trine_case c;
    static trine_explanation e;
    bench_sets sets;
    char error[320];
    bool ok = selection_make(&t->which, &c, op, text, error, sizeof error);
    if (ok && c.plan->comm >= 0) {
        t->single++;
        report(&c, "ranks choose by what they share: nothing to choose");
        return;
    }
    const int count = ok ? candidates(t, &c, &e) : 0;
    if (ok && count == 1) {
        t->single++;
        report(&c, "one kernel only: nothing to choose");
        return;
    }
    if (ok && count < 1) snprintf(error, sizeof error, "%s", count < 0 ? trine_error_message() : "no kernel takes it");
    if (ok && count > 1 && bench_sets_make(&sets, &c, t->target.queue, &t->plan, error, sizeof error)) {
        ok = tune_sets(t, &e, &sets, error, sizeof error);
        t->tuned += ok;
        t->failed += !ok;
        report(&c, error);
        bench_sets_free(&sets);
        return;
    }
    t->failed++;
    report(&c, error);
}

int trine_tool_tune(int argc, char **argv) {
    tune t = { .plan = { .seconds = 0.02 } };
    const option_row rows[] = {
        SELECTION_OPTIONS(t.which),
        TARGET_OPTIONS(t.target),
        { 0 },
    };
    const option_set set = {
        "trine tune [--op NAME,...] [--case NAME] [options]",
        "Times every kernel that takes a case and records the fastest in the tuning cache, which later runs read.", rows
    };
    const int words = options_parse(&set, argc, argv, NULL, 0);
    if (words < 0) return options_status(words);
    char error[640];
    int status = selection_check("tune", &t.which);
    if (status == 0) status = target_open(&t.target, "tune");
    if (status) return status;
    if (strcmp(t.target.info.name, "cpu") != 0) t.plan.batch = 2e-3;
    t.plan.last_level = t.target.info.cache[2];
    t.plan.memory = t.target.info.memory > 0 ? t.target.info.memory / 4 : INT64_C(1) << 30;
    if (!selection_each(&t.which, tune_case, &t, error, sizeof error)) t.failed += failure("%s", error);
    target_close(&t.target);
    printf("%d tuned, %d with one kernel only, %d failed\n", t.tuned, t.single, t.failed);
    return t.failed ? 1 : 0;
}
