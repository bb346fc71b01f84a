/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants over the references: the float64 reference of an op runs on a call whose inputs or parameters were spoiled,
 * or its results are spoiled afterwards. */
#ifndef TRINE_TESTS_MUTANT_H
#define TRINE_TESTS_MUTANT_H

#include <trine/ops.h>

#include "backends/backend.h"

/* One defect of one op. tests/mutants/<family>.c lists those of its family's ops. What is left out is as it should
 * be. */
typedef struct mutant {
    const char *op, *name, *what;
    const char *param; /* taken to be `value`, whatever the call says */
    double value;
    const char *without; /* an optional input that is not read */
    const char *output;  /* comes out times `factor` */
    double factor;
    void (*before)(trine_ref *ref, void *args); /* spoils the inputs and parameters, which are copies */
    void (*after)(trine_ref *ref);              /* spoils the results */
    /* only the low 32 bits of these i64 are read, and held against their symbol */
    const char *ids;
    bool streams;             /* only where outputs are larger than the last-level cache */
    bool narrow;              /* places in memory are counted in 32 bits */
    const char *edge;         /* the dimension along which its way changes, as it says itself, */
    int64_t size;             /* at this size */
    const char *types, *dims; /* the draws that show it, as `trine check` takes them; NULL: any */
    int64_t cases;            /* in so many it must be caught; 0: 400 */
} mutant;

/* The lists of all families; each ends with an entry whose op is NULL. */
extern const mutant *const mutant_families[];
enum { MUTANT_MOST = 40 /* of an op */ };

/* Appends an op's mutants over its reference to its list of kernels, and in front of them the reference itself,
 * "<op>_reference". False if there is no CPU, whose kernel finds the faults in the data. */
bool mutant_kernels(trine_op op, trine_kernel *list, int *count);

/* The arrays of a reference, and its sizes, in short. */
#define V(name) trine_ref_value(ref, name)
#define D(name) trine_ref_dim(ref, name)

#endif
