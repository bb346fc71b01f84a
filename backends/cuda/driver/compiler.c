/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's run-time compiler: how it is found, and what it is told. */
#include <stddef.h>

#include "backends/simt/core/compile.h"

extern const char trine_cuda_vocabulary[]; /* core/fetch.h */

/* The last is where a toolkit is whose folder the loader was not told of. */
static const char *const libraries[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                         "/usr/local/cuda/lib64/libnvrtc.so", NULL };

/* A product and a sum are never one instruction unless the source says so: bits do not depend on which loop, the
 * vectors' or that of the last elements, an element is in. NVRTC knows the builtins of C under their other name. */
static const char *const options[] = { "--std=c++17",
                                       "--fmad=false",
                                       "-default-device",
                                       "--disable-warnings",
                                       "-D__builtin_memcpy=memcpy",
                                       "-D__builtin_fabsf=fabsf",
                                       "-D__builtin_floorf=floorf",
                                       "-D__builtin_fma=fma",
                                       NULL };

const simt_compiler_spec simt_compiler_of_vendor = {
    .prefix = "nvrtc",
    .code = "CUBIN",
    .libraries = libraries,
    .arch_option = "--gpu-architecture=",
    .options = options,
    .vocabulary = trine_cuda_vocabulary,
};
