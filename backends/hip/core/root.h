/* SPDX-License-Identifier: Apache-2.0 */
/* Square roots to 2 ulp, of subnormals too. */
#ifndef TRINE_HIP_ROOT_H
#define TRINE_HIP_ROOT_H

#include <target.h>

DEVICE float square_root_approx(float x) { return square_root(x); }

#endif
