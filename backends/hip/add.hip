/* SPDX-License-Identifier: Apache-2.0 */
/* add on CDNA devices. */
#include "backends/simt/add.inl.h"
