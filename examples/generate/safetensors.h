/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files: a JSON object that names tensors, then their data. */
#ifndef GENERATE_SAFETENSORS_H
#define GENERATE_SAFETENSORS_H

#include "json.h"
#include "storage.h"

typedef struct safetensors {
    json header;
    stored *tensor;
    int64_t tensors;
} safetensors;

/* Names are the header's, data stay where they are in `bytes`. */
bool safetensors_parse(safetensors *s, const uint8_t *bytes, size_t size, problem *why);
void safetensors_free(safetensors *s);

#endif
