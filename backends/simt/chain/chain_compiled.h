/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of chains that are compiled at run time, where the vendor's compiler is. */
#ifndef TRINE_SIMT_CHAIN_COMPILED_H
#define TRINE_SIMT_CHAIN_COMPILED_H

#include "backends/backend.h"

/* Where nothing can be compiled, or this program could not. */
const char *chain_compiled_refuse(const trine_call *call);
/* Compiles the program when it is launched for the first time. */
trine_status chain_compiled_launch(const trine_call *call);
trine_status chain_compiled_launch_list(trine_call *const *calls, int64_t count);
void chain_compiled_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
