/* SPDX-License-Identifier: Apache-2.0 */
/* What the wide ways of recurrent cells share: products of a head's matrices with some members of a batch at a time, by
 * tensor cores, exact but for sums.
 *
 * A cluster of blocks has a head of some sequences and divides the head's units. Each block keeps the rows of its units
 * for all steps: of each warp's first tiles in registers, of others in shared memory; what there is no room for it
 * reads at each step from the workspace, where all lie in the order in which warps read them.
 *
 * Elements are parts: numbers of bf16, the rest of those before rounded, each 256 times what it stands for more than
 * the last, so that the parts of small numbers are not lost. Three have all 24 bits of a float, two those of f16. The
 * products of parts i and j have a sum for each i + j, so that that of the first parts is as exact as one of bf16. None
 * is left out: of a subnormal number the first part may be 0. */
#ifndef TRINE_CUDA_RECURRENT_CELLS_WIDE_H
#define TRINE_CUDA_RECURRENT_CELLS_WIDE_H

#include <tile/cluster.h>
#include <tile/mma.h>

#include "backends/cuda/recurrent/cells_wide_params.h"

constexpr float CELL_SCALE = 256;

template <class T> struct cell_parts;
template <> struct cell_parts<bf16> {
    static constexpr int COUNT = 1;
};
template <> struct cell_parts<f16> {
    static constexpr int COUNT = 2;
};
template <> struct cell_parts<f32> {
    static constexpr int COUNT = CELL_PARTS;
};

/* x as its parts. Inf and NaN are the first; what would be rounded to Inf becomes the other neighbour. */
DEVICE void cell_split(float x, uint16_t (&part)[CELL_PARTS]) {
    const bool finite = magnitude(x) < infinity();
    float rest = x;
#pragma unroll
    for (int i = 0; i < CELL_PARTS; i++) {
        const bool huge = finite && magnitude(rest) > bf16::largest();
        part[i] = huge ? (uint16_t)(bits_of_float(rest) >> 16) : bf16::put(rest);
        rest = finite ? (rest - bf16::get(part[i])) * CELL_SCALE : 0.0f;
    }
}
/* Of two neighbours. */
DEVICE void cell_split(float x, float y, uint32_t (&word)[CELL_PARTS]) {
    if (magnitude(x) <= bf16::largest() && magnitude(y) <= bf16::largest()) {
#pragma unroll
        for (int i = 0; i < CELL_PARTS; i++) {
            word[i] = bf16::pair(x, y);
            x = (x - float_of_bits(word[i] << 16)) * CELL_SCALE;
            y = (y - float_of_bits(word[i] & 0xffff0000u)) * CELL_SCALE;
        }
        return;
    }
    uint16_t low[CELL_PARTS], high[CELL_PARTS];
    cell_split(x, low);
    cell_split(y, high);
#pragma unroll
    for (int i = 0; i < CELL_PARTS; i++) word[i] = low[i] | (uint32_t)high[i] << 16;
}

/* A sum from those of its parts, which are get(i). Where the first is Inf or NaN it is what the formula gives, and
 * others may be another than that; but for Inf times a subnormal, whose first part may be 0: of that product the
 * specification says nothing (near_times). */
template <int SUMS, class Get> DEVICE float cell_total(Get get) {
    float rest = get(SUMS - 1);
#pragma unroll
    for (int i = SUMS - 2; i > 0; i--) rest = fused(rest, 1 / CELL_SCALE, get(i));
    return magnitude(get(0)) < infinity() ? fused(rest, 1 / CELL_SCALE, get(0)) : get(0);
}

/* Where the parts of element k of column n lie among a column tile's words of 16 bits: as lanes load them. */
DEVICE int cell_word(int k, int part) {
    return (k / CELL_DEPTH * CELL_PARTS + part) * (CELL_BYTES / 2) + k % CELL_DEPTH / 8 * 2 + k % 8 / 2 * 4 + k % 2;
}
DEVICE int cell_column_word(int n) { return n * 16; }

DEVICE void cell_put_parts(char *tile, int n, int k, float x) {
    uint16_t part[CELL_PARTS], *const words = (uint16_t *)tile + cell_column_word(n);
    cell_split(x, part);
#pragma unroll
    for (int i = 0; i < CELL_PARTS; i++) words[cell_word(k, i)] = part[i];
}

/* Two tiles of 16 rows of a matrix and 16 of its columns, of a lane. */
template <int PARTS> struct cell_tiles {
    packed<uint32_t, 4> word[2][PARTS];

    DEVICE void load(const char *from) {
#pragma unroll
        for (int i = 0; i < 2 * PARTS; i++)
            word[i / PARTS][i % PARTS] = ((const packed<uint32_t, 4> *)from)[i * WARP + thread_index() % WARP];
    }
};

