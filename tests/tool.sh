#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The trine command from outside: what it prints, what it writes, how it fails. Speaks TAP. Usage: tool.sh TRINE
trine=$(realpath "$1")
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
    if [ $got -eq "$status" ] && { [ -z "$pattern" ] || grep -q -e "$pattern" out; }; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        echo "# exit status $got, not $status, or no line matches \"$pattern\": $*"
        sed 's/^/# /' out
    fi
}

# npy FILE DESCR ORDER SHAPE DATA: a file of format version 1; DATA in printf's escapes.
npy() {
    { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$2', 'fortran_order': $3, 'shape': ($4), }" &&
        printf "$5"; } >"$1"
}
one='\000\000\200\077' two='\000\000\000\100' three='\000\000\100\100' four='\000\000\200\100'
npy x.npy '<f4' False '2, 2' "$one$two$three$four"
npy fortran.npy '<f4' True '2, 2' "$one$three$two$four"
npy big.npy '>f4' False '2, 2' '\077\200\000\000\100\000\000\000\100\100\000\000\100\200\000\000'
npy bytes.npy '|i1' False '2, 2' '\001\002\003\004'
npy row.npy '<f4' False '2,' "$one$two"
npy empty.npy '<f4' False '0, 2' ''
npy ids.npy '<i8' False '2,' '\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000'
npy far.npy '<i8' False '1,' '\007\000\000\000\000\000\000\000'
npy half.npy '<f4' False '1,' '\000\000\000\077'
npy short.npy '<f4' False '2, 2' "$one"
npy huge.npy '<f4' False '4611686018427387904, 4611686018427387904' ''
npy negative.npy '<f4' False '-1, 2' ''
npy complex.npy '<c8' False '1,' "$one$two"
npy strings.npy '<U4' False '1,' "$one"
npy deep.npy '<f4' False '1, 1, 1, 1, 1, 1, 1, 1, 1' "$one"
printf 'not an array' >text.npy
printf '\223NUMPY\002\000\377\377\377\377{' >header.npy
printf '\223NUMPY\011\000\166\000{}' >version.npy
: >nothing.npy

expect "help" 0 "^  run " "$trine" --help
expect "version" 0 "^trine [0-9]" "$trine" --version
# full COMMAND...: with a standard output that takes nothing.
full() { "$@" >/dev/full; }
for words in --help --version help "run --help" "run scale --help" "spec --help" "help bench" "spec scale" info; do
    expect "$words to a full disk" 1 "standard output could not be written" full "$trine" $words
done
expect "help of a command" 0 "usage: trine bench" "$trine" help bench
expect "help of an op" 0 "^  --alpha X" "$trine" help run scale
expect "help of no command" 2 'did you mean "bench"' "$trine" help benhc
expect "an integer's limit" 2 "from 1 to 9223372036854775807" "$trine" check --cases x
expect "no budget" 2 "not a number from 0.001" "$trine" check --budget 0
expect "no cases" 2 "not an integer from 1" "$trine" check --cases 0
if unshare -rm sh -c 'mount -t tmpfs none /sys' 2>/dev/null; then
    expect "nothing is said of an empty /sys" 1 "" \
        sh -c "unshare -rm sh -c 'mount -t tmpfs none /sys && \"$trine\" info' 2>&1 >/dev/null | grep ."
fi
expect "no command" 2 "usage: trine" "$trine"
expect "misspelt command" 2 'did you mean "bench"' "$trine" benhc
for command in run info spec explain check bench tune; do
    expect "help of $command" 0 "usage: trine $command" "$trine" $command --help
done
expect "misspelt option" 2 "did you mean --json" "$trine" info --jsn
expect "surplus argument" 2 'unexpected argument "x"' "$trine" info x
expect "missing argument" 2 "needs an argument" "$trine" bench --op
expect "flag with an argument" 2 "takes no argument" "$trine" info --json=1

