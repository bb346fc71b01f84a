/* SPDX-License-Identifier: Apache-2.0 */
/* A trained model as other programs read it: they know its architecture as Llama's. */
#ifndef GPT_EXPORT_H
#define GPT_EXPORT_H

#include <stddef.h>

#include "model.h"

/* Writes the weights in use, as f32, and a tokenizer of bytes to files of a folder, which is made where it is not
 * there: model.safetensors with config.json and tokenizer.json, as transformers has them, and model.gguf. Rows of the
 * embedding behind the bytes are left out. */
bool gpt_export(const gpt_model *model, const char *folder, char *error_out, size_t error_size);

#endif
