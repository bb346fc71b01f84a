/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a backend's table that device modules share, and what each gives for itself. */
#ifndef TRINE_SIMT_QUEUE_H
#define TRINE_SIMT_QUEUE_H

#include "backends/backend.h"

/* Enters the functions for queues, memory, graphs and marks. */
void simt_fill_backend(trine_backend *backend_out);

/* Each module's own: finds its driver and devices, once in a process: libraries opened later share the devices and what
 * they hold. NULL with the reason; called by one thread at a time. */
const trine_backend *simt_open_backend(const trine_host *host, char *reason_out, size_t reason_size);

#endif
