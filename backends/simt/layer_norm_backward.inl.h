/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on devices. */
#include "norm_backward_rows.h"

using layer_norm_backward_params = norm_backward_params;
template <class T, class R, class W, class Group> DEVICE void layer_norm_backward_row(const norm_backward_params &p) {
    norm_backward_row<true, T, R, W, Group>(p);
}

EACH_NORM(NORM_ENTRIES_2, layer_norm_backward)
NORM_COLUMN_ENTRIES(layer_norm_backward, true)
