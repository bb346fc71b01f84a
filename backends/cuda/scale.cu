/* SPDX-License-Identifier: Apache-2.0 */
/* scale on CUDA devices. */
#include "backends/simt/scale.inl.h"
