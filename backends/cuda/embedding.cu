/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on CUDA devices. */
#include "backends/simt/embedding.inl.h"
