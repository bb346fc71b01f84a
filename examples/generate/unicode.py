#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode.def, the letters (general category L), numbers (N) and spaces (White_Space) of Unicode.

Usage: unicode.py >unicode.def; needs the package regex, which has the tables."""
import sys

import regex

CLASSES = (("LETTERS", r"\p{L}"), ("NUMBERS", r"\p{N}"), ("SPACES", r"\p{White_Space}"))


def ranges(pattern):
    inside = regex.compile(pattern)
    first = None
    for c in range(0x110001):
        has = c < 0x110000 and not 0xD800 <= c < 0xE000 and inside.match(chr(c)) is not None
        if has and first is None:
            first = c
        if not has and first is not None:
            yield first, c - 1
            first = None


print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Made by unicode.py with regex {regex.__version__}. */")
for name, pattern in CLASSES:
    line = ""
    for first, last in ranges(pattern):
        row = f"{name}({first:#x}, {last:#x})"
        if len(line) + 1 + len(row) > 120:
            print(line)
            line = ""
        line += (" " if line else "") + row
    print(line)
sys.stdout.flush()
