#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the build took. Prints the CPU seconds of each file of device code, and the seconds of each other file that
took more than FEW (by ninja's clock, so that what ran beside it counts).

Usage: times.py BUILD [--check TABLE | --write TABLE]
The table has the CPU seconds of each op's device code for each architecture, on one machine. --check compares: this
machine counts as faster or slower by the median of what an architecture's compiler took of the table's; an op fails
that takes more than GROWN times what the table has, or, if the table has more than the budget of its family or no row,
more than that budget. GROWN is what the same file was seen to take more beside another one, and a little.
Architectures that the table has no row of are not judged. Speaks TAP then."""
import collections
import pathlib
import re
import sys

FEW, GROWN, SLACK = 5, 1.6, 5
BUDGET = 25  # seconds, or by family
BUDGETS = {"matmul": 120, "attention": 120, "attention_blocks": 60, "scaled": 75, "conv": 45, "state": 45}


def device_seconds(build):
    """Seconds by file: the second line of `times` is the command's, user and system."""
    seconds = {}
    for path in sorted(build.glob("backends/*/*.seconds")):
        minutes = re.findall(r"(\d+)m([\d.]+)s", path.read_text().splitlines()[1])
        seconds[path.name.removesuffix(".seconds")] = sum(60 * int(m) + float(s) for m, s in minutes)
    return seconds


def by_op(seconds):
    """The sums of an op and an architecture: matmul_sm90 is of matmul."""
    sums = collections.Counter()
    for name, took in seconds.items():
        op, arch, _ = name.split(".")
        sums[op.removesuffix("_sm90"), arch] += took
    return sums


def families():
    rows = [line.split() for line in open(pathlib.Path(__file__).parents[1] / "spec/ops.def", encoding="utf-8")]
    return {row[2]: row[1] for row in rows if row and row[0].isdigit()}


def read_table(path):
    rows = [line.split() for line in open(path, encoding="utf-8") if not line.startswith("#")]
    return {(op, arch): float(took) for op, arch, took in rows}


def check(sums, path):
    table, family = read_table(path), families()
    judged = {arch for _, arch in table}
    sums = {key: took for key, took in sums.items() if key[1] in judged}
    speeds = {}
    for arch in sorted({arch for _, arch in sums}):
        both = sorted(sums[key] / table[key] for key in sums if key[1] == arch and table.get(key, 0) >= FEW)
        speeds[arch] = both[len(both) // 2] if both else 1.0
        print(f"# for {arch} this machine takes {speeds[arch]:.2f} of the table's seconds")
    failed = 0
    for number, (key, took) in enumerate(sorted(sums.items()), 1):
        budget = BUDGETS.get(family.get(key[0]), BUDGET)
        most = GROWN * table[key] + SLACK if table.get(key, 0) > budget / GROWN else budget
        took /= speeds[key[1]]
        good = took <= most
        failed += not good
        said = f"{key[0]} for {key[1]}: {took:.0f} s, at most {most:.0f}"
        print(f"{'ok' if good else 'not ok'} {number} - {said}")
    print(f"1..{len(sums)}")
    return failed


def write(sums, path):
    table = read_table(path) if pathlib.Path(path).exists() else {}
    table.update(sums)
    with open(path, "w", encoding="utf-8") as file:
        file.write("# SPDX-License-Identifier: Apache-2.0\n")
        file.write("# CPU seconds of an op's device code for an architecture: ./dev times --write\n")
        for (op, arch), took in sorted(table.items()):
            file.write(f"{op} {arch} {took:.1f}\n")


def main():
    build, way, path = pathlib.Path(sys.argv[1]), *(sys.argv[2:4] + ["", ""])[:2]
    seconds = device_seconds(build)
    sums = by_op(seconds)
    if way == "--check":
        sys.exit(check(sums, path) > 0)
    if way == "--write":
        write(sums, path)
        return
    others = {}
    for line in open(build / ".ninja_log", encoding="utf-8").read().splitlines()[1:]:
        start, end, _, name, _ = line.split("\t")
        others[name] = (int(end) - int(start)) / 1000
    rows = [(took, f"backends/*/{name}") for name, took in seconds.items()]
    rows += [(took, name) for name, took in others.items() if took > FEW and pathlib.Path(name).name not in seconds]
    for took, name in sorted(rows, reverse=True):
        print(f"{took:7.1f}  {name}")
    print(f"{sum(seconds.values()):7.1f}  device code, of {len(seconds)} files")


main()
