/* SPDX-License-Identifier: Apache-2.0 */
/* One case of the agreement suite: types, sizes, parameters, layouts and values, all made from the seed and the case's
 * number. */
#ifndef TRINE_CHECK_PROBLEM_H
#define TRINE_CHECK_PROBLEM_H

#include "memory.h"
#include "random.h"
#include "spec/case.h"

/* What the floating-point inputs hold. */
typedef enum fill {
    FILL_RANDOM,   /* around 0, of size 1 */
    FILL_INTEGERS, /* small integers, in all tensors */
    FILL_OFFSET,   /* mean far above the spread, of any size */
    FILL_HUGE,     /* up to the largest of the type */
    FILL_TINY,     /* around the smallest normal, and below */
    FILL_RANGE,    /* all exponents */
    FILL_CANCEL,   /* large values of both signs and small ones: shows the order of a sum */
    FILL_NAN,      /* random, with a few NaN */
    FILL_INF,      /* random, with a few Inf of both signs */
    FILL_CONSTANT, /* all the same, of any size */
    FILL_ZERO,     /* zeros of both signs */
    FILL_BITS,     /* random bits: every code of the type */
    FILL_GOLDEN,   /* as a golden case says */
    FILL_SCALED,   /* of a tensor among those of all exponents: random times one power of two, of any size */
    FILLS
} fill;

typedef enum problem_kind {
    PROBLEM_DRAWN, /* anything that the table admits */
    /* the same beside sizes that are asked for, of which none is cleared: the others are as small as may be, or drawn,
     * so that the case is cheap */
    PROBLEM_EDGE,
    /* the valid call that argument checks spoil: contiguous tensors, no zero sizes, random values, all optional tensors
     * where they may be */
    PROBLEM_PLAIN,
    PROBLEM_GOLDEN, /* read from a file of golden vectors, with what must come out */
    /* what a huge case is made of: the same with any parameters, by chance fewer optional tensors, and none of where
     * sequences begin */
    PROBLEM_PART
} problem_kind;

typedef struct operand {
    int alias;         /* the input whose very view this tensor is; -1: none */
    trine_tensor full; /* as the specification sees it: full rank, full shape, stride 0 where broadcast */
    int64_t count;     /* elements of the full shape */
    int64_t low;       /* elements of memory before element (0, ..., 0) */
    size_t bytes;      /* of memory covered; 0 if there are no elements */
    /* where slices along a dimension lie farther apart than 32 bits can count, each in a window of its own, which `at`
     * and the image have one behind the other; count 0: no slices do */
    int far; /* the dimension */
    memory_windows windows;
    int64_t *at;          /* by logical element: its place in the memory covered */
    unsigned char *image; /* the memory covered, as an input has it */
    double *value;        /* dense: what the reference is given, and for outputs what it returned */
    double *magnitude, *slack;
    double *golden; /* of a golden case's output: what an oracle says; otherwise NULL */
} operand;

typedef struct problem {
    const trine_plan *plan;
    /* as passed to the library; its tensors' data is set before each run */
    trine_case call;
    _Alignas(16) unsigned char resolved[TRINE_MAX_ARGS]; /* the args structure with fallbacks, for the reference */
    fill fill;
    problem_kind kind; /* never PROBLEM_EDGE, which is drawn */
    /* rows and addresses of whole vectors, as fast paths want them: by chance alone they would seldom all be */
    bool whole;
    bool far;       /* tensors in windows */
    bool small;     /* the host's last-level cache is taken for small */
    bool alike;     /* integers of a tensor are all the same */
    bool bare;      /* no optional tensor if that may be, and parameters as they are by themselves */
    bool exact;     /* integers in, so that every kernel must return the very bits */
    bool empty;     /* every output has no elements */
    uint64_t first; /* where in the first output of a huge case this part's begins */
    operand operand[TRINE_MAX_TENSORS];
    random_state random;
} problem;

/* Makes case `index` of an op. `asked`: types and dimensions that the case must have, where they are set; NULL:
 * whatever is drawn. False if no admissible sizes were found, or the types are not those asked for;
 * nothing is to be freed then. */
bool problem_make(problem *p, const trine_plan *plan, const trine_case *asked, uint64_t seed, int64_t index,
                  problem_kind kind);
/* The same of a finished case that is given, contiguous and with random values, whatever it costs. */
bool problem_given(problem *p, const trine_case *given, uint64_t seed, int64_t index);
/* The call of a case with row `row` of types, the sizes asked for and others as small as may be: contiguous tensors
 * that have no values. False if there are no such sizes. */
bool problem_outline(problem *p, const trine_plan *plan, const trine_case *asked, int row);
void problem_free(problem *p);

/* Completes a case that was not drawn: symbols and types of absent tensors as the dispatcher leaves them, and the
 * reference's copy of the arguments. */
void problem_complete(problem *p);

/* Runs the float64 reference; results are in operand[].value. */
void problem_reference(problem *p);

/* One line: types, sizes, parameters, fill, aliases, layouts. */
void problem_text(const problem *p, char *text_out, size_t size);

static inline bool problem_has(const problem *p, int tensor) { return p->call.present >> tensor & 1; }
static inline uint32_t problem_flags(const problem *p, int tensor) { return p->plan->tensor[tensor].spec->flags; }
static inline bool problem_input(const problem *p, int tensor) {
    return problem_has(p, tensor) && problem_flags(p, tensor) & IN;
}
static inline bool problem_output(const problem *p, int tensor) {
    return problem_has(p, tensor) && problem_flags(p, tensor) & OUT;
}

/* layout.c: shapes, strides and aliases of all operands, and where each element is. */
void layout_make(problem *p);
/* What memory an operand covers, and each element's place in it, from its full shape and strides. */
void layout_place(operand *o);

/* fill.c: the values of the inputs, as stored and as the reference sees them.
 * False if a fill cannot be had ("ids v" with v = 0). */
bool fill_make(problem *p);

/* Is the fill of a tensor this word ("ids", "derived", ...)? */
bool fill_is(const trine_spec_tensor *spec, const char *word);

#endif
