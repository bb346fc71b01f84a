#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build-time program: prints the choices of kernels that the CUDA module ships, but for those of other code.

Usage: tuned.py COMPILER TUNED CUBIN... [--write]
A line "# code OP COMPILER HASH" says by which code of the op the lines were made, and by which compiler. Where this
compiler makes other code, the op's lines are left out, with a warning: its kernels changed since, and the choices may
be wrong. Another compiler's code cannot be compared, and its lines stay. --write renews the code's hashes instead, for
after `trine tune`, or where a change is known to leave the times as they were."""
import hashlib
import pathlib
import sys


def hashes(cubins):
    """By op, of what its cubins hold: matmul_sm90.sm_90a.cubin is of matmul."""
    sums = {}
    for path in sorted(cubins):
        op = pathlib.Path(path).name.split(".")[0].removesuffix("_sm90")
        sums.setdefault(op, hashlib.sha256()).update(pathlib.Path(path).read_bytes())
    return {op: sum.hexdigest()[:16] for op, sum in sums.items()}


def main():
    compiler, tuned, *cubins = [word for word in sys.argv[1:] if word != "--write"]
    lines = pathlib.Path(tuned).read_text(encoding="utf-8").splitlines()
    now = hashes(cubins)
    if "--write" in sys.argv:
        kept = [line for line in lines if not line.startswith("# code ")]
        tuned_ops = {line.split("\t")[4] for line in kept[1:]}
        rows = [f"# code {op} {compiler} {code}" for op, code in now.items() if op in tuned_ops]
        pathlib.Path(tuned).write_text("\n".join(kept[:1] + rows + kept[1:]) + "\n", encoding="utf-8")
        return
    rows = [line.split()[2:] for line in lines if line.startswith("# code ")]
    stale = {op for op, by, code in rows if by == compiler and now.get(op, code) != code}
    for op in sorted(stale):
        print(f"tuned.py: {tuned} has choices of other code of {op}: left out", file=sys.stderr)
    print("\n".join(line for line in lines if line.startswith("#") or line.split("\t")[4] not in stale))


main()
