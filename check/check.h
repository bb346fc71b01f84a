/* SPDX-License-Identifier: Apache-2.0 */
/* The agreement engine: holds every kernel of every device against the specification's float64 reference, element by
 * element.
 *
 * The cases run in a forked process, so that a kernel that reads into a guard page, or hangs, is one failure with its
 * replay line and not the end of the run: the parent notes it and starts another process at the next kernel. The parent
 * never opens the
 * library: a child of a process that has used OpenMP or a GPU could use neither. With `exact` there is no fork, and
 * such a kernel ends the program. */
#ifndef TRINE_CHECK_H
#define TRINE_CHECK_H

#include <stdio.h>

#include <trine/ops.h>

#include "spec/plan.h"

enum { CHECK_MAX_FAILURES = 64 };

typedef struct check_options {
    const char *device;      /* "cpu", "hip:1", "hip"; NULL: all */
    const char *op;          /* names by commas; NULL: all */
    const char *kernel;      /* NULL: all that do not refuse */
    const char *types;       /* "T=bf16,W=f32": only these; NULL: all */
    const char *dims;        /* "r=64 n=4096": only these sizes; NULL: as drawn */
    const char *isa;         /* CPU level, or "all": every level the machine has; NULL: the highest */
    const char *backends;    /* as in trine_options */
    const char *plugin_path; /* likewise */
    const char *golden;      /* directory of golden vectors, whose cases run in the place of drawn ones; NULL: none */
    const char *only;        /* cases by commas: "45", "e12" (at an edge, with its dims), "a17" (argument
                              * check), "h0" (huge), "g2" (golden); NULL: all */
    uint64_t seed;
    int64_t sm_count; /* of GPUs: the units of a queue, at most half of the device's; 0: all */
    int64_t cases;    /* of each op, mistaken calls not counted; 0: as many as the budget allows */
    double budget;    /* seconds for all ops together; 0: no limit */
    double timeout;   /* seconds after which a kernel counts as hung; 0: 120 */
    bool huge;        /* also the cases of more than 2^31 elements */
    bool host_memory; /* every device takes host pointers: guard pages instead of guard bands */
    /* with host_memory: devices other than the CPU cannot report faults in the data, such as ids out of range;
     * they are not tried there */
    bool asynchronous;
    bool stop; /* at the first failure of an op, go on to the next op */
    /* for sanitizers, which follow no fork: in this process, and each operand on a device in an allocation of its own,
     * its size rounded up to a multiple of so many bytes; 0: otherwise */
    int64_t exact;
    FILE *progress; /* a terminal for the progress bar; NULL: none */
    /* open for appending: the command line of each kernel's part in a case, before it runs; NULL: none */
    FILE *log;
} check_options;

typedef struct check_count {
    int64_t cases;          /* cases run, mistaken calls not among them */
    int64_t mistakes;       /* mistaken calls that a device was given, and that must be refused */
    int64_t passed, failed; /* together: the mistaken calls, and a comparison for each case and kernel that takes it */
    int64_t skipped;        /* cases that no kernel of a device takes */
    double seconds;
} check_count;

typedef struct check_failure {
    int op; /* place in check_report.op */
    char kernel[64];
    char text[1024];
    char replay[256];
} check_failure;

typedef struct check_report {
    int ops;
    struct {
        char name[32];
        check_count count;
    } op[TRINE_OP_COUNT];
    int failures; /* recorded; more may have been counted */
    check_failure failure[CHECK_MAX_FAILURES];
    char error[512]; /* why nothing could be run; "" if all is well */
} check_report;

/* Runs the suite. False if it could not be run at all, with the reason in report_out->error;
 * failures of cases do not count here. */
bool check_run(const check_options *options, check_report *report_out);

/* The sums over all ops. */
check_count check_total(const check_report *report);

/* The comparisons with a reference, or with an oracle. */
static inline int64_t check_comparisons(const check_count *count) {
    return count->passed + count->failed - count->mistakes;
}

/* Prints the failures, then a table with a row per op and their sum, then "N passed, N failed, N skipped". `quiet`:
 * only the failures and the last line. */
void check_print(const check_report *report, FILE *file, bool quiet);
void check_print_json(const check_report *report, const check_options *options, FILE *file);

/* Prints, for each op and device, the kernels that there are. False as check_run(). */
bool check_list(const check_options *options, FILE *file, check_report *report_out);

/* Says that the library has no such device, and why its backend was refused, if it was. */
void check_no_device(const trine *lib, const char *device, char *text, size_t size);

#endif
