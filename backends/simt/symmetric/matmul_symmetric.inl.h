/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on devices, without matrix units.
 *
 * NOTES. Floor: m (m+1) k flops. Products are made in f32 whatever the 16-bit type. */
#include "matmul_symmetric_simt.inl.h"

#include "matmul_symmetric_mirror.inl.h"

#define SYMMETRIC(T, O) \
    ENTRY(matmul_symmetric_##T##_##O, SIMT_THREADS, symmetric_params) { \
        symmetric_product<symmetric_float<T>, symmetric_float<O>>(p); \
    }
SYMMETRIC(f32, f32)
SYMMETRIC(bf16, bf16)
SYMMETRIC(bf16, f32)
SYMMETRIC(f16, f16)
SYMMETRIC(f16, f32)
ENTRY(matmul_symmetric_f64_f64, SIMT_THREADS, symmetric_params) {
    symmetric_product<symmetric_double, symmetric_double>(p);
}
SYMMETRIC_MIRRORS
