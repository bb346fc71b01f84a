/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_blocks on devices: threads read a block twice, for its largest and for its codes. A block that is large is
 * cut into pieces: a launch finds the largest of each, another one that of all and the codes.
 *
 * NOTES. Floor: x once, codes once; the second reading is from caches, but of blocks larger than those. */
#include "blocks.h"
#include "rows.inl.h"

/* A piece of a block, which may have nothing; a thread has every `step`th of its units. */
struct blocks_part {
    int64_t top, left, bottom, right, units;
    DEVICE blocks_part(const blocks_params &p, int64_t block, int64_t piece) {
        const int64_t down = block / p.columns, side = block - down * p.columns, row = piece / p.across,
                      column = piece - row * p.across;
        top = down * p.high + row * BLOCKS_PIECE_ROWS;
        left = side * p.wide + column * BLOCKS_PIECE_COLUMNS;
        bottom = least(least(top + BLOCKS_PIECE_ROWS, (down + 1) * p.high), p.out.r);
        right = least(least(left + BLOCKS_PIECE_COLUMNS, (side + 1) * p.wide), p.out.k);
        units = right > left ? (right - left + CODES_UNIT - 1) / CODES_UNIT : 0;
        if (bottom <= top) units = 0;
    }
    static DEVICE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
    DEVICE int count() const { return (int)((bottom - top) * units); } /* at most a piece's */
};

template <class T> struct blocks_unit {
    int64_t row;
    lane l;
    DEVICE blocks_unit(const blocks_params &p, const blocks_part &part, int number)
        : row(part.top + (uint32_t)number / (uint32_t)part.units),
          l{ part.left + (int64_t)((uint32_t)number % (uint32_t)part.units) * CODES_UNIT, part.right, p.out.vectors } {}
    DEVICE void get(float (&x)[CODES_UNIT], const blocks_params &p) const {
        load<T>(x, (const typename T::bits *)p.x.data + row * p.x.row, l);
    }
};

/* As bits, so that Inf is above all numbers and NaN above Inf. */
template <class T>
DEVICE uint32_t blocks_largest(const blocks_params &p, const blocks_part &part, int first, int step) {
    uint32_t size = 0;
#pragma unroll 1
    for (int number = first; number < part.count(); number += step) {
        float x[CODES_UNIT];
        blocks_unit<T>(p, part, number).get(x, p);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) size = row_larger()(size, bits_of_float(magnitude(x[j])));
    }
    return size;
}

DEVICE float blocks_scale(const row_codes &p, uint32_t size) {
    const float most = float_of_bits(size), quotient = most / row_most(p);
    return size >= INF_BITS ? not_a_number()
                            : code_group_scale(p.scales_type, p.powers, most, row_most(p), quotient, p.upward);
}

template <class T>
DEVICE void blocks_codes(const blocks_params &p, const blocks_part &part, float scale, int first, int step) {
    const code_divisor divisor(scale > 0 ? scale : 0.0f);
#pragma unroll 1
    for (int number = first; number < part.count(); number += step) {
        const blocks_unit<T> unit(p, part, number);
        float x[CODES_UNIT];
        uint8_t code[CODES_UNIT];
        unit.get(x, p);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) code[j] = row_code(p.out, divisor.of(x[j]) + 0.0f); /* of -0: 0 */
        store_bits(code, (uint8_t *)p.out.codes.data + unit.row * p.out.codes.row, unit.l);
    }
}

DEVICE void blocks_put_scale(const blocks_params &p, int64_t block, float scale) {
    const int64_t down = block / p.columns;
    code_store(p.out.scales_type, p.out.scales.data, down * p.out.scales.row + block - down * p.columns, scale);
}

template <class T, int G> DEVICE void quantize_blocks(const blocks_params &p) {
    const int64_t block = block_index() * (SIMT_THREADS / G) + thread_index() / G;
    const bool there = block < p.count;
    const int first = thread_index() % G;
    blocks_part part(p, there ? block : 0, 0);
    if (!there) part.units = 0;
    const uint32_t size = group_combine<G>(blocks_largest<T>(p, part, first, G), row_larger());
    const float scale = blocks_scale(p.out, size);
    if (there && first == 0) blocks_put_scale(p, block, scale);
    blocks_codes<T>(p, part, scale, first, G);
}

template <class T> DEVICE void find_largest(const blocks_params &p) {
    const int64_t item = block_index(), block = item / p.pieces;
    const blocks_part part(p, block, item - block * p.pieces);
    const uint32_t size =
        group_combine<SIMT_THREADS>(blocks_largest<T>(p, part, thread_index(), SIMT_THREADS), row_larger());
    if (thread_index() == 0) p.largest[item] = size;
}

template <class T> DEVICE void quantize_pieces(const blocks_params &p) {
    const int64_t item = block_index(), block = item / p.pieces, piece = item - block * p.pieces;
    uint32_t size = 0;
#pragma unroll 1
    for (int64_t i = thread_index(); i < p.pieces; i += SIMT_THREADS)
        size = row_larger()(size, p.largest[block * p.pieces + i]);
    size = group_combine<SIMT_THREADS>(size, row_larger());
    const float scale = blocks_scale(p.out, size);
    if (piece == 0 && thread_index() == 0) blocks_put_scale(p, block, scale);
    blocks_codes<T>(p, blocks_part(p, block, piece), scale, thread_index(), SIMT_THREADS);
}

#define QUANTIZE_BLOCKS(T) \
    ENTRY(quantize_blocks_##T##_16, SIMT_THREADS, blocks_params) { quantize_blocks<T, 16>(p); } \
    ENTRY(quantize_blocks_##T##_256, SIMT_THREADS, blocks_params) { quantize_blocks<T, 256>(p); } \
    ENTRY(quantize_blocks_largest_##T, SIMT_THREADS, blocks_params) { find_largest<T>(p); } \
    ENTRY(quantize_blocks_pieces_##T, SIMT_THREADS, blocks_params) { quantize_pieces<T>(p); }
QUANTIZE_BLOCKS(f32)
QUANTIZE_BLOCKS(bf16)
QUANTIZE_BLOCKS(f16)
