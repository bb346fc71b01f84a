/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a group of rows as codes: what a thread fetches of them and of the numbers of their groups. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_CODES_INL_H
#define TRINE_SIMT_GROUPED_MATMUL_CODES_INL_H

#include "grouped_matmul_quantized.h"
#include "grouped_matmul_simt.inl.h"
#include "backends/simt/quantize/codes.inl.h"

static_assert((int)CODES_UNIT == (int)VECTOR, "a thread has a unit of a row");

/* What a code of a group stands for is (code - offset - zero) scale + min. */
struct grouped_numbers {
    float scale, zero, min;
};

struct grouped_codes {
    const grouped_quantized_params &p;
    int64_t expert, column, from; /* from: the place in k of what is fetched */
    uint64_t word[GROUPED_FETCHES];
    grouped_numbers numbers[GROUPED_FETCHES]; /* where a unit is of one group */

    DEVICE explicit grouped_codes(const grouped_quantized_params &params) : p(params) {}
    DEVICE void begin(int32_t group, int64_t first) { expert = group, column = first; }

    DEVICE const uint8_t *bytes_of(int64_t j, int64_t h) const {
        return (const uint8_t *)p.codes.codes.data + expert * p.codes_expert + j * p.codes.codes.row +
               h * p.codes.codes.group;
    }
    DEVICE static float number(const simt_groups &of, int type, int64_t at, int64_t j, int64_t h) {
        return code_load(type, of.data, at + j * of.row + h * of.group);
    }
    DEVICE grouped_numbers numbers_of(int64_t j, int64_t h) const {
        const simt_codes &c = p.codes;
        return { number(c.scales, c.type, expert * p.scales_expert, j, h),
                 c.zeros.data ? number(c.zeros, c.type, expert * p.zeros_expert, j, h) : 0.0f,
                 c.mins.data ? number(c.mins, c.type, expert * p.mins_expert, j, h) : -0.0f };
    }
    DEVICE int64_t group_of(int64_t k) const { return quotient((uint32_t)k, p.group); }

    /* Codes of row j from k on, one by one. */
    DEVICE uint64_t gather(int64_t j, int64_t k) const {
        uint64_t word = 0;
        for (int q = 0; q < VECTOR && k + q < p.rows.k; q++) {
            const int64_t h = group_of(k + q), bit = (k + q - h * p.codes.n) * p.codes.bits;
            const uint8_t *const at = bytes_of(j, h) + bit / 8;
            uint32_t code = at[0];
            if (bit % 8 + p.codes.bits > 8) code |= (uint32_t)at[1] << 8;
            word |= (uint64_t)(code >> bit % 8 & ((1u << p.codes.bits) - 1)) << q * p.codes.bits;
        }
        return word;
    }

    DEVICE void fetch(int64_t at) {
        from = at + thread_index() % GROUPED_PIECES * VECTOR;
#pragma unroll
        for (int i = 0; i < GROUPED_FETCHES; i++) {
            const int64_t j = column + grouped_along(i);
            if (from >= p.rows.k || j >= p.rows.n) continue;
            if (p.units) {
                const int64_t h = group_of(from);
                word[i] = codes_load(p.codes, bytes_of(j, h), from - h * p.codes.n, CODES_UNIT);
                numbers[i] = numbers_of(j, h);
            } else {
                word[i] = gather(j, from);
            }
        }
    }

    DEVICE float value(uint32_t code, const grouped_numbers &g) const {
        const uint32_t half = p.codes.sign ? 1u << (p.codes.bits - 1) : 0;
        const float x = p.codes.e2m1 ? code_e2m1(code) : (float)(int32_t)((code ^ half) - half);
        return fused(x - p.codes.offset - g.zero, g.scale, g.min);
    }

    /* Weights of unit i, 0 beyond the matrix. */
    DEVICE void values(float (&w)[VECTOR], int i) const {
        const uint32_t mask = (1u << p.codes.bits) - 1;
        const int64_t j = column + grouped_along(i);
#pragma unroll
        for (int q = 0; q < VECTOR; q++) {
            w[q] = 0;
            if (from + q < p.rows.k && j < p.rows.n)
                w[q] = value((uint32_t)(word[i] >> q * p.codes.bits) & mask,
                             p.units ? numbers[i] : numbers_of(j, group_of(from + q)));
        }
    }
};

/* They as products of f32 take them. */
struct grouped_decoded : grouped_codes {
    using grouped_codes::grouped_codes;

    DEVICE void keep(float (*to)[GROUPED_COLUMNS + 1]) const {
#pragma unroll
        for (int i = 0; i < GROUPED_FETCHES; i++) {
            float w[VECTOR];
            values(w, i);
#pragma unroll
            for (int q = 0; q < VECTOR; q++) to[thread_index() % GROUPED_PIECES * VECTOR + q][grouped_along(i)] = w[q];
        }
    }
};

#endif
