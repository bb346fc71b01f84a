/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on devices: rows are copied. An id out of range makes its row all ones, which is NaN in every type. */
#include "embedding.h"
#include "simt.h"

template <class Unit> DEVICE void embedding(const embedding_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    const int64_t token = p.units <= 0xffffffff ? (int64_t)((uint32_t)number / (uint32_t)p.row_units) : number / p.row_units;
    const int64_t at = number - token * p.row_units, id = load_integer(p.ids, p.long_ids, token);
    Unit one;
    __builtin_memset(&one, 0xff, sizeof one);
    if (id >= 0 && id < p.v) one = ((const Unit *)p.table.data)[id * p.table.row + at];
    ((Unit *)p.y.data)[token * p.y.row + at] = one;
}

using unit16 = packed<uint32_t, 4>;

ENTRY(embedding_2, SIMT_THREADS, embedding_params) { embedding<uint16_t>(p); }
ENTRY(embedding_4, SIMT_THREADS, embedding_params) { embedding<uint32_t>(p); }
ENTRY(embedding_8, SIMT_THREADS, embedding_params) { embedding<uint64_t>(p); }
ENTRY(embedding_16, SIMT_THREADS, embedding_params) { embedding<unit16>(p); }
