#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints trine.hpp, or with --layout the program that checks it.
Usage: generate.py SPEC.json TEMPLATE --layout | HEADER.h..."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import headers  # noqa: E402
import spec as specification  # noqa: E402

KEYWORDS = set("""auto bool break case char class const continue default delete do double else enum explicit export
extern false float for friend if inline int long namespace new not operator or private public register return short
signed sizeof static struct switch template this throw true try typename union unsigned using virtual void""".split())
# The C++ types of the element types that are C++'s own.
ELEMENTS = {"i8": "std::int8_t", "i16": "std::int16_t", "i32": "std::int32_t", "i64": "std::int64_t",
            "u8": "std::uint8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t",
            "f32": "float", "f64": "double"}
# Of a parameter's kind: the C++ type, what it is when left out, and how it is passed.
KINDS = {"BOOL": ("bool", " = false", "{}"), "ENUM": ("trine::{}", "{}", "static_cast<std::int32_t>({})"),
         "I32": ("std::int32_t", " = 0", "{}"), "I64": ("std::int64_t", " = 0", "{}"),
         "U64": ("std::uint64_t", " = 0", "{}"), "F32": ("float", " = 0", "{}"),
         "TEXT": ("const char *", " = nullptr", "{}"), "COMM": ("trine_comm *", " = nullptr", "{}")}


def identifier(name):
    return name + "_" if name in KEYWORDS else name


def comment(text, indent=""):
    return [f"{indent}/// {line}".rstrip() for line in specification.lines(text, 116 - len(indent), apart=True)]


def listed(declarations):
    """Members with what they are, (declaration, doc)..., beside them where a line has room for it."""
    declarations = list(declarations)
    width = max(len(text) for text, _ in declarations)
    for text, doc in declarations:
        beside = f"    {text:{width}} ///< {doc}"
        if doc and len(beside) > 120:
            yield from comment(doc, "    ")
        yield beside if doc and len(beside) <= 120 else f"    {text}"


def enumerators(constants):
    """The enumerators of a scoped enumeration: (name, C constant, doc)..."""
    return listed((f"{identifier(name)} = {constant},", doc) for name, constant, doc in constants)


def scoped(enum, start):
    """The enumerators of a C enumeration without their prefix, the longest of those in `start`."""
    start = re.compile("|".join(start))
    return enumerators((start.sub("", c.name, count=1).lower(), c.name, c.doc) for c in enum.constants)


def enum_class(enum, documented):
    """A scoped enumeration of what an ENUM parameter may be."""
    known = [documented.get(constant) for _, constant, _ in enum.values]
    yield from comment((known[0] and known[0][0]) or f"The values of `{enum.name}`.")
    yield f"enum class {enum.name} : std::int32_t {{"
    yield from enumerators((name, constant if doc else value, doc[1] if doc else "")
                           for (name, constant, value), doc in zip(enum.values, known))
    yield "};"
    yield ""


def member(m):
    """A member of an op's arguments: its declaration, None if another stands for it, and its value for C."""
    if isinstance(m, specification.Tensor):
        return f"{'view' if m.is_out else 'const_view'} {m.name}{{}};", f"args.{m.name}.get()"
    c_type, start, passed = KINDS[m.kind]
    if m.switches:
        return None, f"args.{m.switches.name}.has_value()"
    if m.switch:
        return f"std::optional<{c_type}> {m.name}{{}};", f"args.{m.name}.value_or({c_type}{{}})"
    if m.kind == "ENUM":
        c_type = c_type.format(m.enum.name)
    elif m.kind == "F32" and m.zero_is_fallback:
        c_type, start, passed = "std::optional<float>", "{}", "detail::meant({})"
    return f"{c_type} {m.name}{start};", passed.format(f"args.{m.name}")


def op_of(op):
    args = f"{op.name}_args"
    yield f"/// The arguments of {op.name}()."
    yield f"struct {args} {{"
    yield from listed((member(m)[0], m.about) for m in op.members if member(m)[0])
    yield "};"
    yield ""
    yield f"template <> inline constexpr trine_op detail::op_of<{args}> = {op.constant};"
    yield ""
    yield "/// The same for the C interface. It points into `args`."
    yield f"inline {op.args_type} to_c(const {args} &args) noexcept {{"
    yield f"    {op.args_type} c{{}};"
    yield "    c.struct_size = sizeof c;"
    yield from (f"    c.{m.name} = {member(m)[1]};" for m in op.members)
    yield "    return c;"
    yield "}"
    yield ""
    yield from comment(op.doc)
    yield f"inline result {op.name}(queue &on, const {args} &args) {{"
    yield "    const auto c = to_c(args);"
    yield f"    return detail::check({op.function}(on.get(), &c));"
    yield "}"
    yield ""


