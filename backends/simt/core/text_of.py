#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes headers of device code as a C string, for compilers that run when the program does and see no files.

Usage: text_of.py NAME ROOT OUTPUT DEPFILE HEADER... What a header includes by "" is put in its place, once; <fetch.h>
and <target.h> are left out, since the source that is compiled includes both first, and so are headers of the C
library, whose types stand at the beginning of the vendors' vocabularies. Comments are left out."""
import os
import re
import sys

# Of compilers that see no <stdint.h>. GPUs of both vendors have 64-bit addresses, and so has this.
TYPES = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#ifndef INT32_MAX
#define INT32_MAX 2147483647
#endif
#ifndef UINT32_MAX
#define UINT32_MAX 4294967295u
#endif
"""


def without_comments(text):
    keep = r'"(?:\\.|[^"\\])*"'
    text = re.sub(rf"({keep})|/\*.*?\*/|//[^\n]*", lambda m: m.group(1) or " ", text, flags=re.S)
    return "".join(line.rstrip() + "\n" for line in text.splitlines() if line.strip())


def read(path, root, seen):
    if path in seen:
        return ""
    seen.append(path)
    with open(path, encoding="utf-8") as file:
        text = without_comments(file.read())
    parts = []
    for line in text.splitlines(keepends=True):
        include = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if include is None:
            parts.append(line)
        elif include.group(1) == '"':
            beside = os.path.join(os.path.dirname(path), include.group(2))
            found = beside if os.path.exists(beside) else os.path.join(root, include.group(2))
            parts.append(read(os.path.normpath(found), root, seen))
    return "".join(parts)


name, root, output, depfile, *headers = sys.argv[1:]
seen = []
body = "".join(read(os.path.normpath(header), root, seen) for header in headers)
vocabulary = any(os.path.basename(path) == "target.h" for path in seen)
# A namespace: compilers may have functions and types of these names already.
text = "namespace trine_device {\n" + (TYPES if vocabulary else "") + body + ("}\n" if vocabulary else "")
with open(output, "w", encoding="utf-8") as file:
    file.write(f"/* {', '.join(os.path.relpath(path, root) for path in seen)}, without comments. */\n")
    file.write(f"extern const char {name}[];\nconst char {name}[] =\n")
    for line in text.splitlines():
        file.write('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"\n')
    file.write("    ;\n")
with open(depfile, "w", encoding="utf-8") as file:
    file.write(f"{output}: {' '.join(seen)}\n")
