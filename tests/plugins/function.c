/* SPDX-License-Identifier: Apache-2.0 */
/* A module whose handshake's symbol is a function. */
#include "backends/backend.h"

extern void module(void) __asm__(TRINE_MODULE_SYMBOL) __attribute__((visibility("default")));
void module(void) {}
