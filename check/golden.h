/* SPDX-License-Identifier: Apache-2.0 */
/* Golden cases: calls with the results of an oracle outside this repository, which references and kernels must meet. */
#ifndef TRINE_CHECK_GOLDEN_H
#define TRINE_CHECK_GOLDEN_H

#include "problem.h"

typedef enum golden_status { GOLDEN_END, GOLDEN_CASE, GOLDEN_WRONG } golden_status;

/* Reads case `index` of an op from a directory of golden vectors. GOLDEN_CASE: it is in `p`; GOLDEN_END: there are no
 * more; GOLDEN_WRONG: the file is missing or malformed, `error` says why; the latter two leave nothing to be freed. */
golden_status golden_make(problem *p, const trine_plan *plan, const char *directory, int64_t index, char *error,
                          size_t size);

#endif
