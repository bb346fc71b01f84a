/* SPDX-License-Identifier: Apache-2.0 */
/* Characters: UTF-8, and the classes that tokenizers tell apart. */
#ifndef GENERATE_UNICODE_H
#define GENERATE_UNICODE_H

#include "file.h"

typedef enum character_class { OTHER, LETTER, NUMBER, SPACE } character_class;

/* The character that begins at `at`, with `left` > 0 bytes there; returns its bytes. A byte that begins no valid
 * UTF-8 is a character by itself, UNICODE_INVALID. */
#define UNICODE_INVALID 0x110000u
size_t unicode_next(const uint8_t *at, size_t left, uint32_t *character_out);

/* Appends a character's UTF-8, up to 4 bytes; returns their number. */
size_t unicode_put(uint32_t character, uint8_t *out);

character_class unicode_class(uint32_t character);

#endif
