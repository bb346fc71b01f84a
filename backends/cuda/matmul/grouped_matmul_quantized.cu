/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_quantized on CUDA devices: the tiles of grouped_matmul, for which a thread makes weights of the codes
 * that it fetched a step before; in x's type for the tensor cores of sm_80 and later, f32 without.
 *
 * NOTES. Floor: codes once for each tile of rows, and x once for each tile of columns. */
#include "backends/simt/matmul/grouped_matmul_codes.inl.h"

#include "grouped_matmul_mma.h"

static_assert((int)GROUPED_FETCHES * SIMT_THREADS == (int)GROUPED_B_PIECES, "a thread's units are its pieces");

template <class T> struct grouped_code_weights : grouped_codes {
    static constexpr bool ACROSS = false;
    using grouped_codes::grouped_codes;

    DEVICE void put(grouped_stage &stage, int64_t) const {
#pragma unroll
        for (int i = 0; i < GROUPED_FETCHES; i++) {
            float w[VECTOR];
            grouped_piece piece;
            values(w, i);
#pragma unroll
            for (int q = 0; q < VECTOR; q += 2) piece.v[q / 2] = T::pair(w[q], w[q + 1]);
            stage.b[grouped_turned(grouped_along(i), thread_index() % GROUPED_PIECES)] = piece;
        }
    }
};

ENTRY(grouped_matmul_quantized_plan, SIMT_THREADS, grouped_params) { grouped_plan(p); }
ENTRY(grouped_matmul_quantized_f32_f32, SIMT_THREADS, grouped_quantized_params) {
    grouped_product<f32, f32>(p.rows, grouped_decoded(p));
}

#define GROUPED_QUANTIZED(T, O) \
    ENTRY(grouped_matmul_quantized_##T##_##O, SIMT_THREADS, grouped_quantized_params) { \
        grouped_mma<T, O>(p.rows, grouped_code_weights<T>(p)); \
    }
GROUPED_QUANTIZED(bf16, bf16)
GROUPED_QUANTIZED(bf16, f32)
GROUPED_QUANTIZED(f16, f16)
GROUPED_QUANTIZED(f16, f32)
