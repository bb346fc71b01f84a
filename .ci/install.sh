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
# The tree may be moved: nothing says where it was meant to be.
export LD_LIBRARY_PATH="$libdir" PKG_CONFIG_PATH="$libdir/pkgconfig"
[ "$(realpath "$(pkg-config --variable=plugindir trine)")" = "$(realpath -m "$libdir"/trine-0)" ] || { echo "trine.pc has another place for modules: is pkgconfig.relocatable off in this build?" >&2; exit 1; }
# shellcheck disable=SC2046
gcc -std=c99 -Wall -Wextra -Werror examples/linking/main.c -o "$prefix/c" $(pkg-config --cflags --libs trine)
"$prefix/c"
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Wextra -Werror -x c++ examples/linking/main.cpp -o "$prefix/cpp" $(pkg-config --cflags --libs trine)
"$prefix/cpp"
cmake -S examples/linking -B "$prefix/cmake" -DCMAKE_PREFIX_PATH="$(dirname "$(find "$prefix" -type d -name include)")" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/cmake" >/dev/null
# A backend that is not there is not found.
root=$(dirname "$(find "$prefix" -type d -name include)")
components() { # COMPONENT...
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfind_package(trine CONFIG REQUIRED COMPONENTS %s)\n' "$*" >"$prefix/CMakeLists.txt"
    rm -rf "$prefix/components"
    cmake -S "$prefix" -B "$prefix/components" -DCMAKE_PREFIX_PATH="$root" >"$prefix/components.log" 2>&1
}
components cpu || { cat "$prefix/components.log"; exit 1; }
! components cpu none || { echo "find_package finds a backend that does not exist" >&2; exit 1; }
grep -q 'has no module' "$prefix/components.log" || { cat "$prefix/components.log"; exit 1; }
for backend in cuda hip; do
    if [ -f "$libdir/trine-0/trine-$backend.so" ]; then components cpu $backend; else ! components cpu $backend; fi || { cat "$prefix/components.log"; exit 1; }
done
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
