/* SPDX-License-Identifier: Apache-2.0 */
/* pack_strided on devices. */
#include "strided.inl.h"

STRIDED_ENTRIES(pack_strided, true)
