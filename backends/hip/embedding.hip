/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on CDNA devices. */
#include "backends/simt/embedding.inl.h"
