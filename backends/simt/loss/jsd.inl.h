/* SPDX-License-Identifier: Apache-2.0 */
/* jsd on devices. */
#include "divergence.inl.h"

DIVERGENCE_ENTRIES(jsd, divergence_loss)
