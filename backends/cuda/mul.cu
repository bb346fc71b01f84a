/* SPDX-License-Identifier: Apache-2.0 */
/* mul on CUDA devices. */
#include "backends/simt/mul.inl.h"
