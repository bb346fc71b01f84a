/* SPDX-License-Identifier: Apache-2.0 */
/* add on CUDA devices. */
#include "backends/simt/add.inl.h"
