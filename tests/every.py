#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cases of the agreement suite by which every kernel of a device module is launched on each chip, and says which
are not. Speaks TAP.

Usage: every.py TRINE DRIVER TABLE [--write SECONDS] CHIP OBJECT ... [CHIP OBJECT ...] The driver is one of tests: for
chips named gfx... the CDNA interpreter, where cases must pass; for those named sm_... the stub of NVIDIA's, which only
notes launches. The table has for each op the numbers of its cases (of an op without a row, the first FIRST are tried),
and behind them "!CHIP:KERNEL" for each that no case is known to launch; a test fails that launches one of those. Draws
change with the suite: --write draws for kernels that the table's cases do not launch, of the first MOST cases as many
as run in so many seconds of each op and chip, by turns of each type, and keeps those that launch a kernel for the first
time."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

from launched import cubin_kernels, object_kernels, read_notes, read_table

WORKERS = max(1, os.cpu_count() or 1)
STEP, MOST = 4000, 400000
FIRST = ",".join(map(str, range(100)))


class Chip:
    """What goes with a chip's name."""

    def __init__(self, name):
        self.name = name
        self.computes = name.startswith("gfx")
        self.device, self.variable = ("hip:0", "CDNA_CHIP") if self.computes else ("cuda:0", "STUB_CHIP")
        self.ops = {}

    def add(self, path):
        """The kernels of an op's object, or of that for sm_90a alone."""
        op = os.path.basename(path).split(".")[0].removesuffix("_sm90")
        kernels = object_kernels(path) if self.computes else cubin_kernels(path)
        self.ops.setdefault(op, set()).update(kernels)


def run(trine, driver, chip, op, cases, types=(), seconds=None):
    """What a process of cases printed, None if it was stopped, and by which case each kernel was launched first."""
    with tempfile.TemporaryDirectory() as folder:
        notes = os.path.join(folder, "notes")
        environment = {**os.environ, "LD_PRELOAD": driver, chip.variable: chip.name, "LAUNCHES": notes,
                       "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        command = [trine, "check", "--device", chip.device, "--quiet", "--exact", "1", "--op", op, "--log", notes,
                   "--case", cases, *types]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                                  timeout=seconds)
        except subprocess.TimeoutExpired:
            done = None
        _, ran = read_notes(notes)
    return done, ran


def draw(trine, driver, chips, table, seconds):
    """The cases of each op by which a chip's kernels are launched first: those of the table, and where they are not
    enough drawn ones."""

    def extend(chip, op, has):
        first, end = run(trine, driver, chip, op, table[op])[1] if op in table else {}, time.monotonic() + seconds

        def look(start, types):
            done, ran = run(trine, driver, chip, op, ",".join(map(str, range(start, start + STEP))), types, seconds / 4)
            for kernel, case in ran.items():
                first.setdefault(kernel, case)
            return done is not None

        all_types = not has - set(first) or look(0, [])
        for start in range(STEP if all_types else 0, MOST, STEP):
            for dtype in sorted({re.search(r"_((bf|f|i|e\dm)\d+)", kernel + "_f32")[1] for kernel in has - set(first)}):
                if time.monotonic() < end:
                    look(start, ["--types", f"T={dtype}"])
        return {int(first[kernel]) for kernel in has & set(first)}

    chosen = {}
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for chip in chips:
            jobs = {op: pool.submit(extend, chip, op, has) for op, has in chip.ops.items()}
            for op, job in jobs.items():
                chosen.setdefault(op, set()).update(job.result())
                table[op] = ",".join(map(str, sorted(chosen[op])))
    return table


def main():
    trine, driver, path, *rest = sys.argv[1:]
    seconds = float(rest[1]) if rest[0] == "--write" else None
    chips = []
    for word in rest[2:] if seconds else rest:
        if "." in word:
            chips[-1].add(word)
        else:
            chips.append(Chip(word))
    table, unknown = read_table(path)
    if seconds:
        table, unknown = draw(trine, driver, chips, table, seconds), set()
    good, never = True, {}
    print(f"1..{sum(len(chip.ops) for chip in chips)}")
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = [(chip, op, has, pool.submit(run, trine, driver, chip, op, table.get(op, FIRST))) for chip in chips
                for op, has in chip.ops.items()]
        for number, (chip, op, has, job) in enumerate(jobs, 1):
            done, ran = job.result()
            excused = {name for name in has if f"{chip.name}:{name}" in unknown}
            missed, surprises = sorted(has - set(ran) - excused), sorted(set(ran) & excused)
            strangers = sorted(set(ran) - set().union(*chip.ops.values()))
            never.setdefault(op, set()).update(f"{chip.name}:{name}" for name in has - set(ran))
            failed = chip.computes and done.returncode != 0
            passed = not failed and not missed and not surprises and not strangers
            good = good and passed
            said = f", {(done.stdout.splitlines() or [''])[-1]}" if chip.computes else ""
            print(f"{'ok' if passed else 'not ok'} {number} - {op} on {chip.name}: {len(has & set(ran))} of {len(has)} "
                  f"kernels{said}", flush=True)
            notes = (done.stdout + done.stderr).splitlines()[-20:] if failed else []
            for word, names in {"not launched": missed, "launched after all": surprises,
                                "launched, but in no object": strangers}.items():
                notes += [f"{word}: {name}" for name in names]
            for line in notes:
                print(f"# {line}")
    if seconds:
        with open(path, "w", encoding="utf-8") as file:
            file.write("# SPDX-License-Identifier: Apache-2.0\n# Cases of the agreement suite that launch the kernels "
                       "of every chip. Written by tests/every.py --write.\n")
            for op, cases in table.items():
                file.write(" ".join([op, cases, *(f"!{name}" for name in sorted(never.get(op, ())))]) + "\n")
    sys.exit(not good)


main()
