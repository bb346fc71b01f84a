/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on CDNA devices. */
#include "backends/simt/softmax.inl.h"
