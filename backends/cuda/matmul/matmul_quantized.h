/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of matmul_quantized's tiles on tensor cores: what both sides know. */
#ifndef TRINE_CUDA_MATMUL_QUANTIZED_H
#define TRINE_CUDA_MATMUL_QUANTIZED_H

/* Tiles of 8 rows of x at most; rows of weights that a block has with up to 2 tiles, and with more; words of codes that
 * a thread has at a time of a row. */
enum { CODES_TILES = 8, CODES_FEW_TILES = 2, CODES_FEW_ROWS = 32, CODES_ROWS = 64, CODES_WORDS = 4 };

#endif