expect "info" 0 "^  0 cpu" "$trine" info
expect "info as JSON" 0 '"devices": \[' "$trine" info --json
expect "misspelt variable" 0 "TRINE_VERBSE.*TRINE_VERBOSE" env TRINE_VERBSE=1 "$trine" info
expect "list of ops" 0 "^rms_norm " "$trine" spec
expect "one op" 0 "1/sqrt" "$trine" spec rms_norm
expect "and what its header says" 0 "^  Deterministic: the same bits" "$trine" spec rms_norm
expect "op as JSON" 0 '"name": "eps"' "$trine" spec rms_norm --json
expect "how a zero is passed, in JSON" 0 '"beta".*"fallback": 1, "unset": null, "zero": "-0.0"' \
    "$trine" spec matmul --json
expect "where it is refused" 0 '"max_norm".*"fallback": 0, "unset": "no limit", "zero": null' \
    "$trine" spec global_norm_clip --json
expect "and where it is one" 0 '"softcap".*"fallback": 0, "unset": null, "zero": "0"' "$trine" spec attention --json
expect "docstrings in JSON" 0 '"doc": "Root-mean-square normalization, with' "$trine" spec rms_norm --json
expect "all ops as JSON" 0 '^  "abi": [0-9]' "$trine" spec --json
expect "matrix" 0 "^| rms_norm | f32" "$trine" spec --matrix
expect "architectures" 0 "^| rms_norm_backward | emulated | silicon |" "$trine" spec --archs
expect "architectures and an op" 2 "archs stands alone" "$trine" spec add --archs
expect "misspelt op" 2 'did you mean "rms_norm"' "$trine" spec rms_nrom
expect "explain" 0 "chosen: cpu_" "$trine" explain rms_norm --dims "r=4 n=8"
expect "explain edges" 0 "edges of cpu_.*: s=16 n=.*262144" "$trine" explain softmax --dims "s=4 n=8" --edges
expect "explain a case" 0 "chosen: cpu_" "$trine" explain matmul --case "square 1024"
expect "explain without a dimension" 2 'rms_norm: dimension n is not given, as in --dims "n=4096"' \
    "$trine" explain rms_norm --dims "r=4"
expect "explain without dimensions" 2 'matmul: dimensions m, k, n are not given, as in --dims "m=1024 k=1024 n=1024"' \
    "$trine" explain matmul
expect "explain in units" 0 "^  moves 192 MiB, computes 137.4 GFLOP$" \
    "$trine" explain matmul --dims "m=4096 n=4096 k=4096"
expect "explain counts what a mask leaves" 0 "computes 8.60 GFLOP$" \
    "$trine" explain attention --dims "sq=1024 sk=1024 h=32 hk=32 d=128 causal=1"
expect "explain in units, times" 0 "predicted [0-9.]* [mun]*s, workspace [0-9.]* [KMG]*i*B$" \
    "$trine" explain matmul --dims "m=4096 n=4096 k=4096"
expect "explain a negative dimension" 2 "must be an integer" "$trine" explain rms_norm --dims "r=-4 n=8"
expect "explain overflowing dimensions" 2 "overflows" \
    "$trine" explain rms_norm --dims "r=9223372036854775807 n=9223372036854775807"
expect "explain an unknown type" 2 "no such element type" "$trine" explain rms_norm --dims "r=4 n=8" --types T=f33
expect "explain types apart" 2 "does not take the types" \
    "$trine" explain matmul --dims "m=1 n=1 k=1" --types T=f64,O=f32
expect "explain no op" 2 "no op given" "$trine" explain

expect "run" 0 "^y f32 \[2, 2\] 2 4 6 8$" "$trine" run scale --x x.npy --alpha 2 --y -
expect "run on Fortran order" 0 "^y f32 \[2, 2\] 2 4 6 8$" "$trine" run scale --x fortran.npy --alpha 2 --y -
expect "run on big endian" 0 "^y f32 \[2, 2\] 2 4 6 8$" "$trine" run scale --x big.npy --alpha 2 --y -
expect "run on bytes" 0 "^y bf16 \[2, 2\] 2 4 6 8$" "$trine" run scale --x bytes.npy --types T=bf16 --alpha 2 --y -
expect "a zero is a zero" 0 "^y f32 \[2, 2\] 0 0 0 0$" "$trine" run scale --x x.npy --alpha 0 --y -
expect "a zero of a factor" 0 "^d f32 \[2, 2\] 0 0 0 0$" "$trine" run matmul --a x.npy --b x.npy --alpha 0 --d -
expect "a zero of a summand" 0 "^d f32 \[2, 2\] 7 10 15 22$" \
    "$trine" run matmul --a x.npy --b x.npy --c x.npy --beta 0 --d -
