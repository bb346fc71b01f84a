/* SPDX-License-Identifier: Apache-2.0 */
/* What the public headers say of each op, kept in the command so that an installed one can tell it. */
#ifndef TRINE_TOOLS_DOCS_H
#define TRINE_TOOLS_DOCS_H

#include <trine/ops.h>

#include "spec/spec.h"

typedef struct trine_tool_doc {
    const char *family; /* the header's name: "norm" */
    const char *text;   /* the docstring: a line for each paragraph and item, formulas indented, blank lines */
    struct {
        const char *name, *text;
    } member[TRINE_MAX_TENSORS + TRINE_MAX_PARAMS]; /* those that have a comment, on one line */
} trine_tool_doc;

extern const trine_tool_doc trine_tool_docs[TRINE_OP_COUNT];

#endif
