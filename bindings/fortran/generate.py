#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints trine.f90, or with --layout the program that checks it.
Usage: generate.py SPEC.json LAYOUTS trine.f90.in HEADER.h..., or generate.py SPEC.json LAYOUTS --layout."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import headers  # noqa: E402
import spec as specification  # noqa: E402

TYPES = {"char": "character(kind=c_char)", "int": "integer(c_int)", "size_t": "integer(c_size_t)",
         "int32_t": "integer(c_int32_t)", "uint32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
         "uint64_t": "integer(c_int64_t)", "float": "real(c_float)", "double": "real(c_double)"}
# The types of Fortran's own arrays, for element types.
ELEMENTS = {"i8": "integer(c_int8_t)", "i16": "integer(c_int16_t)", "i32": "integer(c_int32_t)",
            "i64": "integer(c_int64_t)", "f32": "real(c_float)", "f64": "real(c_double)"}
RANKS = range(1, 5)
OWN = {"queue", "args", "status", "passed"}  # names in an op's function besides its arguments'


def doc(text, indent):
    return [f"{indent}!> {line}".rstrip() for line in specification.lines(text, 115 - len(indent), apart=True)]


def broken(line, indent):
    """A statement in lines of at most 118 columns."""
    out = []
    while len(indent) + len(line) > 116:
        at = line.rindex(", ", 0, 112 - len(indent)) + 2
        out.append(f"{indent}{line[:at]}&")
        line = "  " + line[at:]
    return out + [indent + line]


def beside(declarations, indent):
    """Declarations with what they are, beside them where a line has room for it."""
    declarations = list(declarations)
    width = max(len(text) for text, _ in declarations)
    for text, about in declarations:
        line = f"{indent}{text:{width}} !< {about}"
        if about and len(line) > 120:
            yield from doc(about, indent)
        yield line if about and len(line) <= 120 else indent + text


class Fortran:
    """The types of this interface: structures by name, the others of C."""

    def __init__(self, declared):
        self.structs = {s.name for s in declared.structs}
        self.enums = {e.name for e in declared.enums if e.name}

    def value(self, c_type):
        base = re.sub(r"\bconst\b|\*", "", c_type).strip()
        if base in self.structs:
            return f"type({base})"
        return "integer(c_int)" if base in self.enums else TYPES.get(base, "type(c_ptr)")

    def member(self, m, size):
        """A member of a structure, with what it is at first."""
        if m.name == "struct_size":
            return f"integer(c_size_t) :: struct_size = {size}"
        f_type = "type(c_ptr)" if "*" in m.c_type else self.value(m.c_type)
        if getattr(m, "function", None):
            f_type = "type(c_funptr)"
        start = {"type(c_ptr)": " = c_null_ptr", "type(c_funptr)": " = c_null_funptr",
                 "character(kind=c_char)": " = c_null_char"}.get(f_type, " = 0")
        length = getattr(m, "length", None)
        return f"{f_type} :: {m.name}{f'({length})' if length else ''}{'' if f_type[5:-1] in self.structs else start}"

    def dummy(self, p):
        """A dummy argument of a function of C."""
        f_type, stars = self.value(p.c_type), p.c_type.count("*")
        if p.length:
            return f"{f_type}, intent(out) :: {p.name}({p.length})"
        if stars == 0:
            return f"{f_type}, value :: {p.name}"
        if f_type == "character(kind=c_char)":
            return f"{f_type}, intent(in) :: {p.name}(*)"
        if stars == 1 and f_type == "type(c_ptr)":
            return f"type(c_ptr), value :: {p.name}"
        if "*const *" in p.c_type:
            return f"{f_type}, intent(in) :: {p.name}(*)"
        way = "in" if p.c_type.startswith("const") else "out"
        return f"{f_type}, intent({way}){', optional' if p.name == 'options' else ''} :: {p.name}"


def constants(declared):
    for about, group in [("", declared.constants)] + [(e.doc, e.constants) for e in declared.enums]:
        texts = [(c.value, len(c.value) - 2) if c.value.startswith('"') else (str(int(c.value, 0)), 0) for c in group]
        yield from doc(about, "  ") if about else ()
        yield from beside(
            ((f"character(len={length}), parameter, public :: {c.name} = {value}" if length else
              f"integer(c_int), parameter, public :: {c.name} = {value}", c.doc)
             for c, (value, length) in zip(group, texts)), "  ")
        yield ""


