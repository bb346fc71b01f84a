/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of chains in f64. */
#include <float.h>

#define REAL long double
#define WIDE true
#define OWN (LDBL_EPSILON / 2)
#define ROUNDOFF (0x1p-53L * (1 + 0x1p-9L)) /* functions of long double are within 2^-62 */
#define FLUSHED 0x1p-1022L
#define SUBNORMAL 0x1p-1074L /* half of it float64 has not */
#define MOST DBL_MAX
#include "reference.h"

void trine_chain_wide_reference(trine_ref *ref) { chain_reference(ref); }
