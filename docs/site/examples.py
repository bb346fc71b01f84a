# SPDX-License-Identifier: Apache-2.0
"""A call of each op in C, in Python and by the command, made from the specification; tests run them.

Its tensors, parameters and types are those of the op's first case, the types as far as NumPy has them; its sizes are
small.

    examples.py SPEC_JSON         prints a C program that makes every call and speaks TAP
"""
import importlib.util
import math
import pathlib
import re
import sys

BINDINGS = pathlib.Path(__file__).resolve().parents[2] / "bindings"
sys.path.insert(0, str(BINDINGS))
import spec as specification  # noqa: E402

# What the element types are called by NumPy; and by ml_dtypes, which an example imports where nothing else will do.
NUMPY = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u32": "uint32",
         "f16": "float16", "f32": "float32", "f64": "float64"}
ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e4m3fnuz": "float8_e4m3fnuz", "e5m2": "float8_e5m2",
             "e5m2fnuz": "float8_e5m2fnuz", "e8m0": "float8_e8m0fnu"}
C_TYPES = {"f32": "float", "f64": "double", "f16": "uint16_t"}
FEW = 4  # sizes up to here are as in the case
WIDTH = 88


def load(path, name):
    module = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(module)
    module.loader.exec_module(loaded)
    return loaded


Function = load(BINDINGS / "python" / "generate.py", "python_generate").Function


def symbols(expression):
    """Its symbols, in their order."""
    return [name for name in re.findall(r"[A-Za-z_]\w*", expression) if name not in ("max", "min")]


def calculate(expression, sizes):
    """An expression of the table; None if it has a symbol that is not among the sizes."""
    if set(symbols(expression)) - set(sizes):
        return None
    return eval(expression.replace("/", "//"), {"__builtins__": {}, "max": max, "min": min}, dict(sizes))


