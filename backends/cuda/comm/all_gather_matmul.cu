/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/simt/comm/all_gather_matmul.inl.h"
