/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_pack on devices: a thread has what one column has in a line.
 *
 * NOTES. Floor: b once, packed once; b with k side by side costs whole sectors of it for a few elements at a time. */
#include "matmul_pack.h"
#include "backends/simt/core/simt.h"

template <class T> DEVICE void matmul_pack(const matmul_pack_params &p) {
    enum { COLUMNS = 16, DEPTH = 4, DEEP = sizeof(T) < DEPTH ? DEPTH / sizeof(T) : 1, LINES = DEPTH / DEEP };
    const int64_t word = block_index() * SIMT_THREADS + thread_index();
    if (word >= p.words) return;
    const bool fast = divides_fast(p.words);
    const int64_t t = word % COLUMNS, row = word / COLUMNS,
                  group_of_all = fast ? (int64_t)quotient((uint32_t)row, p.lines) : row / p.lines.by,
                  line = row - group_of_all * p.lines.by,
                  g = fast ? (int64_t)quotient((uint32_t)group_of_all, p.groups) : group_of_all / p.groups.by,
                  group = group_of_all - g * p.groups.by, j = group * COLUMNS + t, first = line * DEEP;
    const T *from = (const T *)p.b + g * p.b_batch + j * p.b_lane;
    T *to = (T *)p.packed + g * p.packed_batch + group * p.packed_group + line / LINES * p.packed_block +
            (line % LINES * COLUMNS + t) * DEEP;
#pragma unroll
    for (int i = 0; i < DEEP; i++) to[i] = j < p.n && first + i < p.k ? from[(first + i) * p.b_along] : (T)0;
}

ENTRY(matmul_pack_1, SIMT_THREADS, matmul_pack_params) { matmul_pack<uint8_t>(p); }
ENTRY(matmul_pack_2, SIMT_THREADS, matmul_pack_params) { matmul_pack<uint16_t>(p); }
ENTRY(matmul_pack_4, SIMT_THREADS, matmul_pack_params) { matmul_pack<uint32_t>(p); }
ENTRY(matmul_pack_8, SIMT_THREADS, matmul_pack_params) { matmul_pack<uint64_t>(p); }