expect "a summand without its factor" 1 "c is given and beta is 0: leave c out, or set beta" \
    "$trine" run matmul --a x.npy --b x.npy --c x.npy --d -
expect "a limit of zero" 1 "max_norm is 0: leave it out for no limit" \
    "$trine" run global_norm_clip --x row.npy --max_norm 0 --y -
expect "no limit" 0 "^y f32 \[2\] 1 2$" "$trine" run global_norm_clip --x row.npy --y -
expect "a case with a zero" 0 " alpha=0 beta=0 +c on" "$trine" explain matmul --dims "m=2 n=2 k=2 alpha=0 beta=0 +c"
expect "a transposed factor" 0 "^d f32 \[2, 2\] 7 10 15 22$" "$trine" run matmul --a fortran.npy --b x.npy --d -
expect "a vector" 0 "^y f32 \[2\] 2 4$" "$trine" run scale --x row.npy --alpha 2 --y -
expect "no elements" 0 "^y f32 \[0, 2\]$" "$trine" run scale --x empty.npy --y -
expect "lookup" 0 "^y f32 \[2, 2\] 3 4 1 2$" "$trine" run embedding --table x.npy --ids ids.npy --y -
expect "a file out" 0 "-> y.npy$" "$trine" run scale --x x.npy --alpha 2 --y y.npy
expect "and in again" 0 "^y f32 \[2, 2\] 4 8 12 16$" "$trine" run scale --x y.npy --alpha 2 --y -
expect "bf16 written as f32" 0 "-> b.npy$" "$trine" run scale --x x.npy --types T=bf16 --y b.npy
expect "and read" 0 "^y f32 \[2, 2\] 1 2 3 4$" "$trine" run scale --x b.npy --y -
expect "in place" 0 "^param f32 \[2\] -> row.npy$" \
    "$trine" run adamw --param row.npy --param-out row.npy --grad row.npy --m row.npy --v row.npy --lr 0.1 --step 1
expect "missing input" 2 "needs --x FILE" "$trine" run scale --y -
expect "a parameter that is no number" 2 "not a finite number" "$trine" run scale --x x.npy --alpha nan
expect "a choice that is none" 2 "not one of" "$trine" run matmul --a x.npy --b x.npy --activation gelo
expect "a parameter out of range" 1 "p is 1.5" "$trine" run dropout --x x.npy --p 1.5
expect "ids out of range" 1 "ids\[0\] = 7" "$trine" run embedding --table x.npy --ids far.npy
expect "ids that are no integers" 1 "element 0 is 0.5" "$trine" run embedding --table x.npy --ids half.npy
expect "shapes that disagree" 1 "but n = 2 from x" "$trine" run rms_norm --x x.npy --weight half.npy
for file in short huge negative complex strings deep text header version nothing missing; do
    expect "bad file: $file" 1 "$file.npy" "$trine" run scale --x $file.npy --y -
done
expect "a directory" 1 "$work" "$trine" run scale --x "$work"
expect "an output that cannot be written" 1 "/nonexistent/y.npy" "$trine" run scale --x x.npy --y /nonexistent/y.npy

# What was there before stays whole: a disk that is full, a second output that cannot be written.
# limited COMMAND...: files may have 1024 bytes.
limited() { (ulimit -f 1; exec "$@"); }
head -c 131072 /dev/zero | tr "\000" @ >threes
{ printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (32768,), }" &&
    cat threes; } >long.npy
cp long.npy kept.npy
expect "a full disk" 1 "long.npy" \
    limited "$trine" run adamw --param long.npy --param-out long.npy --grad long.npy --m long.npy --v long.npy \
    --lr 0.1 --step 1
expect "leaves what is updated in place" 0 "" cmp long.npy kept.npy
expect "a second output that cannot be opened" 1 "/nonexistent/m.npy" \
    "$trine" run adamw --param long.npy --param-out long.npy --grad long.npy --m long.npy \
    --m-out /nonexistent/m.npy --v long.npy --weight_decay 1 --lr 0.1 --step 1
