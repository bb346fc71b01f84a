/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of attention's scores on devices. */
#ifndef TRINE_SIMT_SCORES_INL_H
#define TRINE_SIMT_SCORES_INL_H

#include "backends/simt/core/row.h"
#include "scores.h"

struct scores_place {
    int64_t b, h, i;
};

template <class Integer> DEVICE scores_place scores_place_of(const scores_shape &s, Integer row) {
    const Integer matrix = quotient(row, s.queries), b = quotient(matrix, s.heads);
    return { (int64_t)b, (int64_t)(matrix - b * (Integer)s.heads.by), (int64_t)(row - matrix * (Integer)s.queries.by) };
}
DEVICE scores_place scores_row(const scores_shape &s, int64_t row) {
    return divides_fast(s.rows) ? scores_place_of(s, (uint32_t)row) : scores_place_of(s, (uint64_t)row);
}

/* How much of a row the causal mask leaves. */
DEVICE int64_t scores_visible(const scores_shape &s, const scores_place &at) {
    return visible(s.causal, at.i, s.queries.by, s.n);
}

template <class Bits> DEVICE Bits *scores_at(const scores_tensor &t, const scores_place &at) {
    return (Bits *)t.data + at.b * t.batch + at.h * t.head + at.i * t.row;
}

#endif
