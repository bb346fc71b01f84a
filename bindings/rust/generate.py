#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints lib.rs of the crate trine-sys, or with --layout its layout.rs, which checks it.
Usage: generate.py SPEC.json lib.rs.in HEADER.h..., or generate.py SPEC.json LAYOUTS --layout."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import headers  # noqa: E402
import spec as specification  # noqa: E402

KEYWORDS = set("""abstract as async await become box break const continue do dyn else enum extern false final fn for if
impl in let loop macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe
unsized use virtual where while yield""".split())
TYPES = {"void": "c_void", "char": "c_char", "int": "c_int", "size_t": "usize", "float": "f32", "double": "f64",
         "int32_t": "i32", "int64_t": "i64", "uint32_t": "u32", "uint64_t": "u64"}


def identifier(name):
    return "r#" + name if name in KEYWORDS else name


def rust_type(c_type):
    """The type of Rust for one of C: const T * is *const T, T ** is *mut *mut T, const T *const * *const *const T."""
    base = re.sub(r"\bconst\b|\*", "", c_type).strip()
    pointers = ["*const " if "const" in to else "*mut " for to in c_type.split("*")[:-1]]
    return "".join(reversed(pointers)) + TYPES.get(base, base)


def doc(text, indent=""):
    """A documentation comment: what is indented there, formulas, is no Rust that could be tried."""
    verbatim, out = False, []
    lines = specification.lines(text, 115 - len(indent), apart=True) if text else []
    for line, after in zip(lines, lines[1:] + [""]):
        if line.startswith("    ") and not verbatim:
            verbatim = True
            out.append("```text")
        # A line that begins with a minus is no item of a list.
        out.append(line[4:] if verbatim and line else re.sub(r"^([-+*#]|\d+\.) ", r"\\\1 ", line))
        if verbatim and line and not after.startswith("    "):
            verbatim = False
            out.append("```")
    return [f"{indent}/// {line}".rstrip() for line in out]


def constant_type(constant, lengths, flags):
    if constant.name in lengths:
        return "usize"
    if constant.value.startswith('"'):
        return "&str"
    return next((c_type for prefix, c_type in flags.items() if constant.name.startswith(prefix)), "c_int")


def constants(spec, declared):
    """Macros, and enumerators of enumerations without a name: of the type of the member that says it takes them."""
    members = [m for s in declared.structs for m in s.members]
    lengths = {m.length for m in members + [p for f in declared.functions for p in f.parameters]}
    flags = {}
    for m in members + [p for op in spec.ops for p in op.params]:
        named = re.match(r"(TRINE_\w+_)\*", getattr(m, "comment", None) or m.doc)
        if named:
            flags[named.group(1)] = rust_type(m.c_type)
    groups = [("", declared.constants)] + [(e.doc, e.constants) for e in declared.enums if not e.name]
    for about, group in groups:
        yield from ([f"// {about}"] if about else [])
        for c in group:
            yield from doc(c.doc)
            yield f"pub const {c.name}: {constant_type(c, lengths, flags)} = {c.value};"
        yield ""


def enumeration(enum):
    yield "enumeration! {"
    yield from doc(enum.doc, "    ")
    yield f"    {enum.name} {{"
    for c in enum.constants:
        yield from doc(c.doc, " " * 8)
        yield f"        {c.name} = {c.value},"
    yield "    }\n}"
    yield ""


def structure(name, about, members):
    """A structure: members are (name, type, doc)..."""
    members = list(members)
    yield from doc(about)
    yield "#[repr(C)]\n#[derive(Clone, Copy, Debug)]"
    yield f"pub struct {name} {{"
    for member, r_type, text in members:
        yield from doc(text, "    ")
        yield f"    pub {identifier(member)}: {r_type},"
    yield "}"
    yield f"default_of!({name}{', struct_size' if members[0][0] == 'struct_size' else ''});"
    yield ""


def field(m):
    if m.function:
        returns, parameters = m.function
        types = ", ".join(rust_type(p.c_type) for p in parameters)
        return m.name, f"Option<unsafe extern \"C\" fn({types}) -> {rust_type(returns)}>", m.doc
    return m.name, f"[{rust_type(m.c_type)}; {m.length}]" if m.length else rust_type(m.c_type), m.doc


def function(name, about, parameters, returns):
    yield from doc(about, "    ")
    line = f"    pub fn {name}({', '.join(f'{identifier(n)}: {t}' for n, t in parameters)})"
    line += f" -> {rust_type(returns)};" if returns != "void" else ";"
    if len(line) > 120:
        line = re.sub(r"\((.*)\)", lambda m: "(\n        " + m.group(1).replace(", ", ",\n        ") + ",\n    )", line)
    yield line


def crate(spec, declared, template):
    size = ("struct_size", "usize", "The size of this structure, which `Default` sets.")
    arguments, functions = [], []
    for op in spec.ops:
        members = [size] + [(m.name, rust_type(m.c_type), m.about) for m in op.members]
        arguments += structure(op.args_type, f"The arguments of [`{op.function}`].", members)
    for f in declared.functions:
        parameters = [(p.name, rust_type(p.c_type + (" *" if p.length else ""))) for p in f.parameters]
        functions += [*function(f.name, f.doc, parameters, f.returns), ""]
    for op in spec.ops:
        parameters = [("queue", "*mut trine_queue"), ("args", f"*const {op.args_type}")]
        functions += [*function(op.function, op.doc, parameters, "trine_status"), ""]
    return specification.fill(
        template, CONSTANTS=list(constants(spec, declared))[:-1],
        ENUMS=[line for e in declared.enums if e.name for line in enumeration(e)][:-1],
        OPAQUE=[line for o in declared.opaque for line in doc(o.doc, "    ") + [f"    {o.name};"]],
        STRUCTS=[line for s in declared.structs for line in structure(s.name, s.doc, map(field, s.members))][:-1],
        ARGUMENTS=arguments[:-1], FUNCTIONS=functions[:-1])


def layout(spec, layouts):
    """Tests of every structure's size and every member's offset."""
    yield """// SPDX-License-Identifier: Apache-2.0
//! Structures lie as in C: sizes and offsets are what the C compiler and the specification say. Made from these.
use super::*;
use std::mem::MaybeUninit;
use std::ptr::addr_of;

macro_rules! lies {
    ($name:ident, $size:expr, $($member:ident: $offset:expr),*) => {
        #[test]
        fn $name() {
            assert_eq!(size_of::<super::$name>(), $size);
            let it = MaybeUninit::<super::$name>::uninit();
            $(assert_eq!(unsafe { addr_of!((*it.as_ptr()).$member) } as usize - it.as_ptr() as usize, $offset);)*
        }
    };
}
"""
    structures = {}
    with open(layouts, encoding="utf-8") as file:
        for line in file:
            place, number = line.split()
            name, _, member = place.partition(".")
            structures.setdefault(name, []).append((member, number))
    for op in spec.ops:
        structures[op.args_type] = [("", op.args_size), ("struct_size", 0)] + [(m.name, m.offset) for m in op.members]
    for name, ((_, size), *members) in structures.items():
        yield f"lies!({name}, {size}, {', '.join(f'{identifier(m)}: {offset}' for m, offset in members)});"


def main():
    path, other, *paths = sys.argv[1:]
    spec = specification.read(path)
    if paths == ["--layout"]:
        print("\n".join(layout(spec, other)))
    else:
        print(crate(spec, headers.read(paths), other), end="")


if __name__ == "__main__":
    main()
