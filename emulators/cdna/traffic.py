#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what kernels of the HIP module do to memory and LDS, on an emulated chip: where memory is the limit each byte
is read once and written once, 16 at a time (32 bytes of a lane are two accesses, each of half of its segments); a
matrix product keeps the matrix unit busy by the model below. Speaks TAP. Usage: traffic.py TRINE DRIVER CHIP ...

The model, which is no measurement: a SIMD with `waves` waves issues a matrix instruction in so many cycles, another
instruction in 4, one of each at a time from different waves; LDS serves 128 bytes a cycle to the four SIMDs. A wave
made to do other things beside its matrix instructions issues one of any kind in 4 cycles, as long as the unit is
free."""
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

# op, types, inputs: name and shape, bytes of a case that must be moved at least: input, output
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
# types, layout, transposed, rows and columns, k (float8 takes twice as much of it in a step)
MATMUL = [
    ("T=bf16,O=bf16,B=bf16", "b along k", "b", 512, 1024),
    ("T=bf16,O=bf16,B=bf16", "b across k", "", 512, 1024),
    ("T=e4m3,U=e4m3,O=bf16,B=f32", "b along k", "b", 256, 4096),
    ("T=e5m2,U=e4m3,O=bf16,B=f32", "b along k", "b", 256, 4096),
]
# How busy a product keeps the matrix unit at least.
BUSY = 0.97
# Cycles of a 16 x 16 matrix instruction (AMD matrix instruction calculator; gfx950: of the peak rate), and the
# operations it does; of one of 32 x 32 both are twice as many.
MATRIX = {
    "bf16": {"gfx90a": (32, 2 * 16 * 16 * 16), "gfx942": (16, 2 * 16 * 16 * 16), "gfx950": (16, 2 * 16 * 16 * 32)},
    "e4m3": {"gfx942": (16, 2 * 16 * 16 * 32), "gfx950": (32, 2 * 16 * 16 * 128)},
    "e5m2": {"gfx942": (16, 2 * 16 * 16 * 32), "gfx950": (32, 2 * 16 * 16 * 128)},
}

# Attention, one head; and how busy it keeps the matrix unit at least, by the queries of a wave.
KEYS, HEAD = 1024, 128
ATTENTION = {"gfx90a": {16: 0.95, 32: 0.95}, "gfx942": {16: 0.78, 32: 0.88}, "gfx950": {16: 0.43, 32: 0.66}}

# Its gradient, by a kernel's rows: how many blocks have, how many pass by, and products of each pair; how busy it keeps
# the matrix unit at least.
OWN, PASSING, PRODUCTS = 128, 512, {"queries": 3, "keys": 4}
GRADIENT = {"gfx90a": {"queries": 0.95, "keys": 0.95}, "gfx942": {"queries": 0.95, "keys": 0.85},
            "gfx950": {"queries": 0.57, "keys": 0.51}}


def gradient_shapes(queries, keys):
    return {"dout": (1, queries, 1, HEAD), "q": (1, queries, 1, HEAD), "k": (1, keys, 1, HEAD), "v": (1, keys, 1, HEAD),
            "o": (1, queries, 1, HEAD),
            "lse": (1, 1, queries)}


def write_npy(path, shape, transposed=False):
    header = f"{{'descr': '<f4', 'fortran_order': {transposed}, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        cells = math.prod(shape)
        file.write(struct.pack(f"<{cells}f", *(random.uniform(-1, 1) for _ in range(cells))))


def run(tool, driver, chip, op, types, inputs, outputs="y", turned=(), kernel="", **environment):
    """The profile that the emulated driver prints of kernels with `kernel` in their names, as numbers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [tool, "run", op, "--types", types, "--device", "hip:0"]
        for name, shape in inputs.items():
            write_npy(f"{folder}/{name}.npy", shape, transposed=name in turned)
            command += [f"--{name}", f"{folder}/{name}.npy"]
        for name in outputs.split():
            command += [f"--{name}", f"{folder}/{name}.out.npy"]
        env = dict(os.environ, CDNA_CHIP=chip, CDNA_PROFILE="1", LD_PRELOAD=driver, OMP_WAIT_POLICY="passive",
                   **environment)
        text = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stderr
    text = "".join(part for part in re.split(r"(?m)^(?=\w+: \d+ launches)", text) if kernel in part.partition(":")[0])
    found = {name: sum(map(int, re.findall(pattern, text))) for name, pattern in (
        ("loaded", r"memory: (\d+) bytes loaded"), ("stored", r"loaded, (\d+) stored"),
        ("narrow", r"(\d+) accesses under 16"), ("waves", r"(\d+) waves"),
        ("workgroups", r"(\d+) workgroups"), ("instructions", r"(\d+) instructions"), ("lds", r"bytes, (\d+) cycles"),
        ("conflicts", r"(\d+) more for bank"),
        ("matrix", r"  matrix +(\d+)"))}
    found["coalesced"] = min(map(float, re.findall(r"([\d.]+) % coalesced", text)))
    return found


