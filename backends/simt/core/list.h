/* SPDX-License-Identifier: Apache-2.0 */
/* Many tensors in one launch, as a list of calls has them: a table of them is among the parameters, so that a graph
 * holds it, and each has blocks of its own. Types are looked at when the launch runs, so that one does for all. */
#ifndef TRINE_SIMT_LIST_H
#define TRINE_SIMT_LIST_H

#include <stdint.h>

/* Bytes of a table: parameters have 4096. */
enum { SIMT_LIST_BYTES = 3584 };

/* A type in a table. */
typedef enum simt_list_type { SIMT_LIST_F32, SIMT_LIST_BF16, SIMT_LIST_F16 } simt_list_type;

#endif
