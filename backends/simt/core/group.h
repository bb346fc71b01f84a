/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks on devices: memory of each rank that the others' threads write to. */
#ifndef TRINE_SIMT_GROUP_H
#define TRINE_SIMT_GROUP_H

#include "backends/simt/comm/exchange.h"
#include "host.h"

/* Enters the functions for groups, and that which waits for queues. */
void simt_fill_groups(trine_backend *backend_out);

/* What the device code is to do: x, y, their rows, n, kind and aligned. The rest is filled in. `packets`: of a row;
 * `parts`: in how many each round is cut. */
trine_status simt_exchange(const trine_call *call, const simt_function *function, exchange_params *params,
                           int64_t packets, int parts);

/* The same of parameters that begin with an exchange's. */
trine_status simt_exchange_more(const trine_call *call, const simt_function *function, void *params, size_t size,
                                int64_t packets, int parts);

/* Launches what `run` does, some of it after an exchange. A device loads code when its launches have ended, and those
 * of ranks that share it end when all have been launched: so where they do, all code is loaded before the first. What
 * other ranks need besides, `run` names while simt_group_loads(). */
trine_status simt_group_run(const trine_call *call, trine_status run(const trine_call *call));
bool simt_group_loads(const trine_call *call);

int simt_group_rank(const trine_call *call);

/* Memory of each rank that others copy to: its bytes, and where it begins. What was sent before an exchange is there
 * after it, and is read before another, after which more is sent to the same place; a call ends with one after which
 * nothing is read. */
size_t simt_group_landing(const trine_call *call);
char *simt_group_landing_of(const trine_call *call, int rank);
bool simt_group_reads_landing(void); /* by loads of any kind, not of the system's scope alone */

/* Copies of lines, from one `step` bytes to the next, that go beside the queue's launches if ranks have devices of
 * their own: what is copied after a fork follows what the queue did before it, and what the queue does after a join
 * follows the copies. */
trine_status simt_group_fork(const trine_call *call);
trine_status simt_group_copy(const trine_call *call, void *to, const void *from, size_t line, int64_t step,
                             int64_t lines);
trine_status simt_group_join(const trine_call *call);
bool simt_group_overlaps(const trine_call *call); /* do they go beside? */

/* Blocks of a launch at most, of which a unit holds so many: each rank on the device has its share. */
int64_t simt_group_blocks(const trine_call *call, int held);

/* Packets that all ranks of a group of the queue's device send in a round, at most; of any call. */
int64_t simt_group_room(const trine_call *call);

#endif
