/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_strided on devices. */
#include "strided.inl.h"

STRIDED_ENTRIES(unpack_strided, false)
