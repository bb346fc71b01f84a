/* SPDX-License-Identifier: Apache-2.0 */
/* A module that has the handshake's symbol only through a library it is linked with. */
#include "backends/backend.h"

extern const trine_module trine_module_of_another __asm__(TRINE_MODULE_SYMBOL);
extern const trine_module *const borrowed;
const trine_module *const borrowed = &trine_module_of_another;
