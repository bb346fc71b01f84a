/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that pool2d and its gradient share. */
#ifndef TRINE_SIMT_POOL_HOST_H
#define TRINE_SIMT_POOL_HOST_H

#include <trine/conv.h>

#include "backends/simt/core/host.h"
#include "pool.h"

static inline pool_view pool_view_of(const trine_tensor *t) {
    return t ? (pool_view){ t->data, t->stride[0], t->stride[1], t->stride[2], t->stride[3] } : (pool_view){ 0 };
}

/* Of the arguments of either op. */
#define POOL_PARAMS(call, args, X, Y, OTHER) \
    { .h = { (call)->tensor[X].shape[1], (call)->tensor[Y].shape[1], (args)->kernel_h, \
             (args)->stride_h ? (args)->stride_h : (args)->kernel_h, (args)->pad_top, (args)->dilation_h }, \
      .w = { (call)->tensor[X].shape[2], (call)->tensor[Y].shape[2], (args)->kernel_w, \
             (args)->stride_w ? (args)->stride_w : (args)->kernel_w, (args)->pad_left, (args)->dilation_w }, \
      .x = pool_view_of(&(call)->tensor[X]), \
      .y = pool_view_of(&(call)->tensor[Y]), \
      .other = pool_view_of(trine_call_given(call, OTHER)), \
      .n = (call)->tensor[X].shape[0], \
      .c = (call)->tensor[X].shape[3], \
      .kind = (args)->kind, \
      .across = (call)->tensor[X].stride[3] != 1 && (call)->tensor[X].stride[2] == 1 }

#endif
