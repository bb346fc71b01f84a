#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program from outside: what it prints and how it fails. Speaks TAP. Usage: check.sh PROGRAM SOURCE_ROOT GPT
program=$(realpath "$1")
source=$(realpath "$2")
gpt=$(realpath "$3")
golden=$source/tests/golden/generate
count=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C TRINE_TUNE="$work/tune"
unset TRINE_ISA TRINE_KERNEL TRINE_DEVICE TRINE_BACKENDS TRINE_VERBOSE

told() { # NAME, after a command
    got=$?
    count=$((count + 1))
    [ $got -eq 0 ] && echo "ok $count - $1" || echo "not ok $count - $1"
}

# The model ends with the status, and says something that matches on standard error.
fails() { # STATUS PATTERN ARGUMENTS
    status=$1 pattern=$2
    shift 2
    "$program" "$@" >out 2>err </dev/null
    [ $? -eq "$status" ] && grep -q -e "$pattern" err
    told "refused: $pattern"
}

for model in tiny.gguf hugging_face; do
    "$program" "$golden/$model" --prompt 'the License' --tokens 12 >first 2>speed
    told "$model continues a text"
    [ "$(head -c 11 first)" = 'the License' ] && [ "$(wc -c <first)" -gt 12 ] && iconv -f UTF-8 -t UTF-8 first >again
    told 'the text begins with the prompt, and is UTF-8'
    grep -q 'prefill: [1-9][0-9]* tokens, .* tokens/s; decode: [0-9]* tokens' speed
    told 'its speed is told'
    printf 'the License' | "$program" "$golden/$model" --tokens 12 2>speed | cmp - first
    told 'so it does from standard input'
    set -- "$golden/$model" --prompt a --tokens 30 --temperature 1.5 --top-k 100
    "$program" "$@" --seed 5 >first 2>speed && "$program" "$@" --seed 5 2>speed | cmp - first
    told 'the same seed draws the same'
    "$program" "$@" --seed 6 >again 2>speed && ! cmp -s again first
    told 'another does not'
    "$program" "$golden/$model" --perplexity "$source/LICENSE" --context 64 >out 2>err
    awk -v got="$(sed -n 's/perplexity \([0-9.]*\) .*/\1/p' out)" -v model=$model \
        '$1 == model { wrong = got / $2 - 1; found = wrong < 1e-5 && wrong > -1e-5 } END { exit !found }' \
        "$golden/perplexity.txt"
    told "perplexity: $(cut -d' ' -f2 out)"
    printf 'the License\n\nand\nWork, or\n' >lines
    for line in 'the License' and 'Work, or'; do
        "$program" "$golden/$model" --prompt "$line" --tokens 20 2>speed || break
    done >first
    "$program" "$golden/$model" --prompts lines --tokens 20 --slots 2 --speculate 3 2>speed | cmp - first
    told 'prompts of a file are continued as they are alone'
    grep -q 'prefill: [1-9].*guesses: [0-9]*, of which [0-9]* came true' speed
    told 'and guesses are counted'
    "$program" "$golden/$model" --prompts lines --chat --tokens 3 >out 2>err && [ "$(grep -c . out)" -ge 3 ]
    told 'or answered'
    printf 'hi\n\nand now?\n' | "$program" "$golden/$model" --chat --tokens 3 >out 2>err && [ "$(grep -c . out)" -ge 1 ]
    told 'a conversation of two turns'
done

# The example that trains, and what it exports.
"$gpt" --text "$source/LICENSE" --steps 20 --layers 2 --width 32 --heads 4 --kv-heads 2 --hidden 48 --context 64 \
    --batch 4 --vocabulary 300 --sample 0 --svg curve.svg --export tiny >out 2>err
told 'a small model is trained and exported'
"$program" tiny --prompt 'the L' >first 2>speed && "$program" tiny/model.gguf --prompt 'the L' 2>speed | cmp - first
told 'both forms of it continue a text alike'
[ "$(head -c 5 first)" = 'the L' ] && grep -q 'prefill: 5 tokens, .* decode: 59 tokens' speed
told 'up to the end of its context'
"$gpt" --text "$source/LICENSE" --steps 1 --sample 0 --svg curve.svg --export missing/tiny >out 2>err
[ $? -eq 1 ] && grep -q 'missing/tiny: No such file' err
told 'a folder that cannot be made'

fails 2 'one model is needed'
fails 2 "'x' is not a value it takes" a --tokens x
fails 2 'it is of --chat' a --system x
fails 2 'does not go with it' a --prompts x --prompt y
fails 2 'they are of --prompts' a --slots 2
fails 2 'they are of --prompts' a --cache 200
fails 2 'too many for so many guesses' a --prompts x --slots 20 --speculate 4
fails 2 'no prompt goes with it' a --perplexity x --prompt y
fails 1 'missing: No such file' missing
fails 1 'not a GGUF file' "$source/LICENSE"
fails 1 'no such device' "$golden/tiny.gguf" --device nothing:7
fails 1 'do not fit into a context of 2' "$golden/tiny.gguf" --prompt 'the License and more' --context 2
fails 1 'has no room for prompt 1' "$golden/tiny.gguf" --prompts "$source/NEWS" --cache 1
fails 1 'the prompt is empty' "$golden/tiny.gguf" --prompt ''
echo "1..$count"
