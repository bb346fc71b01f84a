/* SPDX-License-Identifier: Apache-2.0 */
/* trine bench: measures ops against the roofs of this machine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "meter.h"
#include "output.h"
#include "tool.h"

enum { MOST_RESULTS = 1024 };

typedef struct bench {
    target target;
    selection which;
    const char *json, *html;
    output json_output, html_output;
    bool compare, dispatch, roofs, energy;
    double alpha, threshold;
    bench_plan plan;
    bench_report report;
    meter counter;
    bench_meter meter;
    FILE *out; /* of the table */
    int skipped;
} bench;

static void skip(bench *b, const char *op, const char *what, const char *why) {
    fprintf(b->out, "%-24s %-34s skipped: %s\n", op, what, why);
    b->skipped++;
}

static bool measure_roofs(bench *b) {
    bench_report *report = &b->report;
    if (strcmp(report->device->name, "cpu") == 0)
        return bench_roofs_measure(&report->roofs, report->threads, b->plan.last_level, b->plan.memory);
    return bench_device_roofs_measure(&report->roofs, b->target.queue, b->plan.last_level, b->plan.memory);
}

/* A result above the roofs may only mean that they were measured in a bad moment: measure them again, keeping the
 * better. */
static void hold(bench *b, bench_result *result) {
    enum { ATTEMPTS = 4 };
    bench_hold(result, &b->report.roofs);
    for (int i = 0; i < ATTEMPTS && result->above; i++) {
        measure_roofs(b);
        bench_hold(result, &b->report.roofs);
    }
}

static void measure(void *context, trine_op op, const char *text) {
    static trine_case c;
    bench *b = context;
    char error[320], name[96] = "";
    bench_report *report = &b->report;
    if (text) snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if (!selection_make(&b->which, &c, op, text, error, sizeof error)) {
        skip(b, trine_specs[op]->name, name, error);
        return;
    }
    if (report->count == MOST_RESULTS) {
        skip(b, trine_specs[op]->name, name, "a report holds no more results");
        return;
    }
    bench_result *result = &report->result[report->count];
    memset(result, 0, sizeof *result);
    snprintf(result->name, sizeof result->name, "%s", name);
    if (!bench_case(b->target.queue, &c, &b->plan, result, error, sizeof error)) {
        skip(b, trine_specs[op]->name, name[0] ? name : b->which.dims, error);
        return;
    }
    hold(b, result);
    bench_print(b->out, result);
    if (b->plan.meter) bench_print_energy(b->out, result, b->plan.meter);
    report->count++;
}

static int measure_all(bench *b) {
    char error[640];
    bench_print_header(b->out);
    return selection_each(&b->which, measure, b, error, sizeof error) ? 0 : failure("%s", error);
}

/* 0, or the exit status after a message. */
static int write_report(output *o, bool (*write)(FILE *file, const bench_report *report), const bench_report *report) {
    char error[640];
    if (o->file == NULL) return 0;
    const bool written = write(o->file, report);
    if (!written) snprintf(error, sizeof error, "%s: %s", o->path, strerror(errno));
    return written && output_finish(o, error, sizeof error) && output_commit(o, error, sizeof error)
               ? 0
               : failure("%s", error);
}

/* The reports will have a place: what was measured for an hour is not lost to a misspelt name. */
static int open_reports(bench *b) {
    char error[640];
    if (b->json && !output_open(&b->json_output, b->json, error, sizeof error)) return failure("%s", error);
    if (b->html && !output_open(&b->html_output, b->html, error, sizeof error)) return failure("%s", error);
    if (output_is_stdout(&b->json_output) || output_is_stdout(&b->html_output)) b->out = stderr;
    return 0;
}

static int finish(bench *b) {
    int above = 0;
    for (int i = 0; i < b->report.count; i++) { /* the roofs may have risen since */
        bench_hold(&b->report.result[i], &b->report.roofs);
        above += b->report.result[i].above;
    }
    if (write_report(&b->json_output, bench_write_json, &b->report) ||
        write_report(&b->html_output, bench_write_html, &b->report))
        return 1;
    fprintf(b->out, "%d measured, %d skipped, %d above the roof\n", b->report.count, b->skipped, above);
    if (above)
        return failure(
            "%d result%s faster than the roofs measured on this machine: the work is not what the specification counts",
            above, above == 1 ? " is" : "s are");
    return b->report.count ? 0 : failure("nothing was measured");
}

/* The cost of calls of the ops asked for, each with its first case or with what --case, --dims and --types say. */
static int costs_of_ops(const bench *b) {
    static trine_case c;
    char error[320];
    const selection *w = &b->which;
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const trine_spec *spec = trine_specs[op];
        bench_sets sets;
        if (!listed(w->op, spec->name)) continue;
        const int status =
            make_case("bench", &c, (trine_op)op, w->named || w->dims ? w->named : spec->cases[0], w->dims, w->types);
        if (status) return status;
        if (!bench_sets_make(&sets, &c, b->target.queue, &(bench_plan){ .memory = b->plan.memory }, error,
                             sizeof error))
            return failure("%s", error);
        const double nanoseconds = bench_call_cost(b->target.queue, (trine_op)op, sets.set[0].args);
        bench_sets_free(&sets);
        if (nanoseconds < 0) return failure("%s", trine_error_message());
        printf("one call of %s on %s: %.0f ns\n", spec->name, b->target.info.name, nanoseconds);
    }
    return 0;
}

static int dispatch_cost(const bench *b) {
    double empty, tiny, workspace;
    if (!bench_dispatch(b->target.queue, &empty, &tiny, &workspace)) return failure("%s", trine_error_message());
    printf("one call of rms_norm on %s: %.0f ns checked and selected (no elements), %.0f ns with one element; "
           "trine_workspace: %.0f ns\n",
           b->target.info.name, empty, tiny, workspace);
    return 0;
}

