#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build-time program: prints what the public headers say of each op, its docstring and the comments of its members, as
a C table. Usage: docs.py FAMILY.h..."""
import os
import re
import sys

STRUCT = re.compile(r"typedef struct trine_(\w+)_args \{(.*?)\} trine_\1_args;", re.S)
FUNCTION = re.compile(r"/\*((?:(?!\*/).)*)\*/\s*TRINE_API trine_status\s+trine_(\w+)\(\s*trine_queue \*queue,\s+const "
                      r"trine_\2_args \*args\);", re.S)
MEMBER = re.compile(r"(\w+);[ \t]*(?:/\*(.*?)\*/)?", re.S)
# What a line of a docstring may begin with that is an item of its own.
LABEL = re.compile(r"(Source|Shapes|Strides|Types|Ranges|Parameters|Aliasing|Error bound|Deterministic|Errors|Since)\b")


def text_of(comment):
    """A comment's paragraphs and labelled items, each on one line; formulas as they stand, indented; blank lines."""
    lines = comment.strip("\n").split("\n")
    text = []
    for line in [lines[0].strip()] + [re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines[1:]]:
        begins = not text or not text[-1] or text[-1].startswith(" ") or LABEL.match(line)
        if not line or line.startswith(" ") or begins:
            text.append(line)
        else:
            text[-1] += " " + line
    return "\n".join(text).strip()


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


print('/* SPDX-License-Identifier: Apache-2.0 */\n/* Made from the public headers. */\n#include "tools/docs.h"\n')
print("const trine_tool_doc trine_tool_docs[TRINE_OP_COUNT] = {")
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        header = file.read()
    structs = dict(STRUCT.findall(header))
    docs = {name: text_of(comment) for comment, name in FUNCTION.findall(header)}
    if not docs or set(structs) != set(docs):
        sys.exit(f"{path}: without arguments or without a docstring: {', '.join(set(structs) ^ set(docs)) or 'all'}")
    for name, members in structs.items():
        print(f"    [TRINE_OP_{name.upper()}] = "
              f"{{ {literal(os.path.basename(path)[:-2])},\n        {literal(docs[name])}, {{")
        for member, comment in MEMBER.findall(members):
            if member != "struct_size" and comment:
                print(f"        {{ {literal(member)}, {literal(' '.join(text_of(comment).split()))} }},")
        print("    } },")
print("};")
