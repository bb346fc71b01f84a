/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA4, whose instructions take a whole chunk, and of float8 two. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "backends/simt/core/float8.h"
#include "tile/unit.h"

typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));

DEVICE f32x4 matrix_multiply(f16, f16x8 a, f16x8 b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, s, 0, 0, 0);
}
DEVICE f32x16 matrix_multiply(f16, f16x8 a, f16x8 b, f32x16 s) {
    return __builtin_amdgcn_mfma_f32_32x32x16_f16(a, b, s, 0, 0, 0);
}
DEVICE f32x4 matrix_multiply(bf16, bf16x8 a, bf16x8 b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, s, 0, 0, 0);
}
DEVICE f32x16 matrix_multiply(bf16, bf16x8 a, bf16x8 b, f32x16 s) {
    return __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, s, 0, 0, 0);
}
DEVICE i32x4 matrix_multiply(i8, i32x4 a, i32x4 b, i32x4 s) {
    return __builtin_amdgcn_mfma_i32_16x16x64_i8(a, b, s, 0, 0, 0);
}

/* LDS serves 16 lanes of 16 bytes at a time, which are 0 to 3, 12 to 15 and 20 to 27, or the others of 32
 * (emulators/cdna/lds_check.c). */
template <> DEVICE int chunk_place_by<32>(unsigned lane, unsigned c) {
    return (lane ^ lane / 16 % 2) * CHUNKS + (c ^ lane / 4 % CHUNKS);
}

template <> struct unit<f16> : unit_of_parts<f16, f16x8> {};
template <> struct unit<bf16> : unit_of_parts<bf16, bf16x8> {};
template <> struct unit<i8> : unit_of_parts<i8, i32x4, int32_t> {};

/* Loads of 16 bytes a lane straight to LDS, of a wave side by side. The compiler, which would wait for all of them
 * ahead of any read of LDS, does not know them: who reads waits until no more than COUNT are in flight. */
template <int STAGES_> struct direct_loads {
    static constexpr int STAGES = STAGES_;
    static constexpr bool READS_TURNED = false;
    static DEVICE void load(const void *from, uint32_t offset, uint32_t to) {
        asm volatile("s_nop 0\n\tglobal_load_lds_dwordx4 %1, %2" : : "{m0}"(to), "v"(offset), "s"(from) : "memory");
    }
    template <int COUNT> static DEVICE void wait() { asm volatile("s_waitcnt vmcnt(%0)" : : "n"(COUNT) : "memory"); }
};
/* And reads of LDS, which has LANES of 16 bits of each k, that turn: the chunk along k of one of 16 lanes from `first`
 * on. Of 16 threads the i-th reads four lanes at 4 (i % 4) of k = i / 4, and is given four k of lane i (LLVM,
 * ds_read_tr16_b64; its lanes: ROCm, rocm-systems #10175). */
struct direct_halves : direct_loads<4> {
    static constexpr bool READS_TURNED = true;
    template <int LANES> static DEVICE chunk read_turned(const chunk *tile, int first) {
        typedef __attribute__((address_space(3))) i16x4 four;
        const unsigned thread = thread_index() % WARP, k = thread / 16 * 8 + thread % 16 / 4;
        const char *const from =
            (const char *)tile + k * LANES * 2 + (first / 16 ^ turned_swizzle(k)) * 2 * CHUNK + thread % 4 * 8;
        const i16x4 low = __builtin_amdgcn_ds_read_tr16_b64_v4i16((four *)from),
                    high = __builtin_amdgcn_ds_read_tr16_b64_v4i16((four *)(from + 4 * LANES * 2));
        return __builtin_bit_cast(chunk, __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7));
    }
};
template <> struct direct<bf16> : direct_halves {};
template <> struct direct<f16> : direct_halves {};
template <> struct direct<e4m3> : direct_loads<2> {};
template <> struct direct<e5m2> : direct_loads<2> {};

/* Any two types of float8: the operands' formats are fields of the instruction. Without scales they are 1. */
template <> constexpr int UNIT_CHUNKS<e4m3> = 2;
template <> constexpr int UNIT_CHUNKS<e5m2> = 2;
template <class T> constexpr int UNIT_FORMAT = -1;
template <> constexpr int UNIT_FORMAT<e4m3> = 0;
template <> constexpr int UNIT_FORMAT<e5m2> = 1;
template <class T, class U> struct unit_of_float8 {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunks_2 a, chunks_2 b) {
        s = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, s, UNIT_FORMAT<T>, UNIT_FORMAT<U>, 0, 0, 0, 0);
    }
};
template <> struct unit<e4m3, e4m3> : unit_of_float8<e4m3, e4m3> {};
template <> struct unit<e4m3, e5m2> : unit_of_float8<e4m3, e5m2> {};
template <> struct unit<e5m2, e4m3> : unit_of_float8<e5m2, e4m3> {};

#define UNIT_WIDENED(WIDEN, PRODUCTS)
#define UNIT_FLOAT8(ENTRIES) ENTRIES(e4m3, e4m3) ENTRIES(e4m3, e5m2) ENTRIES(e5m2, e4m3)

#endif
