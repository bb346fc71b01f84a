/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/simt/comm/matmul_all_reduce.inl.h"
