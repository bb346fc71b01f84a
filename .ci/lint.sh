#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that need no test to run: headers alone, exported symbols, needed libraries, shell style. Usage: lint.sh BUILD
set -eu
build=$1
fail() { echo "lint: $*" >&2; exit 1; }

for header in include/trine/*.h "$build"/include/trine/op.h; do
    name=trine/$(basename "$header")
    printf "#include <%s>\ntypedef int used;\n" "$name" | gcc -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude -I"$build/include" -fsyntax-only -x c - || fail "$name is not C99 by itself"
    printf "#include <%s>\ntypedef int used;\n" "$name" | g++ -std=c++17 -pedantic -Wall -Wextra -Werror -Iinclude -I"$build/include" -fsyntax-only -x c++ - || fail "$name is not C++17 by itself"
done

library=$build/dispatch/libtrine.so
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | grep -v '^TRINE_0$' | sort)
echo "$exported" | grep -v '^trine_' && fail "a symbol is exported that is not trine_*"
declared=$(cat include/trine/*.h | tr '\n' ' ' | grep -oE 'TRINE_API [a-z0-9_ *]*\btrine_[a-z0-9_]+ ?\(' | grep -oE 'trine_[a-z0-9_]+ ?\($' | tr -d ' (' | sort -u)
[ "$exported" = "$declared" ] || { echo "$exported" >"$build/exported"; echo "$declared" | diff - "$build/exported" || true; fail "exported symbols differ from the headers"; }
readelf -d "$library" | grep NEEDED | grep -vE 'lib(c|m|hwloc|pthread|dl)\.so|ld-linux' && fail "libtrine needs another library than libc, libm and hwloc"

python3 .ci/numbers.py || fail "a number is read or written as the program's locale has it"
python3 .ci/includes.py || fail "the include law is broken"

git grep -nE '(call|\(call\)|call_\))->(dim|type|tensor)\[[0-9]' -- backends && fail "a place is a number: spec/places/<op>.h has its name"

# Nothing but ops.def lists the ops: each has a row of the matrix, in its order.
sed -n 's/^[0-9][0-9]* *[a-z]* *\([a-z0-9_]*\) .*/\1/p' spec/ops.def >"$build/ops"
"$build"/tools/trine spec --matrix | sed -n 's/^| \([a-z0-9_]*\) |.*/\1/p' | sed 1d | diff "$build/ops" - || fail "trine spec --matrix has not a row for each row of spec/ops.def"

cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning --inline-suppr --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective \
    --suppress=unknownMacro --suppress=nullPointerArithmeticRedundantCheck -Iinclude -I"$build/include" -I. dispatch spec/expr.c spec/plan.c spec/ref.c tools 2>&1 || fail "cppcheck found something"

git ls-files '*.c' '*.h' '*.sh' '*.build' '*.py' dev .ci/run | while read -r file; do
    grep -q 'SPDX-License-Identifier' "$file" || case $file in *meson.build | *.def) ;; *) fail "$file has no SPDX line" ;; esac
    grep -nP '\t| +$' "$file" | head -n 3 | grep . && fail "$file has tabs or trailing space"
    [ -z "$(tail -c 1 "$file")" ] || fail "$file lacks a newline at its end"
done
echo "lint: clean"