expect "leaves the first" 0 "" cmp long.npy kept.npy
expect "a second output that cannot be written" 1 "/dev/full" \
    "$trine" run adamw --param long.npy --param-out long.npy --grad long.npy --m long.npy --m-out /dev/full \
    --v long.npy --weight_decay 1 --lr 0.1 --step 1
mv out said
expect "says of none that it is written" 1 "" grep -e "-> long.npy" said
expect "and leaves the first too" 0 "" cmp long.npy kept.npy
expect "and no file is left beside" 1 "" sh -c "ls -A | grep '^.trine'"
cp x.npy locked.npy
chmod 444 locked.npy
[ "$(id -u)" = 0 ] || expect "a file that may not be written" 1 "locked.npy: Permission denied" \
    "$trine" run scale --x x.npy --y locked.npy
expect "two outputs in one file" 2 "go to the same file" \
    "$trine" run adamw --param long.npy --param-out long.npy --grad long.npy --m long.npy --m-out long.npy \
    --v long.npy --lr 0.1 --step 1
cp x.npy target.npy
chmod 640 target.npy
ln -s target.npy link.npy
expect "a link as output" 0 "-> link.npy$" "$trine" run scale --x x.npy --alpha 2 --y link.npy
expect "stays one, and its file keeps its rights" 0 "^-rw-r-----" sh -c "ls -l target.npy; test -h link.npy"
expect "and has the result" 0 "^y f32 \[2, 2\] 2 4 6 8$" "$trine" run scale --x target.npy --y -
expect "from a pipe" 0 "^y f32 \[2, 2\] 2 4 6 8$" \
    sh -c "cat x.npy | \"$trine\" run scale --x /dev/stdin --alpha 2 --y -"
expect "a long file from a pipe" 0 "^sum_squares f64 \[1\] 29" \
    sh -c "cat long.npy | \"$trine\" run global_norm_clip --x /dev/stdin --types Q=f64 --sum_squares -"
expect "a short file from a pipe" 1 "/dev/stdin: truncated" \
    sh -c "cat short.npy | \"$trine\" run scale --x /dev/stdin --y -"
expect "a pipe that claims to hold too much" 1 "/dev/stdin: its shape overflows" \
    sh -c "cat huge.npy | \"$trine\" run scale --x /dev/stdin --y -"
expect "to a pipe and on" 0 "^y f32 \[2, 2\] 4 8 12 16$" \
    sh -c "\"$trine\" run scale --x x.npy --alpha 2 --y /dev/stdout |
        \"$trine\" run scale --x /dev/stdin --alpha 2 --y -"
mkfifo pipe.npy
expect "through a named pipe" 0 "^y f32 \[2, 2\] 4 8 12 16$" \
    sh -c "\"$trine\" run scale --x x.npy --alpha 2 --y pipe.npy >/dev/null &
        \"$trine\" run scale --x pipe.npy --alpha 2 --y -; wait"
expect "to standard output that is a file" 0 "-> /dev/stdout$" \
    sh -c "\"$trine\" run scale --x x.npy --y /dev/stdout >std.npy"
"$trine" run scale --x x.npy --y direct.npy >/dev/null
expect "holds the array alone" 0 "" cmp std.npy direct.npy
npy double.npy '<f8' False '1,' '\000\000\000\000\000\000\360\077'
expect "a conversion on the way in" 0 "^trine: x: double.npy has f64, converted to f32$" \
    "$trine" run scale --x double.npy --y -
expect "a conversion on the way out" 0 "^y bf16 \[2, 2\] as f32 -> b.npy$" \
    "$trine" run scale --x x.npy --types T=bf16 --y b.npy
expect "unknown device" 2 'no device "gpu"' "$trine" run scale --x x.npy --device gpu
mkdir modules && echo nothing >modules/trine-none.so
expect "why a device is missing" 2 'no device "none:0": .*/modules/trine-none.so: truncated: 8 bytes' \
    env TRINE_PATH="$PWD/modules" "$trine" run scale --x x.npy --device none:0
expect "why the suite has no device" 1 'no device "none:0": .*/modules/trine-none.so: truncated: 8 bytes' \
    env TRINE_PATH="$PWD/modules" "$trine" check --op scale --device none:0
