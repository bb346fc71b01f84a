/* SPDX-License-Identifier: Apache-2.0 */
/* dropout on CUDA devices. */
#include "backends/simt/dropout.inl.h"
