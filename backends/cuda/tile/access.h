/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses under a condition, without a branch, which would keep others apart. */
#ifndef TRINE_TILE_ACCESS_H
#define TRINE_TILE_ACCESS_H

#include "backends/simt/core/simt.h"

/* copy_bytes() of 16 or 8 bytes, if `yes`. */
template <int SIZE> DEVICE void copy_if(bool yes, void *to, const void *from) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if constexpr (SIZE == 16)
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p cp.async.cg.shared.global [%0], [%1], 16;\n}" ::"r"(at),
            "l"(from), "r"((int)yes)
            : "memory");
    else
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p cp.async.ca.shared.global [%0], [%1], 8;\n}" ::"r"(at),
            "l"(from), "r"((int)yes)
            : "memory");
}

/* store_words() if `yes`. */
DEVICE void store_if(bool yes, void *to, const uint32_t (&x)[4]) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n@p st.global.v4.b32 [%0], {%1, %2, %3, %4};\n}" ::"l"(to),
                 "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"((int)yes));
}
DEVICE void store_if(bool yes, void *to, const uint32_t (&x)[2]) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n@p st.global.v2.b32 [%0], {%1, %2};\n}" ::"l"(to), "r"(x[0]),
                 "r"(x[1]), "r"((int)yes));
}

#endif
