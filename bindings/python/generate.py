# SPDX-License-Identifier: Apache-2.0
"""Writes what the Python module takes from the specification: its tables and functions in C, the stub that editors
and type checkers read, and a table for the layers in Python.

    generate.py SPEC_PY SPEC_JSON TABLES_C STUB TABLE_PY
"""
import importlib.util
import json
import pprint
import re
import sys
import zlib

FLAGS = {"in": 1, "out": 2, "optional": 4, "broadcast": 16}


def load(path):
    module = importlib.util.spec_from_file_location("spec", path)
    loaded = importlib.util.module_from_spec(module)
    module.loader.exec_module(loaded)
    return loaded


def c_text(text):
    """A C string literal, a line of the text on each of its own."""
    parts = [json.dumps(line + "\n", ensure_ascii=True) for line in text.split("\n")]
    parts[-1] = json.dumps(text.split("\n")[-1])
    return "\n    ".join(parts)


def size_of(dim):
    """What is added to a symbol; without one a number, or a text with a quotient."""
    return dim["add"] if dim["symbol"] else dim["text"] if "/" in dim["text"] else int(dim["text"])


def part_of(op, dim):
    """A dimension "(n+15)/16" as the table has it."""
    symbol, add, by = re.fullmatch(r"\((\w+)\+(\d+)\)/(\d+)", dim["text"]).groups()
    return f"{{ -1, {add}, 0, {op.symbols.index(symbol)}, {by} }}"


class Size:
    """A size that outputs have and inputs, or those that must be given, have not, as a parameter of the function: k of
    topk, dv of attention_decode."""
    kind, switch, fallback, min, max, names, zero_is_fallback = "SIZE", None, 0, None, None, [], False

    def __init__(self, op, symbol):
        self.name, self.offset = symbol, op.symbols.index(symbol)  # in place of an offset in the arguments
        self.doc = f"size {symbol} of outputs that are made"
        limits = [r.split(" <= ")[1] for r in op.require if r.rpartition(": ")[2].startswith(f"{symbol} <= ")]
        self.unset = limits[0] if limits else "1"


def sizes_of(op):
    known = {d["symbol"] for t in op.tensors if t.is_in for d in t.dims}
    bound = {d["symbol"] for t in op.tensors if t.is_in and not t.optional for d in t.dims}
    made = {d["symbol"] for t in op.tensors if not t.is_in and not t.optional for d in t.dims if not d["optional"]}
    return [Size(op, s) for s in op.symbols if s not in known or s in made - bound]


