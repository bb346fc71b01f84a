#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the kernels of a list of tasks and prints a table: how generated kernels are scored by trine judge, a task a
line. Usage: tasks.py TRINE TASKS [OPTION...], the options going to every judgement."""
import json
import pathlib
import shlex
import subprocess
import sys


def tasks(path):
    """Name, op, file and options of each line of the list."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 4:
                sys.exit(f"{path}:{number}: not a name, an op, a file and options")
            yield parts[0], parts[1], path.parent / parts[2], shlex.split(parts[3])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    trine, path, more = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    right = count = 0
    print("| task | correct | times as fast as trine | why not |\n|---|---|---|---|")
    for name, op, file, options in tasks(path):
        run = subprocess.run([trine, "judge", str(file), "--op", op, "--json", "--quiet", *options, *more],
                             capture_output=True, text=True)
        if run.returncode not in (0, 1) or not run.stdout:
            sys.exit(run.stderr)
        verdict = json.loads(run.stdout)
        why = (verdict["reason"] or "").split("\n")[0]
        speedup = f"{verdict['speedup']:.2f}" if verdict["speedup"] else ""
        print(f"| {name} | {'yes' if verdict['correct'] else 'no'} | {speedup} | {why} |", flush=True)
        right += verdict["correct"]
        count += 1
    print(f"\n{right} of {count} are correct")


if __name__ == "__main__":
    main()
