/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices. */
#include "norm_rows.h"

using layer_norm_params = norm_params;
template <class T, class R, class W, class Group> DEVICE void layer_norm_row(const norm_params &p) { norm_row<true, T, R, W, Group>(p); }

EACH_NORM(NORM_ENTRIES_1, layer_norm)
