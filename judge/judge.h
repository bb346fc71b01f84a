/* SPDX-License-Identifier: Apache-2.0 */
/* The judge: holds a kernel from elsewhere, as source or machine code, against an op's specification, times it beside
 * trine's own kernel, and says one page.
 *
 * Nothing of the kernel is loaded into the process that judges. The agreement suite runs it in its worker. Then, in the
 * trial, it runs in a process of its own: this one draws the inputs, keeps the clock, and computes what must come out
 * when the kernel has given its answer. */
#ifndef TRINE_JUDGE_H
#define TRINE_JUDGE_H

#include <stdio.h>

#include <trine/ops.h>

#include "check/check.h"
#include "spec/case.h"

enum { JUDGE_MAX_TRIALS = 16, JUDGE_ROUNDS = 11, JUDGE_PEERS = 4 };

/* The kernel's name in the library's lists. */
#define JUDGE_KERNEL "judged"

typedef struct judge_options {
    const char *file;      /* C, C++, CUDA or HIP source, a shared object, or device code */
    const char *directory; /* where trine-judge_<backend>.so are */
    const char *peers;     /* the program that times other libraries; NULL: there is none */
    trine_op op;
    const char *device;        /* "cpu", "cuda:0", "hip:1" */
    const char *types, *sizes; /* of the calls that the agreement suite draws, as in check_options; NULL: all */
    const char *only;          /* these cases of the suite, and no trial; NULL: all */
    const char *dims;          /* of the call that is timed; NULL: the specification's cases */
    const char *compiler;      /* NULL: cc, c++, nvcc or hipcc by the file's name */
    const char *flags;         /* NULL: those of a fast build */
    const char *entry;         /* of device code: the kernel's name; NULL: the file has a judge_launch() */
    const char *grid;          /* of device code: "blocks=(r*n+255)/256 threads=256 shared=0" */
    double budget;             /* seconds for the agreement suite */
    double timeout;            /* seconds after which the kernel counts as hung */
    int64_t memory;  /* bytes that a process of the kernel may have besides those of its tensors; 0: no limit */
    int64_t threads; /* of a call on the CPU; 0: all */
    uint64_t seed;
    FILE *progress; /* NULL: none */
} judge_options;

/* Another library on a case, and trine's kernel in turns with it, in seconds a call. */
typedef struct judge_peer {
    char name[32];
    double trine, seconds;
} judge_peer;

/* A case of the trial, in seconds a call. */
typedef struct judge_trial {
    char text[256];
    char refused[320]; /* why the kernel does not take it; "": it was timed */
    char ours[64];     /* the kernel that trine chose */
    double judged[JUDGE_ROUNDS], trine[JUDGE_ROUNDS], median, trine_median;
    int calls;    /* in a round */
    double bound; /* the least that the roofs allow; 0: not known */
    double p;     /* that both are equally fast, by Mann and Whitney's test */
    int peers;
    judge_peer peer[JUDGE_PEERS];
} judge_trial;

typedef struct judge_verdict {
    bool built, loaded, tried;
    char command[1024]; /* that built it; "": nothing was to be built */
    double build_seconds;
    char reason[2048]; /* why it is not correct; "": it is */
    char device[192];  /* in words */
    check_report check;
    int trials;
    judge_trial trial[JUDGE_MAX_TRIALS];
    double speedup;  /* geometric mean over the trials; 0: none was timed */
    double best;     /* likewise, over the fastest of trine and the others of each */
    char alone[160]; /* why no other library was timed; "": one was, or nothing was timed */
} judge_verdict;

/* Judges. False, with the reason in `reason`, if the kernel is refused. */
bool judge_run(const judge_options *options, judge_verdict *verdict_out);

void judge_print(const judge_options *options, const judge_verdict *verdict, FILE *file);
void judge_print_json(const judge_options *options, const judge_verdict *verdict, FILE *file);

/* compile.c: makes of the options' file what the adapter loads, in the folder `work`. False with the reason. */
bool judge_build(const judge_options *options, const char *work, const char *arch, char path_out[4096],
                 judge_verdict *verdict);

/* child.c: calls `work` in a process of its own under the options' limits, and waits for it. False, with what ended it
 * in `reason`, if it did not return. */
bool judge_apart(const judge_options *options, double seconds, void (*work)(void *context), void *context, char *reason,
                 size_t size);

/* trial.c: times the kernel beside trine's on one case, whose outputs are all held against the reference. False with
 * the reason in `reason`. */
bool judge_try(const judge_options *options, const trine_case *c, int64_t last_level, judge_trial *trial, char *reason,
               size_t size);

/* vendor.c: times other libraries on the trials' calls. */
void judge_peers(const judge_options *options, judge_verdict *verdict);

/* The judged kernel's speed over another library's: what trine's took beside either is the measure. */
static inline double judge_over(const judge_trial *t, const judge_peer *peer) {
    return t->trine_median / t->median * (peer->seconds / peer->trine);
}

/* The names under which the adapter finds the kernel: environment variables of the processes that load it. */
#define JUDGE_FILE "JUDGE_FILE"
#define JUDGE_OP "JUDGE_OP"
#define JUDGE_BACKEND "JUDGE_BACKEND"
#define JUDGE_ENTRY "JUDGE_ENTRY"
#define JUDGE_GRID "JUDGE_GRID"

/* Length of "cuda" in "cuda:0". */
static inline int judge_backend_length(const char *device) {
    int length = 0;
    while (device[length] && device[length] != ':') length++;
    return length;
}

#endif
