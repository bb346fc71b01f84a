# SPDX-License-Identifier: Apache-2.0
"""What the oracles share: inputs drawn and rounded to a type, dropout's mask, and the file format (check/golden.c)."""
import math
import zlib

import ml_dtypes
import numpy as np
import randomgen

FLOATS = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2": ml_dtypes.float8_e5m2,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}


def f32(x):
    """A parameter as an args structure holds it."""
    return float(np.float32(x))


def codes(dtype):
    """All values of a type of 8 or 16 bits, by code, as ml_dtypes and NumPy decode them."""
    bits = np.dtype(FLOATS[dtype]).itemsize * 8
    with np.errstate(invalid="ignore"):
        return np.arange(2**bits, dtype=f"uint{bits}").view(FLOATS[dtype]).astype(np.float64)


def rounded(x, dtype):
    """x to the nearest value of the type, ties to the even code, by a search in its table: once, while NumPy's own way
    from f64 to bf16 goes by f32."""
    x = np.asarray(x, dtype=np.float64)
    if dtype in ("f32", "f64"):
        with np.errstate(over="ignore"):
            return x.astype(FLOATS[dtype]).astype(np.float64)
    if dtype == "e8m0":
        with np.errstate(all="ignore"):
            return np.where(x >= 0, np.maximum(x, 2.0**-127), np.nan).astype(FLOATS[dtype]).astype(np.float64)
    half = codes(dtype)
    half = half[: len(half) // 2]
    table = half[np.isfinite(half)]
    assert (np.diff(table) > 0).all()
    size = np.abs(np.nan_to_num(x, nan=0, posinf=0, neginf=0))
    above = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    low, high = table[above - 1], table[above]
    up = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    y = np.where(up, high, low)
    # One step beyond the largest would be the first value that is none: from its middle on x is Inf, or NaN where there
    # is no Inf.
    largest, step = table[-1], table[-1] - table[-2]
    odd = (len(table) - 1) % 2 == 1
    over = (size > largest + step / 2) | ((size == largest + step / 2) & odd) | np.isinf(x)
    infinity = np.inf if np.isinf(half).any() else np.nan
    y = np.where(size >= largest, largest, y)
    y = np.where(over, infinity, y)
    y = np.where(np.isnan(x), np.nan, np.copysign(y, x))
    return np.where(y == 0, 0.0, y) if dtype.endswith("fnuz") else y


class Draw:
    """Numbers that depend on the op's name alone (RandomState's streams are frozen)."""

    def __init__(self, op):
        self.random = np.random.RandomState(zlib.crc32(op.encode()))

    def normal(self, shape, dtype="f32", scale=1.0, mean=0.0):
        return rounded(mean + scale * self.random.standard_normal(shape), dtype)

    def uniform(self, shape, low, high, dtype="f32"):
        return rounded(self.random.uniform(low, high, shape), dtype)

    def integers(self, shape, low, high):
        return self.random.randint(low, high, shape).astype(np.float64)


def philox(seed, offset, block):
    """Philox4x32-10 by randomgen, which counts up before it draws. Salmon et al. 2011."""
    counter = (block | offset << 64) - 1
    return [int(w) for w in randomgen.Philox(counter=counter % 2**128, key=seed, number=4, width=32).random_raw(4)]


# Random123's known answers.
assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox(2**64 - 1, 2**64 - 1, 2**64 - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox(0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88) == \
    [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def dropout_factors(shape, p, seed, offset):
    """0 where an element is dropped, else 1/(1-p) in f32: include/trine/elementwise.h says which word decides."""
    count = math.prod(shape)
    words = np.array([philox(seed, offset, b) for b in range(-(-count // 8))], dtype=np.uint64).reshape(-1)
    pairs = np.repeat(words, 2)
    pairs[1::2] = (words << np.uint64(16) | words >> np.uint64(16)) & np.uint64(0xFFFFFFFF)
    keep = pairs[:count] < math.floor((1 - f32(p)) * 2**32)
    return np.where(keep, f32(1 / (1 - f32(p))), 0.0).reshape(shape)


def case(name, words, ins, outs):
    """One call: its words as spec/case.h has them, inputs and expected outputs by tensor, in the shapes that are
    passed."""
    assert ":" not in name
    return name, words, ins, outs


def number(x):
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    sign = "-" if math.copysign(1, x) < 0 else ""
    if x == int(x) and abs(x) < 2**40:
        return f"{sign}{abs(int(x))}"
    fraction, exponent = math.frexp(abs(x))
    digits, exponent = int(fraction * 2**53), exponent - 53
    zeros = (digits & -digits).bit_length() - 1
    return f"{sign}0x{digits >> zeros:x}p{exponent + zeros}"


def parse_number(word):
    return float.fromhex(word) if "x" in word else float(word)


def put_values(values, lines, width=118):
    words, line = [number(v) for v in np.asarray(values, dtype=np.float64).reshape(-1)], ""
    at = 0
    while at < len(words):
        run = at
        while run < len(words) and words[run] == words[at]:
            run += 1
        word = f"{run - at}*{words[at]}" if run - at > 3 else words[at]
        at = run if run - at > 3 else at + 1
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = ""
        line += " " + word
    if line:
        lines.append(line)


def text_of(op, header, cases):
    lines = ["# SPDX-License-Identifier: Apache-2.0", f"# Golden vectors of {op}, {header}",
             "# check/golden.c says how to read them."]
    for name, words, ins, outs in cases:
        lines.append(f"case {name}: {words}")
        for kind, tensors in (("in", ins), ("out", outs)):
            for tensor, values in tensors.items():
                shape = np.shape(values)
                lines.append(f"{kind} {tensor} {'x'.join(map(str, shape)) if shape else 'scalar'}")
                put_values(values, lines)
    return "\n".join(lines) + "\n"


def cases_of(text):
    """The cases of a file: (case line, {"in x 2x3": array})."""
    cases = []
    for line in text.splitlines():
        if line.startswith("case "):
            cases.append((line, {}))
        elif line.startswith(("in ", "out ")):
            values = cases[-1][1].setdefault(line, [])
        elif line.startswith(" "):
            for word in line.split():
                times, _, value = word.rpartition("*")
                values.extend([parse_number(value)] * int(times or 1))
    return [(line, {k: np.array(v) for k, v in tensors.items()}) for line, tensors in cases]
