#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trine judge from outside: an honest kernel is correct, each that cheats is refused, and so is what cannot be judged.
# Speaks TAP. Usage: judge.sh TRINE SOURCE
trine=$(realpath "$1")
source=$(realpath "$2")
headers=$(dirname "$(dirname "$(dirname "$source")")")/include
built=$(dirname "$(dirname "$trine")")/include
count=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TRINE_TUNE="$work/tune" LC_ALL="${TEST_LC_ALL:-C}"
unset TRINE_ISA TRINE_KERNEL TRINE_DEVICE TRINE_BACKENDS TRINE_VERBOSE

# expect NAME STATUS PATTERN COMMAND...: the command ends with the status, and its output has a line that matches.
expect() {
    name=$1 status=$2 pattern=$3
    shift 3
    count=$((count + 1))
    "$@" >out 2>&1 </dev/null
    got=$?
    if [ $got -eq "$status" ] && grep -q -e "$pattern" out; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        echo "# exit status $got, not $status, or no line matches \"$pattern\": $*"
        sed 's/^/# /' out
    fi
}

# judge CHEAT [OPTION...]: an unoptimized build is enough, and sooner there.
judge() {
    cheat=$1
    shift
    "$trine" judge "$source" --op rms_norm --types T=f32 --quiet --budget 2 \
        --flags "-O1 -I$headers -I$built -pthread -DCHEAT=$cheat" "$@"
}
# The same where only large calls are cheated: nothing but the trial has such.
large() {
    cheat=$1
    "$trine" judge "$source" --op rms_norm --types T=f32 --quiet --budget 4 --sizes n=64 --dims "r=512 n=1000" \
        --flags "-O1 -I$headers -I$built -pthread -DCHEAT=$cheat -DLARGE"
}

expect "an honest kernel" 0 "^correct: [0-9.]* times as fast" judge honest --dims "r=64 n=512"
cp out page
expect "how fast it is" 0 "^    judged .*, trine's cpu_.* times as fast" cat page
expect "as JSON" 0 '"correct": true, "reason": null' judge honest --dims "r=8 n=64" --json
expect "one case again" 0 "^correct, and not timed" judge honest --case 0,1
expect "a call that it does not take" 0 "not timed: only x, weight and y" judge honest --dims "r=8 n=64 +rstd"

late="^refused: in the trial of .*: call [0-9]* of [0-9]* in a timed round: "
for cheat in zeros stale peeks elsewhere rough remembers first_calls; do
    expect "$cheat" 1 "^refused: .*but the reference is\|^refused: .*in the first run" judge $cheat
    [ $cheat = rough ] || expect "$cheat, in large calls" 1 "$late" large $cheat
done
expect "skips" 1 "^refused: " judge skips --budget 6
expect "skips, in large calls" 1 "$late" large skips
expect "beyond" 1 "^refused: .*memory 1 bytes behind its last byte was written" judge beyond
expect "constructs" 1 "^refused: " judge constructs
expect "dies" 1 "^refused: killed by signal 6" judge dies
expect "dies, in large calls" 1 "^refused: in the trial of .*: killed by signal 6" large dies
expect "hangs" 1 "^refused: still running after 1 s" judge hangs --timeout 1
expect "the failure again" 1 "^  again: trine judge .* --op rms_norm --device cpu --seed 1 --case" \
    judge zeros --json verdict.json
expect "in the file" 0 '"correct": false' cat verdict.json

# Other libraries: a program in trine-peers' place says what one takes, and without it the page says that there is none.
mkdir -p place/tools place/judge
cp "$trine" place/tools/trine
cp "$(dirname "$trine")"/../judge/trine-judge_cpu.so place/judge
given=$trine
trine="env LD_LIBRARY_PATH=$(dirname "$given")/../dispatch $work/place/tools/trine"
judge_alone() {
    $trine judge "$source" --op rms_norm --types T=f32 --quiet --budget 1 --dims "r=64 n=512" \
        --flags "-O1 -I$headers -I$built -pthread -DCHEAT=honest" "$@"
}
expect "no other libraries" 0 "^no other library beside it: there is no trine-peers" judge_alone
printf '#!/bin/sh\nprintf "0\\tswift\\t4e-3\\t1e-3\\n0\\tslow\\t1e-3\\t8e-3\\n"\n' >place/tools/trine-peers
chmod +x place/tools/trine-peers
expect "another library" 0 "^    swift 1.00 ms in turns with trine's 4.00 ms: judged [0-9.]* times as fast" judge_alone
expect "the fastest of all" 0 "^correct: .* trine's kernels, [0-9.]* times as the fastest of all" judge_alone
expect "another library as JSON" 0 '"name": "slow", "seconds": 0.008, "trine": 0.001' judge_alone --json
printf '#!/bin/sh\necho nonsense\n' >place/tools/trine-peers
expect "no library takes it" 0 "none of the libraries .* takes these calls" judge_alone
trine=$given

echo 'int judge_lunch(void) { return 0; }' >misspelt.c
echo 'int judge_launch(' >broken.c
cp "$source" kernel.txt
cp "$source" not.so
expect "without the function" 1 "does not load: it has no function judge_launch()" "$trine" judge misspelt.c --op scale
expect "what does not compile" 1 "does not compile: cc " "$trine" judge broken.c --op scale
expect "no compiler" 1 "no-such-compiler: No such file" "$trine" judge broken.c --op scale --compiler no-such-compiler
expect "no file" 1 "nothing.so: No such file" "$trine" judge nothing.so --op scale
expect "no shared object" 1 "does not load: .*not.so: " "$trine" judge not.so --op scale
expect "another name" 1 "its name ends neither as source" "$trine" judge kernel.txt --op scale
expect "device code without a kernel's name" 1 "name its kernel by --entry" "$trine" judge kernel.cubin --op scale
expect "no op" 2 "a FILE and --op are wanted" "$trine" judge broken.c
expect "a misspelt op" 2 'did you mean "scale"' "$trine" judge broken.c --op scael
expect "no such device" 1 'no device "cuda:9"' "$trine" judge broken.c --op scale --device cuda:9
expect "device code on the CPU" 2 "names device code, and --device a CPU" \
    "$trine" judge broken.c --op scale --entry f --grid "blocks=1"
expect "a kernel without a grid" 2 "go together" "$trine" judge broken.c --op scale --entry f --device cuda:0

# The example's list of tasks: the second and the fourth are wrong.
tasks=$(dirname "$(dirname "$(dirname "$source")")")/examples/kernel
if command -v python3 >/dev/null; then
    expect "a list of tasks" 0 "^2 of 4 are correct" \
        python3 "$tasks/tasks.py" "$trine" "$tasks/tasks.txt" --budget 3
fi
echo "1..$count"
