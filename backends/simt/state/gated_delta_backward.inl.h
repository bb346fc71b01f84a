/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward on devices: a launch for the states and their gradients, and others for sums.
 *
 * NOTES. Floor: the recurrence twice forwards and once back; and a state written and read for each step, which other
 * caches than the last level do not hold. */
#include "backward.inl.h"

ENTRY(gated_delta_backward_4, STATE_BACK_THREADS, state_backward_params) { state_backward<4>(p); }
ENTRY(gated_delta_backward_8, STATE_BACK_THREADS, state_backward_params) { state_backward<8>(p); }
ENTRY(gated_delta_backward_16, STATE_BACK_THREADS, state_backward_params) { state_backward<16>(p); }
ENTRY(gated_delta_backward_keys, SIMT_THREADS, state_backward_params) { state_finish_keys(p); }
ENTRY(gated_delta_backward_steps, SIMT_THREADS, state_backward_params) { state_finish_steps(p); }
