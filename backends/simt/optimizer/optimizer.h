/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of parameters whose optimizer steps are one launch. */
#ifndef TRINE_SIMT_OPTIMIZER_H
#define TRINE_SIMT_OPTIMIZER_H

#include "by_chance.h"
#include "backends/simt/core/list.h"
#include "backends/simt/core/params.h"

enum { OPTIMIZER_LIST_VECTOR = 4, OPTIMIZER_LIST_BLOCK = SIMT_THREADS * OPTIMIZER_LIST_VECTOR };
typedef struct optimizer_item {
    void *param, *m, *v, *copy; /* v and copy: NULL: absent */
    const void *grad;
    int64_t n;
    uint64_t stream;                                      /* of what rounds it by chance */
    uint32_t first;                                       /* of its blocks */
    uint8_t param_type, grad_type, state_type, copy_type; /* simt_list_type */
} optimizer_item;
enum { OPTIMIZER_LIST = SIMT_LIST_BYTES / sizeof(optimizer_item) };
typedef struct optimizer_list {
    int32_t count;
    optimizer_item item[OPTIMIZER_LIST];
} optimizer_list;

#endif
