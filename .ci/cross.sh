#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for another architecture and runs under qemu-user: the golden vectors and a short selection of the
# agreement suite; on a big-endian one the tests of the command, which reads and writes files.
# Usage: cross.sh aarch64|ppc64el|riscv64|s390x
set -eu
arch=${1:-}
endian=little family=$arch triplet=$arch-linux-gnu qemu=qemu-$arch flags=""
case $arch in
aarch64 | riscv64) ;;
ppc64el) family=ppc64 triplet=powerpc64le-linux-gnu qemu=qemu-ppc64le ;;
# Of z14, the first whose vectors hold floats. Without, vectors are scalars, as they are on riscv64.
s390x) endian=big flags="-march=z14" ;;
*) echo "cross: takes aarch64, ppc64el, riscv64 or s390x" >&2; exit 2 ;;
esac
# At -O3 kernels take minutes each where vectors are scalars.
optimization=1
[ "$arch" != aarch64 ] || optimization=2
build=build-$arch
budget=${DEV_CROSS_BUDGET:-60}
if [ ! -f "$build/build.ninja" ]; then
    # Meson looks for ccache itself where it compiles for this machine alone.
    cached=""
    ! command -v ccache >/dev/null || cached="'ccache', "
    cat >"$build.ini" <<END_OF_FILE
[binaries]
c = [$cached'$triplet-gcc']
ar = '$triplet-ar'
strip = '$triplet-strip'
pkgconfig = 'false'
exe_wrapper = ['$qemu', '-L', '/usr/$triplet']

[host_machine]
system = 'linux'
cpu_family = '$family'
cpu = '$arch'
endian = '$endian'
END_OF_FILE
    meson setup "$build" --cross-file "$build.ini" --werror -Doptimization=$optimization -Dc_args="$flags" \
        -Dhwloc=disabled -Dcuda=disabled -Dhip=disabled -Dman=disabled -Dpeers=disabled -Dpython=disabled \
        -Dcpp=disabled -Dfortran=disabled -Drust=disabled >"$build.log" 2>&1 ||
        { cat "$build.log"; rm -f "$build.log"; exit 1; }
    rm -f "$build.log"
fi
ninja -C "$build" --quiet tools/trine
emulated() { # PROGRAM ARGUMENTS
    $qemu -L "/usr/$triplet" -E LD_LIBRARY_PATH="$PWD/$build/dispatch" "$@"
}
trine=$build/tools/trine
# Modules are compiled with a header that this machine has made of the specification: the other one must agree.
hash=$(emulated "$trine" info | sed -n '1s/.*specification \([0-9a-f]*\),.*/\1/p')
grep -q "TRINE_SPEC_HASH UINT64_C(0x$hash)" "$build/spec/spec_hash.h" ||
    { echo "cross: libtrine has specification $hash, not that of $build/spec/spec_hash.h" >&2; exit 1; }
emulated "$trine" check --golden tests/golden --quiet
emulated "$trine" check --isa all --seed 3 --budget "$budget" --quiet
# In the other order of bytes: the command on files, which are written byte by byte.
[ $endian = big ] || exit 0
printf '#!/bin/sh\nexec %s -L /usr/%s -E LD_LIBRARY_PATH=%s %s "$@"\n' "$qemu" "$triplet" "$PWD/$build/dispatch" \
    "$PWD/$trine" >"$trine-emulated"
chmod +x "$trine-emulated"
status=0
sh tests/tool.sh "$trine-emulated" >"$build/tool.log" 2>&1 || status=$?
if [ $status -ne 0 ] || grep -q '^not ok' "$build/tool.log"; then cat "$build/tool.log"; exit 1; fi
echo "cross: $(grep -c '^ok' "$build/tool.log") tests of the command passed"
