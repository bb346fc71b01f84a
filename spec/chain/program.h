/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a chain: plain data that the parser makes (spec/chain/parse.h), and kernels walk or generate code of.
 * Device code sees it too.
 *
 * A program runs phase by phase, each over the whole row. A phase begins with steps on values of the row, done once
 * for it, and goes on with steps on elements; those end in reductions, whose results are values of the row from the
 * next phase on, or, in the last phase, in stores. Elements do not live from phase to phase: each loads and computes
 * what it needs anew. All stores of elements come last of all steps, so that an output may be an input's very memory;
 * what is stored of the row is, before the last phase's elements. Without reductions there is one phase.
 *
 * Step by step all is f32, or, if one of the tensors is f64, that: a step's result is rounded to it, and CHAIN_TO_F32,
 * CHAIN_TO_BF16 and CHAIN_TO_F16 round further. A kernel may keep a product that one sum or difference alone takes from
 * being rounded by itself. */
#ifndef TRINE_SPEC_CHAIN_PROGRAM_H
#define TRINE_SPEC_CHAIN_PROGRAM_H

#include <stdint.h>

enum {
    CHAIN_INPUTS = 8,
    CHAIN_OUTPUTS = 4,
    CHAIN_ROW_OUTPUTS = 2, /* of one value for a row */
    CHAIN_REGISTERS = 16,  /* of an element */
    CHAIN_ROW_VALUES = 32,
    CHAIN_CONSTANTS = 32,
    CHAIN_STEPS = 128, /* of all phases */
    CHAIN_PHASES = 8,
    CHAIN_REDUCTIONS = 8 /* of a phase */
};

enum { CHAIN_ROW = CHAIN_REGISTERS, CHAIN_CONSTANT = CHAIN_ROW + CHAIN_ROW_VALUES };

/* NaN goes through all of them; comparisons with it are false, but !=. A condition is true unless it is 0. */
typedef enum chain_op {
    CHAIN_LOAD, /* input a, at the element */
    CHAIN_NEG,
    CHAIN_ABS,
    CHAIN_SQRT,
    CHAIN_RSQRT,
    CHAIN_EXP,
    CHAIN_LOG,
    CHAIN_TANH,
    CHAIN_ERF,
    CHAIN_SIGMOID,
    CHAIN_SILU,
    CHAIN_GELU,      /* a (1 + erf(a/sqrt 2))/2 */
    CHAIN_GELU_TANH, /* a (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3)))/2 */
    CHAIN_RELU,      /* a if a > 0, NaN if it is that, else 0 */
    CHAIN_FLOOR,
    CHAIN_TO_F32, /* in programs of f64 alone */
    CHAIN_TO_BF16,
    CHAIN_TO_F16,
    CHAIN_ADD,
    CHAIN_SUB,
    CHAIN_MUL,
    CHAIN_DIV,
    CHAIN_MIN, /* NaN if a or b is */
    CHAIN_MAX,
    CHAIN_LT, /* 1 if a < b, else 0 */
    CHAIN_LE,
    CHAIN_EQ,
    CHAIN_NE,
    CHAIN_FMA,     /* a b + c, with one rounding or two */
    CHAIN_SELECT,  /* b if a is true, else c */
    CHAIN_SUM_ROW, /* a value of the row: the sum of a over it; likewise: */
    CHAIN_MAX_ROW, /* NaN if one is */
    CHAIN_MIN_ROW,
    CHAIN_OVER_N,    /* on a value of the row: divided by the row's length */
    CHAIN_STORE,     /* a to output `to`, if that is given */
    CHAIN_STORE_ROW, /* a value of the row, likewise, to that output of the row */
    CHAIN_OPS
} chain_op;

/* Operands, and `to`, are CHAIN_REGISTERS registers of the element, then values of the row from CHAIN_ROW on, then
 * constants from CHAIN_CONSTANT on; of CHAIN_LOAD a is an input, of CHAIN_STORE `to` is an output. */
typedef struct chain_step {
    uint8_t op; /* a chain_op */
    uint8_t to;
    uint8_t a, b, c;
} chain_step;

/* Steps row .. first-1 are on values of the row, first .. end-1 on elements. */
typedef struct chain_phase {
    uint8_t row, first, end;
} chain_phase;

typedef struct chain_program {
    uint8_t phases, steps;
    uint8_t registers, row_values, constants; /* that are used */
    uint8_t inputs, outputs;                  /* sets: read; written, those of the row behind the others */
    uint8_t wide;                             /* is all computed in f64? */
    chain_phase phase[CHAIN_PHASES];
    chain_step step[CHAIN_STEPS];
    double constant[CHAIN_CONSTANTS]; /* of f32, if that is what is computed in */
} chain_program;

/* Operands that a step has. */
static inline int chain_operands(int op) {
    return op == CHAIN_LOAD || op >= CHAIN_OPS     ? 0
           : op == CHAIN_FMA || op == CHAIN_SELECT ? 3
           : op >= CHAIN_ADD && op < CHAIN_FMA     ? 2
                                                   : 1;
}

/* Does it matter to a program where a row ends? */
static inline int chain_by_rows(const chain_program *p) { return p->phases > 1 || p->outputs >> CHAIN_OUTPUTS != 0; }

/* Ops whose result is a value of the row, whatever they are given. */
static inline int chain_reduces(int op) { return op >= CHAIN_SUM_ROW && op <= CHAIN_MIN_ROW; }

#endif
