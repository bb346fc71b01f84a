/* SPDX-License-Identifier: Apache-2.0 */
/* trine spec --json. */
#ifndef TRINE_TOOLS_SPEC_JSON_H
#define TRINE_TOOLS_SPEC_JSON_H

#include "spec/plan.h"

/* One op as an object; and the object of all, with what they share. */
void spec_json_op(const trine_plan *plan);
void spec_json_all(void);

#endif
