#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of shapes that nobody chose, beside another library: the distribution of the ratios.

Draws sizes by a seed: m from one to 8192, as many from each of the four ranges of the table below; n and k from the
hidden sizes of models, or rough ones. trine-peers times each; a ratio above 1 says that trine is faster."""
import argparse
import math
import random
import re
import subprocess
import sys
import tempfile

HIDDEN = (384, 512, 576, 768, 896, 1024, 1152, 1280, 1536, 1792, 2048, 2304, 2560, 2816, 3072, 3584, 4096, 4608, 4864,
          5120, 5632, 6144, 6912, 7168, 8192, 9216, 9728, 11008, 12288, 13824, 14336, 16384, 18432, 18944, 24576, 28672)
RANGES = ((1, 16), (17, 128), (129, 1024), (1025, 8192))
MOST = 28672 * 8192  # elements of b
TYPES = {"bf16": "T=bf16 O=bf16", "f16": "T=f16 O=f16", "e4m3": "T=e4m3 U=e4m3 O=bf16", "i8": "T=i8 U=i8 O=i32",
         "tf32": "T=f32 O=f32 precision=1", "f32": "T=f32 O=f32"}


def drawn(random_, low, high):
    return int(math.exp(random_.uniform(math.log(low), math.log(high + 1))))


def size(random_, align):
    return random_.choice(HIDDEN) if random_.random() < 0.7 else -(-drawn(random_, 64, 16384) // align) * align


def shapes(seed, count, align):
    random_ = random.Random(seed)
    while count > 0:
        low, high = RANGES[count % len(RANGES)]
        m, n, k = drawn(random_, low, high), size(random_, align), size(random_, align)
        if random_.random() < 0.4:
            m = max(low, 1 << (m.bit_length() - 1))
        if n * k <= MOST and m * n * k <= 2**39:
            count -= 1
            yield m, n, k


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def row(name, ratios):
    if ratios:
        fast = 100 * sum(ratio >= 0.95 for ratio in ratios) / len(ratios)
        print(f"{name:>12} {len(ratios):6} {mean(ratios):7.3f} {min(ratios):7.2f} {fast:7.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--type", choices=TYPES, default="bf16")
    parser.add_argument("--end", default="", help='words that a case has besides, such as "+bias activation=2"')
    parser.add_argument("--align", type=int, default=8, help="what rough sizes are multiples of (default: 8)")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--time", default="0.1", help="seconds for each library on a case (default: 0.1)")
    parser.add_argument("--peers", default="build/bench/peers/trine-peers", help="the program trine-peers")
    parser.add_argument("--verbose", action="store_true", help="each shape, too")
    arguments = parser.parse_args()
    ratios = {}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as cases:
        for m, n, k in shapes(arguments.seed, arguments.count, arguments.align):
            cases.write(f"matmul {m}x{n}x{k}: {TYPES[arguments.type]} m={m} n={n} k={k} b=transposed "
                        f"{arguments.end}\n")
        cases.flush()
        command = [arguments.peers, "--device", arguments.device, "--time", arguments.time, "--cases", cases.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as peers:
            for line in peers.stdout:
                found = re.match(r"matmul +(\d+)x(\d+)x(\d+) .*\((\d+\.\d+)\)", line)
                if found:
                    ratios[tuple(map(int, found.groups()[:3]))] = float(found[4])
                if arguments.verbose or not found:
                    print(line, end="")
        if peers.returncode != 0:
            sys.exit(f"{arguments.peers}: exit status {peers.returncode}")
    if not ratios:
        sys.exit("no library took a shape")
    print(f"{'m':>12} {'shapes':>6} {'mean':>7} {'least':>7} {'>= 0.95':>9}   {arguments.type}, seed {arguments.seed}")
    for low, high in RANGES:
        row(f"{low} to {high}", [ratio for shape, ratio in ratios.items() if low <= shape[0] <= high])
    row("all", list(ratios.values()))


if __name__ == "__main__":
    main()
