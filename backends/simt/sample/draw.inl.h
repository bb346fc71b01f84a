/* SPDX-License-Identifier: Apache-2.0 */
/* Draws by weights that are whole numbers, by a block of DRAW_THREADS: what sample and speculative_verify share. The
 * operations of spec/sample/weights.h, to the bit. */
#ifndef TRINE_SIMT_DRAW_INL_H
#define TRINE_SIMT_DRAW_INL_H

#include "backends/simt/core/philox.h"
#include "draw.h"

/* The upper half of a product. */
DEVICE uint64_t place_of(uint64_t part, uint64_t whole) {
    const uint64_t a = part >> 32, b = (uint32_t)part, c = whole >> 32, d = (uint32_t)whole;
    const uint64_t middle = a * d + (b * d >> 32), low = b * c + (uint32_t)middle;
    return a * c + (middle >> 32) + (low >> 32);
}

/* The words first and first + 1 of a block of Philox as one number. */
DEVICE uint64_t random_of(const draw_key &key, uint64_t block, int first) {
    const uint64_t seed = key.told ? (uint64_t)key.told[0] : key.seed,
                   offset = key.told ? (uint64_t)key.told[1] + key.offset : key.offset;
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)offset, c3 = (uint32_t)(offset >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int round = 0; round < SIMT_PHILOX_ROUNDS; round++) {
        philox_round(c0, c1, c2, c3, k0, k1);
        k0 += SIMT_PHILOX_KEY_0;
        k1 += SIMT_PHILOX_KEY_1;
    }
    return first == 0 ? (uint64_t)c1 << 32 | c0 : (uint64_t)c3 << 32 | c2;
}

/* The sum of each of DRAW_PARTS parts of [first, end), of `length` each, and what all sum up to. */
template <class Weight>
DEVICE uint64_t sum_parts(uint64_t (&part)[DRAW_PARTS], int64_t first, int64_t end, int64_t length,
                          const Weight &weight) {
    const int group = thread_index() / DRAW_GROUP;
    const int64_t from = first + group * length, to = from + length < end ? from + length : end;
    uint64_t sum = 0;
#pragma unroll 4
    for (int64_t j = from + thread_index() % DRAW_GROUP; j < to; j += DRAW_GROUP) sum += weight(j);
    sum = group_sum<DRAW_GROUP>(sum);
    sync_block();
    if (thread_index() % DRAW_GROUP == 0) part[group] = sum;
    sync_block();
    uint64_t all = 0;
#pragma unroll
    for (int i = 0; i < DRAW_PARTS; i++) all += part[i];
    return all;
}

struct drawn {
    int64_t at; /* -1: there is nothing to draw from */
    uint64_t sum;
};

/* The first of n places whose weight, added to those before, is more than floor(random sum / 2^64). Each time the part
 * that has it is divided again. */
template <class Weight> DEVICE drawn draw(int64_t n, uint64_t random, const Weight &weight) {
    SHARED uint64_t part[DRAW_PARTS];
    int64_t first = 0, end = n, length = (n + DRAW_PARTS - 1) / DRAW_PARTS;
    const uint64_t sum = sum_parts(part, first, end, length, weight);
    if (sum == 0) return { -1, 0 };
    uint64_t place = place_of(random, sum);
    for (;;) {
        int i = 0;
        while (i < DRAW_PARTS - 1 && part[i] <= place) place -= part[i++];
        first += i * length;
        end = first + length < end ? first + length : end;
        if (end - first <= 1) return { first, sum };
        length = (end - first + DRAW_PARTS - 1) / DRAW_PARTS;
        sum_parts(part, first, end, length, weight);
    }
}

DEVICE void put_integer(void *data, bool wide, int64_t i, int64_t value) {
    if (wide)
        ((int64_t *)data)[i] = value;
    else
        ((int32_t *)data)[i] = (int32_t)value;
}

#endif
