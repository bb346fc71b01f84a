/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as graphs, which both programs of a comparison share: what is the same expression is one node. */
#ifndef TRINE_CHECK_FIELD_PROGRAM_H
#define TRINE_CHECK_FIELD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "field.h"

enum {
    FIELD_NODES = 512,     /* of a graph */
    FIELD_ELEMENTS = 4096, /* of a node */
    FIELD_NAMES = 64,
    FIELD_NAME = 32, /* bytes of a name, the 0 at its end included */
    FIELD_DEPTH = 100
};

typedef enum field_op {
    FIELD_INPUT,
    FIELD_NUMBER,
    FIELD_ADD,
    FIELD_SUB,
    FIELD_MUL,
    FIELD_DIV,
    FIELD_MATMUL,
    FIELD_TRANSPOSE,
    FIELD_SUM,        /* of each row */
    FIELD_COLUMN_SUM, /* of each column */
    FIELD_EXP,
    FIELD_SQRT,
    FIELD_FUNCTION /* of which nothing is known */
} field_op;

/* Is each element made of its arguments' elements in the same place? */
static inline bool field_by_element(field_op op) {
    return (op >= FIELD_ADD && op <= FIELD_DIV) || op == FIELD_SQRT || op == FIELD_FUNCTION;
}

typedef struct field_node {
    field_op op;
    int a, b;                      /* arguments; -1: none */
    int64_t number, parts;         /* of FIELD_NUMBER: number/parts */
    int function;                  /* of FIELD_FUNCTION */
    int64_t rows, columns, at;     /* at: the first element among those of all nodes */
    bool exponential;              /* an exp is in it */
    double numerator, denominator; /* degrees of the rational function that an element is, at most */
} field_node;

typedef struct field_name {
    char name[FIELD_NAME];
    int node;
} field_name;

typedef struct field_graph {
    field_node node[FIELD_NODES];
    int nodes;
    int64_t elements;
    field_name input[FIELD_NAMES];
    int inputs;
} field_graph;

/* Reads inputs and a program into the graph; the program's last expression is node *node_out. False after a mistake,
 * with what is wrong in `message`, in which `side` names the text. */
bool field_read_inputs(field_graph *g, const char *inputs, const char *dims, char *message, size_t size);
bool field_read_program(field_graph *g, const char *text, const char *side, int *node_out, char *message, size_t size);

#endif
