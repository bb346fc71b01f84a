#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Chains that are compiled at run time, over a stand-in for the vendor's driver and compiler: they agree; where nothing
# can be compiled, explain says so and another kernel runs; and the cache of code serves many processes. Speaks TAP.
# Usage: chain_compiled.sh TRINE DEVICE DRIVER SWITCH, SWITCH being the variable that turns the compiler on.
trine=$1 device=$2 driver=$3 switch=$4
kernel=${device%%:*}_compiled
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
count=0
ok() { # STATUS WORDS
    count=$((count + 1))
    [ "$1" = 0 ] || { sed 's/^/# /' "$work/log"; printf 'not '; }
    echo "ok $count - $2"
}
# The command of these words, which may begin with more variables.
with() {
    env LD_PRELOAD="$driver" TRINE_TUNE=/dev/null TRINE_VERBOSE=1 TRINE_CODE="$work/code" OMP_WAIT_POLICY=passive "$@"
}
explain() { with "$@" "$trine" explain chain --device "$device" --case "in cache" >"$work/log" 2>&1; }
check() { with "$@" "$trine" check --device "$device" --op chain --kernel "$kernel" --quiet --cases "$cases" --seed 3; }

explain TRINE_VERBOSE=0 && grep -q "$kernel .*no run-time compiler" "$work/log" &&
    grep -q "chosen: ${device%%:*} " "$work/log"
ok $? "without a compiler explain says so, and the interpreter is chosen"
explain "$switch=1" RTC_FAIL=1 && grep -q "$kernel .*compilation failed" "$work/log" &&
    grep -q "chosen: ${device%%:*} " "$work/log"
ok $? "likewise where the compiler compiles nothing"
explain "$switch=1" && grep -q "chosen: $kernel " "$work/log"
ok $? "with one that does, what is compiled is chosen"

cases=5
check "$switch=1" TRINE_VERBOSE=0 >"$work/log" 2>&1
ok $? "compiled chains agree"

rm -rf "$work/code"
cases=1
processes=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    check "$switch=1" >"$work/log$i" 2>&1 &
    processes="$processes $!"
done
wrong=0
for process in $processes; do wait "$process" || wrong=1; done
cat "$work"/log[0-9]* >"$work/log"
ok $wrong "16 processes that share an empty cache agree"
files=$(find "$work/code" -type f | wc -l)
check "$switch=1" >"$work/log" 2>&1 && grep -q "chain: compiled for .* before" "$work/log" &&
    ! grep -q "chain: compiled for .* in " "$work/log" && [ "$files" = "$(find "$work/code" -type f | wc -l)" ]
ok $? "and leave code that the next finds"

for file in "$work/code"/*; do truncate -s -1 "$file"; done
check "$switch=1" >"$work/log" 2>&1 && grep -q "chain: compiled for .* in " "$work/log" &&
    check "$switch=1" >"$work/log" 2>&1 && ! grep -q "chain: compiled for .* in " "$work/log"
ok $? "code that was cut short is compiled anew, and takes its place"

mv "$work/code" "$work/elsewhere"
check "$switch=1" TRINE_CODE=/dev/null >"$work/log" 2>&1 && [ ! -e "$work/code" ]
ok $? "without a cache nothing is kept"
echo "1..$count"
