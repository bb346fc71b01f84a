/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks on the CPU: memory of each rank that the others read.
 *
 * A collective op goes by steps. In each, every rank writes to its half what others shall have, posts it, and waits
 * until all have posted theirs; then it reads the others' halves. There are two halves, used in turn. A rank posts a
 * step when it has read all that it wants of the one before, so that a half may be written again once all have posted
 * the step after it: no other counter is needed. */
#ifndef TRINE_CPU_GROUP_H
#define TRINE_CPU_GROUP_H

#include "backends/backend.h"

trine_status trine_cpu_group_make(const trine_device *device, void *queue, const trine_comm_setup *setup, void *blob,
                                  void **comm_out);
trine_status trine_cpu_group_join(void *comm, const void *blobs);
void trine_cpu_group_joined(void *comm);
void trine_cpu_group_close(void *comm);
void trine_cpu_group_abort(void *comm);
void trine_cpu_group_refuse(void *comm, int op, const char *message);

/* The bytes of a half; of a call without a communicator, what one would have by default. */
int64_t trine_cpu_group_bytes(const trine_call *call);

int trine_cpu_group_rank(const trine_call *call);

/* This rank's next half, once it may be written. */
trine_status trine_cpu_group_ready(const trine_call *call, char **half_out);

/* Posts it, and waits for all. The first of a call also sees that all ranks make the same one: the same op, `way` of
 * doing it, sizes, types and parameters. */
trine_status trine_cpu_group_post(const trine_call *call, bool first, int way);

/* A rank's half of the step that was posted last, until this rank's next one is ready. */
const char *trine_cpu_group_half(const trine_call *call, int rank);

#endif
