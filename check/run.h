/* SPDX-License-Identifier: Apache-2.0 */
/* Running cases, in the worker process. */
#ifndef TRINE_CHECK_RUN_H
#define TRINE_CHECK_RUN_H

#include "check.h"
#include "compare.h"
#include "memory.h"

enum { MAX_CONTEXTS = 64, MAX_QUEUES = 1024, SMALL_CACHE = 4096 };

/* The kinds of cases, by the letter in front of their number. */
enum { CASE_ARGUMENTS = 'a', CASE_AGREEMENT = 0, CASE_EDGE = 'e', CASE_HUGE = 'h', CASE_GOLDEN = 'g' };

/* Memory that the worker and its parent share: where the worker is, and what came out. */
typedef struct shared {
    int op;   /* place in report.op */
    int kind; /* CASE_* */
    /* case of this kind; of CASE_EDGE, which follow cases of agreement, the one of these that ran */
    int64_t index;
    int64_t turn;     /* edge cases begun */
    int64_t number;   /* the one that runs; */
    char dims[64];    /* the size that it asks for, "n=4097" */
    int item;         /* of the cases asked for by number: the one that runs */
    int kernel;       /* within the case, in order: the one that runs */
    int first_kernel; /* of the case at which a new worker resumes: those before it have run */
    bool in_kernel;   /* a kernel runs, and is to be passed over if the worker dies */
    char where[96];   /* " --device cpu --kernel cpu_v3", of the kernel that runs */
    char kernel_name[64];
    char what[640];       /* the case in words */
    volatile double beat; /* when the kernel that runs was started */
    int64_t drawn;        /* cases of agreement that ran, of all ops */
    double op_start;      /* when this op's first case was; 0: not yet */
    memory_fault fault;
    bool finished;
    check_report report;
} shared;

/* A device of a library opened at one CPU level. */
typedef struct context {
    trine *lib;
    int device;
    trine_device_info_t info;
    const char *isa; /* option that gave it; NULL: none */
    /* of two for one device: one takes the host's last-level cache for small, so that outputs are stored past it; and
     * the other does not. Cases have one of them */
    bool paired, small;
    bool owner; /* closes lib */
    trine_queue *queue;
    memory *memory;
} context;

/* The edges of an op's kernels, each with the rows of types that have it, in order. */
typedef struct edge {
    int symbol;
    int64_t size;
    int row;
} edge;

typedef struct edge_list {
    int count, places; /* places: different symbols and sizes */
    edge *edge;
} edge_list;

typedef struct runner {
    const check_options *options;
    shared *shared;
    trine_case asked; /* of the op that runs: types and dimensions that its cases must have */
    bool possible;    /* it has such cases */
    edge_list edges;  /* of its kernels */
    int contexts;
    context context[MAX_CONTEXTS];
    memory host, device[MAX_CONTEXTS];
    int queues;
    struct {
        const context *context;
        char kernel[64];
        int threads;
        trine_queue *queue;
    } queue[MAX_QUEUES];
} runner;

/* context.c: opens the libraries, devices and queues that the options ask for. False with shared->report.error. */
bool runner_open(runner *r);
void runner_close(runner *r);

/* The strict queue of a context that runs only `kernel` (NULL: any), with so many threads (0: default). `groups`: it is
 * for calls of all ranks, whose groups it keeps. NULL on error. */
trine_queue *runner_queue(runner *r, const context *c, const char *kernel, int threads, bool groups);

/* Monotonic seconds. */
double runner_time(void);

/* Notes what runs now, so that the parent can name it; and the result of one kernel in one case. */
void runner_enter(runner *r, const context *c, const char *kernel, const problem *p);
void runner_pass(runner *r);
void runner_skip(runner *r);
void runner_fail(runner *r, const context *c, const char *kernel, const problem *p, const char *text);

/* Records a failure; used by the parent as well. */
void report_failure(shared *s, const check_options *options, const char *text);

/* operate.c: puts a case's operands into guarded memory, and looks at them afterwards. `place` rotates placements,
 * `pattern` is the poison. On the host slices that are to lie far apart do, on devices the tensor is in one piece: a
 * context's strides, before the library is asked about the call. */
void operands_spread(const context *c, problem *p);
bool operands_send(const context *c, problem *p, trine_queue *queue, int place, int pattern);
/* Nothing but outputs may have changed (nothing at all if `untouched`); outputs are gathered to `out` unless NULL. */
bool operands_fetch(const context *c, problem *p, trine_queue *queue, bool untouched, outcome *out, char *text_out,
                    size_t size);

/* edges.c: asks the op's kernels for their edges; and runs the case of turn `turn`: of one size below, at or above an
 * edge, each edge in turn. False if it cannot be had. */
void edges_find(runner *r, const trine_plan *plan);
bool edges_run(runner *r, const trine_plan *plan, int64_t turn);

/* agree.c (drawn and golden cases, and those at edges), arguments.c, huge.c: one case. False if there is no case of
 * this number. */
bool run_agreement(runner *r, const trine_plan *plan, int64_t index);
bool run_edge(runner *r, const trine_plan *plan, int64_t number, const trine_case *asked);
bool run_arguments(runner *r, const trine_plan *plan, int64_t index);
bool run_golden(runner *r, const trine_plan *plan, int64_t index);
bool run_huge(runner *r, const trine_plan *plan, int64_t index);

#endif
