/* SPDX-License-Identifier: Apache-2.0 */
/* rope on CUDA devices. */
#include "backends/simt/rope.inl.h"
