/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed while ranks of the process share a device. A device frees when nothing runs, and what one rank
 * has launched runs until the others have come: so memory is kept, until a later one is freed or wanted while none of
 * them has anything to run, or until the last of their groups is closed. */
#ifndef TRINE_SIMT_KEPT_H
#define TRINE_SIMT_KEPT_H

#include "backends/backend.h"

/* Of a group whose ranks share devices. */
void simt_keep_begin(void);
void simt_keep_end(void);

/* Around what submits launches to a queue that may wait for other ranks: none begins while memory is freed. The queue
 * is then asked whether they have ended, until it is closed; NULL: nothing is launched, but a stream is not to be
 * asked. */
void simt_keep_launching(const trine_device *device, const void *queue);
void simt_keep_launched(void);
void simt_keep_closed(const void *queue);

/* Memory of a device or, where `host`, of the host. */
trine_status simt_free(const trine_device *device, void *memory, bool host);

/* Frees what is kept, if that may be: was there any? */
bool simt_free_kept(void);

#endif
