/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/simt/comm/matmul_reduce_scatter.inl.h"
