/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a chain as a graph of values, which the reference walks, and as a program, which kernels do. */
#ifndef TRINE_SPEC_CHAIN_PARSE_H
#define TRINE_SPEC_CHAIN_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "program.h"

enum { CHAIN_TEXT = 1024 /* characters */, CHAIN_NODES = 160, CHAIN_NUMBER = CHAIN_OPS /* the op of a number */ };

/* A value: of an element, or of a whole row. */
typedef struct chain_node {
    uint8_t op;      /* a chain_op, or CHAIN_NUMBER */
    uint8_t a, b, c; /* the values it is made of, which stand before it; of CHAIN_LOAD a is an input */
    uint8_t phase;   /* the first in which it can be had */
    bool row;
    double number;
} chain_node;

typedef struct chain_graph {
    int count;
    bool wide; /* of f64 */
    chain_node node[CHAIN_NODES];
    int output[CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS]; /* a value; -1: not written */
} chain_graph;

/* The graph of a text, computed in f64 if `wide`, else in f32; and the program of a graph. False, and what is wrong in
 * `error`, if they have none. */
bool trine_chain_parse(const char *text, bool wide, chain_graph *graph_out, char *error, size_t size);
bool trine_chain_compile(const chain_graph *graph, chain_program *program_out, char *error, size_t size);

/* Both, or the program that a text which was met before had. */
bool trine_chain_program_of(const char *text, bool wide, chain_program *program_out, char *error, size_t size);

#endif
