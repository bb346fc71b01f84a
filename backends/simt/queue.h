/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a backend's table that device modules share. */
#ifndef TRINE_SIMT_QUEUE_H
#define TRINE_SIMT_QUEUE_H

#include "backends/backend.h"

/* Enters the functions for queues, memory, graphs and marks. */
void simt_fill_backend(trine_backend *backend_out);

#endif
