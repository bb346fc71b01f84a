#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into an empty directory and builds examples/linking against it, pkg-config from C and C++, and CMake; the
# README's example; the examples of the bindings; and examples/kernel.
set -eu
build=${DEV_BUILD:-build}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
DESTDIR=$prefix meson install -C "$build" --no-rebuild --quiet
libdir=$(dirname "$(find "$prefix" -name trine.pc)")/..
libdir=$(cd "$libdir" && pwd)
# The tree may be moved: nothing says where it was meant to be.
export LD_LIBRARY_PATH="$libdir" PKG_CONFIG_PATH="$libdir/pkgconfig"
[ "$(realpath "$(pkg-config --variable=plugindir trine)")" = "$(realpath -m "$libdir"/trine-0)" ] || {
    echo "trine.pc has another place for modules: is pkgconfig.relocatable off in this build?" >&2
    exit 1
}
# shellcheck disable=SC2046
gcc -std=c99 -Wall -Wextra -Werror examples/linking/main.c -o "$prefix/c" $(pkg-config --cflags --libs trine)
"$prefix/c"
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Wextra -Werror examples/linking/main.cpp -o "$prefix/cpp" $(pkg-config --cflags --libs trine)
"$prefix/cpp"
# The objects link without the library as well, as they do from libtrine.a of -Ddefault_library=static.
hwloc=""
! nm -D "$build/dispatch/libtrine.so" | grep -q ' U hwloc_' || hwloc=$(pkg-config --libs hwloc)
# shellcheck disable=SC2046,SC2086
gcc -std=c99 -Wall -Wextra -Werror examples/linking/main.c -o "$prefix/static" $(pkg-config --cflags trine) \
    $(find "$build"/dispatch/libtrine.so.*.p -name '*.o') -Wl,--start-group "$build/spec/libtrine-spec.a" \
    "$build"/backends/cpu/libtrine-cpu-*.a -Wl,--end-group $hwloc -lm -pthread
"$prefix/static"
root=$(dirname "$(find "$prefix" -type d -name include)")
# The examples of the bindings that the build has, and those of docs/languages.md, from what is installed alone.
program() { # LANGUAGE FILE
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" docs/languages.md | sed '1d;$d' >"$prefix/$2"
    [ -s "$prefix/$2" ] || { echo "docs/languages.md has no program in $1" >&2; exit 1; }
}
flags=$(pkg-config --cflags --libs trine)
program c first.c
# shellcheck disable=SC2086
gcc -std=c11 -Wall -Wextra -Werror "$prefix/first.c" -o "$prefix/first-c" $flags
"$prefix/first-c"
if find "$prefix" -name trine.hpp | grep -q .; then
    program cpp first.cpp
    for source in "$prefix/first.cpp" examples/cpp/block.cpp; do
        # shellcheck disable=SC2086
        g++ -std=c++17 -Wall -Wextra -Werror "$source" -o "$prefix/of-cpp" $flags
        "$prefix/of-cpp"
    done
fi
module=$(find "$prefix" -name trine.f90)
if [ -n "$module" ] && command -v gfortran >/dev/null; then
    program fortran first.f90
    for source in "$prefix/first.f90" examples/fortran/block.f90; do
        # shellcheck disable=SC2086
        gfortran -std=f2018 -Wall -Wextra -Werror -J "$prefix" "$module" "$source" -o "$prefix/of-fortran" $flags
        "$prefix/of-fortran"
    done
fi
crate=$(find "$prefix" -type d -name trine-sys)
if [ -n "$crate" ] && command -v rustc >/dev/null; then
    program rust first.rs
    rust() { rustc --edition=2021 -D warnings "$@"; }
    rust --crate-type=rlib --crate-name=trine_sys "$crate/src/lib.rs" -o "$prefix/libtrine_sys.rlib"
    for source in "$prefix/first.rs" examples/rust/block.rs; do
        rust --extern trine_sys="$prefix/libtrine_sys.rlib" -L "$libdir" "$source" -o "$prefix/of-rust"
        "$prefix/of-rust"
    done
fi
cmake -S examples/linking -B "$prefix/cmake" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$prefix/cmake" >/dev/null
# A backend that is not there is not found.
components() { # COMPONENT...
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfind_package(trine CONFIG REQUIRED COMPONENTS %s)\n' \
        "$*" >"$prefix/CMakeLists.txt"
    rm -rf "$prefix/components"
    cmake -S "$prefix" -B "$prefix/components" -DCMAKE_PREFIX_PATH="$root" >"$prefix/components.log" 2>&1
}
unlike() { cat "$prefix/components.log"; exit 1; }
components cpu || unlike
! components cpu none || { echo "find_package finds a backend that does not exist" >&2; exit 1; }
grep -q 'has no module' "$prefix/components.log" || unlike
for backend in cuda hip; do
    if [ -f "$libdir/trine-0/trine-$backend.so" ]; then components cpu $backend; else ! components cpu $backend; fi ||
        unlike
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
trine=$(find "$prefix" -path '*bin/trine')
"$trine" info >/dev/null
# So does a tree that was moved, to a path with a space, and that cannot be written. Without its modules it says where
# they would come from.
moved="$prefix/a moved tree"
cp -r "$(dirname "$root")" "$moved"
chmod -R a-w "$moved"
trap 'chmod -R u+w "$prefix"; rm -rf "$prefix"' EXIT
in_moved() { echo "$moved/${1#"$(dirname "$root")"/}"; }
moved_info() {
    LD_LIBRARY_PATH=$(in_moved "$libdir") "$(in_moved "$trine")" info >"$prefix/log" 2>&1 ||
        { cat "$prefix/log"; exit 1; }
}
moved_info
for backend in cuda hip; do
    if [ -f "$libdir/trine-0/trine-$backend.so" ]; then
        grep -q "^  $backend  *$moved/.*/trine-$backend.so, version" "$prefix/log"
    else
        grep -q "^  $backend  *not installed: the package libtrine0-$backend, or" "$prefix/log"
    fi || { cat "$prefix/log"; exit 1; }
