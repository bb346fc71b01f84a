# SPDX-License-Identifier: Apache-2.0
"""The pages of the ops, and their index, from the specification. No op is named here."""
import html
import posixpath
import re

import examples
from render import Page, anchor, code, wide

ITEM = re.compile(r"(Source|Shapes|Strides|Types|Ranges|Parameters|Aliasing|Error bound|Deterministic|Errors)(: |, )")
CONDITIONS = {
    r"with (\w+): (.*)": "with {0}: {1}",
    r"with (\w+)=(\w+): (.*)": "with {0} = {1}: {2}",
    r"without (\w+): (.*)": "without {0}: {1}",
    r"(\w+) <-> (\w+)": "{0} and {1}: both, or none",
    r"(\w+) -> (\w+)": "{0} asks for {1}",
    r"(\w+) instead of (\w+)": "{0} takes the place of {1}, which must be left 0 then",
    r"((?:\w+ \| )+\w+)": "at least one of {0}",
}
LARGEST = 3.4e38  # of f32, about: as a limit it is none


def place_of(op):
    return f"ops/{op.name}.html"


def items_of(doc):
    """What a docstring says before its items, as formulas (lines) and paragraphs, and the items by their names."""
    before, items = [], {}
    for line in doc.split("\n")[1:]:
        item = ITEM.match(line)
        if item:
            items[item.group(1)] = line[item.end():]
        elif line.startswith(" "):
            if before and isinstance(before[-1], list):
                before[-1].append(line[4:])
            else:
                before.append([line[4:]])
        elif line and not re.match(r"Since \d", line):
            before.append(line)
    return before, items


def table(head, rows):
    """A table of HTML cells; columns that are empty in every row are left out."""
    keep = [i for i in range(len(head)) if any(row[i] for row in rows)]
    cells = lambda row, tag: "".join(f"<{tag}>{row[i]}</{tag}>" for i in keep)  # noqa: E731
    return wide("<table>\n<thead><tr>" + cells(head, "th") + "</tr></thead>\n<tbody>\n" +
                "".join(f"<tr>{cells(row, 'td')}</tr>\n" for row in rows) + "</tbody></table>", "about")


def quoted(text):
    return f"<code>{html.escape(str(text), False)}</code>"


def sentence(text, op):
    """What followed a label, with a capital letter unless it begins with a name."""
    word = re.match(r"\w+", text)
    names = {m.name for m in op.members} | set(op.symbols)
    return text if not word or word.group() in names or len(word.group()) == 1 else text[0].upper() + text[1:]


def values_of(param):
    """The values that a parameter may have; of a choice with their names in C."""
    if param.kind == "ENUM":
        return "<br>".join(f"{quoted(name)} {constant}" for name, constant, _ in param.enum.values)
    if param.kind == "BOOL":
        return "0 or 1"
    if param.kind == "TEXT":
        return "a text"
    if param.kind == "COMM":
        return "a communicator; none: a call of all ranks"
    low = f"{param.min:.9g}" if param.min is not None and param.min > -LARGEST else ""
    high = f"{param.max:.9g}" if param.max is not None and param.max < LARGEST else ""
    if param.below:
        return f"{low or 'any'} to below {quoted(param.below)}"
    return f"{low} to {high}" if low and high else low and f"at least {low}" or high and f"at most {high}"


def accumulator_of(op, tensor):
    if tensor.accumulate or not tensor.type_is_variable:
        return tensor.accumulate or ("f64" if tensor.type == "f64" else "f32")
    both = any(row[op.type_variables.index(tensor.type)] == "f64" for row in op.type_combinations)
    return "f32, or f64 where the output is f64" if both else "f32"


def condition(rule):
    """A condition of the table (trine-spec(1)) in words."""
    for pattern, words in CONDITIONS.items():
        match = re.fullmatch(pattern, rule)
        if match:
            return words.format(*map(quoted, match.groups()))
    return quoted(rule)


