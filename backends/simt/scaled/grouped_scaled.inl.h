/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of grouped_matmul_scaled: the rows of x and the matrix that a tile has, and its end. */
#ifndef TRINE_SIMT_GROUPED_SCALED_INL_H
#define TRINE_SIMT_GROUPED_SCALED_INL_H

#include "grouped_matmul_scaled.h"
#include "matmul_scaled_values.inl.h"
#include "backends/simt/matmul/grouped_matmul_tiles.inl.h"

static_assert((int)SCALED_ROWS == (int)GROUPED_ROWS && (int)SCALED_COLUMNS == (int)GROUPED_COLUMNS,
              "tiles are those of grouped_matmul");

/* The rows of x that a tile has, which the block keeps; rows that are made of none are computed of the first. */
struct grouped_sources {
    const int32_t *kept;

    DEVICE grouped_sources(const grouped_params &p, const grouped_tile &tile, int32_t (&room)[GROUPED_ROWS])
        : kept(room) {
        const int i = thread_index();
        if (i < GROUPED_ROWS) {
            const int64_t from = tile.group >= 0 && tile.first + i < tile.last ? grouped_source(p, tile.first + i) : -1;
            room[i] = from < 0 ? 0 : (int32_t)from;
        }
        sync_block();
    }
    DEVICE int64_t operator()(int i) const { return kept[i]; }
};

/* With the matrix of the tile's group; a tile that has nothing to multiply has no k. */
DEVICE scaled_params grouped_scaled_of(const grouped_scaled_params &p, const grouped_tile &tile) {
    scaled_params of = p.of;
    if (tile.group < 0 || p.rows.r == 0) {
        of.k = 0;
        return of;
    }
    of.b.data += tile.group * p.w_group;
    if (of.b.scale) of.b.scale = (const uint8_t *)of.b.scale + tile.group * p.scale_group;
    return of;
}

DEVICE void grouped_scaled_end(const grouped_scaled_params &p, const grouped_tile &tile, const grouped_row &row,
                               int64_t column, float sum) {
    float x = 0;
    if (!row.nothing) {
        x = p.group_scale ? sum * p.group_scale[tile.group] : sum;
        if (p.rows.bias) x += scaled_load(p.of.bias_type, p.rows.bias, tile.group * p.rows.bias_group + column);
        x = scaled_activated(x, p.rows.activation);
        if (p.rows.row_scale) x *= row.factor;
    }
    scaled_put(p.of.out_type, p.rows.y.data, row.at + column, x);
}

/* The block's tile, by Product: scaled_product() or one like it. */
template <class Product> DEVICE void grouped_scaled(const grouped_scaled_params &p, const Product &product) {
    SHARED int32_t room[GROUPED_ROWS];
    const grouped_tile tile = p.rows.tile[block_index() % p.rows.tiles];
    const int64_t column = block_index() / p.rows.tiles * GROUPED_COLUMNS;
    if (tile.first >= tile.last) return;
    const grouped_sources sources(p.rows, tile, room);
    product(grouped_scaled_of(p, tile), sources, column, [&](int down, int right, float sum) {
        const grouped_row row(p.rows, tile, tile.first + down);
        if (row.there && column + right < p.rows.n) grouped_scaled_end(p, tile, row, column + right, sum);
    });
}

#endif
