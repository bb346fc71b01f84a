# SPDX-License-Identifier: Apache-2.0
"""The specification as plain objects, read from `trine spec --json`: what every generator of bindings needs.

An object has the members of its JSON object under their names, described in trine-spec(1), so that what the tables gain
needs no edit here; the properties below are derived from them."""
import json
import re
import textwrap


class Record:
    def __init__(self, **members):
        self.__dict__.update(members)

    def __repr__(self):
        return f"{type(self).__name__}({getattr(self, 'name', '')})"


class Member(Record):
    """A member of an op's arguments: name, c_type, offset, size; `about` is a line on it."""


class Tensor(Member):
    is_in = property(lambda self: "in" in self.flags)
    is_out = property(lambda self: "out" in self.flags)
    optional = property(lambda self: "optional" in self.flags)
    about = property(lambda self: self.comment or ("out" if self.is_out else "in"))


class Param(Member):
    """A parameter, of kind BOOL, ENUM, I32, I64, U64, F32, TEXT or COMM.

    A member that is left zero stands for `default` where zero_is_fallback. `zero` says how a zero that is meant is
    passed: "0", "-0.0", or None where there is none; a float is then passed as -0.0, which the op refuses."""
    enum = None  # the Enum of a parameter of kind ENUM
    switch = None  # the BOOL parameter <name>_set that says whether this one is read
    switches = None  # of such a one: the parameter
    default = property(lambda self: self.unset or f"{self.fallback:.9g}")
    about = property(lambda self: self.doc + (f"; by default {self.default}" if self.zero_is_fallback else ""))


class Enum(Record):
    """What an ENUM parameter is one of: its own name, names in the order of their values, and the C constants'. Ops
    that name the same constants share it."""
    values = property(lambda self: [(n, f"{self.prefix}{n.upper()}", i) for i, n in enumerate(self.names)])


class Op(Record):
    @property
    def members(self):
        """Tensors and parameters in the order of the C structure."""
        return sorted(self.tensors + self.params, key=lambda member: member.offset)


class Role(Record):
    """What a tensor of a gradient's op is: `kind` "value" or "gradient" of the op's tensor `tensor`. Of a value, where
    `given` names some of the op's tensors and parameters: only if one of them is given and not 0, else `otherwise`."""


def roles_of(op, gradient):
    """The roles of a gradient's tensors by their names."""
    names = {t.name for t in op.tensors}
    roles = {}
    for text in gradient.gradient:
        name, _, rest = text.partition(" = ")
        if rest.startswith("d "):
            roles[name] = Role(name=name, kind="gradient", tensor=rest[2:], given=[], otherwise=None)
            continue
        tensor, _, condition = rest.partition(" with ")
        given, _, otherwise = condition.partition(", else ")
        roles[name] = Role(name=name, kind="value", tensor=tensor, given=given.split(), otherwise=otherwise or None)
    for tensor in gradient.tensors:
        if tensor.name in roles:
            continue
        kind = "gradient" if tensor.name[0] == "d" and tensor.name[1:] in names else "value"
        of = tensor.name[1:] if kind == "gradient" else tensor.name
        if of not in names:
            raise ValueError(f"{gradient.name}: what {tensor.name} is to {op.name} is not said")
        roles[tensor.name] = Role(name=tensor.name, kind=kind, tensor=of, given=[], otherwise=None)
    known = names | {p.name for p in op.params}
    for role in roles.values():
        if not {role.tensor, role.otherwise or role.tensor} <= names or not set(role.given) <= known:
            raise ValueError(f"{gradient.name}: {role.name} names what {op.name} has not")
    return roles


class Spec(Record):
    """Everything: version, abi, tensor, statuses, dtypes, ops, and enums by name."""


def enum_of(op, param, enums):
    """The enumeration of a parameter: by the constants its comment names (TRINE_GELU_*), else its op's own."""
    named = re.search(r"\bTRINE_(\w+)_\*", param.comment or "")
    own = f"{op.name}_{param.name}"
    stem = named.group(1).lower() if named else own
    name = stem if stem.endswith(param.name) else param.name if param.name.startswith(stem) else f"{stem}_{param.name}"
    enum = Enum(name=name, prefix=f"TRINE_{stem.upper()}_", names=param.names)
    other = enums.setdefault(name, enum)
    if (other.prefix, other.names) != (enum.prefix, enum.names):  # the same constants, of which this op has others
        enum.name = own
        other = enums[own] = enum
    return other


def read(path):
    """The specification in a file that holds the output of `trine spec --json`."""
    with open(path, encoding="utf-8") as file:
        return parse(json.load(file))


def parse(read_json):
    """The specification, from the objects that the output of `trine spec --json` is."""
    spec = Spec(**read_json)
    spec.enums = {}
    spec.struct_size = Member(**spec.struct_size)
    spec.tensor = Record(**spec.tensor)
    spec.tensor.members = [Member(**m) for m in spec.tensor.members]
    spec.statuses = [Record(**s) for s in spec.statuses]
    spec.dtypes = [Record(**t) for t in spec.dtypes]
    spec.ops = [Op(**op) for op in spec.ops]
    for op in spec.ops:
        op.tensors = [Tensor(**t) for t in op.tensors]
        op.params = [Param(**p) for p in op.params]
        for param in op.params:
            if param.kind == "ENUM":
                param.enum = enum_of(op, param, spec.enums)
            switch = next((p for p in op.params if p.name == param.name + "_set" and p.kind == "BOOL"), None)
            if switch:
                param.switch, switch.switches = switch, param
    by_name = {op.name: op for op in spec.ops}
    for op in spec.ops:
        op.backward = by_name.get(f"{op.name}_backward")
        op.roles = roles_of(op, op.backward) if op.backward else {}
    return spec


def lines(doc, width, apart=False):
    """A docstring in lines of at most `width` columns; formulas, which are indented, and blank lines as they stand.
    Its items are paragraphs of their own if they are to be `apart`, as Markdown needs them."""
    out = []
    for line in doc.split("\n"):
        text = line and not line.startswith(" ")
        if apart and text and out and out[-1]:
            out.append("")
        out += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) if text else [line]
    return out


def fill(template, **parts):
    """The text of a template in which each line @NAME@ is replaced by the lines parts["NAME"]."""
    with open(template, encoding="utf-8") as file:
        text = file.read()
    for name, part in parts.items():
        text = re.sub(rf"^@{name}@$", lambda _, part=part: "\n".join(part), text, flags=re.M)
    return text