class OpPages:
    def __init__(self, renderer, spec, kernels, archs):
        """`kernels` are the names of kernels by (backend, op), of the backends that this build has; `archs` the rows of
        `trine spec --archs` by op."""
        self.renderer, self.spec, self.kernels, self.archs = renderer, spec, kernels, archs
        self.sizes = {t.name: t.size for t in spec.dtypes}
        self.forward = {op.backward.name: op for op in spec.ops if op.backward}

    # ---------------------------------------------------------------------------------------------------------- tables

    def tensors(self, page, op):
        rows = []
        for t in op.tensors:
            role = "in place" if t.is_in and t.is_out else "out" if t.is_out else "in"
            shape = " ".join(f"[{d['text']}]" if d["optional"] else d["text"] for d in t.dims)
            said = re.split(r"[:;] ", t.comment or "", maxsplit=1)
            notes = said[1:] + [flag for flag in t.flags if flag in ("transposable", "broadcast", "any_stride")]
            rows.append((quoted(t.name), role + (", optional" if t.optional else ""), quoted(t.type), quoted(shape),
                         self.renderer.linked(page, "; ".join(notes))))
        return table(("tensor", "use", "type", "shape", "meaning"), rows)

    @staticmethod
    def params(op):
        function, rows = examples.Function(op), []
        for p in op.params:
            default = quoted(p.names[int(p.fallback)]) if p.kind == "ENUM" else html.escape(p.default, False)
            if not p.switches and function.required(p):
                default = "must be given"
            zero = "" if not p.zero_is_fallback else quoted(p.zero) if p.zero else "refused"
            rows.append((quoted(p.name), p.kind.lower(), default, values_of(p), zero, html.escape(p.doc, False)))
        return table(("parameter", "kind", "default", "values", "a true zero, in C", "meaning"), rows)

    @staticmethod
    def types(op):
        rows = []
        for line in op.types:
            row = dict(word.split("=") for word in line.split())
            rows.append([quoted(row[v].replace("|", " | ")) if v in row else "" for v in op.type_variables])
        return table([quoted(v) for v in op.type_variables], rows)

    @staticmethod
    def bounds(op):
        rows = []
        for t in op.tensors:
            if "exact" in t.flags:
                rows.append((quoted(t.name), "equals the reference, bit for bit", ""))
            elif t.is_out:
                coefficient = f"({t.terms}) u(accumulator)" + (f" + ({t.rounds}) u(T)" if t.rounds else "")
                rows.append((quoted(t.name), quoted(coefficient), accumulator_of(op, t)))
        return table(("output", "coefficient of the magnitude", "accumulator"), rows)

    def files(self, op, backend):
        """The files of a backend's kernels, by the law of names; device code that is shared counts for each."""
        longer = [o.name for o in self.spec.ops if o.name.startswith(op.name + "_")]
        rooms = [f"backends/{room}/{op.family}/" for room in ([backend] if backend == "cpu" else ["simt", backend])]
        return [f for f in sorted(self.renderer.files) if f.startswith(tuple(rooms)) and
                re.match(rf"{op.name}(_\w+)?\.", posixpath.basename(f)) and
                not any(re.match(rf"{name}(_|\.)", posixpath.basename(f)) for name in longer)]

    def backends(self, page, op):
        rows = []
        for backend, label in (("cpu", "CPU"), ("cuda", "CUDA"), ("hip", "HIP")):
            files = self.files(op, backend)
            if not files:
                continue
            archs = [f"{arch}: {proof}" for arch, proof in self.archs[op.name].items()
                     if proof and arch.startswith("gfx") == (backend == "hip")]
            runs = "<br>".join(archs) if backend != "cpu" else "every level of CPUs"
            names = " ".join(quoted(name) for name in self.kernels.get((backend, op.name), [])) or "not in this build"
            links = "<br>".join(anchor(page, self.renderer.place_of(f), f.removeprefix("backends/")) for f in files)
            rows.append((label, runs, names, links))
        return table(("backend", "for, and run on", "kernels, those preferred first", "sources"), rows)

    # ----------------------------------------------------------------------------------------------------------- pages

    def paragraphs(self, page, before):
        return "".join(code("\n".join(part), None) if isinstance(part, list) else
                       f"<p>{self.renderer.linked(page, part)}</p>\n" for part in before)

    def example(self, op):
        call = examples.Call(op)
        python, _ = examples.py_text(call, self.forward.get(op.name))
        command = "\n".join([examples.run_command(call), examples.explain_command(call),
                             f"trine check --op {op.name}", f"trine bench --op {op.name}"])
        first = anchor(place_of(op), "docs/languages.html#c", "a first program")
        return ("<h3>Python</h3>\n" + code(python, "python") +
                f"<h3>C</h3>\n<p>The pointers are to memory of the queue's device; {first} opens a queue.</p>\n" +
                code("#include <trine/trine.h>\n\n" + examples.c_text(call, self.sizes), "c") +
                "<h3>Command</h3>\n" + code(command, "bash"))

    def page(self, op):
        page, renderer = place_of(op), self.renderer
        before, items = items_of(op.doc)
        headings, parts = [], []

        def section(title, *contents):
            if any(contents):
                name = title.lower().replace(" ", "-")
                headings.append((2, name, title))
                parts.append(f'<h2 id="{name}">{title}</h2>\n' + "".join(contents))

        def said(*names):
            return "".join(f"<p>{renderer.linked(page, sentence(items[name], op))}</p>\n"
                           for name in names if name in items)

        def op_link(other):
            return anchor(page, place_of(other), quoted(other.name))

        header = f"include/{op.header}"
        spec_file = f"spec/{op.family}/{op.name}.c"
        facts = [f"Family {op.family}",
                 f"{quoted(op.function + '()')} in {anchor(page, renderer.place_of(header), op.header)}",
                 anchor(page, renderer.place_of(spec_file), "table and reference")]
        if op.backward:
            facts.append(f"gradient: {op_link(op.backward)}, which trine.torch and trine.jax call")
        if op.name in self.forward:
            facts.append(f"gradient of {op_link(self.forward[op.name])}")
        if not any(isinstance(part, list) for part in before):
            before.insert(0, [op.formula])
        section("Formula", self.paragraphs(page, before),
                f"<p>Source: {renderer.linked(page, items.get('Source') or op.source)}</p>\n")
        section("Tensors", self.tensors(page, op), said("Shapes", "Strides"))
        section("Parameters", self.params(op) if op.params else "", said("Parameters", "Ranges"))
        section("Types", self.types(op), said("Types"))
        rules = "".join(f"<li>{condition(rule)}</li>\n" for rule in op.require)
        section("Conditions", rules and f"<ul>\n{rules}</ul>\n")
        section("Example", self.example(op))
        section("In place", said("Aliasing"))
        words = anchor(page, "docs/glossary.html", "words")
        section("Error bound", "<p>Each element y of an output satisfies</p>\n" +
                code("|y - y64| <= u(type of y) |y64| + coefficient * magnitude + slack", None) +
                f"<p>where y64, magnitude and slack are the float64 reference's ({words}).</p>\n",
                self.bounds(op), said("Error bound"))
        section("Determinism", said("Deterministic"))
        section("Errors", said("Errors"))
        section("Kernels", self.backends(page, op))
        section("Cases", "<p>What <code>trine bench</code> runs, by name.</p>\n", code("\n".join(op.cases), None))
        lead = f"<p class=\"lead\">{renderer.linked(page, op.doc.splitlines()[0])}</p>\n"
        body = f"<h1>{op.name}</h1>\n{lead}<p class=\"facts\">{' · '.join(facts)}</p>\n" + "".join(parts)
        return Page(page, op.name, body, headings)

    def index(self):
        page, headings = "ops/index.html", []
        parts = ["<h1>Ops</h1>\n<p>Each op is a C function, a function of the Python module and a word of the command. "
                 "A shape is a list of symbols: a symbol has one value in all tensors of a call, and a dimension in "
                 "brackets may be missing in front.</p>\n"]
        for family in dict.fromkeys(op.family for op in self.spec.ops):
            rows = [(anchor(page, place_of(op), quoted(op.name)), html.escape(op.summary, False))
                    for op in self.spec.ops if op.family == family]
            headings.append((2, family, family))
            parts.append(f'<h2 id="{family}">{family}</h2>\n' + table(("op", "what it computes"), rows))
        return Page(page, "Ops", "".join(parts), headings)

    def pages(self):
        return [self.index()] + [self.page(op) for op in self.spec.ops]