class Function:
    """An op as a Python function."""

    def __init__(self, op):
        self.op = op
        self.params = [p for p in op.params if not p.switches] + sizes_of(op)
        self.fields = op.tensors + self.params
        inputs = [t for t in op.tensors if t.is_in]
        self.positional = [t for t in inputs if not t.optional] + [t for t in inputs if t.optional]
        self.keyword = [t for t in op.tensors if not t.is_in] + self.params
        self.open_types = self.find_open_types()
        self.grouped = any(p.kind == "COMM" for p in op.params)

    def required(self, param):
        """Would the value of a parameter left out be refused, whatever tensors are given?"""
        if any(rule.endswith(f" instead of {param.name}") for rule in self.op.require):
            return False
        low, high = param.min, param.max
        value = param.fallback
        return not param.zero_is_fallback and ((low is not None and value < low) or (high is not None and value > high))

    def find_open_types(self):
        """Does an output have a type that no input decides?"""
        bound = {t.type for t in self.op.tensors if t.is_in and not t.optional}
        return any(t.type_is_variable and t.type not in bound for t in self.op.tensors if t.is_out and not t.is_in)

    def leading(self):
        """The symbol that may be missing, if the first tensor has two dimensions at least that may not."""
        if self.grouped:
            return -1  # ranks are not rows
        dims = [d for d in self.op.tensors[0].dims if not d["optional"]]
        symbol = dims[0]["symbol"] if len(dims) > 1 and dims[0]["add"] == 0 else None
        return self.op.symbols.index(symbol) if symbol is not None else -1

    def like(self):
        """For each symbol that no input has: those whose sizes it takes, where they are not 1. Where it is the larger
        of some and an output has it, those of optional inputs are among them."""
        bound = {d["symbol"] for t in self.op.tensors if t.is_in and not t.optional for d in t.dims}
        known = {d["symbol"] for t in self.op.tensors if t.is_in for d in t.dims}
        made = {d["symbol"] for t in self.op.tensors if not t.is_in for d in t.dims}
        out = []
        for symbol in self.op.symbols:
            from_ = []
            if symbol not in bound:
                for rule in self.op.require:
                    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", rule))
                    if symbol in words:
                        told = known if "max" in words and symbol in made else bound
                        from_ += [w for w in words if w in told and w not in (*from_, symbol)]
            if len(from_) > 2:
                sys.exit(f"{self.op.name}: {symbol} follows from more than two sizes: {from_}")
            out.append([self.op.symbols.index(s) for s in from_] + [-1] * (2 - len(from_)))
        return out

    def products(self):
        """Does its work grow faster than its tensors? Then it is made of products."""
        factors = [set(re.findall(r"[a-z_]+", term)) for term in self.op.flops.split("+")]
        return max(map(len, factors)) > max(len({d["symbol"] for d in t.dims} - {None}) for t in self.op.tensors)

    # ------------------------------------------------------------------------------------------------------------ text

    def default(self, field):
        if field in self.op.tensors:
            return "None"
        if field.switch or field.unset or field.kind in ("TEXT", "COMM"):
            return "None"
        if field.kind == "ENUM":
            return repr(field.names[int(field.fallback)])
        if field.kind == "BOOL":
            return repr(bool(field.fallback))
        return f"{field.fallback:.9g}"

    def arguments(self, annotate):
        """The arguments of the function, as Python writes them."""
        out = []
        for field in self.positional:
            kind = ": " + ("Array" if not field.optional else "Array | None") if annotate else ""
            default = "" if not field.optional else " = None" if annotate else "=None"
            out.append(field.name + kind + default)
        out.append("*")
        for field in self.keyword:
            kind = ""
            if annotate:
                kind = ": " + self.annotation(field)
            if field in self.params and self.required(field):
                out.append(field.name + kind)
                continue
            out.append(field.name + kind + (" = " if annotate else "=") + self.default(field))
        named = any(t.name == "out" for t in self.op.tensors)
        if not named and any(not t.is_in and not t.optional for t in self.op.tensors):
            outputs = sum(not t.is_in and not t.optional for t in self.op.tensors)
            kind = "Array | None" if outputs == 1 else f"tuple[{', '.join(['Array'] * outputs)}] | None"
            out.append("out" + (f": {kind} = " if annotate else "=") + "None")
        if self.open_types:
            out.append("dtype" + (": Any = " if annotate else "=") + "None")
        return out[:-1] if out[-1] == "*" else out

    def annotation(self, field):
        if field in self.op.tensors:
            return "Array | bool | None"
        if field.kind == "ENUM":
            return f"Literal[{', '.join(map(repr, field.names))}]"
        base = {"BOOL": "bool", "F32": "float", "TEXT": "str", "COMM": "Comm"}.get(field.kind, "int")
        none = field.switch or field.unset or field.kind == "COMM"
        none = none or (field.kind == "TEXT" and not self.required(field))
        return base + (" | None" if none else "")

    def returned(self):
        outputs = [t for t in self.op.tensors if not t.is_in]
        needed = [t for t in outputs if not t.optional]
        if not outputs:
            return "None"
        if len(needed) == len(outputs):
            return "Array" if len(outputs) == 1 else f"tuple[{', '.join(['Array'] * len(outputs))}]"
        return "Any"

    def doc(self, lines):
        op = self.op
        out = [op.doc.split("\n")[0].strip(), ""]
        for tensor in self.positional + [t for t in op.tensors if not t.is_in]:
            shape = " ".join(d["text"] if not d["optional"] else f"[{d['text']}]" for d in tensor.dims)
            role = "in place" if tensor.is_in and tensor.is_out else "out" if tensor.is_out else "in"
            role += ", optional" if tensor.optional else ""
            out.append(f"{tensor.name}: {role}; {tensor.type}[{shape}]")
        for param in self.params:
            values = ": " + ", ".join(param.names) if param.kind == "ENUM" else ""
            default = "required" if self.required(param) else f"default {param.unset or self.default(param)}"
            out += lines(f"{param.name}: {param.doc}{values}; {default}", 90)
        out += ["", "Outputs are made where they are not given. One that is optional is made for True.", ""]
        out += lines("\n".join(op.doc.split("\n")[1:]).strip(), 90)
        return "\n".join(out)

    # --------------------------------------------------------------------------------------------------------------- C

    def c_tensor(self, tensor, left_out=0):
        op = self.op
        flags = sum(FLAGS.get(f, 0) for f in tensor.flags)
        variable = op.type_variables.index(tensor.type) if tensor.type_is_variable else -1
        dtype = "TRINE_NONE" if tensor.type_is_variable else f"TRINE_{tensor.type.upper()}"
        dims = ", ".join(part_of(op, d) if "/" in d["text"] else f"{{ -1, {d['text']}, 0 }}" if d["symbol"] is None else
                         f"{{ {op.symbols.index(d['symbol'])}, {d['add']}, {int(d['optional'])} }}"
                         for d in tensor.dims[left_out:])
        rank = len(tensor.dims) - left_out
        return (f'    {{ "{tensor.name}", {tensor.offset}, {flags}, {rank}, {variable}, {dtype}, '
                f"{{ {dims} }} }},")

    def c_param(self, param):
        set_offset = param.switch.offset if param.switch else 0
        names = f"{self.op.name}_{param.name}" if param.kind == "ENUM" else "NULL"
        zero = int(param.zero_is_fallback and param.kind == "F32")
        asked = any(re.search(rf"-> {param.name}\b", rule) for rule in self.op.require)
        explicit = f"{param.fallback:.9g}f" if asked and param.fallback % 1 else f"{param.fallback if asked else 0:.9g}"
        return (f'    {{ "{param.name}", KIND_{param.kind}, {param.offset}, {set_offset}, {int(self.required(param))}, '
                f"{zero}, {explicit}, {names} }},")

    def c_table(self):
        op, name = self.op, self.op.name
        out = []
        for param in self.params:
            if param.kind == "ENUM":
                names = ", ".join(f'"{n}"' for n in param.names)
                out.append(f"static const char *const {name}_{param.name}[] = {{ {names}, NULL }};")
        out += [f"static const table_tensor {name}_tensors[] = {{"] + [self.c_tensor(t) for t in op.tensors] + ["};"]
        out.append(f"_Static_assert({len(op.tensors)} <= TABLE_TENSORS && {len(self.params)} <= TABLE_PARAMS && "
                   f"{len(op.symbols)} <= TABLE_SYMBOLS && {op.args_size} <= TABLE_ARGS, \"room for {name}\");")
        if self.params:
            out += [f"static const table_param {name}_params[] = {{"] + [self.c_param(p) for p in self.params] + ["};"]
        symbols = ", ".join(f'"{s}"' for s in op.symbols)
        out.append(f"static const char *const {name}_symbols[] = {{ {symbols} }};")
        types = "".join(f"{', '.join(f'TRINE_{t.upper()}' for t in row)}, " for row in op.type_combinations)
        out.append(f"static const trine_dtype {name}_types[] = {{ {types}TRINE_NONE }};")
        places = [op.tensors.index(t) for t in self.positional]
        like = ", ".join(f"{{ {a}, {b} }}" for a, b in self.like())

        def tabled(title, tensors, own):
            return [f"static const table {title} = {{",
                    f'    "{name}", {op.constant}, {op.args_size}, {len(op.tensors)}, {len(self.params)}, '
                    f"{len(op.symbols)}, {len(op.type_variables)}, {len(places)}, {self.leading()},",
                    f"    {{ {', '.join(map(str, places))} }}, {{ {like} }}, {tensors}, "
                    f"{f'{name}_params' if self.params else 'NULL'}, {name}_symbols, {name}_types, {own}, "]

        if self.grouped:
            out += [f"static const table_tensor {name}_own_tensors[] = {{"]
            out += [self.c_tensor(t, 1) for t in op.tensors] + ["};"]
            out += tabled(f"{name}_own", f"{name}_own_tensors", "NULL")
            out[-1] += "0 };"
        out += tabled(f"{name}_table", f"{name}_tensors", f"&{name}_own" if self.grouped else "NULL")
        out[-1] += f"{zlib.crc32(chr(10).join(out).encode()):#x} }};"
        out += [f"CALL({name})", ""]
        return "\n".join(out)

    def c_method(self, lines):
        doc = f"{self.op.name}({', '.join(['$module'] + self.arguments(False))})\n--\n\n{self.doc(lines)}"
        return f"    METHOD({self.op.name}, {c_text(doc)}),"


