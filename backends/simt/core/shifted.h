/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors that begin anywhere in memory. Which thread has which element does not depend on addresses, since results
 * must not, but how elements are moved does: 16 aligned bytes at a time. A thread reads the pieces of 16 bytes that its
 * vector is in, and shifts them; a piece to be written has elements of two neighbours, of which the second gets the
 * first's. What is left at the ends of a row, and of a group's threads in a warp, goes element by element.
 *
 * NOTES. Element by element, 32 threads touch 4 KB of lines for each 512 bytes: 0.9 to 1.0 TB/s for rms_norm on bf16
 * where aligned rows take 4.1 (H200); so 2.3 to 2.6. Of f32 the shifts cost what they save, but for what is stored: 2.7
 * to 3.0 either way, and 3.2 to 3.6 where it comes by copies past registers (cuda/elements.h). */
#ifndef TRINE_SIMT_SHIFTED_H
#define TRINE_SIMT_SHIFTED_H

#include "simt.h"

/* N elements one by one, element k if in(k); the others are 0. */
template <class T, int N, class In> DEVICE held<T, N> gathered(const typename T::bits *from, const In &in) {
    held<T, N> x = {};
#pragma unroll
    for (int k = 0; k < N; k++)
        if (in(k)) x.word[k / x.PER_WORD] |= (uint32_t)from[k] << k % x.PER_WORD * 16;
    return x;
}

/* A vector of N elements of the row of n that begins at `row`: its first element is `at`, a multiple of N. */
template <class T, int N = VECTOR> struct shifted {
    using bits = typename T::bits;
    using vector = held<T, N>;
    static constexpr int SIZE = (int)sizeof(bits), PER_WORD = vector::PER_WORD, WORDS = N / PER_WORD;
    /* of an aligned piece: 16 bytes, or 8 */
    static constexpr int PIECE = N * SIZE < 16 ? N : 16 / SIZE, PIECES = N / PIECE, PIECE_WORDS = PIECE / PER_WORD;
    using word_array = uint32_t[WORDS + PIECE_WORDS];

    bits *const from;
    const bool first; /* of its row */
    const int left;   /* elements of the row from it on; of many some */
    const int skew;   /* elements between an aligned piece's beginning and the row's, or a vector's */

    DEVICE shifted(const void *row, int64_t at, int64_t n)
        : from((bits *)row + at), first(at == 0), left(at < n ? (int)(n - at < 4 * N ? n - at : 4 * N) : 0),
          skew((int)((uintptr_t)row / SIZE % PIECE)) {}

    /* The aligned pieces that it is in, if all of them are in the row. */
    struct pieces {
        word_array word;
    };
    DEVICE bool inner() const { return skew == 0 ? left >= N : !first && left >= N + PIECE - skew; }
    DEVICE pieces ask() const {
        pieces p = {};
        const packed<uint32_t, PIECE_WORDS> *of = (const packed<uint32_t, PIECE_WORDS> *)(from - skew);
        if (inner())
#pragma unroll
            for (int i = 0; i <= PIECES; i++) {
                const packed<uint32_t, PIECE_WORDS> piece = of[i < PIECES || skew > 0 ? i : 0];
#pragma unroll
                for (int k = 0; k < PIECE_WORDS; k++) p.word[PIECE_WORDS * i + k] = piece.v[k];
            }
        return p;
    }
    DEVICE vector take(pieces p) const { return shift(p.word, skew); }

    /* Its elements one by one; those beyond the row are 0. */
    DEVICE vector gather() const {
        const uint32_t in = below(left);
        return gathered<T, N>(from, [&](int k) { return in >> k & 1; });
    }

    DEVICE vector read() const {
        return skew == 0 && left >= N ? *(const vector *)from : inner() ? take(ask()) : gather();
    }

    /* Bits for those before element k. Tests of bits want fewer registers than comparisons, whose answers compilers
     * hold. */
    static DEVICE uint32_t below(int k) { return k >= N ? (1u << N) - 1 : k > 0 ? (1u << k) - 1 : 0; }

    /* Elements by, by + 1, ... of `word`, `by` at most PIECE. */
    static DEVICE vector shift(word_array &word, int by) {
        if constexpr (PIECE_WORDS == 4) shift_words<4>(word, by / PER_WORD);
        shift_words<2>(word, by / PER_WORD);
        shift_words<1>(word, by / PER_WORD);
        vector x;
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            x.word[i] = PER_WORD == 2 && by & 1 ? word[i] >> 16 | word[i + 1] << 16 : word[i];
        return x;
    }
    template <int STEP> static DEVICE void shift_words(word_array &word, int by) {
#pragma unroll
        for (int i = 0; i + STEP < WORDS + PIECE_WORDS; i++) {
            /* values: one of two addresses would keep the words from registers */
            const uint32_t near = word[i], far = word[i + STEP];
            word[i] = by & STEP ? far : near;
        }
    }

    /* How many threads of the warp have elements, if their vectors follow each other and `left` elements are this
     * thread's and those behind it. */
    static DEVICE int lanes_with(int left) {
        const int lanes = (left + N - 1) / N + thread_index() % WARP;
        return lanes < WARP ? lanes : WARP;
    }

    /* Stores it, this thread being number `lane` of `lanes` of a warp that come here with vectors one behind the
     * other. */
    DEVICE void put(const vector &x, int lane, int lanes) const {
        const bool begins = skew == 0 || lane > 0; /* is its first piece its own? */
        const int last = lane + 1 < lanes ? N : N - skew;
        const int end = left - (left + skew) % PIECE;
        word_array word;
#pragma unroll
        for (int i = 0; i < PIECE_WORDS; i++) word[i] = shuffle_before(x.word[WORDS - PIECE_WORDS + i], lane, lanes);
#pragma unroll
        for (int i = 0; i < WORDS; i++) word[PIECE_WORDS + i] = x.word[i];
        const vector y = shift(word, PIECE - skew);
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            if ((i > 0 || begins) && (i + 1) * PIECE - skew <= end) {
                uint32_t piece[PIECE_WORDS];
#pragma unroll
                for (int k = 0; k < PIECE_WORDS; k++) piece[k] = y.word[PIECE_WORDS * i + k];
                store_whole(piece, from - skew + PIECE * i);
            }
        const uint32_t alone = below(left) & ~(below(end < last ? end : last) & ~below(begins ? 0 : PIECE - skew));
#pragma unroll
        for (int k = 0; k < N; k++)
            if (alone >> k & 1) from[k] = (bits)(x.word[k / PER_WORD] >> k % PER_WORD * 16);
    }
};

#endif
