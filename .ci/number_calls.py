#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbers as text do not depend on the locale. What reads a fraction is in spec/number.c alone; the rooms that are part
of the library, or of other programs than ours, write fractions by it too; and a program of ours says which locale it
writes numbers in. Usage: number_calls.py, in the root of a checkout."""
import re
import subprocess
import sys

READS = re.compile(r"(?<![\w])(strtod|strtof|strtold|atof|wcstod)\s*\(")
SCANS = re.compile(r"(?<![\w])[a-z]*scanf\s*\((?:[^;]|\n)*?\"[^;]*?%\*?\d*[lL]?[aefgAEFG]\b")
PRINTS = re.compile(r"(?<![\w])(v?s?n?printf|v?fprintf|v?dprintf|v?asprintf)\s*\(")
FRACTION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]*)?[lL]?[aefgAEFG]")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
LIBRARY = ("spec/", "dispatch/", "backends/", "check/")
OWN = {"spec/number.c"}
PROGRAMS = ["tools/trine.c", "bench/peers/peers.c", "emulators/cdna/trine-cdna.c", "examples/generate/generate.c",
            "examples/gpt/options.c", "examples/papers/forest.c"]

wrong = []
for path in subprocess.check_output(["git", "ls-files", "*.c", "*.h"], text=True).splitlines():
    if path in OWN:
        continue
    with open(path, encoding="utf-8", errors="replace") as file:
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), file.read(), flags=re.S)
    if path not in PROGRAMS:
        for m in list(READS.finditer(text)) + list(SCANS.finditer(text)):
            wrong.append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}: reads a fraction: trine_strtod() of "
                         "spec/number.h does")
        if "setlocale" in text and not path.startswith("tests/locale/"):
            wrong.append(f"{path}: a library leaves the program's locale alone")
    elif 'setlocale(LC_NUMERIC, "C")' not in text:
        wrong.append(f'{path}: main() begins with setlocale(LC_NUMERIC, "C")')
    if not path.startswith(LIBRARY):
        continue
    for m in PRINTS.finditer(text):
        call = text[m.start() : text.find(";", m.start())]
        if any(FRACTION.search(string) for string in STRING.findall(call)):
            wrong.append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}: writes a fraction: trine_{m.group(1)}() of "
                         "spec/number.h does")
for line in wrong:
    print(line)
sys.exit(len(wrong) > 0)