def tables(functions, lines):
    out = ["/* SPDX-License-Identifier: Apache-2.0 */",
           "/* The ops as the Python module has them. Generated by bindings/python/generate.py. */",
           '#include "binding.h"',
           '#include "functions.h"', ""]
    out += [f.c_table() for f in functions]
    out += ["const table *const op_tables[] = {"] + [f"    &{f.op.name}_table," for f in functions] + ["};"]
    out += [f"const int op_count = {len(functions)};", "", "PyMethodDef op_methods[] = {"]
    out += [f.c_method(lines) for f in functions] + ["    { 0 },", "};", ""]
    return "\n".join(out)


STUB = '''# Generated from the specification by bindings/python/generate.py.
from typing import Any, Iterable, Literal

Array = Any
"""A tensor or array of PyTorch, NumPy, CuPy or JAX, or anything with __dlpack__ or a buffer."""

class Error(RuntimeError): ...
class ArgumentError(Error, ValueError): ...
class UnsupportedError(Error, NotImplementedError): ...
class OutOfMemoryError(Error, MemoryError): ...
class DeviceError(Error): ...
class CommError(Error): ...

class Comm:
    rank: int
    ranks: int
    def __new__(cls, rank: int, ranks: int, by: Any, *, device: str = "cpu", timeout: float = 0,
                staging_bytes: int = 0) -> Comm: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def __enter__(self) -> Comm: ...
    def __exit__(self, *unused: Any) -> None: ...

__version__: str

def devices() -> list[dict[str, Any]]: ...
def backends() -> list[dict[str, Any]]: ...
def set_threads(count: int, /) -> None: ...
def run_list(op: str, calls: Iterable[dict[str, Any]], /) -> list[Any]: ...
def explain(op: str, /, *args: Any, **kwargs: Any) -> list[dict[str, Any]]: ...
def arena_plan(lifetimes: Iterable[tuple[int, int, int]], alignment: int = 256) -> tuple[list[int], dict[str, Any]]: ...
'''


