/* SPDX-License-Identifier: Apache-2.0 */
/* int_matmul_exact on devices: a launch for the digits, a block a line, and one for the product, a block a square of d
 * and a thread an element.
 *
 * NOTES. Floor: slices (slices + 1) / 2 products of 8-bit integers. Plain: no matrix units. */
#include "exact.h"
#include "backends/simt/core/simt.h"

#define SLICES_INLINE DEVICE
#include "spec/exact/slices.h"

ENTRY(int_matmul_exact_slice, SIMT_THREADS, exact_params) {
    SHARED int exponents[SIMT_THREADS];
    const int64_t at = block_index();
    const bool left = at < p.rows;
    const exact_lines &lines = left ? p.a : p.b;
    const int64_t number = left ? at : at - p.rows, batch = number / lines.count;
    const double *const from = lines.from + batch * lines.batch + (number - batch * lines.count) * lines.line;
    const int thread = thread_index();
    enum { NOTHING = -SLICES_STRAY };
    int own = NOTHING;
    for (int64_t q = thread; q < p.k; q += SIMT_THREADS) {
        const double x = from[q * lines.along];
        const int exponent = x == 0 ? (int)NOTHING : slices_exponent(x);
        own = exponent > own ? exponent : own;
    }
    exponents[thread] = own;
    sync_block();
    for (int half = SIMT_THREADS / 2; half > 0; half /= 2) {
        if (thread < half && exponents[thread + half] > exponents[thread]) exponents[thread] = exponents[thread + half];
        sync_block();
    }
    const int most = exponents[0], exponent = most == NOTHING ? 0 : most;
    if (thread == 0) lines.exponents[number] = exponent;
    uint32_t *const digits = lines.digits + number * p.slices * p.words;
    for (int64_t word = thread; word < p.words; word += SIMT_THREADS) {
        double rest[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool has = 4 * word + i < p.k && exponent != SLICES_STRAY;
            rest[i] = has ? slices_begin(from[(4 * word + i) * lines.along], exponent) : 0.0;
        }
        for (int s = 0; s < p.slices; s++) {
            uint32_t four = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) four |= ((uint32_t)slices_next(&rest[i]) & 255u) << 8 * i;
            digits[s * p.words + word] = four;
        }
    }
}

DEVICE int digit_of(uint32_t four, int i) { return (int)(int8_t)(four >> 8 * i & 255u); }

ENTRY(int_matmul_exact_product, SIMT_THREADS, exact_params) {
    enum { SIDE = EXACT_SIDE, STEP = EXACT_STEP };
    static_assert(SIDE * SIDE == (int)SIMT_THREADS, "a thread has an element");
    SHARED uint32_t left[SIDE][STEP + 1], right[SIDE][STEP + 1];
    const int64_t tiles = p.down * p.across, batch = block_index() / tiles, tile = block_index() - batch * tiles,
                  row = tile / p.across * SIDE, column = tile % p.across * SIDE;
    const int thread = thread_index(), down = thread / SIDE, across = thread % SIDE;
    const int64_t i = row + down, j = column + across, size = p.slices * p.words;
    const uint32_t *const a = p.a.digits + batch * p.a.count * size, *const b = p.b.digits + batch * p.b.count * size;
    double sum = 0;
    for (int w = p.slices - 1; w >= 0; w--) {
        int64_t term = 0;
        for (int s = 0; s <= w; s++)
            for (int64_t at = 0; at < p.words; at += STEP) {
                sync_block();
#pragma unroll
                for (int e = thread; e < SIDE * STEP; e += SIMT_THREADS) {
                    const int line = e / STEP, word = e % STEP;
                    left[line][word] = row + line < p.a.count ? a[(row + line) * size + s * p.words + at + word] : 0u;
                    right[line][word] =
                        column + line < p.b.count ? b[(column + line) * size + (w - s) * p.words + at + word] : 0u;
                }
                sync_block();
                int part = 0;
                for (int q = 0; q < STEP; q++) {
                    const uint32_t u = left[down][q], v = right[across][q];
#pragma unroll
                    for (int e = 0; e < 4; e++) part += digit_of(u, e) * digit_of(v, e);
                }
                term += part;
            }
        sum = slices_add(sum, term);
    }
    if (i >= p.a.count || j >= p.b.count) return;
    const int e = p.a.exponents[batch * p.a.count + i], f = p.b.exponents[batch * p.b.count + j];
    const bool stray = e == SLICES_STRAY || f == SLICES_STRAY;
    ((double *)p.d.data)[batch * p.d.batch + i * p.d.row + j] =
        stray ? (double)not_a_number() : slices_scale(sum, e + f - 2 * SLICES_FIRST);
}
