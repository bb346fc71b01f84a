#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for another architecture, and runs golden vectors and a short selection of the agreement suite under
# qemu-user; on a big-endian one also the tests of the command, which reads and writes files. `musl` is this machine's
# architecture with another C library, whose programs run as they are: all three.
# Usage: cross.sh aarch64|ppc64el|riscv64|s390x|musl
set -eu
arch=${1:-}
endian=little family=$arch triplet=$arch-linux-gnu qemu=qemu-$arch flags="" options=""
case $arch in
aarch64 | riscv64) ;;
ppc64el) family=ppc64 triplet=powerpc64le-linux-gnu qemu=qemu-ppc64le ;;
# Of z14, the first whose vectors hold floats. Without, vectors are scalars, as they are on riscv64.
s390x) endian=big flags="-march=z14" ;;
# Debian's libgomp is glibc's.
musl) family=$(uname -m) options="-Dopenmp=disabled" ;;
*) echo "cross: takes aarch64, ppc64el, riscv64, s390x or musl" >&2; exit 2 ;;
esac
# At -O3 kernels take minutes each where vectors are scalars.
optimization=1
[ "$arch" != aarch64 ] || optimization=2
build=build-$arch
budget=${DEV_CROSS_BUDGET:-60}
trine=$build/tools/trine
if [ "$arch" = musl ]; then
    cc=musl-gcc prefix="" runs="needs_exe_wrapper = false" command=$trine
    # The kernel's headers, which are the same for each C library.
    mkdir -p "$build.include"
    for name in linux asm-generic; do ln -sfn /usr/include/$name "$build.include/$name"; done
    ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" "$build.include/asm"
    flags="-idirafter $PWD/$build.include"
else
    cc=$triplet-gcc prefix=$triplet- runs="" command=$trine-emulated
fi
if [ ! -f "$build/build.ninja" ]; then
    # Meson looks for ccache itself where it compiles for this machine alone.
    cached=""
    ! command -v ccache >/dev/null || cached="'ccache', "
    cat >"$build.ini" <<END_OF_FILE
[binaries]
c = [$cached'$cc']
ar = '${prefix}ar'
strip = '${prefix}strip'
pkgconfig = 'false'
$([ "$arch" = musl ] || echo "exe_wrapper = ['$qemu', '-L', '/usr/$triplet']")

[properties]
$runs

[host_machine]
system = 'linux'
cpu_family = '$family'
cpu = '$arch'
endian = '$endian'
END_OF_FILE
    # shellcheck disable=SC2086
    meson setup "$build" --cross-file "$build.ini" --werror -Doptimization=$optimization -Dc_args="$flags" \
        -Dhwloc=disabled -Dcuda=disabled -Dhip=disabled -Dman=disabled -Dpeers=disabled -Dpython=disabled \
        -Dcpp=disabled -Dfortran=disabled -Drust=disabled $options >"$build.log" 2>&1 ||
        { cat "$build.log"; rm -f "$build.log"; exit 1; }
    rm -f "$build.log"
fi
ninja -C "$build" --quiet tools/trine
if [ "$command" != "$trine" ]; then
    printf '#!/bin/sh\nexec %s -L /usr/%s -E LD_LIBRARY_PATH=%s %s "$@"\n' "$qemu" "$triplet" "$PWD/$build/dispatch" \
        "$PWD/$trine" >"$command"
    chmod +x "$command"
fi
# Modules are compiled with a header that this machine has made of the specification: the other one must agree.
hash=$("$command" info | sed -n '1s/.*specification \([0-9a-f]*\),.*/\1/p')
grep -q "TRINE_SPEC_HASH UINT64_C(0x$hash)" "$build/spec/spec_hash.h" ||
    { echo "cross: libtrine has specification $hash, not that of $build/spec/spec_hash.h" >&2; exit 1; }
"$command" check --golden tests/golden --quiet
"$command" check --isa all --seed 3 --budget "$budget" --quiet
# In the other order of bytes, and by another C library's printf: the command on files.
[ $endian = big ] || [ "$arch" = musl ] || exit 0
status=0
sh tests/tool.sh "$command" >"$build/tool.log" 2>&1 || status=$?
if [ $status -ne 0 ] || grep -q '^not ok' "$build/tool.log"; then cat "$build/tool.log"; exit 1; fi
echo "cross: $(grep -c '^ok' "$build/tool.log") tests of the command passed"
