/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of cross_entropy for rows in the shared memory of one block, and for sm_90a of the blocks of a cluster. */
#ifndef TRINE_CUDA_CROSS_ENTROPY_HOST_H
#define TRINE_CUDA_CROSS_ENTROPY_HOST_H

#include "backends/simt/cross_entropy_launch.h"
#include "cross_entropy.h"
#include "state.h"

/* Bytes of a row for each block, if a processor holds so many. */
int cross_entropy_room(const trine_call *call, int held);
int64_t cross_entropy_bytes(const trine_call *call);

/* Launches an entry <op>_<step>[_ragged]_<type>_<held>: `blocks` for each row. */
trine_status cross_entropy_launch_parts(const trine_call *call, const char *step, int held, int blocks);

const char *cross_entropy_sm90_refuse(const trine_call *call);
trine_status cross_entropy_sm90_launch(const trine_call *call);

#endif
