/* SPDX-License-Identifier: Apache-2.0 */
/* What embedding's host side passes to its device side. */
#ifndef TRINE_SIMT_EMBEDDING_H
#define TRINE_SIMT_EMBEDDING_H

#include "backends/simt/core/params.h"

enum { EMBEDDING_UNITS = 2 }; /* of a thread, as many blocks of them apart */

/* Strides and the length of a row are in units of as many bytes as alignment allows. */
typedef struct embedding_params {
    simt_rows table, y;
    const void *ids;
    int64_t v, units;
    simt_divisor row_units;
    bool long_ids;
} embedding_params;

#endif
