/* SPDX-License-Identifier: Apache-2.0 */
/* Square roots to 2 ulp, of subnormals too. */
#ifndef TRINE_CUDA_ROOT_H
#define TRINE_CUDA_ROOT_H

#include <target.h>

/* 2^-23 (PTX ISA 9.0, section on sqrt). */
DEVICE float square_root_approx(float x) {
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
