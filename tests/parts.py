#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees that a queue with a part of a GPU's SMs launches what a queue does of a GPU that has no more: the grids, splits
and clusters of cases of the agreement suite, as the stub of NVIDIA's driver notes them. Speaks TAP.

Usage: parts.py TRINE DRIVER TABLE CHIP ... -- OP ... The table is that of every.py."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

from launched import read_table

PART = 32
MOST = 24  # cases of an op


def shapes(trine, driver, chip, op, cases, units=None, part=None):
    """What was launched, a line for each launch."""
    with tempfile.TemporaryDirectory() as folder:
        notes = os.path.join(folder, "shapes")
        environment = {**os.environ, "LD_PRELOAD": driver, "STUB_CHIP": chip, "STUB_SHAPES": notes,
                       "OMP_NUM_THREADS": "1", **({"STUB_UNITS": str(units)} if units else {})}
        command = [trine, "check", "--device", "cuda:0", "--quiet", "--exact", "1", "--op", op, "--case", cases,
                   *(["--sm-count", str(part)] if part else [])]
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if not os.path.exists(notes):
            return []
        with open(notes, encoding="utf-8") as file:
            return file.readlines()


def main():
    trine, driver, path, *rest = sys.argv[1:]
    chips, ops = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    table, _ = read_table(path)
    asked = [(chip, op) for chip in chips for op in ops if op in table]
    good, other = True, 0
    print(f"1..{len(asked) + 1}")
    with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        jobs = {}
        for chip, op in asked:
            cases = ",".join(table[op].split(",")[:MOST])
            jobs[chip, op] = [pool.submit(shapes, trine, driver, chip, op, cases, *how)
                              for how in ((None, PART), (PART, None), (None, None))]
    for number, (chip, op) in enumerate(asked, 1):
        part, small, whole = (job.result() for job in jobs[chip, op])
        other += part != whole
        same = part == small and len(part) > 0
        good = good and same
        print(f"{'ok' if same else 'not ok'} {number} - {op} on {PART} SMs of {chip}: {len(part)} launches", flush=True)
        for line in [f"# part: {a}# whole: {b}" for a, b in zip(part, small) if a != b][:5]:
            print(line, end="")
    print(f"{'ok' if other else 'not ok'} {len(asked) + 1} - {other} of {len(asked)} launch otherwise on all SMs")
    sys.exit(not (good and other))


main()
