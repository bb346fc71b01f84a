/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, keys and records of attention_decode's kernels. */
#ifndef TRINE_SIMT_ATTENTION_DECODE_PARTS_H
#define TRINE_SIMT_ATTENTION_DECODE_PARTS_H

#include "attention_decode.h"
#include "backends/simt/core/math.h"
#include "cache_types.h"

/* The offset of a key that is not there; any other may be one, since strides may be negative. */
#define DECODE_ABSENT INT64_MIN

/* What a block has to do, and which of its part's keys a row sees. */
struct decode_place {
    int64_t problem, batch, part, length;
    int head, row; /* row: the first */

    DEVICE decode_place(const decode_params &p) {
        const int64_t tile = block_index() / p.row_tiles;
        row = (int)(block_index() - tile * p.row_tiles);
        problem = tile / p.parts, part = tile - problem * p.parts;
        batch = problem / p.hk, head = (int)(problem - batch * p.hk);
        length = decode_length(p, batch);
    }
    static DEVICE int64_t decode_length(const decode_params &p, int64_t n) {
        const int64_t length = p.lengths[n];
        return length < 0 ? 0 : length < p.keys ? length : p.keys;
    }
};

/* The keys [first, last) that query i of a sequence sees. */
struct decode_sight {
    int64_t first, last;
    DEVICE decode_sight(const decode_params &p, int64_t length, int64_t i) {
        const int64_t at = length - p.sq + i;
        last = at < 0 ? 0 : at + 1;
        first = p.window > 0 && at >= p.window ? at - p.window + 1 : 0;
    }
};

/* Where key j of a sequence is, and its value, if it `counts` and its page is there. */
struct decode_key {
    int64_t key, value;
    DEVICE decode_key(const decode_params &p, const decode_place &at, int64_t j, bool counts)
        : key(DECODE_ABSENT), value(DECODE_ABSENT) {
        if (!counts) return;
        const int64_t column =
            divides_fast(j) ? (int64_t)quotient((uint32_t)j, p.page) : (int64_t)quotient((uint64_t)j, p.page);
        const int64_t page = p.table[at.batch * p.table_row + column], place = j - column * p.page.by;
        if (page < 0 || page >= p.pages) return;
        key = page * p.k.outer + place * p.k.middle + at.head * p.k.inner;
        value = page * p.v.outer + place * p.v.middle + at.head * p.v.inner;
    }
};

/* What a part leaves of row `row` of a head of keys: sums, then the largest score in powers of 2 and the sum of
 * weights. */
DEVICE float *decode_record(const decode_params &p, const decode_place &at, int row) {
    return p.partial + ((at.problem * p.parts + at.part) * p.rows + row) * (p.dv + 2);
}

DEVICE float decode_scale(const float *scales, int64_t step, int head) { return scales ? scales[head * step] : 1.0f; }

#endif
