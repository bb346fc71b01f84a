/* SPDX-License-Identifier: Apache-2.0 */
/* rope on devices. */
#include "rope_pairs.h"

ROPE_ENTRIES(rope)
