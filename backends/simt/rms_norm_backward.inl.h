/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices. */
#include "norm_backward_rows.h"

using rms_norm_backward_params = norm_backward_params;
template <class T, class R, class W, class Group> DEVICE void rms_norm_backward_row(const norm_backward_params &p) {
    norm_backward_row<false, T, R, W, Group>(p);
}

EACH_NORM(NORM_ENTRIES_2, rms_norm_backward)
NORM_COLUMN_ENTRIES(rms_norm_backward, false)
