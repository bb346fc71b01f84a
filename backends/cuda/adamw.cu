/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on CUDA devices. */
#include "backends/simt/adamw.inl.h"
