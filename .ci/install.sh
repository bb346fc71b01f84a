#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into an empty directory and builds examples/linking against it: pkg-config from C and C++, and CMake.
set -eu
build=${DEV_BUILD:-build}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
DESTDIR=$prefix meson install -C "$build" --no-rebuild --quiet
libdir=$(dirname "$(find "$prefix" -name trine.pc)")/..
libdir=$(cd "$libdir" && pwd)
export LD_LIBRARY_PATH="$libdir" PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$prefix"
# shellcheck disable=SC2046
gcc -std=c99 -Wall -Wextra -Werror examples/linking/main.c -o "$prefix/c" $(pkg-config --cflags --libs trine)
"$prefix/c"
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Wextra -Werror -x c++ examples/linking/main.cpp -o "$prefix/cpp" $(pkg-config --cflags --libs trine)
"$prefix/cpp"
cmake -S examples/linking -B "$prefix/cmake" -DCMAKE_PREFIX_PATH="$(dirname "$(find "$prefix" -type d -name include)")" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/cmake" >/dev/null
"$prefix/cmake/linking-c"
"$prefix/cmake/linking-cpp"
# The README's example is code, not decoration.
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;/^```$/,$d' >"$prefix/readme.c"
[ -s "$prefix/readme.c" ] || { echo "README.md has no C example" >&2; exit 1; }
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror "$prefix/readme.c" -o "$prefix/readme" $(pkg-config --cflags --libs trine) -lm
"$prefix/readme"
# The installed command finds the installed library and says what it has.
"$(find "$prefix" -path '*bin/trine')" info >/dev/null
echo "install: the library links from C, C++, pkg-config and CMake"
