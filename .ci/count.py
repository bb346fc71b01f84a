#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up what `meson test` ran (TAP points, else one per program) and the last line of `trine check`.

Usage: count.py BUILD CHECK_LOG. Prints `N passed, N failed, N skipped`; fails if anything failed, or if fewer passed
than .ci/floor says."""
import json
import re
import sys

build, check_log = sys.argv[1:3]
passed = failed = skipped = 0
for line in open(build + "/meson-logs/testlog.json", encoding="utf-8"):
    test = json.loads(line)
    points = re.findall(r"^(ok|not ok)\b(.*)$", test.get("stdout") or "", re.M)
    result = test["result"]
    if not points:
        passed += result in ("OK", "EXPECTEDFAIL")
        skipped += result == "SKIP"
        failed += result not in ("OK", "EXPECTEDFAIL", "SKIP")
        continue
    for kind, rest in points:
        if re.search(r"#\s*SKIP", rest, re.I):
            skipped += 1
        elif kind == "ok":
            passed += 1
        else:
            failed += 1
    if result not in ("OK", "SKIP") and all(kind == "ok" for kind, _ in points):
        failed += 1  # died after its last point, or fell short of its plan
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
