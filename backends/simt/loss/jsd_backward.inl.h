/* SPDX-License-Identifier: Apache-2.0 */
/* jsd_backward on devices. */
#include "divergence.inl.h"

DIVERGENCE_ENTRIES(jsd_backward, divergence_gradient)
