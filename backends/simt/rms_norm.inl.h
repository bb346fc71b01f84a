/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices. */
#include "norm_rows.h"

using rms_norm_params = norm_params;
template <class T, class R, class W, class Group> DEVICE void rms_norm_row(const norm_params &p) { norm_row<false, T, R, W, Group>(p); }

EACH_NORM(NORM_ENTRIES_1, rms_norm)
