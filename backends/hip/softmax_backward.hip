/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on CDNA devices. */
#include "backends/simt/softmax_backward.inl.h"
