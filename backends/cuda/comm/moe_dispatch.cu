/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/simt/comm/moe_dispatch.inl.h"
