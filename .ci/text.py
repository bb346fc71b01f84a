#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every text file of the tree must be: licensed, without tabs and trailing space, with a newline at its end, and
in lines of at most 120 columns; and that no file is a program, an archive or other bytes. Usage: text.py, in the root
of a checkout."""
import re
import subprocess
import sys

WIDTH = 120
# Another's words, and bytes that are what they are: a fuzzer's, and two models of a few numbers.
PASSED_OVER = re.compile(r"LICENSE$|LICENSES/|tests/fuzz/corpus/|tests/golden/generate/(hugging_face/|tiny\.gguf$)")
# What has no comments, or whose readers would see one; Debian's files are licensed by packaging/debian/copyright.
UNLICENSED = re.compile(r"\.gitignore$|\.ci/floor$|NEWS$|.*\.(md|scd)$|packaging/debian(-cuda)?/|.*/tuned\.txt$|"
                        r"examples/papers/forest/.*\.(csv|json)$|packaging/recipes/.*\.json$")
# A tab is the syntax of these.
TABBED = re.compile(r".*\.scd$|.*/tuned\.txt$|packaging/debian(-cuda)?/rules$")
# Programs, libraries and archives, a fuzzer's inputs and all.
BINARY = (b"\x7fELF", b"!<arch>\n", b"MZ", b"PK\3\4", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ",
          b"\x50\xed\x55\xba")
# Tables have a line for each row.
WIDE = re.compile(r".*\.(def|scd|txt|in|bash-completion)$|packaging/debian(-cuda)?/")
TABLE = re.compile(r"\|")

wrong = []
for path in subprocess.check_output(["git", "ls-files", "-z"], text=True).split("\0"):
    if not path:
        continue
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(BINARY):
        wrong.append(f"{path}: is a program or an archive")
    if PASSED_OVER.match(path):
        continue
    if b"\0" in data:
        wrong.append(f"{path}: is no text")
        continue
    try:
        text = data.decode()
    except UnicodeDecodeError:
        wrong.append(f"{path}: not UTF-8")
        continue
    if not UNLICENSED.match(path) and "SPDX-License-Identifier: Apache-2.0" not in text:
        wrong.append(f"{path}: has no SPDX line")
    if text and not text.endswith("\n"):
        wrong.append(f"{path}: lacks a newline at its end")
    wide = WIDE.match(path) and path != "meson_options.txt"
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip() or "\r" in line:
            wrong.append(f"{path}:{number}: trailing space")
        if "\t" in line and not TABBED.match(path):
            wrong.append(f"{path}:{number}: a tab")
        if len(line) > WIDTH and not wide and not (path.endswith(".md") and TABLE.match(line)):
            wrong.append(f"{path}:{number}: {len(line)} columns")
for line in wrong:
    print(line)
sys.exit(len(wrong) > 0)
