#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up what `meson test` ran (TAP points, else one per program) and the last line of `trine check`.

Usage: count.py BUILD CHECK_LOG. Prints what failed and `N passed, N failed, N skipped`; fails if anything failed, or if
fewer passed than .ci/floor says. Tests that `./dev test` ran once more, by themselves, count as they went then, and are
named.
       count.py --again BUILD. Prints the names of the tests that failed, if they are few."""
import json
import pathlib
import re
import sys

FEW = 4


def read(path):
    """The tests of a log by name."""
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        return {test["name"]: test for test in map(json.loads, file)}


def count(test):
    """Points passed, failed and skipped, and the lines that say what failed."""
    text, result = test.get("stdout") or "", test["result"]
    points = re.findall(r"^(ok|not ok)\b(.*)$", text, re.M)
    wrong = [line for line in text.splitlines() if line.startswith("not ok")]
    if not points:
        good = result in ("OK", "EXPECTEDFAIL")
        return int(good), int(not good and result != "SKIP"), int(result == "SKIP"), wrong
    skipped = sum(bool(re.search(r"#\s*SKIP", rest, re.I)) for _, rest in points)
    failed = sum(kind == "not ok" and not re.search(r"#\s*SKIP", rest, re.I) for kind, rest in points)
    passed = len(points) - skipped - failed
    if result not in ("OK", "SKIP") and all(kind == "ok" for kind, _ in points):
        failed += 1  # died after its last point, or fell short of its plan
    return passed, failed, skipped, wrong


def name_of(test):
    return test["name"].rsplit(" / ", 1)[-1]


if sys.argv[1] == "--again":
    tests = read(pathlib.Path(sys.argv[2], "meson-logs/testlog.json")).values()
    names = [name_of(test) for test in tests if count(test)[1]]
    print(*names if len(names) <= FEW else ())
    sys.exit(0)
build, check_log = sys.argv[1:3]
passed = failed = skipped = 0
first, again = (read(pathlib.Path(build, "meson-logs", name)) for name in ("testlog.json", "again.json"))
for name, test in first.items():
    if count(test)[1] and name in again:
        print(f"{name}: failed ({test['result']}) beside other tests, and ran once more by itself:")
        print(*count(test)[3][:5], *(test.get("stderr") or "").splitlines()[-5:], sep="\n")
        test = again[name]
    numbers = count(test)
    passed, failed, skipped = passed + numbers[0], failed + numbers[1], skipped + numbers[2]
    if numbers[1]:
        print(f"{name}: failed ({test['result']})")
        print(*numbers[3][:5], sep="\n")
tests = passed
lines = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", open(check_log, encoding="utf-8").read(), re.M)
if not lines:
    failed += 1
    print("the agreement suite printed no closing line")
for a, b, c in lines[-1:]:
    passed, failed, skipped = passed + int(a), failed + int(b), skipped + int(c)
for line in open(".ci/floor", encoding="utf-8"):
    kind, floor = line.split()
    have = tests if kind == "tests" else passed - tests
    if have < int(floor):
        print(f"only {have} {kind} passed, below the floor of {floor} in .ci/floor")
        failed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed != 0)
