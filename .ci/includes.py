#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include law: which rooms may include which. Usage: includes.py, in the root of a checkout."""
import os
import re
import subprocess
import sys

# Room: the rooms it may include besides itself. "trine" are the public headers, "build" generated ones.
LAW = {
    "include/trine": [],
    "spec": ["include/trine"],
    "backends/backend.h": ["spec", "include/trine"],
    "backends/nested_step.h": ["backends/backend.h"],
    "backends/places.h": [],
    "backends/arch_rows.h.in": [],
    "backends/composed": ["spec", "backends/backend.h", "include/trine"],
    "dispatch": ["spec", "backends/backend.h", "backends/places.h", "include/trine"],
    "backends/simt": ["spec", "backends/backend.h", "backends/nested_step.h", "include/trine"],
    "backends/cpu": ["spec", "backends/backend.h", "backends/nested_step.h", "backends/places.h", "include/trine"],
    "backends/cuda": ["spec", "backends/backend.h", "backends/simt", "include/trine"],
    "backends/hip": ["spec", "backends/backend.h", "backends/simt", "include/trine"],
    "emulators/cuda": ["spec", "backends", "include/trine", "tests"],
    "emulators/cdna": ["backends/hip", "spec/number.h", "include/trine", "tests"],
    "check": ["spec", "dispatch", "include/trine"],
    "bench": ["spec", "dispatch", "check", "include/trine"],
    "bench/peers": ["spec", "dispatch", "bench", "tools", "include/trine"],
    "judge": ["spec", "backends/backend.h", "dispatch", "check", "bench", "include/trine"],
    "tools": ["spec", "backends/places.h", "dispatch", "check", "bench", "judge", "include/trine"],
    "tests": ["spec", "dispatch", "backends", "check", "bench", "tools", "emulators", "examples", "include/trine"],
    "examples": ["include/trine", "tests/tap.h"],
    "bindings": ["include/trine", "tests/tap.h"],
    "docs": ["spec", "tools/docs.h", "include/trine"],
}
# What simt takes from the vendor's folder, by the include path.
VENDOR = {"target.h", "fetch.h", "vendor.h"}


def room_of(path):
    return max((room for room in LAW if path == room or path.startswith(room + "/")), key=len, default=None)


def within(room, allowed):
    return any(room == a or room.startswith(a + "/") for a in allowed)


def target_of(path, name, files):
    for at in (os.path.normpath(os.path.join(os.path.dirname(path), name)), name, "include/" + name):
        if at in files:
            return at
    return None


def guard_of(path, text):
    """The macro that keeps a header from being read twice. Rooms of one chip each have the same headers."""
    guard = re.search(r"^#ifndef (TRINE_\w+_H)$", text, re.M)
    return guard and not re.search(r"/gfx[0-9a-f]+/", path) and guard.group(1)


files = set(subprocess.check_output(["git", "ls-files"], text=True).splitlines())
wrong, guards = [], {}
for path in sorted(files):
    if not re.search(r"\.(c|h|cu|hip|cpp)(\.in)?$", path):
        continue
    room = room_of(path)
    if room is None:
        wrong.append(f"{path}: no room of the include law has it (.ci/includes.py)")
        continue
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    guard = guard_of(path, text)
    if guard and guards.setdefault(guard, path) != path:
        wrong.append(f"{path}: {guard} is that of {guards[guard]} too")
    for quote, name in re.findall(r'^\s*#\s*include\s+(["<])([^">]+)[">]', text, re.M):
        if quote == "<" and not name.startswith("trine/"):
            if room == "backends/simt" and "." in name and "/" in name and not name.startswith("sys/"):
                wrong.append(f"{path}: <{name}>: simt takes {', '.join(sorted(VENDOR))} alone from a vendor")
            continue
        target = target_of(path, name, files)
        if target is None:
            continue  # generated
        other = room_of(target)
        if other != room and target not in LAW[room] and not within(other, LAW[room]):
            wrong.append(f"{path}: includes {target}: {room} may include {', '.join(LAW[room]) or 'nothing else'}")
    # Public headers: base.h, or what holds them together.
    if room == "include/trine":
        names = set(re.findall(r"#\s*include\s+<trine/([^>]+)>", text)) - {"base.h", "op.h", "version.h"}
        if names and os.path.basename(path) not in ("trine.h", "ops.h"):
            wrong.append(f"{path}: includes {', '.join(sorted(names))}: a family's header includes trine/base.h alone")
for line in wrong:
    print(line)
sys.exit(len(wrong) > 0)
