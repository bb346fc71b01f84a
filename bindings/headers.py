# SPDX-License-Identifier: Apache-2.0
"""What the public headers declare besides the ops, as plain objects: constants, enumerations, structures and functions,
each with what its comment says. The headers' style is the grammar; a declaration of another form is an error."""
import os
import re

from spec import Member, Record

COMMENT = r"/\*((?:(?!\*/).)*)\*/"
DECLARATION = re.compile(
    rf"(?:{COMMENT}\n)?(?:"
    r"#define (?P<constant>TRINE_\w+) (?P<value>\(?-?\w+\)?|\"[^\"]*\")(?=\n| *//| */\*)|"
    r"(?:typedef )?enum (?:(?P<enum>\w+) )?\{(?P<enumerators>.*?)\}[^;]*;|"
    r"typedef struct (?P<struct>\w+) \{(?P<members>.*?)\} (?P=struct);|"
    r"typedef struct (?P<opaque>\w+) (?P=opaque);|"
    r"TRINE_API (?P<returns>[\w ]+?[ *]+)(?P<function>\w+)\((?P<parameters>[^)]*)\);)", re.S)
ENUMERATOR = re.compile(rf"(\w+) = (\w+),?[ \t]*(?:{COMMENT})?", re.S)
VARIABLE = re.compile(r"([\w ]+?[ *]+(?:const \*)?)(\w+)(?:\[(\w+)\])?$")
MEMBER = re.compile(rf"(?:{COMMENT}\s*)?([\w ]+?[ *]+)(\w+)(?:\[(\w+)\])?;[ \t]*(?:{COMMENT})?", re.S)

FUNCTION = re.compile(r"([\w ]+?[ *]+)\(\*(\w+)\)\(([^)]*)\);")  # a member that points to one


class Constant(Record):
    """A macro or an enumerator: name, value as C has it, doc."""


class Declaration(Record):
    """An enumeration (constants), a structure (members; none: opaque) or a function (returns, parameters), with doc."""


def text_of(comment):
    """A comment without its frame, a line for each paragraph; what is indented, and blank lines, as they stand."""
    text = []
    for line in re.sub(r"\n[ \t]*\* ?", "\n", comment or "").strip().split("\n"):
        line = line.rstrip()
        if text and line and text[-1] and not line.startswith(" ") and not text[-1].startswith(" "):
            text[-1] += " " + line
        else:
            text.append(line)
    return "\n".join(text)


def variable(c_type, name, length, doc=None):
    return Member(name=name, c_type=re.sub(r"\s*\*", " *", c_type.strip()).replace("* *", "**"), length=length,
                  doc=text_of(doc))


def parameters_of(text):
    return [variable(*VARIABLE.match(" ".join(p.split())).groups()) for p in text.split(",")] if text != "void" else []


def read(paths):
    """What these headers declare, in their order: constants, enums, structs, opaque, functions."""
    found = Record(constants=[], enums=[], structs=[], opaque=[], functions=[])
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        documented = end = None
        for match in DECLARATION.finditer(text):
            group, doc = match.groupdict(), text_of(match.group(1))
            name = next(filter(None, map(group.get, ("constant", "enum", "struct", "opaque", "function"))), "")
            if doc:
                documented = name
            elif documented and match.start() == end + 1:  # one comment for the declarations that follow it
                doc = f"See {documented}."
            else:
                documented = None
            end = match.end()
            if group["constant"]:
                found.constants.append(Constant(name=name, value=group["value"].strip("()"), doc=doc))
            elif group["enumerators"]:
                constants = [Constant(name=n, value=v, doc=text_of(c))
                             for n, v, c in ENUMERATOR.findall(group["enumerators"])]
                found.enums.append(Declaration(name=name, doc=doc, constants=constants))
            elif name.endswith("_args") or re.search(r"_args \*args$", group["parameters"] or ""):
                continue  # an op's: the specification has it
            elif group["struct"]:
                pointed = {n: (variable(returns, "", None).c_type, parameters_of(parameters))
                           for returns, n, parameters in FUNCTION.findall(group["members"])}
                members = [variable(t, n, length, before or after) for before, t, n, length, after in
                           MEMBER.findall(FUNCTION.sub(r"function \2;", group["members"]))]
                for m in members:
                    m.function = pointed.get(m.name)
                found.structs.append(Declaration(name=name, doc=doc, members=members))
            elif group["opaque"]:
                found.opaque.append(Declaration(name=name, doc=doc))
            else:
                returns = variable(group["returns"], "", None).c_type
                found.functions.append(Declaration(name=name, doc=doc, returns=returns,
                                                   parameters=parameters_of(group["parameters"])))
        lost = len(re.findall("^TRINE_API ", text, re.M)) - sum(bool(m["function"]) for m in DECLARATION.finditer(text))
        if lost:
            raise ValueError(f"{os.path.basename(path)}: {lost} functions are declared in another form")
    return found
