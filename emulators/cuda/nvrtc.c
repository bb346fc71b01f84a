/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC for the stub driver: the host's compiler, over the emulator's vocabulary instead of the one that is given. What
 * comes out is a library that the stub opens. */
#define RTC_PREFIX nvrtc
#define RTC_CODE CUBIN
#define RTC_SWITCH "STUB_NVRTC"
#include "tests/run_time_compiler.h"

static void rtc_command(char *out, size_t size, const char *directory, int count, const char *const *options) {
    (void)count, (void)options;
    snprintf(out, size,
             "rm %s/fetch.h && " STUB_COMPILER
             " -x c++ -std=c++17 -w -O0 -shared -fPIC -fvisibility=hidden -I" STUB_VOCABULARY " -I" STUB_SOURCE
             " -fno-tree-slp-vectorize -ffp-contract=off -o %s/k.out %s/k.src",
             directory, directory, directory);
}
