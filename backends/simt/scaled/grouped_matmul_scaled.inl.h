/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_scaled on devices, without matrix units: a tile is multiplied as one of matmul_scaled.
 *
 * NOTES. Floor: w once for each tile of rows, and x once for each tile of columns. */
#include "grouped_scaled.inl.h"
#include "scaled_simt.inl.h"

ENTRY(grouped_matmul_scaled_plan, SIMT_THREADS, grouped_params) { grouped_plan(p); }
ENTRY(grouped_matmul_scaled, SIMT_THREADS, grouped_scaled_params) {
    grouped_scaled(p, [](const scaled_params &of, const grouped_sources &rows, int64_t column, const auto &end) {
        scaled_product(of, rows, column, end);
    });
}
