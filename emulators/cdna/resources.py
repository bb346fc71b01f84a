#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what the code objects of the HIP module say they need against the table resources.txt: registers, LDS and
spills of each op's worst kernel.

Usage: resources.py TRINE_CDNA TABLE CLANG_VERSION [--write] OBJECT ...   Speaks TAP. --write makes the table anew.
Rules besides: no vector register is spilled, at most 32 bytes of scratch (the slots behind spilled scalars, which lie
in lanes of a vector register), and every instruction is known to the interpreter. Of another clang than the table's
only the last is asked; of an op that the table does not have yet, the rules alone."""
import os
import re
import subprocess
import sys

FIELDS = ("kernels", "registers", "waves", "lds", "scalars", "scratch")
KERNEL = re.compile(r"(\w+): (\d+) vgprs, (\d+) agprs, \d+ sgprs, (\d+)\+(\d+) spilled; LDS (\d+), scratch (\d+), ")
SCRATCH = 32


def waves(registers):
    """Of a SIMD, which has 512 registers in units of 8 for each lane, and room for 8 waves."""
    return min(8, 512 // (-(-registers // 8) * 8))


def measure(tool, path):
    """The worst of the object's kernels in each respect, and what breaks a rule."""
    row, broken = dict.fromkeys(FIELDS, 0), []
    for line in subprocess.run([tool, "list", path], check=True, capture_output=True,
                               text=True).stdout.splitlines()[1:]:
        match = KERNEL.match(line)
        if not match:
            broken.append(line)
            continue
        name = match[1]
        vector, accumulate, spilled, scalars, lds, scratch = map(int, match.groups()[1:])
        row["kernels"] += 1
        for field, value in (("registers", vector + accumulate), ("lds", lds), ("scalars", scalars),
                             ("scratch", scratch)):
            row[field] = max(row[field], value)
        if spilled or scratch > SCRATCH:
            broken.append(f"{name}: {spilled} vector registers spilled, {scratch} bytes of scratch")
    row["waves"] = waves(row["registers"])
    return row, broken


def read_table(path):
    """The clang it was made with, and the rows by op and chip."""
    clang, rows = None, {}
    for line in open(path, encoding="utf-8"):
        if line.startswith("# clang "):
            clang = line.split()[2]
        elif line.strip() and not line.startswith("#"):
            words = line.split()
            if words[0] != "op":
                rows[tuple(words[:2])] = dict(zip(FIELDS, map(int, words[2:])))
    return clang, rows


def write_table(path, clang, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# SPDX-License-Identifier: Apache-2.0\n# What the worst kernel of each op needs: vector registers "
                   "of a lane, waves of a SIMD that they allow, bytes of LDS, "
                   "scalar registers in lanes of vector\n# registers, bytes of scratch reserved. Written by "
                   "emulators/cdna/resources.py --write.\n")
        file.write(f"# clang {clang}\n")
        file.write(f"{'op':24}{'chip':8}" + "".join(f"{field:>10}" for field in FIELDS) + "\n")
        for (op, chip), row in sorted(rows.items()):
            file.write(f"{op:24}{chip:8}" + "".join(f"{row[field]:10}" for field in FIELDS) + "\n")


def main():
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    tool, table, clang, paths = arguments[0], arguments[1], arguments[2], arguments[3:]
    rows, broken = {}, {}
    for path in paths:
        op, chip = os.path.basename(path).split(".")[:2]
        rows[op, chip], broken[op, chip] = measure(tool, path)
    if "--write" in sys.argv:
        write_table(table, clang.split(".")[0], rows)
    known_clang, known = read_table(table)
    same = known_clang == clang.split(".")[0]
    print(f"1..{len(rows)}")
    failed = False
    for number, (key, row) in enumerate(sorted(rows.items()), 1):
        old = known.get(key)
        worse = broken[key][:] if same else [line for line in broken[key] if "spilled" not in line]
        if same and old is not None:
            worse += [f"{field}: {row[field]}, the table says {old[field]}" for field in FIELDS[1:]
                      if (row[field] < old[field] if field == "waves" else row[field] > old[field])]
        failed |= bool(worse)
        why = f"the table is of clang {known_clang}" if not same else "the table has no row" if old is None else None
        why = f" (no registers compared: {why})" if why else ""
        print(f"{'not ok' if worse else 'ok'} {number} - {' '.join(key)}{why}")
        for line in worse:
            print(f"# {line}")
    sys.exit(failed)


main()
