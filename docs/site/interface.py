# SPDX-License-Identifier: Apache-2.0
"""The page of the C interface: what the public headers declare besides the ops."""
import html
import posixpath
import sys

import examples
from render import Page, anchor, code

sys.path.insert(0, str(examples.BINDINGS))
import headers  # noqa: E402

PLACE = "c.html"


def read(paths):
    """What each header declares, by its name."""
    return {posixpath.basename(path): headers.read([path]) for path in paths}


def functions_of(declared):
    """The place of each function."""
    return {f.name: f"{PLACE}#{f.name}" for header in declared.values() for f in header.functions}


def typed(c_type, name):
    return c_type + ("" if c_type.endswith("*") else " ") + name


def signature(function):
    parameters = [typed(p.c_type, p.name) + (f"[{p.length}]" if p.length else "") for p in function.parameters]
    return examples.wrapped(typed(function.returns, function.name) + "(", parameters or ["void"], ");")


def groups(functions):
    """Functions that share a comment, together."""
    out = []
    for f in functions:
        if out and f.doc == f"See {out[-1][0].name}.":
            out[-1].append(f)
        else:
            out.append([f])
    return out


def structure(struct):
    lines = [f"typedef struct {struct.name} {{"]
    for m in struct.members:
        lines.append(f"    {typed(m.c_type, m.name)}{f'[{m.length}]' if m.length else ''};" +
                     (f" /* {m.doc} */" if m.doc else ""))
    return "\n".join(lines + [f"}} {struct.name};"])


def constants(enum):
    return "\n".join(f"{c.name} = {c.value}" + (f" /* {c.doc} */" if c.doc else "") for c in enum)


def page(renderer, declared):
    headings, parts = [], ["<h1>The C interface</h1>\n<p>What the headers declare besides the ops, which have pages of "
                           f'their own: {anchor(PLACE, "ops/index.html", "ops")}.</p>\n']

    def doc(text):
        out, formula = [], []
        for line in text.split("\n") + [""]:
            if line.startswith(" "):
                formula.append(line)
                continue
            if formula:
                out.append(code("\n".join(formula), None))
                formula = []
            out += [f"<p>{renderer.linked(PLACE, line)}</p>\n"] if line else []
        return "".join(out)

    def entry(name, shown, text, others=()):
        more = "".join(f'<a id="{other}"></a>' for other in others)
        parts.append(f'<section class="entry" id="{name}">{more}\n{code(shown, "c")}{doc(text or "")}</section>\n')

    for name, header in declared.items():
        if not (header.functions or header.structs or header.opaque or header.enums or header.constants):
            continue
        link = anchor(PLACE, renderer.place_of(f"include/trine/{name}"), html.escape(f"trine/{name}"))
        identity = name.replace(".", "-")
        headings.append((2, identity, f"trine/{name}"))
        parts.append(f'<h2 id="{identity}">{link}</h2>\n')
        for group in groups(header.functions):
            entry(group[0].name, "\n".join(map(signature, group)), group[0].doc, [f.name for f in group[1:]])
        for s in header.structs:
            entry(s.name, structure(s), s.doc)
        for s in header.opaque:
            entry(s.name, f"typedef struct {s.name} {s.name};", s.doc)
        for e in header.enums:
            entry(e.name or e.constants[0].name, constants(e.constants), e.doc)
        for c in header.constants:
            entry(c.name, f"#define {c.name} {c.value}", c.doc)
    return Page(PLACE, "The C interface", "".join(parts), headings)
