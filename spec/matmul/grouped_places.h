/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tables of products of groups of rows have what they have alike. */
#ifndef TRINE_SPEC_GROUPED_PLACES_H
#define TRINE_SPEC_GROUPED_PLACES_H

typedef struct grouped_places {
    int x, offsets, gather, bias, row_scale, counts, y; /* tensors */
    int r, e, p, n, k;                                  /* symbols */
} grouped_places;

#define GROUPED_PLACES(OP) \
    { .x = OP##_X, \
      .offsets = OP##_OFFSETS, \
      .gather = OP##_GATHER, \
      .bias = OP##_BIAS, \
      .row_scale = OP##_ROW_SCALE, \
      .counts = OP##_COUNTS, \
      .y = OP##_Y, \
      .r = OP##_DIM_R, \
      .e = OP##_DIM_E, \
      .p = OP##_DIM_P, \
      .n = OP##_DIM_N, \
      .k = OP##_DIM_K }

#endif
