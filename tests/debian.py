# SPDX-License-Identifier: Apache-2.0
"""That packaging/debian and packaging/debian-cuda say what the rest of the tree says. Speaks TAP.

    debian.py ROOT VERSION ABI"""
import pathlib
import re
import sys

root, version, abi = pathlib.Path(sys.argv[1]), *sys.argv[2:]
count = failed = 0


def ok(good, name):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")


def text(*path):
    return root.joinpath(*path).read_text(encoding="utf-8")


def fields(paragraph):
    """Of one paragraph of a control file: the fields, lines that go on joined, without comments."""
    lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\n[ \t]+", "\n ", "\n".join(lines))
    return dict(re.findall(r"^([\w-]+):[ \n]*((?:.|\n )*)$", joined, re.M))


def paragraphs(*path):
    return [fields(part) for part in re.split(r"\n\n+", text(*path).strip())]


rooms = {"trine": "debian", "trine-cuda": "debian-cuda"}
packages = {}
for source, room in rooms.items():
    first, *binary = paragraphs("packaging", room, "control")
    ok(first["Source"] == source, f"{room}: the source is called {source}")
    packages |= {part["Package"]: part for part in binary}
    names = re.findall(r"^(\S+) \((\S+)-\d+\)", text("packaging", room, "changelog"), re.M)
    ok(names[0] == (source, version), f"{room}/changelog: begins with {source} {version}: {names[0]}")
    licences = paragraphs("packaging", room, "copyright")
    reuse = dict(re.findall(r'^([\w-]+) = "(.*)"$', text("REUSE.toml"), re.M))
    said = {(part["Files"], part["Copyright"], part["License"].split("\n")[0]) for part in licences if "Files" in part}
    known = {(reuse["path"].replace("**", "*"), reuse["SPDX-FileCopyrightText"], reuse["SPDX-License-Identifier"])}
    ok(said == known, f"{room}/copyright: as in REUSE.toml: {said} {known}")
    tests = paragraphs("packaging", room, "tests", "control")
    scripts = {path.name for path in root.joinpath("packaging", room, "tests").iterdir()} - {"control"}
    ok({part["Tests"] for part in tests} == scripts, f"{room}/tests: each script is declared, and is there")
    wanted = {name for part in tests for name in re.findall(r"[\w-]*trine[\w-]*", part["Depends"])}
    ok(wanted <= packages.keys(), f"{room}/tests: depend on packages that there are: {wanted - packages.keys()}")
symbols = text("packaging", "debian", f"libtrine{abi}.symbols")
ok(symbols.startswith(f"libtrine.so.{abi} libtrine{abi} "), "symbols: the SONAME and its package")
ok(f"\n (symver)TRINE_{abi} {version}\n" in symbols, f"symbols: TRINE_{abi} of version {version}")
named = set(re.findall(r'"(libtrine\w*-\w+)"', text("dispatch", "registry.c")))
ok(named == {f"libtrine{abi}-{module}" for module in ("cuda", "hip")} and named <= packages.keys(),
   f"the packages that the library names for want of a module: {named}")
print(f"1..{count}")
sys.exit(failed > 0)
