/* SPDX-License-Identifier: Apache-2.0 */
/* A module that needs a symbol nobody has. */
extern void nobody_defines_this(void);
extern void (*needed)(void);
void (*needed)(void) = nobody_defines_this;
