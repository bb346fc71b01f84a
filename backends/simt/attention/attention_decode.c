/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on devices: the host side. */
#include "attention_decode_launch.h"

SIMT_KERNELS(attention_decode) = { { .name = SIMT_NAME,
                                     .refuse = attention_decode_refuse,
                                     .workspace = attention_decode_workspace,
                                     .launch = attention_decode_launch,
                                     .edges = attention_decode_launch_edges },
                                   { 0 } };
