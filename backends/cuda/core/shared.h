/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of rows in shared memory: which shape of blocks holds a row, and the launches. */
#ifndef TRINE_CUDA_SHARED_H
#define TRINE_CUDA_SHARED_H

#include "backends/simt/core/host.h"

/* Rows in shared memory, entries <op>_<step>[_ragged]_<type>[_<other>]_<held>, of SIMT_PART_SHAPES. */
typedef struct cuda_shape {
    int threads, held;
} cuda_shape;

/* Those shapes from `first` to before `end`. A row has so many bytes for each column; it may be divided among a cluster
 * of at most `share` blocks of 256 threads, and of as many as the device has of larger ones. */
enum { CUDA_SHAPE_64, CUDA_SHAPE_128, CUDA_SHAPE_256, CUDA_SHAPE_512, CUDA_SHAPE_LARGEST, CUDA_SHAPES };
typedef struct cuda_shape_range {
    int first, end, share;
    int64_t bytes;
} cuda_shape_range;

/* The first shape whose blocks have room for a row along dimension `symbol`, and the fewest blocks that have it
 * together; NULL: none have. */
const cuda_shape *cuda_shape_for(const trine_call *call, int symbol, const cuda_shape_range *range,
                                 simt_part *part_out);

/* Of all shapes, for a row of more than `least` elements of the first type. */
const cuda_shape *cuda_shape_of(const trine_call *call, int symbol, int64_t least, simt_part *part_out);

/* The edges of a range of shapes: rows that one block of each just holds, and as many as it may divide them among. And
 * of all shapes, for rows of more than `least` elements. */
void cuda_shape_edges_for(const trine_call *call, int symbol, const cuda_shape_range *range, trine_kernel_edges *edges);
void cuda_shape_edges(const trine_call *call, int symbol, int64_t least, trine_kernel_edges *edges);

trine_status cuda_launch_parts(const trine_call *call, const char *step, trine_dtype other, const cuda_shape *shape,
                               int symbol, const simt_part *part, int64_t rows, const void *params, size_t size);

/* What such a launch prefetches. */
simt_ahead cuda_ahead_of_parts(const trine_call *call, int tensor, const cuda_shape *shape);

/* Rows through shared memory, entries <op>_ring_<type>_<chunks of a block>: `threads` have so many chunks of 16 bytes
 * each of a row of more than `least` bytes and, unless that is 0, at most `most`. `behind` bytes follow a ring. */
typedef struct cuda_ring_entry {
    int threads, chunks, least, most, behind;
    bool whole; /* only rows of whole vectors, wherever they begin: sums do not depend on that */
    int items;  /* of a chunk; 0: 16 bytes of the first type */
    int idle;   /* one of so many clusters that the device holds is left out; 0: none */
    int near;   /* bytes of a block's part of a row, of the first type, with which a ring holds two rows; 0: three */
    bool full;  /* three tensors: entries <op>_ring_full_<type>_<second type>_<chunks of a block> */
} cuda_ring_entry;

/* The first of `count` entries that takes a row along dimension `symbol`, if clusters have room for it; NULL: none. */
const cuda_ring_entry *cuda_ring_of(const trine_call *call, int symbol, int count, const cuda_ring_entry *entries,
                                    simt_ring *ring_out);

/* Their edges: from where to where each is for, and the rows that a block, and a cluster, have room for. */
void cuda_ring_edges(const trine_call *call, int symbol, int count, const cuda_ring_entry *entries,
                     trine_kernel_edges *edges);

/* Clusters that take `rows` in as few turns as if so many were held at once, but in no more than `most`. */
int64_t cuda_ring_clusters(int64_t rows, int64_t held, int64_t most);

/* Says how many clusters take `rows`, each in at most `most` turns; and launches them. */
trine_status cuda_ring_fill(const trine_call *call, const cuda_ring_entry *entry, simt_ring *ring, int64_t rows,
                            int64_t most);
trine_status cuda_launch_ring(const trine_call *call, const cuda_ring_entry *entry, const simt_ring *ring,
                              const void *params, size_t size);

/* The blocks of a cluster that the call's device has. */
int cuda_cluster(const trine_call *call);

#endif
