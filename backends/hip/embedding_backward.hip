/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on CDNA devices. */
#include "backends/simt/embedding_backward.inl.h"