class Call:
    """A small valid call: sizes by symbol, types by variable, tensors, and parameters with their values as text."""

    @property
    def structured(self):
        """Has it numbers that form something, as nodes do a tree, which made-up ones do not?"""
        return any(t.is_in and t.fill == "derived" and self.type_of(t)[0] in "iu" for t in self.tensors)

    def __init__(self, op, preferred=NUMPY):
        """`preferred` are the element types it is to have, as far as the op takes them."""
        self.op = op
        self.case, _, words = op.cases[0].partition(": ")
        words = words.split()
        self.given = {word[1:] for word in words if word.startswith("+")}
        values = dict(word.split("=", 1) for word in words if "=" in word)
        self.tensors = [t for t in op.tensors if not t.optional or t.name in self.given]
        self.params = [(p, values[p.name]) for p in op.params if p.name in values]
        self.sizes = self.small({s: int(values[s]) for s in op.symbols if s in values})
        self.types = self.combination({v: values.get(v) for v in op.type_variables}, preferred)

    def small(self, sizes):
        """Other sizes in the same order, each a power of two, so that what divides or bounds another still does; or
        the same for those that are the same; or where one is a multiple of another, all by one power of two."""
        small, same, size, by = {}, {}, FEW, 1
        for symbol in sorted(sizes, key=sizes.get):
            small[symbol] = min(sizes[symbol], size)
            size *= 2 if sizes[symbol] > FEW else 1
        for symbol in sizes:
            same[symbol] = small[next(s for s in small if sizes[s] == sizes[symbol])]
        while all(n <= FEW or n % (2 * by) == 0 and n // (2 * by) >= FEW for n in sizes.values()):
            by *= 2
        alike = {symbol: n if n <= FEW else n // by for symbol, n in sizes.items()}
        return next((s for s in (small, same, alike) if all(self.holds(rule, s) for rule in self.op.require)), sizes)

    def holds(self, rule, sizes):
        """Does a condition of the table hold, as far as it is one on sizes of this call?"""
        where, _, condition = rule.rpartition(": ")
        if where:
            word, tensor = where.split()
            if (word == "with") != (tensor in self.given):
                return True
        if not re.search(r"[=<>%]", condition) or re.search(r"->|\|", condition):
            return True
        names = symbols(condition)
        if not names or names[0] not in sizes:  # of a tensor that is not given
            return True
        return calculate(condition, {**dict.fromkeys(names, 0), **sizes}) is True

    def combination(self, wanted, preferred):
        """Of the combinations of preferred types, the first of those that agree most with the case's."""
        variables, used = self.op.type_variables, {t.type for t in self.tensors}
        rows = [dict(zip(variables, row)) for row in self.op.type_combinations]
        rows = [row for row in rows if all(row[v] in preferred for v in variables if v in used)] or rows
        return max(rows, key=lambda row: sum(row[v] == wanted[v] for v in variables))

    def other_types(self):
        """The types of those outputs that no input decides and that have another than the first input."""
        inputs = [t for t in self.tensors if t.is_in]
        decided, first = {t.type for t in inputs}, self.type_of(inputs[0])
        types = [self.type_of(t) for t in self.tensors if t.type_is_variable and t.type not in decided]
        return [dtype for dtype in types if dtype != first]

    def type_of(self, tensor):
        return self.types[tensor.type] if tensor.type_is_variable else tensor.type

    def shape_of(self, tensor):
        shape = []
        for dim in tensor.dims:
            size = calculate(dim["text"], self.sizes)
            if size is None and not dim["optional"]:
                raise KeyError(f"{self.op.name}: no size of {tensor.name}'s dimension {dim['text']}")
            shape += [] if size is None else [size]
        return shape


def wrapped(start, parts, end, indent=4, apart=False):
    """Parts of a call between brackets, on as many lines as it takes; `apart`: the last bracket then has its own."""
    line = start + ", ".join(parts) + end
    if len(line) <= WIDTH:
        return line
    lines = [start.rstrip(), " " * indent]
    for part in parts:
        if len(lines[-1]) + len(part) + 2 > WIDTH:
            lines.append(" " * indent)
        lines[-1] += part + ", "
    lines = [line.rstrip() for line in lines]
    lines[-1] = lines[-1][:-1]
    margin = " " * (len(start) - len(start.lstrip()))
    return "\n".join(lines) + ("\n" + margin if apart else "") + end.lstrip()


# ------------------------------------------------------------------------------------------------------------------- C

def c_type(dtype, size):
    return C_TYPES.get(dtype) or f"{'u' * (dtype[0] != 'i')}int{8 * size}_t"


def c_value(param, text):
    if param.kind == "ENUM":
        return next(constant for name, constant, value in param.enum.values if text in (name, str(value)))
    if param.kind == "TEXT":
        return f'"{text}"'
    if param.kind != "F32":
        return text
    if float(text) == 0 and param.zero_is_fallback:
        text = param.zero
    return text + ("f" if re.search(r"[.e]", text) else ".0f")


def c_view(call, tensor):
    shape = call.shape_of(tensor)
    dtype = f"TRINE_{call.type_of(tensor).upper()}"
    if 1 <= len(shape) <= 4:
        made = f"trine_tensor_{len(shape)}d({tensor.name}, {dtype}, {', '.join(map(str, shape))})"
    else:
        strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
        made = (f"{{ {tensor.name}, {dtype}, {len(shape)}, {{ {', '.join(map(str, shape))} }}, "
                f"{{ {', '.join(map(str, strides))} }} }}")
    return f"    const trine_tensor {tensor.name}_view = {made};"


def c_signature(call, sizes):
    """Its return type, name and parameters; `sizes` are those of element types in bytes."""
    pointers = [f"{c_type(call.type_of(t), sizes[call.type_of(t)])} *{t.name}" for t in call.tensors]
    return f"trine_status run_{call.op.name}(", ["trine_queue *queue"] + pointers


def c_text(call, sizes):
    """A function that makes the call on a queue."""
    op = call.op
    start, parameters = c_signature(call, sizes)
    members = {t.name: f".{t.name} = &{t.name}_view" for t in call.tensors}
    members.update({p.name: f".{p.name} = {c_value(p, text)}" for p, text in call.params})
    members = [f"TRINE_ARGS({op.name})"] + [members[m.name] for m in op.members if m.name in members]
    return "\n".join([wrapped(start, parameters, ") {", 8)] + [c_view(call, t) for t in call.tensors] +
                     [wrapped(f"    const {op.args_type} args = {{ ", members, " };", 8, True),
                      f"    return {op.function}(queue, &args);", "}"])


def c_fill(call, tensor, kind_in_c):
    """The value of element i, as C writes it."""
    kind, *words = (tensor.fill or "").split() or [""]
    if kind in ("ids", "places", "slots", "ascending"):
        part = f"i % {math.prod(call.shape_of(tensor)[1:])}" if "alike" in words else "i"
        return f"{part} % {calculate(words[0], call.sizes)}"
    if kind == "offsets":
        return f"i * {call.sizes[words[0]]} / {max(call.shape_of(tensor)[0] - 1, 1)}"
    if kind == "lists":
        row = call.shape_of(tensor)[-1]
        return f"i % {row} * {call.sizes[words[0]]} / {max(row - 1, 1)}"
    if kind in ("flag", "lengths", "blocks"):
        return "0"
    if kind_in_c.startswith("u"):  # those of narrow floats too
        return "i % 7"
    values = {"positive": "0.5f + i % 7", "unit": "(i % 9 - 4) * 0.25f", "saved": "(i % 9) * 0.0125f",
              "key": "(i % 9) * 0.0125f", "decay": "(i % 9) * -0.0125f", "rate": "(i % 9) * 0.0125f",
              "derived": "1 + (i % 9) * 0.0125f"}
    return values.get(kind, "(i * 37 % 17 - 8) * 0.25f")


PROGRAM = """/* SPDX-License-Identifier: Apache-2.0 */
/* The C examples of the documentation, each called once on the CPU. Made by docs/site/examples.py. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <trine/trine.h>

static int count, failed;

static void point(const char *name, trine_status status, int unwritten) {
    const int good = status == TRINE_OK && !unwritten;
    printf("%s %d - %s\\n", good ? "ok" : "not ok", ++count, name);
    if (status != TRINE_OK) printf("# %s\\n", trine_error_message());
    if (unwritten) printf("# %d elements of outputs are not numbers, or as they were before\\n", unwritten);
    failed += !good;
}
"""


def c_test(call, sizes):
    """A function that fills inputs with numbers and outputs with NaN, makes the call, and looks at the outputs."""
    name, fill, look = call.op.name, [], []
    start, parameters = c_signature(call, sizes)
    lines = ["", f"{start}{', '.join(parameters)});", c_text(call, sizes), "",
             f"static void test_{name}(trine_queue *queue) {{", "    int unwritten = 0;"]
    for tensor in call.tensors:
        dtype, elements = call.type_of(tensor), math.prod(call.shape_of(tensor))
        kind = c_type(dtype, sizes[dtype])
        lines.append(f"    static {kind} {tensor.name}[{elements}];")
        each = f"    for (int i = 0; i < {elements}; i++) "
        fill.append(f"{each}{tensor.name}[i] = ({kind})({c_fill(call, tensor, kind)});" if tensor.is_in else
                    f"    memset({tensor.name}, 0xff, sizeof {tensor.name});")
        if tensor.is_out and dtype in ("f32", "f64") and not call.structured:
            look.append(f"{each}unwritten += isnan({tensor.name}[i]);")
    names = ", ".join(["queue"] + [t.name for t in call.tensors])
    return "\n".join(lines + fill + [f"    const trine_status status = run_{name}({names});"] + look +
                     [f'    point("{name}", status, unwritten);', "}"])


def c_program(spec):
    sizes = {t.name: t.size for t in spec.dtypes}
    calls = [Call(op) for op in spec.ops]
    main = ["", "int main(void) {", "    trine *lib = NULL;", "    trine_queue *queue = NULL;",
            "    if (trine_open(NULL, &lib) || trine_queue_open(lib, 0, NULL, &queue)) {",
            '        printf("Bail out! %s\\n", trine_error_message());', "        return 1;", "    }"]
    main += [f"    test_{call.op.name}(queue);" for call in calls]
    main += ["    trine_queue_close(queue);", "    trine_close(lib);", f'    printf("1..{len(calls)}\\n");',
             "    return failed != 0;", "}"]
    return "\n".join([PROGRAM] + [c_test(call, sizes) for call in calls] + main)


# -------------------------------------------------------------------------------------------------------------- Python

def drawn(name, dtype, shape, fill, sizes):
    """A line of Python that makes an input."""
    kind, *words = (fill or "").split() or [""]
    size = shape[0] if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    numpy = f"np.{NUMPY[dtype]}" if dtype in NUMPY else f"ml_dtypes.{ML_DTYPES[dtype]}"
    if "alike" in words:
        return f"{name} = np.tile(rng.integers(0, {calculate(words[0], sizes)}, {shape[1:]}, {numpy}), ({shape[0]}, 1))"
    if kind in ("ids", "places", "slots"):
        return f"{name} = rng.integers(0, {calculate(words[0], sizes)}, {size}, {numpy})"
    if kind == "ascending":
        return f"{name} = np.sort(rng.integers(0, {calculate(words[0], sizes)}, {size}, {numpy}))"
    if kind == "offsets":
        return f"{name} = np.linspace(0, {sizes[words[0]]}, {size}).astype({numpy})"
    if kind == "lists":
        rows = ", ".join(map(str, (*shape[:-1], 1)))
        return f"{name} = np.tile(np.linspace(0, {sizes[words[0]]}, {shape[-1]}).astype({numpy}), ({rows}))"
    if kind in ("flag", "lengths", "blocks"):
        return f"{name} = np.zeros({size}, {numpy})"
    if dtype[0] in "iu":
        return f"{name} = rng.integers(1, 100, {size}, {numpy})"
    kind = "positive" if dtype == "e8m0" else kind  # it has no sign
    ranges = {"positive": "0.5, 1.5", "unit": "-1, 1", "saved": "0, 0.1", "key": "0, 0.1", "decay": "-0.1, 0",
              "rate": "0, 0.1", "derived": "1, 1.1"}
    if kind in ranges:
        return f"{name} = rng.uniform({ranges[kind]}, {size}).astype({numpy})"
    if dtype in ("f32", "f64"):
        return f"{name} = rng.standard_normal({size}, {numpy})"
    return f"{name} = rng.standard_normal({size}).astype({numpy})"


def py_value(param, text):
    if param.kind == "ENUM":
        return repr(text if text in param.names else param.names[int(text)])
    if param.kind == "TEXT":
        return f'"{text}"'
    return str(text not in ("0", "false")) if param.kind == "BOOL" else text


def py_call(call, holds, asked=()):
    """The call on variables: `holds` has their names by those of the tensors; `asked` are optional outputs."""
    op, function = call.op, Function(call.op)
    places = [holds[t.name] for t in function.positional if t in call.tensors and not t.optional]
    words = [f"{t.name}={holds[t.name]}" for t in function.positional if t in call.tensors and t.optional]
    words += [f"{p.name}={py_value(p, text)}" for p, text in call.params if not p.switches]
    words += [f"{p.name}={call.sizes[p.name]}" for p in function.params if p.kind == "SIZE"]
    words += [f"{t.name}=True" for t in op.tensors if t.optional and not t.is_in and
              (t in call.tensors or t.name in asked)]
    words += [f'dtype="{dtype}"' for dtype in call.other_types()[:1]]
    names = [holds.get(t.name, t.name) for t in op.tensors if not t.is_in and
             (not t.optional or t in call.tensors or t.name in asked)]
    start = ", ".join(names) + " = " if names else ""
    return wrapped(f"{start}trine.{op.name}(", places + words, ")")


def forward_lines(call, forward):
    """What a gradient needs of its op: lines that make the op's inputs and call it, and the variables that hold tensors
    of the gradient. None, where the gradient reads no output of the op, or the op asks for more than is known."""
    first, holds, asked = Call(forward), {}, []
    shared = {p.name: text for p, text in call.params}
    first.sizes, first.types = call.sizes, {**first.types, **call.types}
    by_name = {t.name: t for t in forward.tensors}
    for tensor in call.tensors:
        role = forward.roles.get(tensor.name)
        if not tensor.is_in or not role or role.kind != "value":
            continue
        given = not role.given or any(shared.get(name, "0") != "0" for name in role.given)
        of = role.tensor if given else role.otherwise
        holds[tensor.name] = of
        if by_name[of].is_out and by_name[of].optional:
            asked.append(of)
    if not any(by_name[of].is_out for of in holds.values()):
        return None
    first.params = [(p, shared[p.name]) for p in forward.params if p.name in shared]
    first.tensors = [t for t in forward.tensors if (t.is_in and (not t.optional or t.name in holds.values())) or
                     (t.is_out and not t.optional)]
    inputs = [t for t in first.tensors if t.is_in]
    try:
        lines = [drawn(t.name, first.type_of(t), first.shape_of(t), t.fill, first.sizes) for t in inputs]
    except KeyError:
        return None
    return lines + [py_call(first, {t.name: t.name for t in inputs}, asked)], holds


def py_text(call, forward=None):
    """A whole program, and its variables by the inputs that they are. Of a gradient whose op is given, it calls that
    first for the outputs that the gradient reads."""
    lines, holds = (forward and forward_lines(call, forward)) or ([], {})
    calls = lines[-1:]
    data = lines[:-1]
    for tensor in call.tensors:
        if tensor.is_in and tensor.name not in holds:
            holds[tensor.name] = tensor.name
            data.append(drawn(tensor.name, call.type_of(tensor), call.shape_of(tensor), tensor.fill, call.sizes))
    types = {call.type_of(t) for t in call.tensors} - set(NUMPY)
    start = ["import ml_dtypes"] * bool(types) + ["import numpy as np", "import trine", ""]
    if any("rng." in line for line in data):
        start.append("rng = np.random.default_rng(0)")
    return "\n".join(start + data + [""] + calls + [py_call(call, holds)]), holds


# --------------------------------------------------------------------------------------------------------- the command

def run_command(call):
    """`trine run` on files that are called like the tensors."""
    op, words = call.op, []
    for tensor in call.tensors:
        words += [f"--{tensor.name} {tensor.name}.npy"]
        words += [f"--{tensor.name}-out {tensor.name}.npy"] * (tensor.is_in and tensor.is_out)
    words += [f'--{p.name} "{text}"' if p.kind == "TEXT" else f"--{p.name} {text}" for p, text in call.params]
    known = {d["symbol"] for t in call.tensors if t.is_in for d in t.dims}
    dims = " ".join(f"{s}={n}" for s, n in call.sizes.items() if s not in known)
    words += [f'--dims "{dims}"'] * bool(dims)
    if call.other_types() or any(call.type_of(t) not in NUMPY for t in call.tensors):
        used = {t.type for t in call.tensors}
        words.append("--types " + ",".join(f"{v}={call.types[v]}" for v in op.type_variables if v in used))
    lines = [f"trine run {op.name}"]
    for word in words:
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines.append("   ")
        lines[-1] += " " + word
    return " \\\n".join(lines)


def explain_command(call):
    case = f'"{call.case}"' if " " in call.case else call.case
    return f"trine explain {call.op.name} --case {case}"


def main():
    print(c_program(specification.read(sys.argv[1])))


if __name__ == "__main__":
    main()