def structure(name, about, members):
    yield from doc(about, "  ") if about else ()
    yield f"  type, bind(C), public :: {name}"
    yield from beside(members, "    ")
    yield "  end type"
    yield ""


def interface(name, symbol, about, parameters, returns):
    """A function of C: parameters are (name, declaration)..."""
    kind = "function" if returns else "subroutine"
    yield from doc(about, "    ") if about else ()
    head = f"{kind} {name}({', '.join(n for n, _ in parameters)}) bind(C, name=\"{symbol}\")"
    yield from broken(head + (" result(answer)" if returns else ""), "    ")
    yield "      import"
    yield from (f"      {declaration}" for _, declaration in parameters)
    yield from [f"      {returns} :: answer"] if returns else []
    yield f"    end {kind}"


def functions(declared, fortran):
    for f in declared.functions:
        if f.returns in fortran.structs:
            continue  # trine_view() and others stand for it
        returns = None if f.returns == "void" else "type(c_ptr)" if "*" in f.returns else fortran.value(f.returns)
        yield from interface(f.name, f.name, f.doc, [(p.name, fortran.dummy(p)) for p in f.parameters], returns)
        yield ""


def op_interface(op):
    """An op's generic name, of the form with its arguments' names and the one with C's structure."""
    parameters = [("queue", "type(c_ptr), value :: queue"), ("args", f"type({op.args_type}), intent(in) :: args")]
    yield from doc(op.doc, "  ")
    yield f"  interface {op.function}"
    yield f"    module procedure call_{op.name}"
    yield from interface(f"{op.function}_c", op.function, "", parameters, "integer(c_int)")
    yield "  end interface"
    yield f"  public :: {op.function}"
    yield ""


def argument(m):
    """An argument of an op's function: its declaration, the condition of its being passed, and how it is passed."""
    present = f"present({m.name})"
    if isinstance(m, specification.Tensor):
        optional = ", optional" if m.optional else ""
        return f"type(trine_tensor), intent(in), target{optional} :: {m.name}", optional and present, f"c_loc({m.name})"
    if m.kind == "BOOL":
        return f"logical, intent(in), optional :: {m.name}", present, f"merge(1, 0, {m.name})"
    if m.kind == "TEXT":  # ended by c_null_char
        return f"character(kind=c_char), intent(in), target, optional :: {m.name}(*)", present, f"c_loc({m.name})"
    if m.kind == "COMM":
        return f"type(c_ptr), intent(in), optional :: {m.name}", present, m.name
    zero = m.kind == "F32" and m.zero_is_fallback
    passed = f"meant({m.name})" if zero else m.name
    return f"{TYPES[m.c_type]}, intent(in), optional :: {m.name}", present, passed


def call(op):
    """An op as a function of its arguments."""
    members = [m for m in op.members if not getattr(m, "switches", None)]
    clash = OWN & {m.name.lower() for m in members}
    if clash:
        raise ValueError(f"{op.name}: {clash} is a name of the function itself")
    yield from broken(f"function call_{op.name}(queue, {', '.join(m.name for m in members)}) result(status)", "  ")
    yield "    type(c_ptr), intent(in) :: queue"
    yield from beside(((argument(m)[0], m.about) for m in members), "    ")
    yield "    integer(c_int) :: status"
    yield f"    type({op.args_type}) :: passed"
    for m in members:
        _, condition, passed = argument(m)
        if getattr(m, "switch", None):
            yield f"    if ({condition}) passed%{m.switch.name} = 1"
        yield f"    {f'if ({condition}) ' if condition else ''}passed%{m.name} = {passed}"
    yield f"    status = {op.function}_c(queue, passed)"
    yield "  end function"
    yield ""


def view(element, f_type, rank):
    """A view of an array of this type and rank."""
    yield f"  function view_{element}_{rank}(a, dtype) result(view)"
    yield f"    {f_type}, intent(in), target :: a({', '.join(':' * rank)})"
    yield "    integer(c_int), intent(in), optional :: dtype"
    yield "    type(trine_tensor) :: view"
    yield f"    type(c_ptr) :: second({rank})"
    yield f"    view = view_memory_64(c_null_ptr, chosen(TRINE_{element.upper()}, dtype), shape(a, c_int64_t))"
    yield "    if (size(a) == 0) return"
    for d in range(1, rank + 1):
        at = ", ".join(f"min(2, size(a, {d}))" if i == d else "1" for i in range(1, rank + 1))
        yield f"    second({d}) = c_loc(a({at}))"
    yield f"    call place(view, storage_size(a) / 8, c_loc(a({', '.join('1' * rank)})), second)"
    yield "  end function"
    yield ""


