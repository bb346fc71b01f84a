#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs compute-sanitizer's tools over the cases of the agreement suite by which each function of the CUDA module is
launched (emulators/cuda/every.txt).

First the suite runs by itself, then under each tool, with operands in allocations of exactly their size (`trine check
--exact`). Exit status 1 if a tool reports an error, a case fails, a job does not end, or a function is not launched
that the device has (emulators/cuda/launches.c notes them); reports are in --logs. Jobs run side by side: as many as the
host has processors for, each of two threads."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

from launched import read_notes, read_table

SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
# Cases of an op that the table has no row of.
FIRST = 40
PASSED = re.compile(r"(\d+) passed, (\d+) failed")
# memcheck takes a copy to shared memory (cp.async) that names fewer than its 16 bytes, at the end of a tensor, for one
# of 16.
EXACT = {"matmul": "16"}
# Functions that a tool misjudges: initcheck does not follow the copies by which sums come to the first (cp.async.bulk
# from shared memory), and the second asks a place that none may have written whether what it names points back. What
# they were is poison in the suite, so that it would show.
PASSED_OVER = {"initcheck": ("attention_backward_sm90_end", "moe_combine_backward_rows")}
# What is compiled at run time to see that compiling works, and not launched.
NEVER = {"trial_of_compiler"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build", help="build folder with tools/trine and "
                        "emulators/cuda/libcuda-launches.so")
    parser.add_argument("--table", default=pathlib.Path(__file__).parents[1] / "emulators/cuda/every.txt")
    parser.add_argument("--chip", default="sm_90a", help="the table's name of the device's architecture")
    parser.add_argument("--tools", default="memcheck,racecheck,initcheck,synccheck")
    parser.add_argument("--ops", help="default: all")
    parser.add_argument("--chunk", type=int, default=8, help="cases of a job: one that does not end counts for nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=600, help="a job that runs longer is stopped, and counts for "
                        "nothing")
    parser.add_argument("--logs", default="sanitizers")
    return parser.parse_args()


def run(args, tool, op, cases, number):
    """What a job of a tool (None: the suite by itself) came to."""
    log = pathlib.Path(args.logs, f"{tool or 'suite'}-{op}-{number}.log")
    notes = log.with_suffix(".notes")
    notes.unlink(missing_ok=True)
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "20"] if tool else []
    for name in PASSED_OVER.get(tool, ()):
        command += ["--kernel-name-exclude", f"kernel_substring={name}"]
    command += [f"{args.build}/tools/trine", "check", "--device", "cuda:0", "--exact", EXACT.get(op, "1"), "--quiet",
                "--op", op, "--log", str(notes), "--case", cases]
    environment = dict(os.environ, LD_PRELOAD=os.path.realpath(f"{args.build}/emulators/cuda/libcuda-launches.so"),
                       LAUNCHES=str(notes), OMP_NUM_THREADS="2")
    start = time.monotonic()
    with open(log, "w") as out:
        try:
            subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=environment, timeout=args.seconds,
                           check=False)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
    text = log.read_text(errors="replace")
    summary, passed = SUMMARY.search(text), PASSED.search(text)
    has, ran = read_notes(notes)
    return {
        "what": f"{tool or 'suite'} {op}", "op": op,
        "ended": ended and passed is not None and (summary is not None or tool is None),
        "errors": int(next(filter(None, summary.groups()))) if summary else 0,
        "failed": int(passed[2]) if passed else 0,
        "passed": int(passed[1]) if passed else 0, "seconds": time.monotonic() - start, "has": has, "ran": ran,
        "log": log,
    }


def report(name, done, has):
    """Prints what the jobs came to; false if something is wrong."""
    good = True
    for d in done:
        if d["errors"] or d["failed"] or not d["ended"]:
            good = False
            state = f"{d['errors']} errors, {d['failed']} cases failed" if d["ended"] else "did not end"
            print(f"{d['what']}: {state}, {d['seconds']:.0f} s: {d['log']}")
    missed = sorted(has - NEVER - set().union(*(d["ran"] for d in done if d["ended"])))
    print(f"{name}: {sum(d['passed'] for d in done)} cases passed, {sum(d['errors'] for d in done)} errors, "
          f"{len(has) - len(missed)} of {len(has)} functions launched, {sum(d['seconds'] for d in done):.0f} s of jobs")
    for function in missed:
        print(f"  not launched: {function}")
    return good and not missed and bool(has)


def main():
    args = parse()
    pathlib.Path(args.logs).mkdir(parents=True, exist_ok=True)
    table, unknown = read_table(args.table)
    jobs = []
    ops = subprocess.run([f"{args.build}/tools/trine", "spec"], capture_output=True, text=True, check=True).stdout
    for op in args.ops.split(",") if args.ops else [line.split()[0] for line in ops.splitlines()]:
        cases = table[op].split(",") if op in table else list(map(str, range(FIRST)))
        jobs += [(op, ",".join(cases[at:at + args.chunk]), at) for at in range(0, len(cases), args.chunk)]
    good, looked_at = True, None
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for tool in [None, *filter(None, args.tools.split(","))]:
            done = list(pool.map(lambda job, tool=tool: run(args, tool, *job), jobs))
            if looked_at is None:
                looked_at = {name for d in done for name in d["has"] if f"{args.chip}:{name}" not in unknown}
            good = report(tool or "suite", done,
                          {name for name in looked_at
                           if not any(part in name for part in PASSED_OVER.get(tool, ()))}) and good
    sys.exit(not good)


main()
