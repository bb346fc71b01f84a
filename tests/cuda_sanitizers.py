#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs compute-sanitizer's tools over cases of the agreement suite by which each function of the CUDA module is launched.

First the suite runs by itself, and notes which case launches a function for the first time (tests/stubs/launches.c). Then each tool runs over those cases,
with operands in allocations of exactly their size (`trine check --exact`). Exit status 1 if a tool reports an error, a case fails, a job does not end, or a
function is launched by none; reports are in --logs. Jobs run side by side: as many as the host has processors for, each of two threads."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

from launched import read_notes

SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
PASSED = re.compile(r"(\d+) passed, (\d+) failed")
CHUNK = 8
# memcheck takes a copy to shared memory (cp.async) that names fewer than its 16 bytes, at the end of a tensor, for one of 16.
EXACT = {"matmul": "16"}
# Functions that a tool misjudges: initcheck does not follow the copies by which sums come to this one (cp.async.bulk from shared memory). What they were is poison
# in the suite, so that it would show.
PASSED_OVER = {"initcheck": "attention_backward_sm90_end"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build", help="build folder with tools/trine and tests/stubs/libcuda-launches.so")
    parser.add_argument("--tools", default="memcheck,racecheck,initcheck,synccheck")
    parser.add_argument("--ops", help="default: all")
    parser.add_argument("--cases", type=int, default=500, help="of each op and seed, to choose from")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--budget", type=float, default=100, help="seconds of a job that draws cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=600, help="a job that runs longer is stopped, and counts for nothing")
    parser.add_argument("--logs", default="sanitizers")
    return parser.parse_args()


def run(args, tool, op, cases, number):
    """What a job of a tool (None: the suite by itself) came to. `cases`: options that choose them."""
    log = pathlib.Path(args.logs, f"{tool or 'suite'}-{op}-{number}.log")
    notes = log.with_suffix(".notes")
    notes.unlink(missing_ok=True)
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "20"] if tool else []
    command += ["--kernel-name-exclude", f"kernel_substring={PASSED_OVER[tool]}"] if tool in PASSED_OVER else []
    command += [f"{args.build}/tools/trine", "check", "--device", "cuda:0", "--exact", EXACT.get(op, "1"), "--quiet", "--op", op, "--log", str(notes), *cases]
    environment = dict(os.environ, LD_PRELOAD=os.path.realpath(f"{args.build}/tests/stubs/libcuda-launches.so"), LAUNCHES=str(notes), OMP_NUM_THREADS="2")
    start = time.monotonic()
    with open(log, "w") as out:
        try:
            subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=environment, timeout=args.seconds, check=False)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
    text = log.read_text(errors="replace")
    summary, passed = SUMMARY.search(text), PASSED.search(text)
    has, ran = read_notes(notes)
    return {
        "what": f"{tool or 'suite'} {op}", "op": op, "ended": ended and passed is not None and (summary is not None or tool is None),
        "errors": int(next(filter(None, summary.groups()))) if summary else 0, "failed": int(passed[2]) if passed else 0,
        "passed": int(passed[1]) if passed else 0, "seconds": time.monotonic() - start, "has": has, "ran": ran, "log": log,
    }


def report(name, done, has):
    """Prints what the jobs came to; false if something is wrong."""
    good = True
    for d in done:
        if d["errors"] or d["failed"] or not d["ended"]:
            good = False
            state = f"{d['errors']} errors, {d['failed']} cases failed" if d["ended"] else "did not end"
            print(f"{d['what']}: {state}, {d['seconds']:.0f} s: {d['log']}")
    missed = sorted(has - set().union(*(d["ran"] for d in done if d["ended"])))
    print(f"{name}: {sum(d['passed'] for d in done)} cases passed, {sum(d['errors'] for d in done)} errors, "
          f"{len(has) - len(missed)} of {len(has)} functions launched, {sum(d['seconds'] for d in done):.0f} s of jobs")
    for function in missed:
        print(f"  not launched: {function}")
    return good and not missed and bool(has)


def main():
    args = parse()
    pathlib.Path(args.logs).mkdir(parents=True, exist_ok=True)
    listing = subprocess.run([f"{args.build}/tools/trine", "check", "--device", "cuda:0", "--list"], capture_output=True, text=True, check=True).stdout
    ops = args.ops.split(",") if args.ops else [line.split()[0] for line in listing.splitlines()]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        drawn = [(op, seed) for op in ops for seed in range(1, args.seeds + 1)]
        suite = list(pool.map(lambda d: run(args, None, d[0], ["--cases", str(args.cases), "--budget", str(args.budget), "--seed", str(d[1])], d[1]), drawn))
        has = set().union(*(d["has"] for d in suite))
        good = report("suite", suite, has)
        first, chosen = {}, []
        for d, (op, seed) in zip(suite, drawn):
            for function, case in d["ran"].items():
                if case:
                    first.setdefault(function, (op, seed, int(case)))
        for op, seed in drawn:
            cases = sorted({case for o, s, case in first.values() if (o, s) == (op, seed)})
            chosen += [(op, ["--seed", str(seed), "--case", ",".join(map(str, cases[at:at + CHUNK]))], f"{seed}-{at}") for at in range(0, len(cases), CHUNK)]
        print(f"{sum(len(job[1][3].split(',')) for job in chosen)} cases chosen")
        for tool in filter(None, args.tools.split(",")):
            jobs = [pool.submit(run, args, tool, *job) for job in chosen]
            looked_at = {function for function in has & set(first) if PASSED_OVER.get(tool, " ") not in function}
            good = report(tool, [job.result() for job in jobs], looked_at) and good
    sys.exit(not good)


main()