def busy(r, cycles, beside=False):
    """Of the matrix unit, by the model. BESIDE: waves do other things beside matrix instructions."""
    simds, waves = 4 * r["workgroups"], r["waves"] / r["workgroups"] / 4
    matrix = cycles * r["matrix"] / simds
    other = 4 * (r["instructions"] - r["matrix"]) / simds
    wave = 4 * r["instructions"] / simds / waves if beside else matrix / waves + other / waves
    return matrix / max(matrix, other, wave, 4 * (r["lds"] + r["conflicts"]) / simds)


def main():
    tool, driver, ops, chips = sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4:]
    random.seed(1)
    number = failed = 0

    def report(good, text):
        nonlocal number, failed
        number, failed = number + 1, failed + (not good)
        print(f"{'ok' if good else 'not ok'} {number} - {text}", flush=True)

    for chip in chips:
        for op, types, inputs, least_in, least_out in MEMORY:
            if op not in ops:
                continue
            r = run(tool, driver, chip, op, types, inputs)
            read = r["loaded"] - PARAMETERS * r["waves"]
            report(read <= least_in <= r["loaded"] and least_out <= r["stored"] <= 1.01 * least_out and
                   r["narrow"] == 0 and r["coalesced"] > 49.9,
                   f"{chip} {op}: {r['loaded'] / least_in:.3f} of the input read, {r['stored'] / least_out:.3f} of the "
                   "output written, "
                   f"{r['narrow']} narrow accesses, {r['coalesced']:.1f} % coalesced")
        for types, layout, turned, side, depth in MATMUL:
            if chip not in MATRIX[types[2:6]] or "matmul" not in ops:
                continue
            cycles, operations = MATRIX[types[2:6]][chip]
            shapes = {"a": (side, depth), "b": (depth, side)}
            r = run(tool, driver, chip, "matmul", types, shapes, "d", turned, TRINE_KERNEL="hip_256")
            share = busy(r, cycles)
            report(r["narrow"] == 0 and r["coalesced"] > 99 and share >= BUSY and
                   r["matrix"] * operations == 2 * side * side * depth,
                   f"{chip} matmul of {types[2:6]}, {layout}: matrix unit busy {100 * share:.0f} % (model, not "
                   f"measured), {r['narrow']} narrow accesses, "
                   f"{r['coalesced']:.1f} % coalesced, {100 * r['conflicts'] / r['lds']:.1f} % of LDS cycles are "
                   "conflicts")
        for wave, least in ATTENTION[chip].items() if "attention" in ops else ():
            queries, larger = 8 * wave, wave // 16
            cycles, operations = (larger * x for x in MATRIX["bf16"][chip])
            shapes = {"q": (1, queries, 1, HEAD), "k": (1, KEYS, 1, HEAD), "v": (1, KEYS, 1, HEAD)}
            r = run(tool, driver, chip, "attention", "T=bf16", shapes, "o", TRINE_KERNEL=f"hip_{wave}")
            share = busy(r, cycles)
            report(share >= least and r["matrix"] * operations == 4 * queries * KEYS * HEAD,
                   f"{chip} attention, {wave} queries a wave: matrix unit busy {100 * share:.0f} % (model, not "
                   f"measured), {r['narrow']} narrow accesses, "
                   f"{r['coalesced']:.1f} % coalesced, {100 * r['conflicts'] / r['lds']:.1f} % of LDS cycles are "
                   "conflicts")
        for kernel, least in GRADIENT[chip].items() if "attention_backward" in ops else ():
            cycles, operations = (2 * x for x in MATRIX["bf16"][chip])
            shapes = gradient_shapes(OWN, PASSING) if kernel == "queries" else gradient_shapes(PASSING, OWN)
            r = run(tool, driver, chip, "attention_backward", "T=bf16", shapes, "dq dk dv", kernel=f"_{kernel}_")
            share = busy(r, cycles, beside=True)
            report(share >= least and r["matrix"] * operations == 2 * PRODUCTS[kernel] * OWN * PASSING * HEAD,
                   f"{chip} gradient of attention by {kernel}: matrix unit busy {100 * share:.0f} % (model, not "
                   f"measured), {r['narrow']} narrow accesses, "
                   f"{r['coalesced']:.1f} % coalesced, {100 * r['conflicts'] / r['lds']:.1f} % of LDS cycles are "
                   "conflicts")
    print(f"1..{number}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
