/* SPDX-License-Identifier: Apache-2.0 */
/* What speculative_verify's host side passes to its device side. */
#ifndef TRINE_SIMT_SPECULATIVE_VERIFY_H
#define TRINE_SIMT_SPECULATIVE_VERIFY_H

#include "draw.h"

typedef struct speculative_verify_params {
    simt_rows target, draft; /* draft: data is NULL if it is absent */
    const void *proposed;
    void *accepted, *tokens;
    draw_key key;
    int64_t g, v, proposed_row, tokens_row;
    bool wide; /* integers have 64 bits */
} speculative_verify_params;

#endif
