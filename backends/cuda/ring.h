/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that registers do not hold, one after the other in a block that stays: a ring of chunks in shared memory holds the row at work and as much of the next as
 * there is room for. A thread copies into slots of its own, which no other looks at, so that it alone waits for them; it asks for a chunk to come as soon as it
 * has written y of the one before it in that slot. Chunks of the row that find no slot are read again at each step, from the second-level cache. */
#ifndef TRINE_CUDA_RING_H
#define TRINE_CUDA_RING_H

#include <tile/mma.h>

#include "backends/simt/row.h"

/* Groups of G threads, each with 16 bytes of a chunk. */
template <class T, int G> struct ring {
    using bits = typename T::bits;
    static constexpr int ITEMS = 16 / sizeof(bits);
    using chunk = held<T, ITEMS>;
    static constexpr int STEP = 16 / ITEMS; /* chunks of two vectors */

    const simt_ring &shape;
    const simt_rows &x;
    const int64_t rows;
    const int n, near; /* chunks that have a slot */
    int64_t row;
    int first = 0; /* the slot of the row's first chunk */

    /* Asks for as much as there are slots for. */
    DEVICE ring(const simt_ring &r, const simt_rows &from, int64_t count, int64_t length)
        : shape(r), x(from), rows(count), n((int)length), near(r.slots < r.chunks ? r.slots : r.chunks), row(block_index()) {
        for (int v = 0; v < near; v++) ask(row, v, v);
        copy_commit();
        for (int v = near; v < r.slots; v++) ask(row + r.blocks, v - near, v);
        copy_commit();
    }

    /* Until the row at work is there; of the next some may be under way. */
    DEVICE void wait() const { copy_wait<1>(); }

    DEVICE int place(int v) const { return (v * G + thread_index()) * ITEMS; }

    DEVICE char *memory(int v) const {
        const int slot = first + v < shape.slots ? first + v : first + v - shape.slots;
        return launch_memory() + (slot * G + thread_index()) * 16;
    }

    DEVICE void ask(int64_t of, int v, int slot_of) const {
        if (of >= rows) return;
        char *to = memory(slot_of);
        if (shape.whole) {
            const int at = place(v), bytes = at < n ? 16 : 0;
            copy_bytes<16>(to, row_at<T>(x, of) + (at < n ? at : 0), bytes);
        } else {
            *(chunk *)to = read(x.data, of * x.row, v);
        }
    }

    /* Body(v, chunks v to v + COUNT - 1 of the row): what is beyond the row is 0. */
    template <int COUNT, class Body> DEVICE void each(const Body &body) const {
#pragma unroll 1
        for (int v = 0; v < shape.chunks; v += COUNT) {
            chunk c[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; i++) c[i] = v + i < near ? *(const chunk *)memory(v + i) : read(x.data, row * x.row, v + i);
            body(v, c);
        }
    }

    /* Body(x, in) for two vectors at a time, and which of their elements are in the row. */
    template <class Body> DEVICE void each_pair(const Body &body) const {
        each<STEP>([&](int v, const chunk(&c)[STEP]) {
            float h[2][VECTOR];
            bool in[2][VECTOR];
#pragma unroll
            for (int i = 0; i < STEP; i++)
#pragma unroll
                for (int k = 0; k < ITEMS; k++) {
                    h[(i * ITEMS + k) / VECTOR][(i * ITEMS + k) % VECTOR] = c[i].get(k);
                    in[(i * ITEMS + k) / VECTOR][(i * ITEMS + k) % VECTOR] = place(v + i) + k < n;
                }
            body(h, in);
        });
    }

    /* A chunk of a tensor's row that begins at `start`; 0 beyond it. */
    DEVICE chunk read(const void *data, int64_t start, int v) const {
        const bits *from = (const bits *)data + start;
        const int at = place(v);
        if (shape.whole && at < n) return *(const chunk *)(from + at);
        chunk c = {};
        if (!shape.whole)
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (at + k < n) c.word[k / c.PER_WORD] |= (uint32_t)from[at + k] << k % c.PER_WORD * 16;
        return c;
    }

    DEVICE void put(const simt_rows &y, int v, const float (&value)[ITEMS]) const {
        bits *to = row_at<T>(y, row);
        const int at = place(v);
        if (shape.whole) {
            if (at < n) store_vector<T>(value, to + at);
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (at + k < n) to[at + k] = T::put(value[k]);
        }
    }

    /* Chunk v of the row is done with: its slot is for that `slots` chunks on. The row after the next begins a group of its own. */
    DEVICE void refill(int v) const {
        if (v >= near) return;
        const int ahead = near < shape.chunks ? v : v + shape.slots - shape.chunks;
        if (ahead == shape.chunks) copy_commit();
        if (ahead < shape.chunks)
            ask(row + shape.blocks, ahead, v);
        else
            ask(row + 2 * shape.blocks, ahead - shape.chunks, v);
    }
    DEVICE void next() {
        if (shape.slots <= shape.chunks) copy_commit();
        copy_commit();
        row += shape.blocks;
        first += shape.slots > shape.chunks ? shape.chunks : 0;
        if (first >= shape.slots) first -= shape.slots;
    }
};

#endif
