/* SPDX-License-Identifier: Apache-2.0 */
/* All tables of the specification, by op number. */
#include <trine/ops.h>

#include "spec.h"

#define OP(name, NAME) extern const trine_spec trine_spec_##name;
#include <trine/op_rows.h>
#undef OP

const trine_spec *const trine_specs[TRINE_OP_COUNT] = {
#define OP(name, NAME) [TRINE_OP_##NAME] = &trine_spec_##name,
#include <trine/op_rows.h>
#undef OP
};
