/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a file into device memory. */
#ifndef GENERATE_WEIGHTS_H
#define GENERATE_WEIGHTS_H

#include <trine/trine.h>

#include "storage.h"

/* Decodes a tensor to f32 or bf16 and writes it to device memory. */
bool weights_write(trine_queue *queue, const stored *from, trine_dtype type, void *to, problem *why);

#endif
