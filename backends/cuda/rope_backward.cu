/* SPDX-License-Identifier: Apache-2.0 */
/* rope_backward on CUDA devices. */
#include "backends/simt/rope_backward.inl.h"
