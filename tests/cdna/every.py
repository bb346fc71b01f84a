#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cases of the agreement suite by which every kernel of the HIP module is launched on each chip, and says which are not. Speaks TAP.

Usage: every.py TRINE DRIVER TABLE [--write SECONDS] CHIP OBJECT ... [CHIP OBJECT ...]
The table every.txt has for each op the numbers of its cases, and behind them "!CHIP:KERNEL" for each that no case is known to launch; a test fails that launches one of those.
Draws change with the suite: --write draws for so many seconds of each op and chip, and keeps the cases that launch a kernel for the first time."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from launched import read_notes  # noqa: E402

WORKERS = max(1, os.cpu_count() or 1)


def kernels_of(path):
    """The names of a code object's kernels: of each the ELF string table has NAME.kd."""
    with open(path, "rb") as file:
        return {name.decode() for name in re.findall(rb"(\w+)\.kd\0", file.read())}


def run(trine, driver, chip, op, choice):
    """What a process of cases prints, and by which case each kernel was launched first."""
    with tempfile.TemporaryDirectory() as folder:
        notes = os.path.join(folder, "notes")
        environment = dict(os.environ, LD_PRELOAD=driver, CDNA_CHIP=chip, LAUNCHES=notes, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
        done = subprocess.run([trine, "check", "--device", "hip:0", "--quiet", "--exact", "1", "--op", op, "--log", notes, *choice], env=environment,
                              capture_output=True, text=True, check=False)
        _, ran = read_notes(notes)
    return done, ran


def read_table(path):
    """Of each op its cases, and the kernels that they do not launch."""
    lines = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else []
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {words[0]: words[1] for words in rows}, {word[1:] for words in rows for word in words[2:]}


def draw(trine, driver, chips, table, seconds):
    """The cases of each op by which a chip's kernels are launched first: those of the table, and where they are not enough drawn ones."""

    def extend(chip, op, has):
        first = run(trine, driver, chip, op, ["--case", table[op]] if op in table else ["--budget", str(seconds)])[1]
        types = {re.search(r"_((bf|f|i|e\dm)\d+)", kernel + "_f32")[1] for kernel in has - set(first)}
        for dtype in sorted(types):
            for kernel, case in run(trine, driver, chip, op, ["--budget", str(seconds), "--types", f"T={dtype}"])[1].items():
                first.setdefault(kernel, case)
        return {int(case) for case in first.values() if case}

    chosen = {}
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for chip, ops in chips.items():
            jobs = {op: pool.submit(extend, chip, op, has) for op, has in ops.items()}
            for op, job in jobs.items():
                chosen.setdefault(op, set()).update(job.result())
                table[op] = ",".join(map(str, sorted(chosen[op])))
    return table


def main():
    trine, driver, path, *rest = sys.argv[1:]
    seconds = float(rest[1]) if rest[0] == "--write" else None
    chips, chip = {}, None
    for word in rest[2:] if seconds else rest:
        if word.startswith("gfx"):
            chip = chips.setdefault(word, {})
        else:
            chip[os.path.basename(word).split(".")[0]] = kernels_of(word)
    table, unknown = read_table(path)
    if seconds:
        table = draw(trine, driver, chips, table, seconds)
    good, never = True, {}
    print(f"1..{sum(map(len, chips.values()))}")
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = [(chip, op, has, pool.submit(run, trine, driver, chip, op, ["--case", table.get(op, "0")])) for chip, ops in chips.items() for op, has in ops.items()]
        for number, (chip, op, has, job) in enumerate(jobs, 1):
            done, ran = job.result()
            excused = {name for name in has if f"{chip}:{name}" in unknown}
            missed, surprises = sorted(has - set(ran) - excused), sorted(set(ran) & excused)
            never.setdefault(op, set()).update(f"{chip}:{name}" for name in has - set(ran))
            passed = done.returncode == 0 and not missed and not surprises
            good = good and passed
            said = (done.stdout.splitlines() or [""])[-1]
            print(f"{'ok' if passed else 'not ok'} {number} - {op} on {chip}: {len(has & set(ran))} of {len(has)} kernels, {said}", flush=True)
            notes = [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()[-20:]
            for line in notes + [f"not launched: {name}" for name in missed] + [f"launched after all: {name}" for name in surprises]:
                print(f"# {line}")
    if seconds:
        with open(path, "w", encoding="utf-8") as file:
            file.write("# SPDX-License-Identifier: Apache-2.0\n# Cases of the agreement suite that launch the kernels of every chip. Written by tests/cdna/every.py --write.\n")
            file.writelines(" ".join([op, cases, *(f"!{name}" for name in sorted(never.get(op, ())))]) + "\n" for op, cases in table.items())
    sys.exit(not good)


main()
