/* SPDX-License-Identifier: Apache-2.0 */
/* What came out, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "spec/number.h"

check_count check_total(const check_report *report) {
    check_count total = { 0 };
    for (int i = 0; i < report->ops; i++) {
        const check_count *c = &report->op[i].count;
        total.cases += c->cases;
        total.mistakes += c->mistakes;
        total.passed += c->passed;
        total.failed += c->failed;
        total.skipped += c->skipped;
        total.seconds += c->seconds;
    }
    return total;
}

static void print_row(FILE *file, const char *name, const check_count *c) {
    trine_fprintf(file, "%-24s %8" PRId64 " %11" PRId64 " %9" PRId64 " %9" PRId64 " %7" PRId64 " %8" PRId64 " %9.1f\n",
                  name, c->cases, check_comparisons(c), c->mistakes, c->passed, c->failed, c->skipped, c->seconds);
}

void check_print(const check_report *report, FILE *file, bool quiet) {
    const check_count total = check_total(report);
    for (int i = 0; i < report->failures; i++) {
        const check_failure *f = &report->failure[i];
        fprintf(file, "FAIL %s%s%s: %s\n    replay: %s\n", report->op[f->op].name, f->kernel[0] ? " " : "", f->kernel,
                f->text, f->replay);
    }
    if (total.failed > report->failures) fprintf(file, "... and %" PRId64 " more\n", total.failed - report->failures);
    if (!quiet) {
        fprintf(file, "%-24s %8s %11s %9s %9s %7s %8s %9s\n", "op", "cases", "comparisons", "mistakes", "passed",
                "failed", "skipped", "seconds");
        for (int i = 0; i < report->ops; i++) print_row(file, report->op[i].name, &report->op[i].count);
        if (report->ops > 1) print_row(file, "all", &total);
    }
    fprintf(file, "%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n", total.passed, total.failed,
            total.skipped);
}

static void put_string(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

static void put_count(FILE *file, const check_count *c) {
    trine_fprintf(file,
                  "\"cases\": %" PRId64 ", \"comparisons\": %" PRId64 ", \"mistakes\": %" PRId64
                  ", \"passed\": %" PRId64 ", \"failed\": %" PRId64 ", \"skipped\": %" PRId64 ", \"seconds\": %.3f",
                  c->cases, check_comparisons(c), c->mistakes, c->passed, c->failed, c->skipped, c->seconds);
}

void check_print_json(const check_report *report, const check_options *options, FILE *file) {
    const check_count total = check_total(report);
    fprintf(file, "{\n  \"version\": \"%s\", \"spec\": \"%016" PRIx64 "\", \"seed\": %" PRIu64 ",\n  \"total\": {",
            TRINE_VERSION, trine_spec_hash(), options->seed);
    put_count(file, &total);
    fprintf(file, "},\n  \"ops\": [");
    for (int i = 0; i < report->ops; i++) {
        fprintf(file, "%s\n    {\"op\": \"%s\", ", i ? "," : "", report->op[i].name);
        put_count(file, &report->op[i].count);
        fprintf(file, "}");
    }
    fprintf(file, "\n  ],\n  \"failures\": [");
    for (int i = 0; i < report->failures; i++) {
        const check_failure *f = &report->failure[i];
        fprintf(file, "%s\n    {\"op\": \"%s\", \"kernel\": ", i ? "," : "", report->op[f->op].name);
        put_string(file, f->kernel);
        fprintf(file, ", \"text\": ");
        put_string(file, f->text);
        fprintf(file, ", \"replay\": ");
        put_string(file, f->replay);
        fprintf(file, "}");
    }
    fprintf(file, "\n  ]\n}\n");
}
