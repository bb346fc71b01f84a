/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a run as processes of this program. */
#ifndef GPT_RANKS_H
#define GPT_RANKS_H

#include "model.h"

/* A rank's life, in a process of its own; its exit status. */
typedef int gpt_life(void *context, int rank, const trine_bootstrap *bootstrap);

/* Runs `ranks` lives, and waits for them: 0, or the status of the first that failed, whose death the others are told
 * of. No library may be open. */
int gpt_ranks_run(int ranks, gpt_life *life, void *context);

#endif
