/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on devices, without matrix units.
 *
 * NOTES. Floor: b once for each tile of rows, a once for each tile of columns. Products are made in f32, in which those
 * of whole numbers are exact up to 128. */
#include "matmul_scaled_few.inl.h"
#include "scaled_simt.inl.h"

ENTRY(matmul_scaled, SIMT_THREADS, scaled_params) {
    const int64_t row = block_index() % p.down * SCALED_ROWS, column = block_index() / p.down * SCALED_COLUMNS;
    scaled_product(p, scaled_neighbours{ p.a, row }, column, [&](int down, int right, float sum) {
        if (row + down < p.a.rows && column + right < p.b.rows) scaled_store(p, row + down, column + right, sum);
    });
}
