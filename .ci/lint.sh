#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that need no test to run: headers alone, exported symbols, the ABI, needed libraries, includes, text, cppcheck.
# Usage: lint.sh BUILD
set -eu
build=$1
fail() { echo "lint: $*" >&2; exit 1; }

for header in include/trine/*.h "$build"/include/trine/op.h; do
    name=trine/$(basename "$header")
    alone() { # LANGUAGE COMPILER STANDARD
        printf "#include <%s>\ntypedef int used;\n" "$name" |
            "$2" "-std=$3" -pedantic -Wall -Wextra -Werror -Iinclude -I"$build/include" -fsyntax-only -x "$1" - ||
            fail "$name is not $3 by itself"
    }
    alone c gcc c99
    alone c++ g++ c++17
done

# The program that README.md shows, and what other pages show of it.
sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d' >"$build/readme.c"
sed 's/\<trine \*/trine_library */' "$build/readme.c" >"$build/readme.cpp" # C++ has no short name
shown() { # FILE COMPILER STANDARD OPTIONS
    file=$1 compiler=$2 standard=$3
    shift 3
    "$compiler" "-std=$standard" -pedantic -Wall -Wextra -Werror "$@" -Iinclude -I"$build/include" -fsyntax-only \
        "$build/$file" || fail "the program in README.md is not $standard"
}
grep -q TRINE_ARGS "$build/readme.c" || fail "README.md shows no program that calls an op"
shown readme.c gcc c99
shown readme.cpp g++ c++20 -Wno-missing-field-initializers
git grep -nE 'TRINE_ARGS\(|struct_size = sizeof\(trine_[a-z0-9_]*_args' -- '*.md' '*.scd' include examples |
    grep -vE '\{ TRINE_ARGS\([a-z0-9_]+\)[ ,]|define TRINE_ARGS' &&
    fail "arguments are shown otherwise than as { TRINE_ARGS(op), .x = ... }"

if [ -f "$build/bindings/cpp/trine/trine.hpp" ]; then
    for compiler in g++ clang++-22 clang++-19 clang++; do
        command -v $compiler >/dev/null || continue
        for standard in c++17 c++20; do
            echo '#include <trine/trine.hpp>' | $compiler -std=$standard -Wall -Wextra -Wpedantic -Wshadow \
                -Wconversion -Werror -Iinclude -I"$build/include" -I"$build/bindings/cpp" -fsyntax-only -x c++ - ||
                fail "trine.hpp is not $standard by itself, says $compiler"
        done
    done
fi

library=$build/dispatch/libtrine.so
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | grep -v '^TRINE_[0-9]*$' | sort)
echo "$exported" | grep -v '^trine_' && fail "a symbol is exported that is not trine_*"
declared=$(cat include/trine/*.h | tr '\n' ' ' | grep -oE 'TRINE_API [a-z0-9_ *]*\btrine_[a-z0-9_]+ ?\(' |
    grep -oE 'trine_[a-z0-9_]+ ?\($' | tr -d ' (' | sort -u)
if [ "$exported" != "$declared" ]; then
    echo "$exported" >"$build/exported"
    echo "$declared" | diff - "$build/exported" || true
    fail "exported symbols differ from the headers"
fi
python3 .ci/abi.py "$build" || fail "what programs were compiled with is no longer so"
readelf -d "$library" | grep NEEDED | grep -vE 'lib(c|m|hwloc|pthread|dl)\.so|ld-linux' &&
    fail "libtrine needs another library than libc, libm and hwloc"

python3 .ci/number_calls.py || fail "a number is read or written as the program's locale has it"
python3 .ci/includes.py || fail "the include law is broken"
python3 .ci/text.py || fail "a file is not as text is to be"
python3 .ci/subjects.py || fail "the subject of a commit is too long"

git grep -nE '(call|\(call\)|call_\))->(dim|type|tensor)\[[0-9]' -- backends &&
    fail "a place is a number: spec/places/<op>.h has its name"

# Nothing but ops.def lists the ops: each has a row of the matrix, in its order.
sed -n 's/^[0-9][0-9]* *[a-z_]* *\([a-z0-9_]*\) .*/\1/p' spec/ops.def >"$build/ops"
"$build"/tools/trine spec --matrix | sed -n 's/^| \([a-z0-9_]*\) |.*/\1/p' | sed 1d | diff "$build/ops" - ||
    fail "trine spec --matrix has not a row for each row of spec/ops.def"

# Host code, room by room: rooms of kernels see what the build gives them. False alarms are marked where they are.
check() { # OPTIONS FILES
    cppcheck --quiet -j "$(nproc)" --error-exitcode=1 --std=c11 --enable=warning --inline-suppr \
        --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective --suppress=unknownMacro \
        --suppress=nullPointerArithmeticRedundantCheck -Iinclude -I"$build/include" -I. -I"$build" "$@" 2>&1 ||
        fail "cppcheck found something"
}
of() { git ls-files "$@" | grep -v '^tests/fuzz/corpus/'; }
# shellcheck disable=SC2046
{
    check $(of 'spec/*.c' 'dispatch/*.c' 'check/*.c' 'bench/*.c' 'tools/*.c' 'docs/*.c' 'emulators/*.c' 'tests/*.c' \
        'examples/generate/*.c' 'examples/gpt/*.c' 'examples/papers/*.c' \
        'examples/linking/*.c' 'examples/mpi/*.c')
    check '-DTRINE_MODULE(...)=' $(of 'examples/kernel/*.c')
    check -DCPU_LEVEL=baseline $(of 'backends/cpu/*.c')
    check -DSIMT_BACKEND=cuda -Ibackends/cuda/core -Ibackends/cuda/driver $(of 'backends/simt/*.c' 'backends/cuda/*.c')
    # Without the module there is no list of the architectures that it is built for.
    [ ! -f "$build/backends/hip/hip_archs.h" ] ||
        check -DSIMT_BACKEND=hip -Ibackends/hip/core -Ibackends/hip/driver -I"$build/backends/hip" \
            $(of 'backends/hip/*.c')
}
echo "lint: clean"
