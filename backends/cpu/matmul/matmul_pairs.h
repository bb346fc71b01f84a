/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of units by instructions that multiply two rows with two columns, each of two units in k: aarch64's smmla and
 * bfmmla. Lanes of b, and of a where they are packed, are side by side for one unit, and are zipped to pairs of units.
 */
#ifndef TRINE_CPU_MATMUL_PAIRS_H
#define TRINE_CPU_MATMUL_PAIRS_H

#include "matmul_unit.h"

/* PACKED_B: b is packed as the user has it (spec/matmul/packed.h), and may be read where it is. */
#ifdef PACKED_B
enum { LINES = 1 };
#else
enum { LINES = 0 };
#endif

/* Lanes of an operand: unit u of lane i is at data + i * lane + u * along; if it is b, its lanes are side by side. With
 * LINES vector j of b's lanes begins at vector[j], and meanwhile lines from `ahead` on are asked for, one for each unit
 * `ahead_step` bytes after the last. */
typedef struct unit_grid {
    const char *data;
    int64_t lane, along;
    int64_t vector[3];
    const char *ahead;
    int64_t ahead_step;
} unit_grid;

/* Vector j of a unit of b. */
INLINE int64_t grid_vector(const unit_grid *b, int j) { return LINES ? b->vector[j] : j * VB; }

enum { PAIR_ROWS = 4, PAIR_COLUMNS = 6 }; /* sums in registers, at most: 8 rows, 3 vectors of columns */

/* Is there such an instruction, and does a lie as it needs: packed, or its units one after the other? */
INLINE bool pairs_fit(unit_grid a, unit_kind kind) {
    return HAVE_PAIRS && (kind == UNIT_BF16 || kind == UNIT_I8) && (a.lane == 4 || a.along == 4);
}

#if HAVE_PAIRS
/* Units u and u + 1, the latter zeros if it is `alone`, of two rows. */
INLINE vi pairs_rows(const char *first, int64_t lane, bool alone) {
    vl r = { 0 };
    memcpy(&r, first, alone ? 4 : 8);
    memcpy((char *)&r + 8, first + lane, alone ? 4 : 8);
    return (vi)r;
}

/* s += a b of two units, or of one that is `alone`. */
INLINE void pairs_step(sum s[PAIR_ROWS][PAIR_COLUMNS], unit_grid a, unit_grid b, int pairs, int vectors, bool packed,
                       bool alone, unit_kind kind) {
    const vi none = { 0 };
    vi left[PAIR_ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < pairs; i += 2) {
        if (packed) {
            const vi x = unit_load(a.data + i * 8), y = alone ? none : unit_load(a.data + a.along + i * 8);
            left[i] = unit_zip(x, y, false, kind), left[i + 1] = unit_zip(x, y, true, kind);
        } else {
            left[i] = pairs_rows(a.data + 2 * i * a.lane, a.lane, alone);
            left[i + 1] = pairs_rows(a.data + (2 * i + 2) * a.lane, a.lane, alone);
        }
    }
#pragma GCC unroll 3
    for (int j = 0; j < vectors; j++) {
        __asm__ volatile("" ::: "memory"); /* with all loads in advance registers do not suffice */
        const char *from = b.data + grid_vector(&b, j);
        const vi x = unit_load(from), y = alone ? none : unit_load(from + b.along);
        const vi low = unit_zip(x, y, false, kind), high = unit_zip(x, y, true, kind);
#pragma GCC unroll 4
        for (int i = 0; i < pairs; i++) {
            s[i][2 * j] = sum_mac_pairs(s[i][2 * j], left[i], low, kind);
            s[i][2 * j + 1] = sum_mac_pairs(s[i][2 * j + 1], left[i], high, kind);
        }
    }
}

INLINE void pairs_run(sum s[PAIR_ROWS][PAIR_COLUMNS], unit_grid a, unit_grid b, int64_t units, int pairs, int vectors,
                      bool packed, unit_kind kind) {
    int64_t u = 0;
    for (; u + 2 <= units; u += 2, a.data += 2 * a.along, b.data += 2 * b.along)
        pairs_step(s, a, b, pairs, vectors, packed, false, kind);
    if (u < units) pairs_step(s, a, b, pairs, vectors, packed, true, kind);
}

/* The sums of 2 `pairs` rows with `vectors` vectors of columns. */
INLINE void pairs_multiply(sum s[PAIR_ROWS][PAIR_COLUMNS], unit_grid a, unit_grid b, int64_t units, int pairs,
                           int vectors, unit_kind kind) {
#pragma GCC unroll 4
    for (int i = 0; i < pairs; i++)
#pragma GCC unroll 6
        for (int j = 0; j < 2 * vectors; j++) s[i][j] = (sum){ 0 };
    if (a.lane == 4)
        pairs_run(s, a, b, units, pairs, vectors, true, kind);
    else
        pairs_run(s, a, b, units, pairs, vectors, false, kind);
}

/* Vector j of row r of them. */
INLINE vi pairs_vector(sum s[PAIR_ROWS][PAIR_COLUMNS], int r, int j, unit_kind kind) {
    return unit_zip(sum_vector(s[r / 2][2 * j], kind), sum_vector(s[r / 2][2 * j + 1], kind), r % 2, UNIT_F64);
}
#else
INLINE void pairs_multiply(sum s[PAIR_ROWS][PAIR_COLUMNS], unit_grid a, unit_grid b, int64_t units, int pairs,
                           int vectors, unit_kind kind) {
    (void)s, (void)a, (void)b, (void)units, (void)pairs, (void)vectors, (void)kind;
}
INLINE vi pairs_vector(sum s[PAIR_ROWS][PAIR_COLUMNS], int r, int j, unit_kind kind) {
    (void)s, (void)r, (void)j, (void)kind;
    return (vi){ 0 };
}
#endif

#endif
