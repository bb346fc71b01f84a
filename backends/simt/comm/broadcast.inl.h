/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast on devices. */
#include "exchange.inl.h"

COPY_ENTRIES(broadcast, copy_of_root)