def stub(functions, lines):
    out = [STUB]
    for f in functions:
        arguments = ",\n    ".join(f.arguments(True))
        doc = f.doc(lines).replace("\\", "\\\\").replace("\n", "\n    ")
        doc = "\n".join(line.rstrip() for line in doc.split("\n"))
        out.append(f'def {f.op.name}(\n    {arguments},\n) -> {f.returned()}:\n    """{doc}"""\n')
    return "\n".join(out)


def row(f):
    """An op as the layers in Python want it; trine/_ops.py reads it."""
    op = f.op
    tensors = [{"name": t.name, "type": t.type, "in": t.is_in, "out": t.is_out, "optional": t.optional,
                "broadcast": "broadcast" in t.flags, "strides": "any" if "any_stride" in t.flags else
                "transposable" if "transposable" in t.flags else "rows",
                "dims": [(d["symbol"], size_of(d), d["optional"]) for d in t.dims]}
               for t in op.tensors]
    params = [{"name": p.name, "kind": p.kind, "required": f.required(p),
               "default": None if f.default(p) == "None" else p.names[int(p.fallback)] if p.kind == "ENUM" else
               bool(p.fallback) if p.kind == "BOOL" else p.fallback if p.kind == "F32" else int(p.fallback)}
              for p in f.params if p.kind != "COMM"]
    like = {s: [op.symbols[i] for i in from_ if i >= 0] for s, from_ in zip(op.symbols, f.like()) if from_[0] >= 0}
    # A count of blocks, of which each has as many as follows from both; what ids or slots are places in; and the ranks
    # of a group, the first size of each of its tensors.
    tied = {of for text in op.require for of in re.findall(r"^\w+ <= max\((\w+), 1\)$", text)}
    tied |= {word for t in op.tensors for word in re.findall(r"^(?:ids|places|slots) (\w+)", t.fill or "")}
    tied |= {op.symbols[0] for p in f.params if p.kind == "COMM"}
    roles = {r.name: (r.kind, r.tensor, r.given, r.otherwise) for r in op.roles.values()}
    leading = op.symbols[f.leading()] if f.leading() >= 0 else None
    return {"name": op.name, "tensors": tensors, "params": params, "positional": [t.name for t in f.positional],
            "products": f.products(), "leading": leading, "like": like, "tied": sorted(tied),
            "variables": op.type_variables, "types": op.type_combinations,
            "gradient": op.backward.name if op.backward else None, "roles": roles}


def python_table(functions):
    rows = pprint.pformat([row(f) for f in functions], width=118, compact=True, sort_dicts=False)
    return ("# SPDX-License-Identifier: Apache-2.0\n# Generated from the specification by "
            f"bindings/python/generate.py.\nROWS = \\\n{rows}\n")


def main():
    spec_py, spec_json, tables_c, stub_pyi, table_py = sys.argv[1:]
    module = load(spec_py)
    functions = [Function(op) for op in module.read(spec_json).ops]
    with open(tables_c, "w", encoding="utf-8") as file:
        file.write(tables(functions, module.lines))
    with open(stub_pyi, "w", encoding="utf-8") as file:
        file.write(stub(functions, module.lines))
    with open(table_py, "w", encoding="utf-8") as file:
        file.write(python_table(functions))


if __name__ == "__main__":
    main()
