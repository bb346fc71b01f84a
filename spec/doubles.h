/* SPDX-License-Identifier: Apache-2.0 */
/* What functions in float64 are made of that are written once for kernels, with any number of elements at a time. Who
 * includes this says what a `number` is, double or a vector of them, and a `mask` of one; FUNCTION, in front of each
 * function; and constant(c), fused(a, b, c), pick(mask, a, b); of a normal x > 0 exponent_of(x) = k and
 * with_exponent(x) = m, x = 2^k m, m from sqrt(1/2) to sqrt(2); and two_to_power(x, k + 1.5 2^52) = 2^k x, if both are
 * normal. Masks are joined by & and |. What a lane gets does not depend on the others. */
#ifndef TRINE_SPEC_DOUBLES_H
#define TRINE_SPEC_DOUBLES_H

#define LN2_HIGH 0x1.62e42fefa38p-1 /* so that its product with an exponent is exact */
#define LN2_LOW 0x1.ef35793c7673p-45
#define ROUNDING 0x1.8p52 /* added, it leaves an integer in the low bits */

/* A polynomial of the terms of a list, from the highest power. */
#define POLYNOMIAL_FIRST(c) p = constant(c);
#define POLYNOMIAL_TERM(c) p = fused(p, x, constant(c));
#define POLYNOMIAL(name, TERMS) \
    FUNCTION number name(number x) { \
        number p; \
        TERMS(POLYNOMIAL_FIRST, POLYNOMIAL_TERM) \
        return p; \
    }

#endif