/* Sums of two tiles of 16 rows and 8 columns. */
template <int PARTS> struct cell_sum {
    static constexpr int SUMS = PARTS + CELL_PARTS - 1;
    float of[SUMS][2][4];

    DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < SUMS * 8; i++) of[i / 8][i / 4 % 2][i % 4] = 0.0f;
    }

    DEVICE void add(const cell_tiles<PARTS> &a, const char *columns) {
        packed<uint32_t, 2> b[CELL_PARTS];
#pragma unroll
        for (int j = 0; j < CELL_PARTS; j++)
            b[j] = ((const packed<uint32_t, 2> *)columns)[j * WARP + thread_index() % WARP];
#pragma unroll
        for (int i = 0; i < PARTS; i++)
#pragma unroll
            for (int j = 0; j < CELL_PARTS; j++)
#pragma unroll
                for (int tile = 0; tile < 2; tile++)
                    warp_multiply(bf16(), of[i + j][tile], a.word[tile][i].v, b[j].v[0], b[j].v[1]);
    }

    DEVICE float get(int tile, int i) const {
        return cell_total<SUMS>([&](int part) { return of[part][tile][i]; });
    }
};

/* A warp's share of a product: a pair of row tiles, and of the steps along columns one slice. */
struct cell_share {
    int number, pair, slice;
};

template <class T> struct cell_matrix {
    static constexpr int PARTS = cell_parts<T>::COUNT, BYTES = 2 * PARTS * CELL_PIECE, KEPT = CELL_KEPT(PARTS);
    const cell_wide &w;
    const char *pieces; /* the block's, in the workspace */
    char *held;
    const cell_share mine; /* the first of the warp's, of whose steps registers keep some */
    cell_tiles<PARTS> kept[KEPT > 0 ? KEPT : 1];

    DEVICE cell_matrix(const cell_wide &wide, const char *from, char *memory)
        : w(wide), pieces(from), held(memory), mine(share(thread_index() / WARP)) {}

    DEVICE cell_share share(int number) const { return { number, number / w.slices, number % w.slices }; }
    DEVICE const char *piece(const cell_share &s, int i) const {
        return pieces + ((int64_t)s.pair * w.depth + s.slice + i * w.slices) * BYTES;
    }
    DEVICE int steps_of(const cell_share &s) const { return (w.depth - s.slice + w.slices - 1) / w.slices; }
    /* Steps of a share that registers keep. */
    static DEVICE int skipped(const cell_share &s) { return s.number < CELL_WIDE_WARPS ? KEPT : 0; }

    /* All of the block's that it holds. */
    DEVICE void fetch() {
        const int shares = w.pairs * w.slices;
        if (mine.number < shares) {
            const int steps = steps_of(mine);
#pragma unroll
            for (int i = 0; i < KEPT; i++)
                if (i < steps) kept[i].load(piece(mine, i));
        }
        constexpr int LANES = BYTES / 16;
        for (int at = thread_index(); at < shares * w.held * LANES; at += CELL_WIDE_THREADS) {
            const cell_share s = share(at / (w.held * LANES));
            const int i = at / LANES % w.held + skipped(s);
            if (i < steps_of(s))
                ((packed<uint32_t, 4> *)held)[at] = ((const packed<uint32_t, 4> *)piece(s, i))[at % LANES];
        }
    }

    /* A share's sums of a column tile. */
    DEVICE void multiply(const cell_share &s, const char *columns, cell_sum<PARTS> &sum) const {
        const int steps = steps_of(s), first = skipped(s), end = first + w.held < steps ? first + w.held : steps;
        const int step = w.slices * CELL_COLUMN_BYTES;
        columns += s.slice * CELL_COLUMN_BYTES;
        sum.clear();
        if (first > 0) {
#pragma unroll
            for (int i = 0; i < KEPT; i++)
                if (i < steps) sum.add(kept[i], columns + i * step);
        }
#pragma unroll 2
        for (int i = first; i < end; i++) {
            cell_tiles<PARTS> a;
            a.load(held + (int64_t)(s.number * w.held + i - first) * BYTES);
            sum.add(a, columns + i * step);
        }
#pragma unroll(PARTS == 1 ? 4 : 1)
        for (int i = first + w.held; i < steps; i++) {
            cell_tiles<PARTS> a;
            a.load(piece(s, i));
            sum.add(a, columns + i * step);
        }
    }

    /* Calls each(share) for all of the warp's. */
    template <class Each> DEVICE void shares(Each each) const {
        cell_share s = mine;
        while (s.number < w.pairs * w.slices) {
            each(s);
            s = share(s.number + CELL_WIDE_WARPS);
        }
    }
};