def sizes(layouts):
    """Structures by name: their members and offsets, the first of which is the size, without a name."""
    out = {}
    with open(layouts, encoding="utf-8") as file:
        for line in file:
            place, number = line.split()
            name, _, member = place.partition(".")
            out.setdefault(name, []).append((member, int(number)))
    return out


def module(spec, declared, layouts, template):
    fortran = Fortran(declared)
    size = {name: members[0][1] for name, members in sizes(layouts).items()}
    elements = [(t.name, ELEMENTS[t.name]) for t in spec.dtypes if t.name in ELEMENTS]
    structs = [line for s in declared.structs
               for line in structure(s.name, s.doc, [(fortran.member(m, size[s.name]), m.doc) for m in s.members])]
    arguments = []
    for op in spec.ops:
        members = [(fortran.member(m, op.args_size), m.about) for m in op.members]
        arguments += structure(op.args_type, f"The arguments of {op.function}(), as in C: tensors by address.",
                               [(f"integer(c_size_t) :: struct_size = {op.args_size}", "")] + members)
    names = ", ".join(f"view_{e}_{rank}" for e, _ in elements for rank in RANKS)
    public = [f.name for f in declared.functions if f.returns not in fortran.structs]
    return specification.fill(
        template, CONSTANTS=list(constants(declared))[:-1], STRUCTS=structs[:-1], ARGUMENTS=arguments[:-1],
        NAMES=broken(f"public :: {', '.join(public)}", "  "),
        VIEW_NAMES=broken(f"module procedure {names}", "    "), FUNCTIONS=list(functions(declared, fortran))[:-1],
        OPS=[line for op in spec.ops for line in op_interface(op)][:-1],
        VIEWS=[line for e in elements for rank in RANKS for line in view(*e, rank)],
        CALLS=[line for op in spec.ops for line in call(op)][:-1])


def layout(spec, layouts):
    """A program that compares every structure's size and every member's offset with C's."""
    structures = sizes(layouts)
    for op in spec.ops:
        structures[op.args_type] = [("", op.args_size), ("struct_size", 0)] + [(m.name, m.offset) for m in op.members]
    yield "! SPDX-License-Identifier: Apache-2.0"
    yield "!> Structures lie as in C: as the C compiler and the specification say. Made from these."
    yield "program layout\n  use iso_c_binding\n  use trine\n  implicit none\n  integer :: count = 0, failed = 0"
    yield from (f"  call check_{i}()" for i in range(len(structures)))
    yield "  print '(\"1..\", i0)', count\n  if (failed > 0) error stop 1\ncontains"
    yield """  !> How far a member at `p` is from the beginning of its structure.
  function offset(p, start)
    type(c_ptr), intent(in) :: p, start
    integer(c_intptr_t) :: offset
    offset = transfer(p, offset) - transfer(start, offset)
  end function

  subroutine report(good, name)
    logical, intent(in) :: good
    character(len=*), intent(in) :: name
    count = count + 1
    if (.not. good) failed = failed + 1
    if (.not. good) write (*, '(a)', advance='no') 'not '
    print '("ok ", i0, " - ", a)', count, name
  end subroutine
"""
    for i, (name, ((_, size), *members)) in enumerate(structures.items()):
        yield f"  subroutine check_{i}()"
        yield f"    type({name}), target :: it"
        yield "    logical :: good"
        yield f"    good = c_sizeof(it) == {size}"
        for member, place in members:
            yield f"    good = good .and. offset(c_loc(it%{member}), c_loc(it)) == {place}"
        if members[0][0] == "struct_size":
            yield f"    good = good .and. it%struct_size == {size}"
        yield f"    call report(good, '{name} lies as in C')"
        yield "  end subroutine\n"
    yield "end program"


def main():
    path, layouts, template, *paths = sys.argv[1:]
    spec = specification.read(path)
    if template == "--layout":
        print("\n".join(layout(spec, layouts)))
    else:
        print(module(spec, headers.read(paths), layouts, template), end="")


if __name__ == "__main__":
    main()
