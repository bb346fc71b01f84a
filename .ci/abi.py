#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is what programs were compiled with still so? abi/libtrine.txt has the public functions, structures, enumerations and
numbers of the headers, a row each, and this compares them with those of now, and with the last release's.

Usage: abi.py BUILD [--write]. A file that names each function of the headers is compiled with debug information, and
read by abidw: the library's own build may have none, and takes minutes. lint.sh compares the library's symbols with the
headers. abidiff has no word for what may change here, so the rules are these: rows may come, none may go or change. A
member may come behind the end of a structure that begins with struct_size, and a last enumerator *_COUNT may grow."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

FILE = "abi/libtrine.txt"
HEAD = """# SPDX-License-Identifier: Apache-2.0
# The public ABI: ./dev abi --write writes it, ./dev lint compares. Offsets and sizes are in bytes, on 64 bits.
"""


def compile_names(build, work):
    headers = sorted(glob.glob("include/trine/*.h")) + [f"{build}/include/trine/op.h"]
    text = ""
    for header in headers:
        with open(header) as file:
            text += file.read() + "\n"
    names = sorted(set(re.findall(r"TRINE_API\b[^;{}#]*?\b(trine_\w+)\s*\(", text)))
    source = "".join(f"#include <trine/{os.path.basename(header)}>\n" for header in headers)
    # Of a name without this its type would not be in the debug information.
    source += "".join(f"__typeof__({name}) *{name}_abi;\n" for name in names)
    path = os.path.join(work, "names.c")
    with open(path, "w") as file:
        file.write(source)
    compiler = ["gcc", "-std=gnu11", "-Iinclude", f"-I{build}/include", path]
    subprocess.run([*compiler, "-g", "-shared", "-fPIC", "-o", f"{work}/names.so"], check=True)
    macros = subprocess.run([*compiler, "-E", "-dM"], check=True, capture_output=True, text=True).stdout
    return names, re.findall(r"^#define (TRINE_\w+) \(?(-?\d+)\)?$", macros, re.M)


class Types:
    def __init__(self, path):
        said = subprocess.run(["abidw", "--no-show-locs", path], check=True, capture_output=True, text=True).stdout
        self.root = xml.fromstring(said)
        self.known = {node.get("id"): node for node in self.root.iter() if node.get("id")}

    def name(self, number):
        """As in C, but that a function or an array is written behind what it gives or holds."""
        node = self.known[number]
        kind, inner = node.tag, node.get("type-id")
        if kind == "pointer-type-def":
            return self.name(inner) + "*"
        if kind == "qualified-type-def":
            return self.name(inner) + "".join(f" {word}" for word in ("const", "volatile") if node.get(word) == "yes")
        if kind == "array-type-def":
            return self.name(inner) + "".join(f"[{part.get('length')}]" for part in node.iter("subrange"))
        if kind == "function-type":
            given = [self.name(part.get("type-id")) if part.get("type-id") else "..."
                     for part in node.iter("parameter")]
            return f"{self.name(node.find('return').get('type-id'))}({', '.join(given)})"
        if kind not in ("type-decl", "typedef-decl", "class-decl", "enum-decl", "union-decl"):
            sys.exit(f"abi: abidw says {kind}, which abi.py does not know")
        return node.get("name")

    def function(self, name):
        for node in self.root.iter("var-decl"):
            if node.get("name") == name + "_abi":
                return self.name(self.known[node.get("type-id")].get("type-id"))
        sys.exit(f"abi: {name} is in no debug information")

    def rows(self):
        for node in self.root.iter():
            name = node.get("name")
            if node.tag in ("class-decl", "union-decl") and node.get("is-declaration-only") != "yes":
                kind = "struct" if node.tag == "class-decl" else "union"
                if not name.startswith("trine_"):
                    sys.exit(f"abi: {kind} {name} is in a public header, and abi.py knows those of trine alone")
                yield f"{kind} {name}", f"{int(node.get('size-in-bits')) // 8} bytes"
                for member in node.iter("data-member"):
                    inner = member.find("var-decl")
                    at = int(member.get("layout-offset-in-bits") or 0) // 8
                    yield f"{kind} {name}.{inner.get('name')}", f"at {at}: {self.name(inner.get('type-id'))}"
            elif node.tag == "enum-decl":
                bits = self.known[node.find("underlying-type").get("type-id")].get("size-in-bits")
                yield f"enum {name}", f"{int(bits) // 8} bytes"
                for value in node.iter("enumerator"):
                    yield f"enum {name}.{value.get('name')}", value.get("value")
            elif node.tag == "typedef-decl" and name.startswith("trine_"):
                target = self.known[node.get("type-id")].tag
                if target not in ("class-decl", "enum-decl", "union-decl"):
                    yield f"typedef {name}", self.name(node.get("type-id"))


