/* SPDX-License-Identifier: Apache-2.0 */
/* What dropout's host side passes to its device side. */
#ifndef TRINE_SIMT_DROPOUT_H
#define TRINE_SIMT_DROPOUT_H

#include "backends/simt/core/params.h"

typedef struct dropout_params {
    simt_walk walk;
    simt_dropout dropout;
    const int64_t *philox; /* its key and stream; NULL: those of `dropout` */
} dropout_params;

#endif
