/* SPDX-License-Identifier: Apache-2.0 */
/* For code that serves two ops: what their tables must have alike, or it does not compile. */
#ifndef TRINE_SPEC_ALIKE_H
#define TRINE_SPEC_ALIKE_H

#include <assert.h>

#define TRINE_ALIKE(place, other) static_assert((int)(place) == (int)(other), #place " is not " #other)

#endif
