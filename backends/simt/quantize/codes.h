/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of few bits in groups, as the host sides of this family pass them to device code. */
#ifndef TRINE_SIMT_CODES_H
#define TRINE_SIMT_CODES_H

#include "backends/simt/core/params.h"

enum { CODES_UNIT = 8 }; /* codes that a thread has at a time: as many bytes as a code has bits */

/* What groups have of a tensor; strides in elements. */
typedef struct simt_groups {
    void *data; /* NULL: absent */
    int64_t row, group;
} simt_groups;

enum { CODES_F32, CODES_BF16, CODES_F16, CODES_E8M0 }; /* the type of scales, zeros and mins */
enum { CODES_WHOLE_NUMBERS, CODES_E4M3, CODES_E5M2 };  /* or e2m1; of float8 the type of codes */

typedef struct simt_codes {
    simt_rows x; /* the numbers */
    simt_groups codes, scales, zeros, mins;
    int64_t n, items;           /* numbers of a group; groups of all rows */
    simt_divisor groups;        /* of a row */
    int32_t bits, type, others; /* the type of scales; of zeros and mins */
    int32_t float8;
    float offset;
    bool sign, e2m1;
    bool vectors, words; /* are the numbers, and the bytes, of a unit one access? */
} simt_codes;

#endif