def now(build):
    with tempfile.TemporaryDirectory() as work:
        names, numbers = compile_names(build, work)
        types = Types(f"{work}/names.so")
    rows = dict(types.rows())
    rows.update((f"function {name}", types.function(name)) for name in names)
    rows.update((f"number {name}", value) for name, value in numbers if not name.startswith("TRINE_VERSION"))
    return rows


def read(text):
    return dict(line.split(" = ", 1) for line in text.splitlines() if not line.startswith("#"))


def order(row):
    """Members and enumerators as they stand."""
    name, value = row
    number = re.match(r"(?:at )?(-?\d+):?$", value.split(": ")[0] + ":" if ": " in value else value)
    return name.partition(".")[0], "." in name, int(number[1]) if number else 0, name


def breaks(old, new):
    """What a program that was compiled with the old would no longer find."""
    def size(rows, name):
        return int(rows[name].split()[0])
    for row, value in old.items():
        if row not in new:
            yield f"{row} is gone"
        elif new[row] != value:
            grows = row.startswith("struct ") and old.get(row + ".struct_size", "").startswith("at 0:")
            if not (grows and size(new, row) > size(old, row)) and \
                    not (row.endswith("_COUNT") and int(new[row]) > int(value)):
                yield f"{row} was \"{value}\" and is \"{new[row]}\""
    for row in new.keys() - old.keys():
        whole = row.partition(".")[0]
        # What a caller of before says is there would be taken for it.
        if row.startswith(("struct ", "union ")) and whole in old and int(new[row].split()[1][:-1]) < size(old, whole):
            yield f"{row} is new, but not behind the {size(old, whole)} bytes that {whole} had"


def released():
    """The last release, and its rows; None where there is none yet."""
    tag = subprocess.run(["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"], capture_output=True,
                         text=True)
    if tag.returncode:
        return None, {}
    tag = tag.stdout.strip()
    shown = subprocess.run(["git", "show", f"{tag}:{FILE}"], capture_output=True, text=True, check=True)
    return tag, read(shown.stdout)


def main():
    build, *options = sys.argv[1:]
    new = now(build)
    tag, last = released()
    bad = []
    if tag and last["number TRINE_ABI"] == new["number TRINE_ABI"]:
        bad = [f"{what} (since {tag}, with the same TRINE_ABI)" for what in sorted(breaks(last, new))]
    old = {}
    if os.path.exists(FILE):
        with open(FILE) as file:
            old = read(file.read())
    if options == ["--write"]:
        for what in sorted(breaks(old, new)):
            print(f"abi: changed, not only added to: {what}")
        with open(FILE, "w") as file:
            file.write(HEAD + "".join(f"{row} = {value}\n" for row, value in sorted(new.items(), key=order)))
    else:
        bad += [f"{what}; if that is meant, and no release has it: ./dev abi --write"
                for what in sorted(breaks(old, new))]
        added = [] if bad else sorted(row for row in new if old.get(row) != new[row])
        bad += [f"{row} is new or grew: ./dev abi --write" for row in added]
    for what in bad:
        print(f"abi: {what}", file=sys.stderr)
    if bad:
        sys.exit(1)
    print(f"abi: {len(new)} rows, as {tag or FILE + ', since there is no release yet,'} has them")


main()
