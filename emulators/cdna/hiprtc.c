/* SPDX-License-Identifier: Apache-2.0 */
/* hipRTC for the emulated HIP driver: clang, as the HIP module's own code is built. */
#define RTC_PREFIX hiprtc
#define RTC_CODE Code
#define RTC_SWITCH "CDNA_HIPRTC"
#include "tests/run_time_compiler.h"

static void rtc_command(char *out, size_t size, const char *directory, int count, const char *const *options) {
    size_t length = (size_t)snprintf(out, size,
                                     "'%s' -x hip -nogpuinc -nogpulib --cuda-device-only --no-gpu-bundle-output "
                                     "-mcode-object-version=5 -I%s -o %s/k.out %s/k.src",
                                     CDNA_CLANG, directory, directory, directory);
    for (int i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, " '%s'", options[i]);
}
