#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a block's waves fill the matrix units together: their instructions as the interpreter traced them, through a
model of a compute unit. A model, no measurement. Speaks TAP: fails if a kernel fills less than it did. Usage:
together.py TRINE DRIVER OPS CHIP ..., OPS being those that the module has, by commas.

A compute unit has four SIMDs, of which each has every fourth wave. Of a wave one instruction is issued in 4 cycles, of
a SIMD one of each kind: matrix, other vector instructions, scalar, LDS, memory. The matrix unit is busy for what its
instruction takes, vector instructions for 4 cycles or, of exp2 and the like, 16. LDS serves one instruction at a time,
in as many cycles as it has phases (lds_check.c; without conflicts), and memory 64 bytes in a cycle; both answer in
order, after a latency that never changes. A wave waits at s_waitcnt for the answers, at s_barrier for the others. Not
in it: the caches, the memory's bandwidth, fetching of instructions, and dependences between instructions, but for
s_nop."""
import re
import sys
import tempfile

from traffic import HEAD, gradient_shapes, run

UNIT = 4  # cycles between two instructions of a wave
LATENCY = {"lds": 64, "memory": 1000, "scalar memory": 200, "barrier": 8, "jump": 16}  # cycles
SIMDS, MOST = 4, {"lgkm": 15, "vm": 63}
# Cycles of a matrix instruction.
MATRIX = [(r"f32_16x16x16_?bf16|f32_16x16x16_?f16", {"gfx90a": 32, "gfx942": 16}),
          (r"f32_32x32x8_?bf16|f32_32x32x8_?f16", {"gfx90a": 64, "gfx942": 32}),
          (r"f32_16x16x32_(fp8|bf8)_(fp8|bf8)", {"gfx942": 16}), (r"f32_16x16x32_b?f16", {"gfx950": 16}),
          (r"f32_32x32x16_b?f16", {"gfx950": 32}),
          (r"f32_16x16x128_f8f6f4", {"gfx950": 32})]
SLOW = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_f")
TRACED = re.compile(r"\(0,0,0\)\s+(\d+)\s+[0-9a-f]{16}\s+([0-9a-f]+)\s+(\S+)(.*)$")


def matrix_cycles(chip, name):
    for pattern, cycles in MATRIX:
        if re.search(pattern, name):
            return cycles[chip]
    raise ValueError(f"how long does {name} take on {chip}?")


def lds_cycles(chip, name):
    """Phases of 64 lanes: 128 bytes each, and of reads of 8 bytes and more on gfx950 256."""
    pieces, width = 2 if "2_b" in name or "2st64_b" in name else 1, re.search(r"_[bfiu](\d+)", name)
    size = int(width[1]) // 8 if width else 4
    return pieces * max(1, 64 * size // (256 if chip == "gfx950" and "read" in name and size >= 8 else 128))


def decoded(chip, name, rest):
    """Kind, cycles or a number of its own, and what a wait asks or whether a load goes to LDS."""
    if "_mfma_" in name:
        return "matrix", matrix_cycles(chip, name), None
    if name == "s_waitcnt":
        return "wait", 0, [(counter, int(left)) for counter, left in re.findall(r"(vm|lgkm)cnt\((\d+)\)", rest)]
    if name == "s_nop":
        return "nop", UNIT * (1 + int(re.match(r"\s*(\d+)", rest)[1])), None
    if name == "s_setprio":
        return "priority", int(re.match(r"\s*(\d+)", rest)[1]), None
    if name in ("s_barrier", "s_endpgm"):
        return name, 0, None
    if name.startswith(("s_load", "s_buffer")):
        return "scalar memory", 0, None
    if name.startswith("ds_"):
        return "lds", lds_cycles(chip, name), None
    if name.startswith(("global_", "buffer_", "flat_")):
        width = re.search(r"dword(?:x(\d))?", name)
        return "memory", int(width[1] or 1) * 4 if width else 4, "_lds_" in name
    if name.startswith(("s_cbranch", "s_branch")):
        return "branch", 0, None
    return "vector" if name.startswith("v_") else "scalar", 16 if SLOW.match(name) else UNIT, None


def traced(chip, path, kernel):
    """Of each wave of the first workgroup of a kernel its instructions, and whether another follows than the next."""
    waves, known, inside = {}, {}, False
    for line in open(path, encoding="utf-8"):
        if not line.startswith("("):
            inside = kernel in line
            continue
        found = TRACED.match(line) if inside else None
        if not found:
            continue
        pc = int(found[2], 16)
        if pc not in known:
            known[pc] = decoded(chip, found[3], found[4])
        waves.setdefault(int(found[1]), []).append((pc, known[pc]))
    return [waves[number] for number in sorted(waves)]


class Wave:
    def __init__(self, instructions):
        self.todo, self.at, self.ready, self.priority = instructions, 0, 0, 0
        self.waiting = self.ended = False
        self.answers = {"lgkm": [], "vm": []}


class Unit:
    """A compute unit, and when its parts are free again."""

    def __init__(self, waves):
        self.waves = [Wave(w) for w in waves]
        self.simd = [self.waves[i::SIMDS] for i in range(SIMDS)]
        self.free = [{"matrix": 0, "vector": 0} for _ in range(SIMDS)]
        self.lds = self.memory = 0
        self.arrivals = []  # from memory, straight to LDS: when, and for how long
        self.matrix = []  # when an instruction began, and for how long

    def answered(self, wave, counter, left, now):
        """Since when no more than `left` answers are missing."""
        answers = wave.answers[counter]
        while answers and answers[0] <= now:
            answers.pop(0)
        return now if len(answers) <= left else answers[len(answers) - left - 1]

    def later(self, wave, counter, when):
        answers = wave.answers[counter]
        answers.append(max(when, answers[-1]) if answers else when)

    def issue(self, wave, simd, now, taken):
        """The next instruction if it can be; otherwise since when it could."""
        pc, (kind, cycles, more) = wave.todo[wave.at]
        free = self.free[simd]
        if kind in taken:
            return now + UNIT
        if kind in free and free[kind] > now:
            return free[kind]
        if kind == "wait":
            since = max([self.answered(wave, counter, left, now) for counter, left in more], default=now)
            if since > now:
                return since
        counter = {"lds": "lgkm", "scalar memory": "lgkm", "memory": "vm"}.get(kind)
        if counter:
            since = self.answered(wave, counter, MOST[counter], now)
            if since > now:
                return since
        wave.ready = now + UNIT
        if kind == "matrix":
            free[kind] = now + cycles
            self.matrix.append((now, cycles))
        elif kind == "vector":
            free[kind] = now + cycles
            wave.ready = now + cycles
        elif kind == "nop":
            wave.ready = now + cycles
        elif kind == "priority":
            wave.priority = cycles
        elif kind == "s_barrier":
            wave.waiting = True
        elif kind == "s_endpgm":
            wave.ended = True
        elif kind == "lds":
            while self.arrivals and self.arrivals[0][0] <= now:
                when, written = self.arrivals.pop(0)
                self.lds = max(self.lds, when) + written
            self.lds = max(self.lds, now) + cycles
            self.later(wave, counter, self.lds + LATENCY["lds"])
        elif kind == "memory":
            self.memory = max(self.memory, now) + cycles
            if more:
                self.arrivals.append((self.memory + LATENCY["memory"], cycles // 2))
            self.later(wave, counter, self.memory + LATENCY["memory"])
        elif kind == "scalar memory":
            self.later(wave, counter, now + LATENCY[kind])
        wave.at += 1
        if kind == "branch" and not 0 < wave.todo[wave.at][0] - pc <= 8:
            wave.ready = now + LATENCY["jump"]
        taken.add(kind)
        return wave.ready

    def release(self, now):
        """Waves at a barrier that no other is on its way to."""
        if all(w.waiting or w.ended for w in self.waves):
            for w in self.waves:
                w.waiting, w.ready = False, max(w.ready, now + LATENCY["barrier"])

    def run(self):
        now = 0
        while not all(w.ended for w in self.waves):
            then = []
            for simd, waves in enumerate(self.simd):
                taken = set()
                for wave in sorted(waves, key=lambda w: -w.priority):
                    if wave.ended or wave.waiting:
                        continue
                    then.append(wave.ready if wave.ready > now else self.issue(wave, simd, now, taken))
            self.release(now)
            then += [w.ready for w in self.waves if not w.ended and not w.waiting]
            now = max(now + UNIT, -(-min(then, default=now) // UNIT) * UNIT)
        return now


def shares(chip, path, kernel):
    """Of the matrix units' time: in the middle half of the work, and from the first instruction to the last."""
    unit = Unit(traced(chip, path, kernel))
    end = unit.run()
    work = unit.matrix
    middle = work[len(work) // 4:3 * len(work) // 4]
    return (sum(c for _, c in middle) / (middle[-1][0] - middle[0][0]) / SIMDS, sum(c for _, c in work) / end / SIMDS)


def product(types, turned, depth):
    return "matmul", types, {"a": (256, depth), "b": (depth, 256)}, "d", turned, {"TRINE_KERNEL": "hip_256"}


def attention(wave):
    return "attention", "T=bf16", {"q": (1, 8 * wave, 1, HEAD), "k": (1, 1024, 1, HEAD),
                                   "v": (1, 1024, 1, HEAD)}, "o", (), {"TRINE_KERNEL": f"hip_{wave}"}


def gradient(shapes):
    return "attention_backward", "T=bf16", shapes, "dq dk dv", (), {}


# What it is, the kernel's name, how it is run, and of the matrix units' time how much its loop fills at least, by chip.
CASES = [
    ("matmul of bf16, b along k", "matmul", product("T=bf16,O=bf16,B=bf16", "b", 1024),
     {"gfx90a": 0.98, "gfx942": 0.98, "gfx950": 0.97}),
    ("matmul of bf16, b across k", "matmul", product("T=bf16,O=bf16,B=bf16", "", 1024),
     {"gfx90a": 0.98, "gfx942": 0.98, "gfx950": 0.97}),
    ("matmul of bf16, a and b across k", "matmul", product("T=bf16,O=bf16,B=bf16", "a", 1024), {"gfx950": 0.97}),
    ("matmul of e4m3, b along k", "matmul", product("T=e4m3,U=e4m3,O=bf16,B=f32", "b", 2048),
     {"gfx942": 0.98, "gfx950": 0.9}),
    ("matmul of e5m2 by e4m3, b along k", "matmul", product("T=e5m2,U=e4m3,O=bf16,B=f32", "b", 2048),
     {"gfx942": 0.98, "gfx950": 0.9}),
    ("attention, 16 queries a wave", "attention", attention(16), {"gfx90a": 0.67, "gfx942": 0.52, "gfx950": 0.29}),
    ("attention, 32 queries a wave", "attention", attention(32), {"gfx90a": 0.95, "gfx942": 0.81, "gfx950": 0.43}),
    ("gradient of attention by queries", "_queries_", gradient(gradient_shapes(128, 1024)),
     {"gfx90a": 0.94, "gfx942": 0.75, "gfx950": 0.51}),
    ("gradient of attention by keys", "_keys_", gradient(gradient_shapes(1024, 128)),
     {"gfx90a": 0.94, "gfx942": 0.75, "gfx950": 0.55}),
]


def main():
    tool, driver, ops, chips = sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4:]
    number = failed = 0
    for chip in chips:
        for name, kernel, (op, types, inputs, outputs, turned, environment), least in CASES:
            if chip not in least or op not in ops:
                continue
            with tempfile.NamedTemporaryFile() as trace:
                run(tool, driver, chip, op, types, inputs, outputs, turned, CDNA_TRACE=trace.name, CDNA_WAVES="all",
                    **environment)
                loop, whole = shares(chip, trace.name, kernel)
            number, good = number + 1, loop >= least[chip]
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {chip} {name}: the loop fills {100 * loop:.0f} % of the "
                  f"matrix units' time, the kernel {100 * whole:.0f} % "
                  "(model, not measured)", flush=True)
    print(f"1..{number}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
