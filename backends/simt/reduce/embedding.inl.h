/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on devices. */
#include "gather.inl.h"

GATHER_ENTRIES(embedding)
