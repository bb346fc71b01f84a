/* SPDX-License-Identifier: Apache-2.0 */
/* Do two strided views share an element? */
#ifndef TRINE_OVERLAP_H
#define TRINE_OVERLAP_H

#include "spec/spec.h"

/* True if the views may share a byte. Exact for views of one element run per period, such as slices of a common row;
 * conservative otherwise. */
bool trine_views_overlap(const trine_tensor *a, const trine_tensor *b);

/* The first byte of a view that has elements, and one behind its last. */
void trine_view_extent(const trine_tensor *tensor, uintptr_t *low_out, uintptr_t *high_out);

/* True if two index tuples of the view may name one element. */
bool trine_view_overlaps_itself(const trine_tensor *tensor);

#endif
