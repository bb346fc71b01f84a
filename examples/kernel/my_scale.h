/* SPDX-License-Identifier: Apache-2.0 */
/* What the host and the device code of my_scale_cuda share. */
#ifndef MY_SCALE_H
#define MY_SCALE_H

#include <stdint.h>

/* A function's parameters, passed by value: of y[i] = alpha x[i] + shift, with the sizes of four dimensions and the
 * strides of both. */
typedef struct my_scale_params {
    const float *x;
    float *y;
    int64_t size[4], x_stride[4], y_stride[4];
    float alpha, shift;
} my_scale_params;

#endif
