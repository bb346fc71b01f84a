/* SPDX-License-Identifier: Apache-2.0 */
/* gelu on CUDA devices. */
#include "backends/simt/gelu.inl.h"
