/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div on devices. */
#include "divergence.inl.h"

DIVERGENCE_ENTRIES(kl_div, divergence_loss)
