# SPDX-License-Identifier: Apache-2.0
"""Reads the golden vectors of tests/golden, whose files check/golden.c describes, as calls of the Python functions."""
import math
import pathlib
import re

DIRECTORY = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden"


def number(word):
    """A value as the files write it: an integer times a power of two, or nan, inf."""
    significand, _, exponent = word.partition("p")
    if significand.lstrip("-") in ("nan", "inf"):
        return float(significand)
    value = int(significand, 16) if "0x" in significand else int(significand)
    value = math.copysign(math.ldexp(abs(value), int(exponent or 0)), -1 if significand.startswith("-") else 1)
    return value if exponent or abs(value) >= 2**53 or value == 0 else value


class Case:
    def __init__(self, op, line):
        name, _, words = line.removeprefix("case ").partition(":")
        self.op, self.name, self.words = op, name, words.split()
        self.inputs, self.outputs = {}, {}
        self.types = {}
        self.params = {}
        variables = set(op["type_variables"])
        kinds = {p["name"]: p for p in op["params"]}
        known = {d["symbol"] for t in op["tensors"] if "in" in t["flags"] for d in t["dims"]}
        bound = {d["symbol"] for t in op["tensors"] if "in" in t["flags"] and "optional" not in t["flags"]
                 for d in t["dims"]}
        made = {d["symbol"] for t in op["tensors"] if "in" not in t["flags"] and "optional" not in t["flags"]
                for d in t["dims"] if not d["optional"]}
        sizes = {d["symbol"] for t in op["tensors"] for d in t["dims"]} - known | made - bound
        for word in self.words:
            key, _, value = word.partition("=")
            if key in variables:
                self.types[key] = value
            elif key in sizes:
                self.params[key] = int(value)
            elif key in kinds and not (key.endswith("_set") and key[:-4] in kinds):
                kind = kinds[key]["kind"]
                self.params[key] = (value if kind == "TEXT" or kind == "ENUM" and not value.lstrip("-").isdigit() else
                                    float(value) if kind == "F32" else bool(int(value)) if kind == "BOOL" else
                                    int(value))
        unset = {w.partition("=")[0][:-4] for w in self.words if re.match(r"\w+_set=0", w)}
        flags = {p for p in kinds if p.endswith("_set") and p[:-4] in kinds}
        given = {w.partition("=")[0][:-4] for w in self.words if re.match(r"\w+_set=1", w)}
        for flag in flags:
            if flag[:-4] in unset or flag[:-4] not in given:
                self.params.pop(flag[:-4], None)
            else:
                self.params.setdefault(flag[:-4], 0)

    def dtype(self, tensor):
        """The element type of a tensor of the table; a type that the case leaves open is the first that fits."""
        if not tensor["type_is_variable"]:
            return tensor["type"]
        for row in self.op["type_combinations"]:
            types = dict(zip(self.op["type_variables"], row))
            if all(types[v] == t for v, t in self.types.items()):
                return types[tensor["type"]]
        raise AssertionError(f"{self.op['name']} {self.name}: no types")


def cases(op):
    """The cases of an op of the specification: their inputs and outputs are (shape, values)."""
    path = next(DIRECTORY.glob(f"*/{op['name']}.txt"))
    case, target, made = None, None, []
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("case "):
            case = Case(op, line)
            made.append(case)
        elif line.startswith(("in ", "out ")):
            kind, name, *shape = line.split()
            target = []
            shape = () if shape[0] == "scalar" else tuple(int(s) for s in shape[0].split("x"))
            (case.inputs if kind == "in" else case.outputs)[name] = (shape, target)
        else:
            for word in line.split():
                times, star, value = word.partition("*")
                target += [number(value)] * int(times) if star else [number(word)]
    return made