expect "modules in a relative directory" 0 '^trine: TRINE_PATH has modules, which is not an absolute directory' \
    env TRINE_PATH="$PWD:modules" "$trine" check --op scale --device cpu --cases 1
expect "unknown level" 2 '"v9"' "$trine" run scale --x x.npy --isa v9
expect "unknown kernel" 1 '"fastest"' "$trine" run scale --x x.npy --kernel fastest
expect "no threads" 2 "from 1 to" "$trine" run scale --x x.npy --threads 0
expect "a part of the CPU" 1 "it has threads" "$trine" run scale --x x.npy --device cpu --sm-count 2

expect "bench" 0 "1 measured, 0 skipped" \
    "$trine" bench --op rms_norm --dims "r=64 n=64" --time 0.01 --json old.json --html page.html
expect "bench of energy" 0 "energy: no counter:\|J a call,\|stands still" \
    "$trine" bench --op rms_norm --dims "r=64 n=64" --time 0.01 --energy --grams 400
expect "bench of grams alone" 2 "needs --energy" "$trine" bench --grams 400
expect "bench page" 0 "</svg>" cat page.html
if "$trine" bench --compare old.json old.json 2>&1 | grep -q "built without jansson"; then
    for name in "bench compared with itself" "bench finds what is slower"; do
        count=$((count + 1))
        echo "ok $count - $name # SKIP built without jansson"
    done
else
    expect "bench compared with itself" 0 "1 compared, 0 slower, 0 faster" "$trine" bench --compare old.json old.json
    sed 's/"real_time": /"real_time": 10/' old.json >new.json
    expect "bench finds what is slower" 1 "1 compared, 1 slower" "$trine" bench --compare old.json new.json
fi
expect "bench of a broken report" 1 "text.npy" "$trine" bench --compare old.json text.npy
expect "bench of one report" 2 "needs two files" "$trine" bench --compare old.json
expect "bench of no op" 2 'no op "rms_nrm"' "$trine" bench --op rms_nrm
expect "bench of dispatch" 0 "ns checked and selected" "$trine" bench --dispatch
cp "$trine" alone
alone="env LD_LIBRARY_PATH=$(dirname "$trine")/../dispatch ./alone"
expect "bench without peers" 1 "no trine-peers beside" $alone bench --peers
printf '#!/bin/sh\necho "given: $*"\n' >trine-peers
chmod +x trine-peers
# A script runs a program that is elsewhere.
head -c 2 "$trine" | grep -q '#!' ||
    expect "bench of peers" 0 "^given: --op matmul --time 1$" $alone bench --op matmul --peers --time 1
expect "tune" 0 " 0 failed" "$trine" tune --op rms_norm --dims "r=64 n=64"
expect "tune of two ops" 0 "2 with one kernel only, 0 failed" "$trine" tune --op scale,add --dims "n=64"
printf 'scale small: T=f32 n=64\n# nothing\n\nscale T=f32 n=128 k=5\nscale T=f32 n=256\n' >cases.txt
for command in bench tune; do
    expect "$command of a line with no such dimension" 1 \
        'cases.txt:4: scale has no dimension, type, parameter or tensor "k"' "$trine" $command --cases cases.txt
done
printf 'scale T=f32 n=128\nscael T=f32 n=256\n' >cases.txt
expect "bench of a line with no op" 1 'cases.txt:2: "scael T=f32 n=256" is not an op and a case' \
    "$trine" bench --cases cases.txt --time 0.01
expect "nothing was measured before" 1 "" grep -q roofs out
expect "a page that cannot be written" 1 "/nonexistent/page.html: No such file" \
    "$trine" bench --op scale --dims n=64 --html /nonexistent/page.html
expect "is not measured for" 1 "" grep -q roofs out
expect "tune of no op" 2 'no op "ad"' "$trine" tune --op scale,ad
expect "check of cases by number" 0 "^3 passed, 0 failed" \
    "$trine" check --device cpu --op add --seed 5 --case 3,a0,7 --log check.log
expect "check of one size" 0 "^[1-9][0-9]* passed, 0 failed" \
    "$trine" check --device cpu --op rms_norm,softmax --types T=bf16 --dims n=1536 --cases 20
