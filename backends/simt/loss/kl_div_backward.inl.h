/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div_backward on devices. */
#include "divergence.inl.h"

DIVERGENCE_ENTRIES(kl_div_backward, divergence_gradient)
