/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object without a handshake. */
extern int nothing;
int nothing = 1;