expect "check of a size by number" 0 "^[1-9][0-9]* passed, 0 failed" \
    "$trine" check --device cpu --op rms_norm --dims "r=2 n=96" --case 3
expect "gradients of convolutions that have no channels" 0 "^[1-9][0-9]* passed, 0 failed" \
    "$trine" check --device cpu --op conv2d_backward --dims "c=0 cg=0 r=0 s=0 k=5" --cases 12
expect "products of many rows and nothing to sum" 0 "^[1-9][0-9]* passed, 0 failed" \
    "$trine" check --device cpu --op matmul --types T=bf16 --dims "g=1 m=200000 n=5 k=0" --cases 2
expect "check of a size that no op has" 1 "no case of these types and dimensions" \
    "$trine" check --device cpu --op add --dims k=3 --cases 5
expect "check of sizes that take long" 1 "no case of these types and dimensions" \
    "$trine" check --device cpu --op matmul --dims "m=4096 n=4096 k=4096" --cases 5
expect "check of what is no size" 1 "no case of these types and dimensions" \
    "$trine" check --device cpu --op dropout --dims "n=64 p=0.5" --cases 5
expect "check of so many cases" 0 "^softmax_backward  *17  *17 " \
    "$trine" check --device cpu --op softmax_backward --types T=bf16 --cases 17
adds() {
    "$@" | awk '/^op / { on = 1; next }
        on && NF == 8 {
            n++
            if ($3 + $4 != $5 + $6) bad = 1
            for (i = 2; i < 8; i++) sum[i] += $i
            if ($1 == "all") for (i = 2; i < 8; i++) if (2 * $i != sum[i]) bad = 1
        }
        END { if (n != 4 || bad) exit 1; print "adds up" }'
}
expect "check's columns add up" 0 "adds up" adds "$trine" check --device cpu --op softmax,add,matmul --cases 12
expect "check of a mistaken call by number" 0 "^add  *0  *0  *1  *1  *0 " "$trine" check --device cpu --op add --case a0
expect "check of what is no type" 1 "no case of these types and dimensions" \
    "$trine" check --device cpu --op add --types bf16 --cases 5
expect "check of an op without a huge case" 0 "^[1-9][0-9]* passed, 0 failed, 1 skipped" \
    "$trine" check --device cpu --op global_norm_clip --huge --cases 1
expect "check's log" 0 "--seed 5 --case 7$" cat check.log
expect "what check logged" 0 "^1 passed, 0 failed" sh -c "\"$trine\" $(sed -n '$s/^trine //p' check.log)"
expect "check in one process" 0 "^3 passed, 0 failed" "$trine" check --device cpu --op add --exact 1 --case 1,2,3
mkdir -p golden/norm
printf 'case even: s=1 n=2\nin x 1x2\n 2*3\nout y 1x2\n 2*0x1p-1\ncase odd: s=1 n=1\nin x 1x1\n 7\nout y 1x1\n 2\n' \
    >golden/norm/softmax.txt
expect "check of golden cases" 1 "^FAIL softmax reference: y\[0,0,0\] is 1 by the reference, but 2" \
    "$trine" check --device cpu --op softmax --golden golden
expect "check of a golden case" 0 "^3 passed, 0 failed" \
    "$trine" check --device cpu --op softmax --golden golden --case g0
expect "check of an op without golden cases" 1 "there are no golden vectors for add" \
    "$trine" check --device cpu --op add --golden golden
expect "golden cases and sizes" 2 "has types and sizes of its own" "$trine" check --golden golden --dims n=3
expect "a golden case of nothing" 2 "need --golden" "$trine" check --op softmax --case g0
expect "check of what is no case" 2 "case 3,x: not numbers" "$trine" check --op add --case 3,x

# field STATUS PATTERN INPUTS LEFT RIGHT [OPTION...]: two programs over finite fields.
field() {
    status=$1 pattern=$2 inputs=$3 left=$4 right=$5
    shift 5
    expect "field: $left" "$status" "$pattern" "$trine" check --exact-field "$left" "$right" --inputs "$inputs" "$@"
}
norm="y = matmul(div(x, sqrt(mean(mul(x, x)))), w)"
xw="x: r n; w: n k"
expect "the library's own programs" 0 "^1[0-9] equal, 0 not$" "$trine" check --exact-field
field 0 "^equal: 32 elements; .* below 2^-1[0-9]*$" "$xw" "$norm" "y = div(matmul(x, w), sqrt(mean(mul(x, x))))" \
    --dims "r=4 n=8 k=8"