/* The lane's words of all pieces of a pair of tiles: at(row, column) is an element of the block's matrix. */
template <class T, class Element> DEVICE void cell_pack(char *piece, int lane, int rows, int columns, Element at) {
    constexpr int PARTS = cell_parts<T>::COUNT;
#pragma unroll
    for (int tile = 0; tile < 2; tile++) {
        uint32_t word[4][CELL_PARTS];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = rows + tile * CELL_ROWS + lane / 4 + i % 2 * 8, column = columns + lane % 4 * 2 + i / 2 * 8;
            cell_split(at(row, column), at(row, column + 1), word[i]);
        }
#pragma unroll
        for (int q = 0; q < PARTS; q++)
            store_words(piece + (tile * PARTS + q) * CELL_PIECE + lane * 16, word[0][q], word[1][q], word[2][q],
                        word[3][q]);
    }
}

/* An element as it is in memory, which is not waited for until it is used. */
template <class T> DEVICE uint32_t cell_word_of(const void *data, int64_t i) {
    return ((const typename T::bits *)data)[i];
}
template <class T> DEVICE float cell_get(uint32_t word) { return T::get((typename T::bits)word); }

/* A unit of a column; column -1: none. */
struct cell_item {
    int column, unit;
};

/* The sequences of a cluster, one a column. */
struct cell_column {
    int64_t sequence, batch, first, steps;

    DEVICE int64_t at(const cell_tensor &t, int64_t k, int gate, int64_t head) const {
        return batch * t.batch + (first + k) * t.step + gate * t.gate + head * t.head;
    }
    DEVICE float *state(const cell_tensor &t, int64_t head) const {
        return t.data ? (float *)t.data + sequence * t.batch + head * t.head : nullptr;
    }
};

/* All threads of a block ask together: are the offsets of packed sequences astray? */
template <class Params> DEVICE bool cell_astray(const Params &p) {
    if (!p.cu) return false;
    float bad = p.cu[0] != 0 || p.cu[p.count] > p.t ? 1.0f : 0.0f;
    for (int64_t i = thread_index(); i < p.count; i += CELL_WIDE_THREADS)
        if (p.cu[i + 1] < p.cu[i]) bad = 1.0f;
    return group_sum<CELL_WIDE_THREADS>(bad) > 0;
}

/* Number n of a group; of none the sequence is -1. */
template <class Params> DEVICE cell_column cell_column_of(const Params &p, int64_t n, bool astray) {
    cell_column c = { n, p.cu ? 0 : n, 0, p.t };
    if (n >= p.count) return { -1, 0, 0, 0 };
    if (!p.cu) return c;
    c.first = astray ? 0 : p.cu[n];
    c.steps = astray ? 0 : p.cu[n + 1] - p.cu[n];
    return c;
}

/* The block's pieces. */
template <class T, class Params> DEVICE const char *cell_pieces_of(const Params &p, int64_t head) {
    return p.pieces +
           (head * p.wide.blocks + cluster_rank()) * p.wide.pairs * p.wide.depth * (int64_t)cell_matrix<T>::BYTES;
}

/* What blocks of a cluster send each other for step k > 0 counts for one of two barriers, which lie where launch memory
 * begins. No block is more than a step ahead of another, whose last values it needs. */
struct cell_turns {
    const bool shared; /* is there another block? */

    DEVICE cell_turns(const cell_wide &w) : shared(w.blocks > 1) {
        if (!shared || thread_index() > 0) return;
        barrier_init(barrier(0), 1);
        barrier_init(barrier(1), 1);
        barriers_made();
    }
    static DEVICE uint32_t barrier(int64_t k) { return shared_address(launch_memory()) + (uint32_t)(k & 1) * 8; }
    static DEVICE uint32_t barrier(int64_t k, int rank) { return cluster_address(barrier(k), rank); }

    /* All blocks have begun. */
    DEVICE void meet() const {
        if (shared)
            cluster_sync();
        else
            sync_block();
    }
    /* So many bytes come for step k. */
    DEVICE void expect(int64_t k, int bytes) const {
        if (thread_index() == 0) barrier_expect(barrier(k), bytes);
    }
    DEVICE void wait(int64_t k) const { barrier_wait(barrier(k), (uint32_t)((k - 1) / 2 & 1)); }
};

#endif
