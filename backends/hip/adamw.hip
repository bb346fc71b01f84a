/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on CDNA devices. */
#include "backends/simt/adamw.inl.h"
