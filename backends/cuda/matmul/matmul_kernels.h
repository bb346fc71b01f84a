/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of matmul, a file for each sort: why one refuses a call, the workspace that it wants, its predicted time,
 * and its launches. */
#ifndef TRINE_CUDA_MATMUL_KERNELS_H
#define TRINE_CUDA_MATMUL_KERNELS_H

#include "matmul_host.h"
#include "matmul_tiles.h"

/* Up to 16 rows or columns of 16-bit elements. */
const char *matmul_few_refuse(const trine_call *call);
size_t matmul_few_workspace(const trine_call *call);
double matmul_few_seconds(const trine_call *call);
trine_status matmul_few_launch(const trine_call *call);
void matmul_few_edges(const trine_call *call, trine_kernel_edges *edges);

/* Up to 32 of any type of the tensor cores, by mma.sync. */
const char *matmul_mma_few_refuse(const trine_call *call);
size_t matmul_mma_few_workspace(const trine_call *call);
double matmul_mma_few_seconds(const trine_call *call);
trine_status matmul_mma_few_launch(const trine_call *call);
void matmul_mma_few_edges(const trine_call *call, trine_kernel_edges *edges);

/* Up to 8 of f32 and f64, whose time is that of memory. */
const char *matmul_skinny_refuse(const trine_call *call);
size_t matmul_skinny_workspace(const trine_call *call);
trine_status matmul_skinny_launch(const trine_call *call);
void matmul_skinny_edges(const trine_call *call, trine_kernel_edges *edges);

/* Tiles of kernels for all architectures: of any type without tensor cores, by mma.sync, of f32, and of f64. One of
 * them, or that which is predicted to be the fastest. */
#define MATMUL_COUNT(...) +1
#define MATMUL_F32_NUMBER(ROWS, COLUMNS, ...) MATMUL_F32_##ROWS##x##COLUMNS,
#define MATMUL_F64_NUMBER(ROWS, COLUMNS, ...) MATMUL_F64_##ROWS##x##COLUMNS,
enum { MATMUL_SIMT_BEST = 1, MATMUL_MMA_BEST = MATMUL_MMA_TILES(MATMUL_COUNT) };
enum { MATMUL_F32_TILES(MATMUL_F32_NUMBER) MATMUL_F32_BEST };
enum { MATMUL_F64_TILES(MATMUL_F64_NUMBER) MATMUL_F64_BEST };

typedef struct matmul_family matmul_family;
extern const matmul_family matmul_simt_family, matmul_mma_family, matmul_f32_family, matmul_f64_family;

/* The self of such a kernel: a tile of a family, or its BEST. */
typedef struct matmul_family_tile {
    const matmul_family *family;
    int which;
} matmul_family_tile;

const char *matmul_family_refuse(const trine_call *call);
size_t matmul_family_workspace(const trine_call *call);
double matmul_family_seconds(const trine_call *call);
trine_status matmul_family_launch(const trine_call *call);
void matmul_family_edges(const trine_call *call, trine_kernel_edges *edges);

/* Tiles of 128 by so many for sm_90a: of blocks in pairs that share y's part, or in clusters that split k between
 * them. */
#define MATMUL_SM90_PAIRS(X) X(256) X(240) X(224) X(208) X(192) X(176) X(160) X(144) X(128) X(112) X(96) X(80) X(64)
#define MATMUL_SM90_SPLITS(X) X(64) X(32) X(16) X(8)
#define MATMUL_SM90_PAIR_NUMBER(COLUMNS) MATMUL_SM90_PAIRS_##COLUMNS,
#define MATMUL_SM90_SPLIT_NUMBER(COLUMNS) MATMUL_SM90_SPLIT_##COLUMNS,
enum { MATMUL_SM90_PAIRS(MATMUL_SM90_PAIR_NUMBER) MATMUL_SM90_SPLITS(MATMUL_SM90_SPLIT_NUMBER) MATMUL_SM90_BEST };

/* Their self is one of these numbers. */
const char *matmul_sm90_refuse(const trine_call *call);
size_t matmul_sm90_workspace(const trine_call *call);
double matmul_sm90_seconds(const trine_call *call);
trine_status matmul_sm90_launch(const trine_call *call);
void matmul_sm90_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
