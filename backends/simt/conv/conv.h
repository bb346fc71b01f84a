/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of convolutions and their gradients pass to their device sides; an image is a volume of one
 * plane. */
#ifndef TRINE_SIMT_CONV_H
#define TRINE_SIMT_CONV_H

#include "backends/simt/core/params.h"

enum {
    CONV_TILE = 64,       /* rows and columns of a block's sums */
    CONV_DEPTH = 16,      /* of a step */
    CONV_FEW = 4,         /* channels of a group up to which a thread has one sum of its own */
    CONV_SLICES = 64,     /* of what an element sums, at most, */
    CONV_POSITIONS = 512, /* each of so many positions at least, of a gradient, */
    CONV_STEPS = 8,       /* or of so many steps */
    CONV_BLOCKS = 512,    /* that are enough */
    CONV_CHANNELS = 64,   /* of a block, where each channel is a group, */
    CONV_WEIGHTS = 64,    /* and taps whose weights it holds at a time, */
    CONV_ROW = 4,         /* neighbours of a line that a thread writes, */
    CONV_TURNS = 4,       /* and how often, */
    CONV_OWN_TAPS = 5,    /* and taps that one sums a gradient of; */
    CONV_HELD = 2         /* of whose blocks an SM holds so many */
};

/* Depth, height or width of a convolution: sizes of what is read and of what is written. Position i and tap t read
 * place i stride - pad + t dilation; of a transposed one, (i + pad - t dilation)/stride where that is an integer, and
 * positions fall into classes by their residues. */
typedef struct conv_axis {
    int64_t in, out, taps, stride, pad, dilation, residues;
} conv_axis;

/* An array by positions and channels; strides in elements. */
typedef struct conv_view {
    void *data;
    int64_t batch, axis[3], channel;
} conv_view;

typedef struct conv_params {
    conv_axis axis[3];
    conv_view from, to;
    conv_view weight; /* batch: from lane to lane */
    int64_t group;    /* of the weights, from group to group */
    const void *bias; /* NULL: none */
    int64_t bias_step;
    void *sums;                         /* of each slice, by element written, if there are several */
    int64_t n, groups, lanes, channels; /* images; of a group, channels written and read */
    int64_t down, right;                /* tiles of a residue's positions, and of lanes; or blocks of a residue */
    int64_t slices;                     /* of the elements of a patch; 0: one */
    bool transposed;
    bool wide_bias; /* f32 */
    bool across;    /* neighbours in position are neighbours in what is read */
    bool to_across; /* and in what is written */
    /* Of 2 bytes each, are 8 channels of a tap 16 aligned bytes? And 8 of the weights, neighbours in channel or, of a
     * transposed one, in lane? */
    bool pieces, weight_pieces;
    bool to_pieces;       /* of what is written too */
    bool whole, to_whole; /* where each channel is a group, are 16 bytes of neighbours an aligned access? */
} conv_params;

/* Of the weights: sums over positions, in slices. */
typedef struct conv_gradient_params {
    conv_axis axis[3];
    conv_view x, dy, to;
    void *sums;                                  /* of each slice, by channel of dy and element */
    int64_t n, groups, rows, channels, elements; /* of a group, channels of dy and of x */
    int64_t positions, slices, slice;            /* of all images; and of a slice */
    int64_t down, right;                         /* tiles of rows and elements */
    bool across;
    bool pieces, dy_pieces; /* as of conv_params */
    bool whole, dy_whole;
} conv_gradient_params;

#endif