field 1 "^differ: element \[0,0\] is [0-9]* on the left" "$xw" "$norm" "div(matmul(x, w), sqrt(sum(mul(x, x))))"
field 1 "^differ: element \[0,0\]" "$xw" "$norm" "div(matmul(x, w), mean(sqrt(mul(x, x))))"
field 0 "^equal: 6 " "x: r n; m: r 1" "softmax(x)" "e = exp(sub(x, m)); div(e, sum(e))" --seed 7
field 1 "^differ" "x: r n; m: r 1" "softmax(x)" "e = exp(sub(x, m)); div(e, sum(exp(x)))"
field 1 "^differ" "x: r n; m: n" "softmax(x)" "softmax(add(x, m))"
field 0 "^equal" "x; y" "exp(add(x, y))" "mul(exp(x), exp(y))"
field 1 "^differ" "x; y" "exp(mul(x, y))" "mul(exp(x), exp(y))"
field 0 "^equal" "x; y" "sqrt(mul(mul(x, x), exp(y)))" "mul(sqrt(mul(x, x)), exp(div(y, 2)))"
field 1 "^differ" "x" "sqrt(mul(x, x))" "x"
field 0 "^equal" "x: n" "mul(x, 1.25)" "div(mul(5, x), 4)"
field 1 "^differ" "x: n" "mul(x, 0.333333333)" "div(x, 3)"
field 0 "^equal" "$xw" "gelu(add(matmul(x, w), 1))" "gelu(add(1, transpose(matmul(transpose(w), transpose(x)))))"
field 1 "^differ" "x: n" "relu(mul(2, x))" "mul(2, relu(x))"
field 0 "^equal" "x: n" "exp(relu(add(x, x)))" "exp(relu(mul(2, x)))"
field 1 "^undecided: no inputs were found" "x" "sqrt(neg(mul(x, x)))" "x"
field 2 "left, at character 16: exp of what has an exp in it" "x" "exp(softmax(x))" "x"
field 2 "right, at character 5: there is no function foo" "x" "x" "foo(x)"
field 2 "right, at character 2: nothing is called y" "x" "x" "y"
field 2 "too few arguments of add" "x" "add(x)" "x"
field 2 'no ")" ends the arguments of exp' "x" "exp(x, x)" "x"
field 2 "as many columns as the other has rows" "$xw" "matmul(w, x)" "x" --dims "r=2 n=3 k=4"
field 2 "shapes that do not fit, in add" "$xw" "add(x, w)" "x" --dims "r=2 n=3 k=4"
field 2 "the left is of 2 by 3 elements, the right of 1 by 3" "x: 2 3" "x" "column_sum(x)"
field 2 "this name is given twice: x" "x" "x = 1" "x"
field 2 '";" or the end belongs here' "x" "x x" "x"
field 2 "a name, a number or a function belongs here" "x" "" "x"
field 2 "the number is too large" "x" "99999999999999999999" "x"
field 2 "nested too deep" "x" "$(printf 'neg(%.0s' $(seq 200))" "x"
field 2 "no input has the dimension q" "x: r" "x" "x" --dims q=2
field 2 "a size is 1 to 64: r" "x: r" "x" "x" --dims r=0
field 2 "more than two dimensions of x" "x: a b c" "x" "x"
field 2 "more than 256 arguments of exp" "x: 64 64" "exp(x)" "exp(x)"
field 2 "goes with --inputs, --dims and --seed alone" "x" "x" "x" --op add
expect "one program" 2 "compares two programs" "$trine" check --exact-field x --inputs x
expect "programs without inputs" 2 "needs --inputs" "$trine" check --exact-field x x
expect "inputs of no program" 2 "needs --exact-field" "$trine" check --inputs x
expect "a word too many" 2 'unexpected argument "add"' "$trine" check add
echo "1..$count"
