/* SPDX-License-Identifier: Apache-2.0 */
/* The shape that an op is given for an array's: leading dimensions that are one of the op, a vector that stands alone.
 * Nothing of Python is used here. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "binding.h"

int fail(failure *why, trine_status status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(why->text, sizeof why->text, format, values);
    va_end(values);
    why->status = status;
    return -1;
}

int fail_as_library(failure *why, trine_status status) { return fail(why, status, "%s", trine_error_message()); }

/* Dimensions [0, last] as one. */
static int fold(const table *t, const table_tensor *tt, const view *a, int last, trine_tensor *to, failure *why) {
    int64_t size = a->shape[last], stride = a->stride[last];
    for (int i = last - 1; i >= 0; i--) {
        if (size == 1)
            stride = a->stride[i];
        else if (a->shape[i] != 1 && a->shape[i] != 0 && size != 0 && a->stride[i] != size * stride)
            return fail(why, TRINE_ERR_ARGUMENT,
                        "%s: the first %d dimensions of %s are %s of the op, but do not lie behind one another in "
                        "memory: pass a contiguous copy",
                        t->name, last + 1, tt->name, t->symbol[tt->dim[0].symbol]);
        size *= a->shape[i];
    }
    to->shape[0] = size, to->stride[0] = stride;
    return 0;
}

int shape_tensor(const table *t, int i, const view *a, trine_tensor *to, several *several_out, failure *why) {
    const table_tensor *tt = &t->tensor[i];
    int least = tt->rank, extra = a->rank - tt->rank;
    const int symbol = tt->rank > 0 ? tt->dim[0].symbol : -1;
    for (int d = 0; d < tt->rank; d++) least -= tt->dim[d].optional;
    to->data = a->data;
    to->dtype = a->dtype;
    *several_out = (several){ -1, 0 };
    if (extra > 0 && symbol >= 0 && tt->dim[0].add == 0) {
        if (fold(t, tt, a, extra, to, why) != 0) return -1;
        to->rank = tt->rank;
        for (int d = 1; d < tt->rank; d++) to->shape[d] = a->shape[d + extra], to->stride[d] = a->stride[d + extra];
        *several_out = (several){ symbol, extra + 1 };
        return 0;
    }
    const int first = tt->rank - least;
    const bool alone = a->rank == least - 1 &&
                       (tt->dim[first].symbol < 0 ? tt->rank == 1 && tt->dim[first].add == 1
                                                  : tt->dim[first].symbol == t->leading && tt->dim[first].add == 0);
    to->rank = a->rank + alone;
    if (to->rank > TRINE_MAX_RANK)
        return fail(why, TRINE_ERR_ARGUMENT, "%s: %s has %d dimensions, but the op has %d", t->name, tt->name, a->rank,
                    tt->rank);
    if (alone) {
        to->shape[0] = 1, to->stride[0] = a->rank > 0 ? a->shape[0] * a->stride[0] : 1;
        if (tt->dim[first].symbol >= 0) *several_out = (several){ t->leading, 0 };
    }
    for (int d = 0; d < a->rank; d++) to->shape[d + alone] = a->shape[d], to->stride[d + alone] = a->stride[d];
    return 0;
}
