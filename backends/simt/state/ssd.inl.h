/* SPDX-License-Identifier: Apache-2.0 */
/* ssd on devices: a block has 32 columns of a head's state, and takes its steps one after the other.
 *
 * NOTES. Floor: q, k and v once, o once; of long sequences the steps, which follow each other, as many blocks as there
 * are being at work. */
#include "forward.inl.h"

ENTRY(ssd_4, STATE_THREADS, state_params) { state_forward<4>(p); }
ENTRY(ssd_8, STATE_THREADS, state_params) { state_forward<8>(p); }
ENTRY(ssd_16, STATE_THREADS, state_params) { state_forward<16>(p); }
