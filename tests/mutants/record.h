/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the module of mutants: launches that are kept instead of run. */
#ifndef TRINE_TESTS_RECORD_H
#define TRINE_TESTS_RECORD_H

#include "backends/backend.h"

/* Runs a launch, or keeps it while work is recorded. */
trine_status record_submit(const trine_call *call, trine_status (*launch)(const trine_call *call));

/* Enters the functions for graphs. */
void record_fill_backend(trine_backend *backend_out);

#endif
