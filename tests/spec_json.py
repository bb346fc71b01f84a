#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trine spec --json against the headers: what it says of each op's arguments is compiled as assertions. Speaks TAP.
Usage: spec_json.py TRINE INCLUDE BUILD-INCLUDE CC..."""
import json
import math
import subprocess
import sys

trine, *includes = sys.argv[1:4]
compiler = sys.argv[4:]
count = failed = 0


def ok(good, name, why=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if not good:
        print("\n".join("# " + line for line in str(why).splitlines()[:20]))


def strict(constant):
    raise ValueError(f"{constant} is no JSON")


def read(*words):
    text = subprocess.run([trine, "spec", *words, "--json"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text.decode(), parse_constant=strict)


def member(structure, m, array=False):
    """Assertions on a member: where it is, how large, and of which type."""
    place, c_type = f"(({structure} *)0)->{m['name']}", m["c_type"]
    yield f'_Static_assert(offsetof({structure}, {m["name"]}) == {m["offset"]}, "offset of {m["name"]}");'
    yield f'_Static_assert(sizeof {place} == {m["size"]}, "size of {m["name"]}");'
    yield f'_Static_assert(_Generic({place}{"[0]" if array else ""}, {c_type}: 1, default: 0), "type of {m["name"]}");'


def compiles(lines):
    program = "#include <trine/trine.h>\n" + "\n".join(lines) + "\ntypedef int used;\n"
    command = compiler + ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c",
                          "-"] + ["-I" + path for path in includes]
    run = subprocess.run(command, input=program, text=True, stderr=subprocess.PIPE, check=False)
    return run.returncode == 0, run.stderr


spec = read()
lines = [f"_Static_assert(TRINE_ABI == {spec['abi']}, \"ABI\");",
         f"_Static_assert(TRINE_MAX_RANK == {spec['tensor']['max_rank']}, \"rank\");",
         f"_Static_assert(sizeof(trine_tensor) == {spec['tensor']['size']}, \"size of a tensor\");"]
lines += [f'_Static_assert({s["name"]} == {s["value"]}, "{s["name"]}");' for s in spec["statuses"]]
lines += [f'_Static_assert({t["constant"]} == {t["value"]}, "{t["name"]}");' for t in spec["dtypes"]]
for m in spec["tensor"]["members"]:
    lines += member("trine_tensor", m, m["size"] > 8)
lines.append(f'_Static_assert(TRINE_OP_COUNT == {len(spec["ops"])} + 1, "number of ops");')
good, why = compiles(lines)
ok(good, "what the ops share is as in the headers", why)
ok(len(spec["statuses"]) >= 9 and len(spec["dtypes"]) >= 14, "statuses and element types are there")

types = {t["name"] for t in spec["dtypes"]}
for op in spec["ops"]:
    name, args = op["name"], op["args_type"]
    lines = [f'_Static_assert({op["constant"]} == {op["number"]}, "number");',
             f'_Static_assert(sizeof({args}) == {op["args_size"]}, "size");',
             f'_Static_assert(_Generic({op["function"]}, trine_status (*)(trine_queue *, const {args} *): 1, default: '
             '0), "function");',
             f"#include <{op['header']}>"]
    members = [spec["struct_size"]] + op["tensors"] + op["params"]
    for m in members:
        lines += member(args, m)
    good, why = compiles(lines)
    ok(good, f"{name}: its arguments are as in the header", why)
    wrong = []
    # Nothing of the arguments is left out: between one member and the next there is padding at most.
    members.sort(key=lambda m: m["offset"])
    for m, after in zip(members, members[1:] + [{"offset": op["args_size"], "size": 8}]):
        if not 0 <= after["offset"] - m["offset"] - m["size"] < 8:
            wrong.append(f"a gap after {m['name']}")
    paragraphs = op["doc"].split("\n\n")
    if len(paragraphs) < 5 or "Errors: " not in op["doc"] or paragraphs[-1][:6] != "Since ":
        wrong.append("a docstring without paragraphs, errors or a version")
    wrong += [f"docstring: a line is cut: {line}" for paragraph in paragraphs for line in paragraph.split("\n")
              if not line.startswith("    ") and line[-1:] not in (".", ":")]
    for t in op["tensors"]:
        if t["type"] not in (op["type_variables"] if t["type_is_variable"] else types):
            wrong.append(f"{t['name']}: type {t['type']}")
        if [f"[{d['text']}]" if d["optional"] else d["text"]
            for d in t["dims"]] != t["shape"].split() or t["rank"] != len(t["dims"]):
            wrong.append(f"{t['name']}: dims are not its shape")
        for d in t["dims"]:
            if d["symbol"] and (d["symbol"] not in op["symbols"] or
                                d["text"] != d["symbol"] + (f"{d['add']:+}" if d["add"] else "")):
                wrong.append(f"{t['name']}: dimension {d}")
        if ("out" in t["flags"]) != (t["terms"] is not None or "exact" in t["flags"]):
            wrong.append(f"{t['name']}: error bound")
        if not t["comment"]:
            wrong.append(f"{t['name']}: the header says nothing of it")
    for p in op["params"]:
        if not p["doc"] or (p["kind"] == "ENUM") != bool(p["names"]):
            wrong.append(f"{p['name']}: doc or names")
        if (p["zero"] == "0") == p["zero_is_fallback"] or p["zero"] not in ("0", "-0.0", None):
            wrong.append(f"{p['name']}: how a zero is passed")
        if p["kind"] in ("BOOL", "ENUM") and (p["min"], p["max"]) != (0, len(p["names"] or "01") - 1):
            wrong.append(f"{p['name']}: range")
        if p["min"] is not None and p["fallback"] and not p["min"] <= p["fallback"] <= (p["max"] or math.inf):
            wrong.append(f"{p['name']}: fallback out of range")
    for row in op["type_combinations"]:
        if len(row) != len(op["type_variables"]) or not set(row) <= types:
            wrong.append(f"combination {row}")
    aliases = {(out, other) for out, others in (text.split("=") for text in op["alias"]) for other in others.split()}
    if {(t["name"], other) for t in op["tensors"] for other in t["may_be"]} != aliases:
        wrong.append("aliases")
    ok(not wrong, f"{name}: is whole", "\n".join(wrong))
ok(read("rms_norm") == next(op for op in spec["ops"] if op["name"] == "rms_norm"), "an op alone is as in the list")
good, _ = compiles(member("trine_rms_norm_args", {"name": "eps", "offset": 4, "size": 4, "c_type": "float"}))
ok(not good, "a wrong offset would be noticed")
print(f"1..{count}")
sys.exit(failed > 0)
