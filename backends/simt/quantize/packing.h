/* SPDX-License-Identifier: Apache-2.0 */
/* Codes in words, as the host sides of pack_codes and unpack_codes pass them to device code. */
#ifndef TRINE_SIMT_PACKING_H
#define TRINE_SIMT_PACKING_H

#include "backends/simt/core/params.h"

/* Strides in elements. */
typedef struct packing_tensor {
    void *data;
    int64_t batch, row, step;
} packing_tensor;

enum { PACKING_ASCENDING, PACKING_DESCENDING, PACKING_AWQ };

typedef struct packing_params {
    packing_tensor codes, packed;
    int64_t k, count; /* codes of a row; elements of the output, a thread each */
    /* An element's number is (batch outer + i) inner + j. `across`: i goes along a row and j from row to row, as the
     * output lies in memory; else the other way round. */
    simt_divisor inner, outer;
    int32_t width, bits, each, order; /* of a word; of a code; codes of a word in descending order */
    bool across, sign;
} packing_params;

#endif
