/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of the `trine` command share. */
#ifndef TRINE_TOOLS_TOOL_H
#define TRINE_TOOLS_TOOL_H

#include <stdio.h>

#include <trine/ops.h>

#include "options.h"
#include "spec/case.h"

/* The subcommands: argv[0] is the subcommand's name. They return the exit status: 0, 1 for a failure, 2 for a mistake
 * in the command line. */
int trine_tool_run(int argc, char **argv);
int trine_tool_info(int argc, char **argv);
int trine_tool_spec(int argc, char **argv);
int trine_tool_explain(int argc, char **argv);
int trine_tool_check(int argc, char **argv);
int trine_tool_bench(int argc, char **argv);
int trine_tool_tune(int argc, char **argv);
int trine_tool_judge(int argc, char **argv);

/* trine check --exact-field, of two programs or none. */
int check_field(const char *inputs, const char *dims, uint64_t seed, const char *const *program, int programs);

/* trine bench --peers, argv[flag]: the other words are options of trine-peers.
 * Returns, with the exit status, only if that cannot be run. */
int bench_peers(char **argv, int flag);

/* The path of trine-peers. False if there is none. */
bool find_peers(char *out, size_t size);

/* The options that open a queue, in every subcommand that has one. */
typedef struct target {
    const char *device; /* NULL: the best */
    const char *kernel; /* NULL: the best */
    const char *isa;    /* NULL: what the CPU has */
    int64_t threads;    /* 0: all cores */
    int64_t sm_count;   /* 0: all */
    trine *lib;
    trine_queue *queue;
    trine_device_info_t info;
} target;

#define TARGET_OPTIONS(t) \
    OPTION_TEXT("device", &(t).device, "NAME", "device, as trine info lists them (default: the best)"), \
        OPTION_TEXT("kernel", &(t).kernel, "NAME", "only this kernel; fail if it refuses"), \
        OPTION_TEXT("isa", &(t).isa, "LEVEL", "highest CPU level to use: baseline, v3, v4, ..."), \
        OPTION_INTEGER("threads", &(t).threads, 1, 65536, "N", "threads of an op on the CPU (default: all cores)")

/* For subcommands that run or explain calls; choices are recorded for whole devices. */
#define PART_OPTION(t) \
    OPTION_INTEGER("sm-count", &(t).sm_count, 1, 65536, "N", "SMs or CUs of a GPU that are used (default: all)")

/* Opens the library and a queue; 0, or the exit status after a message. */
int target_open(target *t, const char *command);
void target_close(target *t);

/* Checks the tables; 0, or the exit status after a message. */
int tables_ok(void);

/* cases.c: the op of a name, TRINE_OP_NONE after a message with the nearest name; whether all of a list "a,b", which
 * may be NULL, are ops; and whether `name` is in such a list, NULL having all. */
trine_op find_op(const char *command, const char *name);
bool find_ops(const char *command, const char *list);
bool listed(const char *list, const char *name);

/* Makes the case of an op that the options --case, --dims and --types, each may be NULL, describe.
 * 0, or the exit status after a message. */
int make_case(const char *command, trine_case *c, trine_op op, const char *named, const char *dims, const char *types);

/* The options that select cases, in the subcommands that take many. */
typedef struct selection {
    const char *op;    /* "a,b"; NULL: all */
    const char *named; /* the start of their names; NULL: all */
    const char *cases; /* a file of them; NULL: the specification's */
    const char *dims, *types;
} selection;

#define SELECTION_OPTIONS(s) \
    OPTION_TEXT("op", &(s).op, "NAME,...", "only these ops"), \
        OPTION_TEXT("case", &(s).named, "NAME", "only the specification's cases whose name starts so"), \
        OPTION_TEXT("cases", &(s).cases, "FILE", "an op and a case on each line, instead of the specification's"), \
        OPTION_TEXT("dims", &(s).dims, "\"m=M ...\"", \
                    "these dimensions and parameters instead of the cases (with --case: on top)"), \
        OPTION_TEXT("types", &(s).types, "T=TYPE,...", "these element types")

/* 0, or the exit status after a message. */
int selection_check(const char *command, const selection *s);

/* Visits the op and the text of each case, NULL where --dims alone says it, of which selection_make makes the case.
 * False with the reason in `error`. */
typedef void case_visit(void *context, trine_op op, const char *text);
bool selection_each(const selection *s, case_visit *visit, void *context, char *error, size_t size);
bool selection_make(const selection *s, trine_case *c, trine_op op, const char *text, char *error, size_t size);

#endif
