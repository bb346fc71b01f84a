/* SPDX-License-Identifier: Apache-2.0 */
/* Are two programs of tensor operations the same function? Both are run on random elements of two finite fields, where
 * nothing rounds; docs/proof.md says why that decides it. */
#ifndef TRINE_CHECK_FIELD_H
#define TRINE_CHECK_FIELD_H

#include <stdint.h>

/* Two programs over inputs with shapes, "x: r n; w: n k", as field_compare() takes them. */
typedef struct field_case {
    const char *name, *inputs, *left, *right;
} field_case;

/* What this library composes, or fuses, beside its parts. The last entry has no name. */
extern const field_case field_cases[];

typedef enum field_verdict {
    FIELD_EQUAL,
    FIELD_DIFFERENT,
    FIELD_UNDECIDED, /* no points were found at which all roots exist, or what is asked has no useful bound */
    FIELD_MISTAKEN   /* a text cannot be read */
} field_verdict;

typedef struct field_result {
    field_verdict verdict;
    int64_t elements;  /* of the result */
    double log2_error; /* programs that differ are called equal with a probability below 2 to the power of this */
    char message[400]; /* the element that differs, or what is wrong */
} field_result;

/* Compares two programs. A program is "name = expression; ...; expression", of names, decimal numbers and functions;
 * field_program.c has the list of these. `inputs` gives inputs up to two dimensions each, by symbols or sizes; `dims`,
 * "r=4 n=8", sizes of symbols, and may be NULL: small ones are chosen. */
void field_compare(const char *inputs, const char *dims, const char *left, const char *right, uint64_t seed,
                   field_result *result_out);

#endif
