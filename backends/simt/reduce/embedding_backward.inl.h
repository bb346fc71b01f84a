/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on devices. */
#include "scatter.inl.h"

SCATTER_ENTRIES(embedding_backward)
