/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of sm_80 for tiles on the host: copies are done when they are waited for, and what lay at their
 * places is lost at once. */
#ifndef TRINE_EMULATOR_TILE_MMA_H
#define TRINE_EMULATOR_TILE_MMA_H

#include "backends/cuda/tile/types.h"
#include "backends/simt/core/simt.h"

enum { EMULATED_COPIES = 512 };

struct emulated_copy {
    void *to;
    const void *from;
    int size, bytes, group;
};
/* A thread's copies that are under way, and the number of the group that is open. */
struct emulated_copies {
    int count, group;
    emulated_copy copy[EMULATED_COPIES];
};
inline emulated_copies &emulated_copies_here() {
    static emulated_copies copies[EMULATOR_THREADS];
    return copies[emulator.thread];
}

template <int SIZE> DEVICE void copy_bytes(void *to, const void *from, int bytes) {
    emulated_copies &c = emulated_copies_here();
    if (((uintptr_t)to | (uintptr_t)from) % SIZE != 0 || bytes < 0 || bytes > SIZE || c.count == EMULATED_COPIES)
        __builtin_trap();
    memset(to, 0x7f, SIZE);
    c.copy[c.count++] = { to, from, SIZE, bytes, c.group };
}
DEVICE void copy_commit() { emulated_copies_here().group++; }
template <int N> DEVICE void copy_wait() {
    emulated_copies &c = emulated_copies_here();
    int kept = 0;
    for (int i = 0; i < c.count; i++) {
        const emulated_copy copy = c.copy[i];
        if (copy.group >= c.group - N) {
            c.copy[kept++] = copy;
            continue;
        }
        memset(copy.to, 0, (size_t)copy.size);
        if (copy.bytes > 0) memcpy(copy.to, copy.from, (size_t)copy.bytes);
    }
    c.count = kept;
}

/* Teams come equally often, and so all of them wait for each other. */
DEVICE void sync_team(int, int) { emulator_wait(WAIT_BLOCK); }

DEVICE packed<uint32_t, 4> load_once_if(bool yes, const void *from, uint32_t none = 0) {
    packed<uint32_t, 4> x = { { none, none, none, none } };
    if ((uintptr_t)from % 16 != 0) __builtin_trap();
    if (yes) memcpy(&x, from, sizeof x);
    return x;
}

template <bool ACROSS> DEVICE void load_matrices(uint32_t (&r)[4], const void *row) {
    const int first = emulator.thread / WARP * WARP, lane = emulator.thread % WARP;
    if ((uintptr_t)row % 16 != 0) __builtin_trap();
    emulator.slot[emulator.thread] = (uint64_t)(uintptr_t)row;
    emulator_wait(WAIT_WARP);
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int k = 0; k < 2; k++) {
            const int at = lane % 4 * 2 + k;
            pair[k] = ((const uint16_t *)(uintptr_t)
                           emulator.slot[first + 8 * i + (ACROSS ? at : lane / 4)])[ACROSS ? lane / 4 : at];
        }
        memcpy(&r[i], pair, sizeof pair);
    }
    emulator_wait(WAIT_WARP);
}

/* Elements `index` to the next word's of a register. */
template <class T> struct emulated_word {
    enum { COUNT = 2 };
    static DEVICE float get(uint32_t word, int i) { return T::get((uint16_t)(word >> 16 * i)); }
};
template <> struct emulated_word<tf32> {
    enum { COUNT = 1 };
    static DEVICE float get(uint32_t word, int) { return float_of_bits(word & 0xffffe000u); }
};
template <> struct emulated_word<int8_t> {
    enum { COUNT = 4 };
    static DEVICE int32_t get(uint32_t word, int i) { return (int8_t)(word >> 8 * i); }
};
DEVICE float emulated_add(float s, float a, float b) { return s + a * b; }
DEVICE int32_t emulated_add(int32_t s, int32_t a, int32_t b) { return (int32_t)((uint32_t)s + (uint32_t)(a * b)); }

template <class T, class Sum>
DEVICE void warp_multiply(T, Sum (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    static uint32_t word[EMULATOR_THREADS][6];
    const int first = emulator.thread / WARP * WARP, lane = emulator.thread % WARP;
    const uint32_t mine[6] = { a[0], a[1], a[2], a[3], b0, b1 };
    memcpy(word[emulator.thread], mine, sizeof mine);
    emulator_wait(WAIT_WARP);
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < 4; k++)
                for (int e = 0; e < emulated_word<T>::COUNT; e++)
                    sum[i] =
                        emulated_add(sum[i], emulated_word<T>::get(word[first + lane / 4 * 4 + k][half * 2 + i / 2], e),
                                     emulated_word<T>::get(word[first + (lane % 4 * 2 + i % 2) * 4 + k][4 + half], e));
    emulator_wait(WAIT_WARP);
}

DEVICE void warp_multiply(double (&sum)[4], const double (&a)[2], double b) {
    static double given[EMULATOR_THREADS][3];
    const int first = emulator.thread / WARP * WARP, lane = emulator.thread % WARP;
    const double mine[3] = { a[0], a[1], b };
    memcpy(given[emulator.thread], mine, sizeof mine);
    emulator_wait(WAIT_WARP);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            sum[i] =
                fma(given[first + lane / 4 * 4 + k][i / 2], given[first + (lane % 4 * 2 + i % 2) * 4 + k][2], sum[i]);
    emulator_wait(WAIT_WARP);
}

#endif
