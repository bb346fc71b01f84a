/* SPDX-License-Identifier: Apache-2.0 */
/* How blocks are numbered: a dispatch has fewer than 2^32 work-items in a dimension, so that many blocks are laid out
 * in rows of GRID_WIDTH. */
#ifndef TRINE_HIP_GRID_H
#define TRINE_HIP_GRID_H

enum { GRID_WIDTH = 1 << 21, GRID_HEIGHT = 1 << 15 };

#endif
