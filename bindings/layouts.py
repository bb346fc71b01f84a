#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a C program that prints how the structures lie which the ops share, as the C compiler has them: a line for
each, its size, and each of its members, its offset. Usage: layouts.py HEADER.h..."""
import sys

import headers

print("/* SPDX-License-Identifier: Apache-2.0 */\n/* Made from the public headers. */\n#include <stddef.h>\n"
      "#include <stdio.h>\n\n#include <trine/trine.h>\n\nint main(void) {")
for struct in headers.read(sys.argv[1:]).structs:
    print(f'    printf("{struct.name} %zu\\n", sizeof({struct.name}));')
    for m in struct.members:
        print(f'    printf("{struct.name}.{m.name} %zu\\n", offsetof({struct.name}, {m.name}));')
print("    return 0;\n}")
