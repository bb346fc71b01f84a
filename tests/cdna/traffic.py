#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what kernels of the HIP module do to memory and LDS, on an emulated chip: where memory is the limit each byte is read once and written once, 16 at a time (32
bytes of a lane are two accesses, each of half of its segments); a matrix product keeps the matrix unit busy by the model below. Speaks TAP. Usage: traffic.py TRINE DRIVER CHIP ...

The model, which is no measurement: a SIMD with `waves` waves issues a matrix instruction in so many cycles, another instruction in 4, one of each at a time from different
waves; LDS serves 128 bytes a cycle to the four SIMDs."""
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

# op, types, inputs: name (rows, columns, transposed), environment, bytes of a case that must be moved at least: input, output
ROWS, COLUMNS = 64, 4096
PARAMETERS = 256  # bytes that a wave reads of its arguments, at most
CELLS = ROWS * COLUMNS
MEMORY = [
    ("softmax", "T=bf16", {"x": (ROWS, COLUMNS)}, 2 * CELLS, 2 * CELLS),
    ("rms_norm", "T=bf16,W=bf16", {"x": (ROWS, COLUMNS)}, 2 * CELLS, 2 * CELLS),
    ("add", "A=f32,B=f32,T=f32", {"a": (ROWS, COLUMNS), "b": (ROWS, COLUMNS)}, 8 * CELLS, 4 * CELLS),
    ("gelu", "T=f16", {"x": (ROWS, COLUMNS)}, 2 * CELLS, 2 * CELLS),
    ("swiglu", "T=bf16", {"gate": (ROWS, COLUMNS), "up": (ROWS, COLUMNS)}, 4 * CELLS, 2 * CELLS),
]
SIDE, DEPTH = 512, 1024
# Cycles of a 16 x 16 matrix instruction for bf16 (AMD matrix instruction calculator; gfx950: of the peak rate), and the operations it does.
MATRIX = {"gfx90a": (32, 2 * 16 * 16 * 16), "gfx942": (16, 2 * 16 * 16 * 16), "gfx950": (16, 2 * 16 * 16 * 32)}


def write_npy(path, rows, columns, transposed=False):
    header = f"{{'descr': '<f4', 'fortran_order': {transposed}, 'shape': ({rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{rows * columns}f", *(random.uniform(-1, 1) for _ in range(rows * columns))))


def run(tool, driver, chip, op, types, inputs, **environment):
    """The profile that the emulated driver prints, as numbers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [tool, "run", op, "--types", types, "--device", "hip:0"]
        for name, shape in inputs.items():
            write_npy(f"{folder}/{name}.npy", *shape)
            command += [f"--{name}", f"{folder}/{name}.npy"]
        command += ["--d" if op == "matmul" else "--y", f"{folder}/out.npy"]
        env = dict(os.environ, CDNA_CHIP=chip, CDNA_PROFILE="1", LD_PRELOAD=driver, OMP_WAIT_POLICY="passive", **environment)
        text = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stderr
    found = {name: sum(map(int, re.findall(pattern, text))) for name, pattern in (
        ("loaded", r"memory: (\d+) bytes loaded"), ("stored", r"loaded, (\d+) stored"), ("narrow", r"(\d+) accesses under 16"), ("waves", r"(\d+) waves"),
        ("workgroups", r"(\d+) workgroups"), ("instructions", r"(\d+) instructions"), ("lds", r"bytes, (\d+) cycles"), ("conflicts", r"(\d+) more for bank"),
        ("matrix", r"  matrix +(\d+)"))}
    found["coalesced"] = min(map(float, re.findall(r"([\d.]+) % coalesced", text)))
    return found


def main():
    tool, driver, chips = sys.argv[1], sys.argv[2], sys.argv[3:]
    random.seed(1)
    number = failed = 0
    for chip in chips:
        for op, types, inputs, least_in, least_out in MEMORY:
            r = run(tool, driver, chip, op, types, inputs)
            read = r["loaded"] - PARAMETERS * r["waves"]
            good = read <= least_in <= r["loaded"] and least_out <= r["stored"] <= 1.01 * least_out and r["narrow"] == 0 and r["coalesced"] > 49.9
            number, failed = number + 1, failed + (not good)
            print(f"{'ok' if good else 'not ok'} {number} - {chip} {op}: {r['loaded'] / least_in:.3f} of the input read, {r['stored'] / least_out:.3f} of the output written, "
                  f"{r['narrow']} narrow accesses, {r['coalesced']:.1f} % coalesced", flush=True)
        cycles, operations = MATRIX[chip]
        for layout, transposed, least in (("b along k", True, 0.85), ("b across k", False, 0.8)):
            shapes = {"a": (SIDE, DEPTH), "b": (DEPTH, SIDE, transposed)}
            r = run(tool, driver, chip, "matmul", "T=bf16,O=bf16,B=bf16", shapes, TRINE_KERNEL="hip_256")
            simds, waves = 4 * r["workgroups"], r["waves"] / r["workgroups"] / 4
            matrix = cycles * r["matrix"] / simds
            other = 4 * (r["instructions"] - r["matrix"]) / simds
            time = max(matrix, other, matrix / waves + other / waves, 4 * (r["lds"] + r["conflicts"]) / simds)
            good = r["narrow"] == 0 and r["coalesced"] > 99 and matrix / time >= least and r["matrix"] * operations == 2 * SIDE * SIDE * DEPTH
            number, failed = number + 1, failed + (not good)
            print(f"{'ok' if good else 'not ok'} {number} - {chip} matmul, {layout}: matrix unit busy {100 * matrix / time:.0f} % (model, not measured), {r['narrow']} narrow accesses, "
                  f"{r['coalesced']:.1f} % coalesced, {100 * r['conflicts'] / r['lds']:.1f} % of LDS cycles are conflicts", flush=True)
    print(f"1..{number}")
    sys.exit(failed > 0)


main()