/* Without a counter the times are measured all the same. */
static void prepare_energy(bench *b) {
    char why[512];
    if (meter_open(&b->counter, b->report.device, "/sys", why, sizeof why)) {
        b->meter.read = meter_read;
        b->meter.context = &b->counter;
        b->meter.name = b->counter.name;
        b->plan.meter = b->report.meter = &b->meter;
    } else {
        fprintf(b->out, "energy: no counter: %s\n", why);
    }
}

/* Sizes of caches and memory, and the roofs. */
static int prepare(bench *b) {
    bench_report *report = &b->report;
    const trine_device_info_t *device = report->device = &b->target.info;
    if (getloadavg(&report->load, 1) != 1) report->load = 0;
    b->plan.last_level = device->cache[2] > 0 ? device->cache[2] : INT64_C(32) << 20;
    b->plan.memory = device->memory > 0 ? device->memory / 4 : INT64_C(1) << 30;
    const char *omp = getenv("OMP_NUM_THREADS");
    int64_t threads = device->units;
    if (omp && !parse_integer(omp, 1, 65536, &threads)) threads = device->units;
    if (b->target.threads) threads = b->target.threads;
    if (b->target.sm_count) threads = trine_queue_sm_count(b->target.queue);
    report->threads = threads > 0 ? (int)threads : 1;
    report->result = malloc(sizeof *report->result * MOST_RESULTS);
    if (report->result == NULL) return failure("out of memory");
    const bool cpu = strcmp(device->name, "cpu") == 0;
    b->plan.batch = cpu ? 0 : 5e-3;
    if (!measure_roofs(b))
        return failure("the roofs could not be measured: %s", cpu ? "out of memory" : trine_error_message());
    fprintf(b->out, "%s, %s, %d %s%s\n", device->model ? device->model : device->name,
            device->arch ? device->arch : "?", report->threads, cpu ? "thread" : "unit",
            report->threads == 1 ? "" : "s");
    bench_print_roofs(b->out, &report->roofs);
    if (b->energy) prepare_energy(b);
    if (report->load > BENCH_BUSY)
        fprintf(b->out, "load average %.1f: other programs take part in the times below\n", report->load);
    return 0;
}

static int read_options(bench *b, int argc, char **argv, const char **words) {
    bool peers; /* for the list of options alone: trine-peers has its own, and is called before these are read */
    const option_row rows[] = {
        SELECTION_OPTIONS(b->which),
        TARGET_OPTIONS(b->target),
        PART_OPTION(b->target),
        OPTION_NUMBER("time", &b->plan.seconds, 0.001, 3600, "SECONDS", "time to spend on a case (default: 0.5)"),
        OPTION_MAYBE("json", &b->json, "FILE", "write Google Benchmark's JSON (default: to standard output)"),
        OPTION_TEXT("html", &b->html, "FILE", "write one page with a roofline plot"),
        OPTION_FLAG("energy", &b->energy, "joules of a call too, by RAPL, NVML or amd-smi"),
        OPTION_NUMBER("grams", &b->meter.grams, 0, 1e5, "G", "of CO2 for a kWh, for --energy: grams of a call"),
        OPTION_FLAG("roofs", &b->roofs, "only measure and print the roofs"),
        OPTION_FLAG("dispatch", &b->dispatch, "only measure what a call costs besides its work"),
        OPTION_FLAG("peers", &peers, "time other libraries beside trine; trine bench --peers --help lists its options"),
        OPTION_FLAG("compare", &b->compare, "compare two JSON reports, OLD and NEW; fail if any case is slower"),
        OPTION_NUMBER("alpha", &b->alpha, 1e-12, 1, "P", "compare: significance (default: 0.01)"),
        OPTION_NUMBER("threshold", &b->threshold, 0, 100, "X", "compare: relative change to report (default: 0.03)"),
        { 0 },
    };
    const option_set set = {
        "trine bench [options] | trine bench --compare OLD.json NEW.json | trine bench --peers [options]",
        "Measures the specification's cases against the memory and arithmetic roofs it measures on this machine.", rows
    };
    return options_parse(&set, argc, argv, words, 2);
}

int trine_tool_bench(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--peers") == 0) return bench_peers(argv, i);
    bench b = { .alpha = 0.01, .threshold = 0.03, .plan.seconds = 0.5 };
    const char *words[2];
    char error[320];
    const int count = read_options(&b, argc, argv, words);
    if (count < 0) return options_status(count);
    if (b.compare) {
        if (count != 2) return usage_error("bench", "--compare needs two files, OLD.json and NEW.json");
        const int slower = bench_compare(words[0], words[1], b.alpha, b.threshold, error, sizeof error);
        return slower < 0 ? failure("%s", error) : slower > 0;
    }
    if (count) return usage_error("bench", "unexpected argument \"%s\"", words[0]);
    if (b.meter.grams > 0 && !b.energy) return usage_error("bench", "--grams needs --energy");
    b.out = stdout;
    int status = selection_check("bench", &b.which);
    if (status == 0) status = target_open(&b.target, "bench");
    if (status) return status;
    if (b.dispatch) {
        b.plan.memory = b.target.info.memory / 4;
        status = b.which.op ? costs_of_ops(&b) : dispatch_cost(&b);
    } else {
        if (!b.roofs) status = open_reports(&b);
        if (status == 0) status = prepare(&b);
        if (status == 0 && !b.roofs && (status = measure_all(&b)) == 0) status = finish(&b);
    }
    output_discard(&b.json_output);
    output_discard(&b.html_output);
    free(b.report.result);
    target_close(&b.target);
    return status;
}
