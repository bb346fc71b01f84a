/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on CUDA devices. */
#include "backends/simt/cross_entropy_backward.inl.h"