def header(spec, declared, template):
    enums = {enum.name: enum for enum in declared.enums}
    documented = {c.name: (e.doc, c.doc) for e in declared.enums for c in e.constants}
    dtype_of = [f"template <> struct dtype_of<{ELEMENTS[t.name]}> : dtype_constant<dtype::{t.name}> {{}};"
                for t in spec.dtypes if t.name in ELEMENTS]
    return specification.fill(
        template, STATUSES=scoped(enums["trine_status"], ["TRINE_ERR_", "TRINE_"]),
        DTYPES=scoped(enums["trine_dtype"], ["TRINE_"]), DTYPE_OF=dtype_of,
        ENUMS=list(line for enum in spec.enums.values() for line in enum_class(enum, documented))[:-1],
        OPS=list(line for op in spec.ops for line in op_of(op))[:-1])


def trials(m):
    """Values of a member (None: left out), and what the C structure then has at an offset."""
    if isinstance(m, specification.Tensor):
        return [(None, m.offset, "static_cast<const void *>(nullptr)"), ("x", m.offset, f"&args.{m.name}")]
    if m.kind == "ENUM":
        name, _, value = m.enum.values[-1]
        return [(None, m.offset, "std::int32_t{ 0 }"),
                (f"trine::{m.enum.name}::{identifier(name)}", m.offset, f"std::int32_t{{ {value} }}")]
    if m.kind == "BOOL":
        return [(None, m.offset, "std::int32_t{ 0 }")] + ([("true", m.offset, "std::int32_t{ 1 }")] * (not m.switches))
    if m.kind == "TEXT":
        return [(None, m.offset, "static_cast<const char *>(nullptr)"), ("text", m.offset, "text")]
    if m.kind == "COMM":
        return [(None, m.offset, "static_cast<trine_comm *>(nullptr)"), ("comm", m.offset, "comm")]
    c_type = KINDS[m.kind][0]
    tried = [(None, m.offset, f"{c_type}{{ 0 }}"), ("3", m.offset, f"{c_type}{{ 3 }}")]
    tried += [("0.0f", m.offset, "-0.0f")] if m.kind == "F32" and m.zero_is_fallback else []
    return tried + ([("0", m.switch.offset, "std::int32_t{ 1 }")] if m.switch else [])


def layout(spec):
    """A program: the C structures lie as the specification says, and to_c() moves every member to its place."""
    yield """/* SPDX-License-Identifier: Apache-2.0 */
/* Made from the specification: structures lie as it says, and trine.hpp puts each argument in its place. */
#include <cstddef>
#include <cstring>

#include <trine/trine.hpp>

#include "tests/tap.h"

// Whether the bytes at `offset` of a structure are those of a value.
template <class C, class T> static bool holds(const C &c, std::size_t offset, const T &value) {
    return std::memcmp(reinterpret_cast<const char *>(&c) + offset, &value, sizeof value) == 0;
}
"""
    yield f"static_assert(sizeof(trine_tensor) == {spec.tensor.size});"
    for m in spec.tensor.members:
        yield f"static_assert(offsetof(trine_tensor, {m.name}) == {m.offset});"
    for t in spec.dtypes:
        yield f"static_assert(static_cast<int>(trine::dtype::{t.name}) == {t.value});"
    for op in spec.ops:
        yield f"static_assert(sizeof({op.args_type}) == {op.args_size});"
        yield from (f"static_assert(offsetof({op.args_type}, {m.name}) == {m.offset});" for m in op.members)
    yield "\nint main() {\n    static float x[1];\n    static const char *const text = \"text\";\n"
    yield "    trine_comm *const comm = reinterpret_cast<trine_comm *>(x);"
    for op in spec.ops:
        yield f"    {{\n        trine::{op.name}_args args;"
        yield f"        bool good = holds(trine::to_c(args), 0, std::size_t{{ {op.args_size} }});"
        for m in op.members:
            for value, offset, expected in trials(m):
                if value:
                    yield f"        args.{m.name} = {value};"
                yield f"        good &= holds(trine::to_c(args), {offset}, {expected});"
        yield f'        tap(good, "{op.name}: every argument is in its place");\n    }}'
    yield "    return tap_end();\n}"


def main():
    path, template, *paths = sys.argv[1:]
    spec = specification.read(path)
    if "--layout" in paths:
        print("\n".join(layout(spec)))
    else:
        print(header(spec, headers.read(paths), template), end="")


if __name__ == "__main__":
    main()
