/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of few bits in words: what the references of pack_codes and unpack_codes share. */
#ifndef TRINE_SPEC_PACKING_H
#define TRINE_SPEC_PACKING_H

#include "spec/spec.h"

/* From 1 to 8 bits a code, and no word that has none. */
#define PACKING_REQUIRE \
    "words <= k", "with P=u8: 8*words >= k", "with P=i32: 32*words >= k", "with P=i32: 4*words <= k", \
        "with order=awq: k % 8 == 0", "with order=descending: k % max(words, 1) == 0"

#define PACKING_ORDER \
    PARAM(order, ENUM, .values = "ascending descending awq", \
          .doc = "TRINE_ORDER_ASCENDING, TRINE_ORDER_DESCENDING or TRINE_ORDER_AWQ")

#define PACKING_SIZES \
    "p: 1 0 2 3", "q: 1 0 2 5 33 64 100", "k: 8 0 1 2 10 16 20 24 30 32 40 64 96 100 128 160 256 1024 4096", \
        "words: 1 0 2 3 4 5 6 8 9 10 12 16 24 32 48 64 96 128 256 512 1024"

typedef struct packing {
    int width, bits, each; /* of a word; of a code; codes of a word in descending order */
    int32_t order;
} packing;

static inline packing packing_of(const trine_ref *ref, int32_t order) {
    const int64_t k = trine_ref_dim(ref, "k"), words = trine_ref_dim(ref, "words");
    const int width = trine_ref_type(ref, "P") == TRINE_I32 ? 32 : 8;
    return (packing){ .width = width,
                      .bits = k > 0 ? (int)(words * width / k) : 8,
                      .each = words > 0 ? (int)(k / words) : 1,
                      .order = order };
}

/* The bit of a row at which code j begins. */
static inline int64_t packing_begin(const packing *p, int64_t j) {
    static const int awq[] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    if (p->order == TRINE_ORDER_DESCENDING)
        return j / p->each * p->width + (p->each - 1 - j % p->each) * (int64_t)p->bits;
    return (p->order == TRINE_ORDER_AWQ ? j / 8 * 8 + awq[j % 8] : j) * p->bits;
}

#endif
