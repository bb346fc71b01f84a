/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on CUDA devices. */
#include "backends/simt/softmax_ring.inl.h"
