/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on CUDA devices, by tensor cores.
 *
 * NOTES. Floor: b once for each tile of rows, a once for each tile of columns. */
#include "scaled_mma.h"

#include "backends/simt/scaled/matmul_scaled_few.inl.h"

ENTRY(matmul_scaled, SIMT_THREADS, scaled_params) {
    const int64_t row = block_index() % p.down * SCALED_ROWS, column = block_index() / p.down * SCALED_COLUMNS;
    scaled_mma(p, scaled_neighbours{ p.a, row }, column, [&](int down, int right, float sum) {
        if (row + down < p.a.rows && column + right < p.b.rows) scaled_store(p, row + down, column + right, sum);
    });
}
