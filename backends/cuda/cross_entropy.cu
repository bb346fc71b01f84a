/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CUDA devices. */
#include "backends/simt/cross_entropy.inl.h"
