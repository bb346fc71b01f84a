#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completion of the trine command, as bash calls it. Speaks TAP. Usage: completion.sh TRINE COMPLETION
PATH=$(dirname "$(realpath "$1")"):$PATH
# shellcheck source=/dev/null
source "$2"
count=0

# completes LINE EXPECTED...: the replies to a tab at the end of LINE, which bash splits into words at spaces,
# "=" and ":".
completes() {
    local line=$1 got
    shift
    COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=() COMPREPLY=()
    local spread=${line//=/ = }
    spread=${spread//:/ : }
    read -ra COMP_WORDS <<<"$spread"
    [[ $line == *[\ =:] ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _trine
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')
    count=$((count + 1))
    if [[ $got == "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ]]; then
        echo "ok $count - $line"
    else
        echo "not ok $count - $line"
        echo "# gives $got"
    fi
}

completes "trine exp" explain
completes "trine help ben" bench
completes "trine explain rms_" rms_norm rms_norm_backward rms_norm_matmul rms_norm_quantize
completes "trine help run swi" swiglu swiglu_backward swiglu_quantize
completes "trine bench --op rope,swig" rope,swiglu rope,swiglu_backward rope,swiglu_quantize
completes "trine bench --op=scal" scale
completes "trine check --pro"
completes "trine run scale --alp" --alpha
completes "trine explain matmul --case square" "square\\ 1024" "square\\ 2048" "square\\ 4096" "square\\ 2048\\ bf16" \
    "square\\ 1024\\ f16" "square\\ 2048\\ int8" "square\\ 1024\\ f64" "square\\ 4096\\ e4m3" \
    "square\\ 4096\\ e5m2\\ by\\ e4m3" "square\\ 4096\\ e4m3\\ row-major" "square\\ 4096\\ tf32"
completes "trine run rms_norm --types T" T=bf16 T=f16 T=f32
completes "trine run rms_norm --types T=b" bf16
completes "trine run rms_norm --types T=bf16,W=f" f16 f32
kernel=$(trine check --list --op scale | grep -o 'cpu:cpu_[a-z0-9_]*' | sed 's/cpu://')
completes "trine tune --op scale --kernel $kernel" "$kernel"
completes "trine info --device cp" cpu
echo "1..$count"
