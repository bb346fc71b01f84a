/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CUDA devices: without tensor cores. */
#include "attention_simt.h"

#define SIMT(T, D) \
    ENTRY(attention_simt_##T##_##D, ATTENTION_THREADS, attention_params) { attention_simt<T, D>(p); }
SIMT(f32, 64)
SIMT(f32, 128)
SIMT(bf16, 64)
SIMT(bf16, 128)
SIMT(f16, 64)
SIMT(f16, 128)
