/* SPDX-License-Identifier: Apache-2.0 */
/* cast on CUDA devices. */
#include "backends/simt/cast.inl.h"
