/* SPDX-License-Identifier: Apache-2.0 */
/* What every function with a queue begins with. */
#ifndef TRINE_QUEUE_H
#define TRINE_QUEUE_H

#include "dispatch.h"

/* TRINE_ERR_ARGUMENT, naming `function`, unless `queue` is open. */
trine_status trine_queue_check(const trine_queue *queue, const char *function);

/* Is the queue's work being recorded into a graph, by us or by the owner of its stream? */
trine_status trine_queue_recording(trine_queue *queue, bool *recording_out);

/* TRINE_ERR_UNSUPPORTED, naming `function`, if it is: the driver would drop the recording. */
trine_status trine_queue_immediate(trine_queue *queue, const char *function);

/* Sees that the queue's workspace has so many bytes, for a call of the op of this name. */
trine_status trine_queue_take_workspace(trine_queue *queue, const char *op, size_t bytes);

/* list.c: takes away what lists were worked out in; NULL is allowed. */
void trine_list_free(trine_list *list);

/* Checks the arguments and makes the call for this queue's device; everything but the workspace. */
trine_status trine_prepare(trine_queue *queue, trine_op op, const void *args, bool need_data, trine_call *call_out);

#endif
