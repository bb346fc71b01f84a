/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/simt/comm/all_to_all_v.inl.h"
