/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/simt/comm/all_reduce_rms_norm.inl.h"
