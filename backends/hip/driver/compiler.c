/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's run-time compiler: how it is found, and what it is told. */
#include <stddef.h>

#include "backends/simt/core/compile.h"

extern const char trine_hip_vocabulary[]; /* core/fetch.h */

/* Before ROCm 7 the entry points are in the runtime library too. */
static const char *const libraries[] = {
    "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so", "/opt/rocm/lib/libhiprtc.so", NULL
};

/* As device code that is built in: products and sums stay apart unless the source joins them. */
static const char *const options[] = { "-std=c++17", "-O2", "-ffp-contract=off", NULL };

const simt_compiler_spec simt_compiler_of_vendor = {
    .prefix = "hiprtc",
    .code = "Code",
    .libraries = libraries,
    .arch_option = "--offload-arch=",
    .options = options,
    .vocabulary = trine_hip_vocabulary,
};
