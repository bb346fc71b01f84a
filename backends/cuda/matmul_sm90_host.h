/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of matmul for sm_90a, by number of the tile; MATMUL_SM90_TILES: the one that is predicted to be fastest. */
#ifndef TRINE_CUDA_MATMUL_SM90_HOST_H
#define TRINE_CUDA_MATMUL_SM90_HOST_H

#include "matmul_host.h"

enum { MATMUL_SM90_TILES = 8 };

const char *matmul_sm90_refuse(const trine_call *call);
size_t matmul_sm90_workspace(const trine_call *call, int which);
trine_status matmul_sm90_launch(const trine_call *call, int which);
double matmul_sm90_seconds(const trine_call *call, int which);

#endif
