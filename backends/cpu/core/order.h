/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a word's bytes lie in memory. */
#ifndef TRINE_CPU_ORDER_H
#define TRINE_CPU_ORDER_H

/* Is the lowest the first? */
enum { LITTLE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* By how much the bits of element `i` are above the lowest, of the elements of `bits` bits that a word of `all` bits
 * has in memory. */
static inline int word_place(int i, int bits, int all) { return LITTLE ? i * bits : all - bits - i * bits; }

#endif
