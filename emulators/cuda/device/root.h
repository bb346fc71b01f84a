/* SPDX-License-Identifier: Apache-2.0 */
/* Square roots to 2 ulp, of subnormals too. */
#ifndef TRINE_EMULATOR_ROOT_H
#define TRINE_EMULATOR_ROOT_H

#include <target.h>

DEVICE float square_root_approx(float x) { return x == 0 ? x : emulated_error(sqrtf(x), x, 2); }

#endif