done
chmod -R u+w "$moved"
find "$moved" -name 'trine-*.so' -delete
moved_info
for backend in cuda hip; do
    grep -q "^  $backend  *not installed: the package libtrine0-$backend, or" "$prefix/log" ||
        { cat "$prefix/log"; exit 1; }
done
# Kernels from elsewhere: seen, chosen, judged and measured like ours, and refused where they are wrong.
mkdir "$prefix/kernels" "$prefix/wrong"
flags="-std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags trine)"
# shellcheck disable=SC2086
gcc $flags examples/kernel/my_scale.c -o "$prefix/kernels/trine-my_scale.so"
# shellcheck disable=SC2086
gcc $flags -DWRONG examples/kernel/my_scale.c -o "$prefix/wrong/trine-my_scale.so"
mine() { TRINE_TUNE=/dev/null TRINE_PATH="$prefix/kernels" "$trine" "$@" >"$prefix/log" 2>&1; }
said() {
    grep -q -e "$1" "$prefix/log" && return
    cat "$prefix/log"
    echo "install: examples/kernel: no line has \"$1\"" >&2
    exit 1
}
mine info || { cat "$prefix/log"; exit 1; }
said "trine-my_scale.so, version 1.0, extends cpu, 1 kernel"
mine explain scale --case f32 || { cat "$prefix/log"; exit 1; }
said "chosen: my_scale"
mine check --device cpu --op scale --kernel my_scale --budget 5 || { cat "$prefix/log"; exit 1; }
mine bench --device cpu --op scale --case f32 --kernel my_scale --time 0.05 || { cat "$prefix/log"; exit 1; }
said "my_scale"
! TRINE_TUNE=/dev/null TRINE_PATH="$prefix/wrong" \
    "$trine" check --device cpu --op scale --kernel my_scale --budget 5 >"$prefix/log" 2>&1 ||
    { echo "install: examples/kernel: trine check passes a kernel that is wrong" >&2; exit 1; }
said "my_scale"
TRINE_TUNE=/dev/null "$trine" judge examples/kernel/tasks/softmax.c --op softmax --types T=f32 --budget 3 \
    --dims "T=f32 s=16 n=64" >"$prefix/log" 2>&1 || { cat "$prefix/log"; exit 1; }
said "^correct: "
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null; then
    kernel=$(pwd)/examples/kernel
    # shellcheck disable=SC2086
    (cd "$prefix" && PATH=$PATH:/usr/local/cuda/bin nvcc -std=c++17 -fatbin -gencode arch=compute_80,code=sm_80 \
        -gencode arch=compute_80,code=compute_80 "$kernel/my_scale.cu" -o my_scale.fatbin &&
        gcc $flags "$kernel/my_scale_cuda.c" -o kernels/trine-my_scale_cuda.so)
    mine info
    if grep -q "^  cuda .*device" "$prefix/log"; then
        said "my_scale_cuda.so, version 1.0, extends cuda, 1 kernel"
    else
        said 'my_scale_cuda.so, version 1.0, refused: extends "cuda"'
    fi
    # Over the stand-in for the driver the launch arrives there under its name, though no code runs.
    stub=$(realpath "$build/emulators/cuda/libcuda-stub.so" 2>/dev/null || true)
    if [ -f "$stub" ] && [ -f "$libdir/trine-0/trine-cuda.so" ]; then
        # A chip that the module has machine code for.
        for chip in sm_90a sm_80; do [ ! -f "$build/backends/cuda/scale.$chip.cubin" ] || break; done
        : >"$prefix/launches"
        env LD_PRELOAD="$stub" STUB_CHIP="$chip" LAUNCHES="$prefix/launches" TRINE_TUNE=/dev/null \
            TRINE_PATH="$prefix/kernels" "$trine" bench --device cuda:0 --op scale --case "in cache" \
            --kernel my_scale --time 0.01 >/dev/null 2>&1 || true
        cp "$prefix/launches" "$prefix/log"
        said "my_scale$"
    fi
fi
echo "install: the library links from C, C++, pkg-config and CMake, and takes kernels from elsewhere"
