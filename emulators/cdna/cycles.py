#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What LLVM's scheduling model says of the inner loops of matrix products: one wave's instructions between two steps,
as the interpreter traced them, by llvm-mca. No measurement, and of one wave alone: a second one on its SIMD fills what
this one leaves, up to the matrix unit's rate. Memory and LDS have fixed latencies there, and barriers and waits, which
it cannot tie to loads, are left out. By hand: cycles.py TRINE DRIVER CHIP ..."""
import collections
import os
import re
import subprocess
import sys
import tempfile

from traffic import HEAD, KEYS, MATMUL, MATRIX, gradient_shapes, run

MCA = os.environ.get("LLVM_MCA", "llvm-mca-22")
STEPS = 20
CLOCKS = 4  # of a unit in which LLVM counts
# cycles that LLVM counts for an f8f6f4 instruction of 16 x 16, whatever its formats: of those of 8 bits it is half
SHORT = 16
# Compute units of four SIMDs, and 10^9 cycles a second: one half of an MI250X, MI300X, MI355X.
CHIPS = {"gfx90a": (110, 1.7), "gfx942": (304, 2.1), "gfx950": (256, 2.4)}
LEFT_OUT = re.compile(r"s_(barrier|waitcnt|nop|c?branch|setprio)")


def traced(path):
    """Address and text of each instruction of wave 0."""
    for line in open(path):
        found = re.match(r"\(\d+,\d+,\d+\)\s+0\s+[0-9a-f]{16}\s+([0-9a-f]+)\s+(\S.*)$", line)
        if found:
            yield found[1], re.sub(r"(\s+[0-9a-f]{8})+\s*$", "", found[2])


def step(path):
    """The instructions from the matrix instruction that ran most often to where it ran next, in the middle of the
    run."""
    trace = list(traced(path))
    often = collections.Counter(address for address, text in trace if "_mfma_" in text).most_common(1)[0][0]
    at = [i for i, (address, _) in enumerate(trace) if address == often]
    return [text for _, text in trace[at[len(at) // 2]:at[len(at) // 2 + 1]] if not LEFT_OUT.match(text)]


def cycles_of(chip, instructions):
    text = subprocess.run([MCA, "-mtriple=amdgcn", f"-mcpu={chip}", f"-iterations={STEPS}"],
                          input="\n".join(instructions), check=True, capture_output=True,
                          text=True).stdout
    return CLOCKS * int(re.search(r"Total Cycles:\s+(\d+)", text)[1]) / STEPS


def report(tool, driver, chip, name, kind, *arguments, **environment):
    with tempfile.NamedTemporaryFile() as trace:
        run(tool, driver, chip, *arguments, CDNA_TRACE=trace.name, **environment)
        instructions = step(trace.name)
    cycles, operations = MATRIX[kind][chip]
    matrix = sum(cycles * (2 if "_32x32x" in text else 1) for text in instructions if "_mfma_" in text)
    total = cycles_of(chip, instructions) + sum(cycles - SHORT for text in instructions if "f8f6f4" in text)
    units, clock = CHIPS[chip]
    peak = operations / cycles * 4 * units * clock / 1e3
    print(f"{chip}  {name:30} {len(instructions):5} {total:7.0f} {matrix:7} {100 * matrix / total:4.0f} % "
          f"{matrix / total * peak:7.0f}")


def main():
    tool, driver, chips = sys.argv[1], sys.argv[2], sys.argv[3:]
    print("chip    loop                    instructions  cycles  matrix  share  TFLOP/s")
    for chip in chips:
        for types, layout, turned, side, depth in MATMUL:
            if chip in MATRIX[types[2:6]]:
                shapes = {"a": (side, depth), "b": (depth, side)}
                report(tool, driver, chip, f"matmul {types[2:6]}, {layout}", types[2:6], "matmul", types, shapes, "d",
                       turned, TRINE_KERNEL="hip_256")
        for wave in (16, 32):
            shapes = {"q": (1, 8 * wave, 1, HEAD), "k": (1, KEYS, 1, HEAD), "v": (1, KEYS, 1, HEAD)}
            report(tool, driver, chip, f"attention, {wave} queries a wave", "bf16", "attention", "T=bf16", shapes, "o",
                   TRINE_KERNEL=f"hip_{wave}")
        # of the other one's loop a tile only
        for kernel, shapes in ("queries", gradient_shapes(64, KEYS)), ("keys", gradient_shapes(KEYS, 64)):
            report(tool, driver, chip, f"gradient of attention by {kernel}", "bf16", "attention_backward", "T=bf16",
                   shapes, "dq dk dv")


main()
