/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of matmul_quantized's tiles on tensor cores: what both sides know. */
#ifndef TRINE_CUDA_MATMUL_QUANTIZED_H
#define TRINE_CUDA_MATMUL_QUANTIZED_H

/* Rows of weights that a block has, tiles of 8 rows of x, and words of codes that a thread has at a time of a row. */
enum { QUANTIZED_TILE = 32, QUANTIZED_MOST_TILES = 8, QUANTIZED_CHUNK = 4 };

#endif
