/* SPDX-License-Identifier: Apache-2.0 */
/* What smith_waterman's reference and kernels share: numbers outside the matrix. */
#ifndef TRINE_SPEC_SMITH_WATERMAN_H
#define TRINE_SPEC_SMITH_WATERMAN_H

enum {
    SMITH_WATERMAN_NONE = -(1 << 30),  /* of e and f outside the matrix */
    SMITH_WATERMAN_WORST = -(1 << 24), /* the score of a letter that the table has not */
    SMITH_WATERMAN_MOST = 1 << 24      /* the largest cost */
};

#endif
