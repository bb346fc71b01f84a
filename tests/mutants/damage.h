/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of every op alike: the CPU's kernel runs, then what it wrote is damaged. */
#ifndef TRINE_TESTS_DAMAGE_H
#define TRINE_TESTS_DAMAGE_H

#include <trine/ops.h>

#include "backends/backend.h"

#define DAMAGES(DAMAGE) \
    DAMAGE(last_wrong, "the last element of each output is half as large again") \
    DAMAGE(last_unwritten, "the last element of each output is not written") \
    DAMAGE(all_nan_swallowed, "NaN in an output becomes 0") \
    DAMAGE(last_wrong_in_list, "the last element of each output is wrong where the call is one of a list")

/* Appends the damaged kernels of an op to its list; false if there is no CPU to run them. */
bool damage_kernels(trine_op op, trine_kernel *list, int *count);

/* A queue of the CPU's, in this process's own library; NULL if there is none. */
trine_queue *damage_queue(void);

/* Runs the CPU's kernel on a checked call; and says why that cannot be. */
trine_status damage_run(const trine_call *call);
const char *damage_refuses(const trine_call *call);

/* Index in memory of logical element i. */
int64_t tensor_place(const trine_tensor *t, int64_t i);

#endif
