#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden vectors: for each op, calls with what an oracle outside this repository says must come out.

Usage: make.py [--check] [OP ...]      all ops where none is named

<family>/oracle.py has a function for each op, which yields its cases; they are written to <family>/<op>.txt. With
--check nothing is written: what would be is compared with what is there, calls and inputs exactly, expected values to
2^-44 of a tensor's largest, since another version of a library may round otherwise. Needs the packages of
requirements.txt; the tests need none of them."""
import importlib.metadata
import importlib.util
import pathlib
import platform
import sys

import numpy as np

sys.dont_write_bytecode = True
import vectors  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent
OPS = ROOT.parent.parent / "spec" / "ops.def"
PACKAGES = ("numpy", "scipy", "mpmath", "torch", "ml_dtypes", "randomgen", "PyWavelets")


def oracle(family):
    path = ROOT / family / "oracle.py"
    spec = importlib.util.spec_from_file_location(f"oracle_{family}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same(old, new):
    """Why two files differ; None if they do not."""
    old, new = vectors.cases_of(old), vectors.cases_of(new)
    if [line for line, _ in old] != [line for line, _ in new]:
        return "other cases"
    for (line, have), (_, want) in zip(old, new):
        if list(have) != list(want):
            return f"{line}: other tensors"
        for name in want:
            a, b = have[name], want[name]
            finite = np.isfinite(b)
            scale = np.abs(b[finite]).max(initial=0) if name.startswith("out ") else 0
            if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True) or \
                    (np.abs(a[finite] - b[finite]) > 2**-44 * scale).any():
                return f"{line}: {name} differs"
    return None


def main(arguments):
    check = "--check" in arguments
    wanted = [a for a in arguments if a != "--check"]
    rows = [line.split() for line in OPS.read_text().splitlines() if line.strip() and not line.startswith("#")]
    versions = [platform.python_version()] + [f"{p} {importlib.metadata.version(p)}" for p in PACKAGES]
    header = "made by tests/golden/make.py with Python " + ", ".join(versions)
    unknown = set(wanted) - {row[2] for row in rows}
    modules, failed = {}, bool(unknown)
    for name in sorted(unknown):
        print(f"{name}: spec/ops.def has no such op")
    for _, family, op, *_ in rows:
        if wanted and op not in wanted:
            continue
        modules[family] = modules.get(family) or oracle(family)
        path = ROOT / family / f"{op}.txt"
        if not hasattr(modules[family], op):
            print(f"{op}: {family}/oracle.py has no function of this name")
            failed = True
            continue
        text = vectors.text_of(op, header, getattr(modules[family], op)(vectors.Draw(op)))
        if not check:
            path.write_text(text)
            continue
        why = same(path.read_text(), text) if path.exists() else "is not there"
        print(f"{'not ok' if why else 'ok'} - {path.relative_to(ROOT)}{': ' + why if why else ''}")
        failed |= why is not None
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
