/* SPDX-License-Identifier: Apache-2.0 */
/* trine check: holds every kernel against the specification's reference. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "output.h"
#include "tool.h"

/* "45,a17" */
static bool case_numbers(const char *text) {
    do {
        int64_t index;
        char item[24];
        const size_t length = strcspn(text, ",");
        snprintf(item, sizeof item, "%.*s", (int)length, text);
        if (length >= sizeof item ||
            !parse_integer(item + (*item != 0 && strchr("aegh", *item) != NULL), 0, INT64_MAX, &index))
            return false;
        text += length;
    } while (*text++ == ',');
    return true;
}

/* What --exact-field has no use for. */
static bool drawn(const check_options *o) {
    return o->device || o->op || o->kernel || o->types || o->isa || o->only || o->golden || o->huge;
}

static int write_json(const check_report *report, const check_options *options, output *o) {
    char error[640];
    check_print_json(report, options, o->file);
    return output_finish(o, error, sizeof error) && output_commit(o, error, sizeof error) ? 0 : failure("%s", error);
}

int trine_tool_check(int argc, char **argv) {
    static check_report report;
    check_options o = { .seed = 1 };
    int64_t seed = 1;
    const char *json = NULL, *log = NULL, *inputs = NULL, *program[2];
    bool quiet = false, list = false, exact_field = false;
    const option_row rows[] = {
        OPTION_TEXT("device", &o.device, "NAME", "only this device (default: all)"),
        OPTION_TEXT("op", &o.op, "OP,...", "only these ops (default: all)"),
        OPTION_TEXT("kernel", &o.kernel, "NAME", "only this kernel (default: all that do not refuse)"),
        OPTION_TEXT("types", &o.types, "T=TYPE,...", "only these element types"),
        OPTION_TEXT("dims", &o.dims, "\"n=N ...\"", "only these sizes of dimensions"),
        OPTION_TEXT("isa", &o.isa, "LEVEL", "CPU level, or all: every level that the machine has"),
        OPTION_INTEGER("sm-count", &o.sm_count, 1, 65536, "N",
                       "SMs or CUs of a GPU that are used, at most half (default: all)"),
        OPTION_INTEGER("seed", &seed, 0, INT64_MAX, "N", "seed of the cases (default: 1)"),
        OPTION_NUMBER("budget", &o.budget, 1e-3, 1e9, "SECONDS",
                      "time for all ops together (default: 60, if --cases is not given)"),
        OPTION_INTEGER("cases", &o.cases, 1, INT64_MAX, "N", "so many cases of each op"),
        OPTION_TEXT("case", &o.only, "N,...", "only these cases, as a failure's replay line says"),
        OPTION_TEXT("golden", &o.golden, "DIR",
                    "the cases of this directory of golden vectors in the place of drawn ones: reference and kernels "
                    "against an oracle"),
        OPTION_NUMBER("timeout", &o.timeout, 1e-3, 1e9, "SECONDS",
                      "time after which a kernel counts as hung (default: 120)"),
        OPTION_FLAG("huge", &o.huge, "also a case of more than 2^31 elements for each op that can have one"),
        OPTION_FLAG("stop", &o.stop, "leave an op at its first failure"),
        OPTION_INTEGER("exact", &o.exact, 1, 1 << 20, "BYTES",
                       "for sanitizers and debuggers: one process, and operands on a device in allocations of so many "
                       "bytes or multiples"),
        OPTION_FLAG(
            "exact-field", &exact_field,
            "instead: are two programs of tensor operations, the next two arguments, the same function? Without "
            "them: what the library composes, beside its parts"),
        OPTION_TEXT("inputs", &inputs, "\"x: r n; ...\"", "the inputs of these programs, and their dimensions"),
        OPTION_TEXT("log", &log, "FILE",
                    "append the replay line of each kernel's part in a case to FILE before it runs"),
        OPTION_MAYBE("json", &json, "FILE", "write the results as JSON to FILE, or to standard output"),
        OPTION_FLAG("quiet", &quiet, "print failures and the last line only"),
        OPTION_FLAG("list", &list, "print the ops and their kernels, and run nothing"),
        { 0 },
    };
    const option_set set = { "trine check [options]",
                             "Runs every kernel of every device on sizes, strides, values and parameters drawn by the "
                             "seed from the specification, in guarded and "
                             "poisoned memory, and compares element by element with its float64 reference.",
                             rows };
    const int words = options_parse(&set, argc, argv, program, 2);
    if (words < 0) return options_status(words);
    if (exact_field && drawn(&o))
        return usage_error("check", "--exact-field goes with --inputs, --dims and --seed alone");
    if (exact_field) return check_field(inputs, o.dims, (uint64_t)seed, program, words);
    if (words > 0) return usage_error("check", "unexpected argument \"%s\"", program[0]);
    if (inputs) return usage_error("check", "--inputs needs --exact-field");
    if (o.only && !case_numbers(o.only))
        return usage_error("check", "--case %s: not numbers, each alone or behind an a, an e, a g or an h", o.only);
    if (o.golden && (o.types || o.dims || o.huge))
        return usage_error("check", "--golden has types and sizes of its own");
    if (o.only && strchr(o.only, 'g') && !o.golden)
        return usage_error("check", "--case %s: golden cases need --golden", o.only);
    if (o.only && strchr(o.only, 'e') && !o.dims)
        return usage_error("check", "--case %s: cases at edges need --dims", o.only);
    if (o.only && !o.op) return usage_error("check", "--case needs --op");
    if (!find_ops("check", o.op)) return 2;
    o.seed = (uint64_t)seed;
    if (o.cases == 0 && o.budget == 0 && !o.only && !o.golden) o.budget = 60;
    if (isatty(STDERR_FILENO) && !quiet) o.progress = stderr;
    if (log && (o.log = fopen(log, "a")) == NULL) return failure("%s: %s", log, strerror(errno));
    output written = { NULL };
    char error[640];
    if (json && !list && !output_open(&written, json, error, sizeof error)) return failure("%s", error);
    int status = 0;
    if (!(list ? check_list(&o, stdout, &report) : check_run(&o, &report))) {
        status = failure("%s", report.error);
    } else if (!list) {
        check_print(&report, output_is_stdout(&written) ? stderr : stdout, quiet);
        if (written.file != NULL) status = write_json(&report, &o, &written);
        if (check_total(&report).failed > 0) status = 1;
    }
    if (o.log && fclose(o.log) != 0) status = failure("%s: %s", log, strerror(errno));
    output_discard(&written);
    return status;
}
