/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu on CUDA devices. */
#include "backends/simt/swiglu.inl.h"
