#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the RPMs of the filled-in spec and the tarball by Debian's rpmbuild, installs them into an empty root, and runs
# the command there. Debian's rpm knows neither packages of Debian nor Fedora's macros for Meson, so what they would be
# is given. Usage: rpm.sh TARBALL SPEC DIRECTORY
set -eu
rm -rf "$3"
mkdir -p "$3/SOURCES"
tarball=$(realpath "$1") spec=$(realpath "$2")
cd "$3"
cp "$tarball" SOURCES/
cat >macros <<'END'
%_vpath_builddir build
%places --prefix=%{_prefix} --libdir=%{_libdir} --libexecdir=%{_libexecdir} --datadir=%{_datadir} --mandir=%{_mandir}
%meson meson setup %{places} --wrap-mode=nodownload --auto-features=enabled --werror %{_vpath_builddir}
%meson_build ninja -C %{_vpath_builddir} --quiet
%meson_install DESTDIR=%{buildroot} meson install -C %{_vpath_builddir} --no-rebuild --quiet
END
for package in hwloc jansson scdoc; do
    pkg-config --exists $package || { echo "rpm: there is no $package" >&2; exit 1; }
done
CCACHE_BASEDIR="$PWD/BUILD" rpmbuild -bb --nodeps --define "_topdir $PWD" --load macros "$spec" >log 2>&1 ||
    { tail -n 50 log; exit 1; }
grep -E 'passed, 0 failed' log
root=$PWD/root
mkdir root
# Scriptlets there are none, so that an empty root does; what is required of others is Fedora's to have.
find RPMS -name '*.rpm' ! -name '*debug*' -exec rpm --root "$root" --dbpath /db --nodeps -i {} +
rpm --root "$root" --dbpath /db -qa | sort
libdir=$(dirname "$(find root -name 'libtrine.so.[0-9]')")
run() { LD_LIBRARY_PATH=$libdir root/usr/bin/trine "$@"; }
run info | grep -E '^trine|^  cpu'
run check --device cpu --op rms_norm,matmul --budget 10 --seed 1 --quiet
# Nothing is left when they are gone.
rpm --root "$root" --dbpath /db -qa | xargs rpm --root "$root" --dbpath /db -e
left=$(find root ! -type d ! -path 'root/db/*')
[ -z "$left" ] || { echo "rpm: removed, they leave $left" >&2; exit 1; }
find RPMS -name '*.rpm' -printf 'rpm: %f, %s bytes\n' | sort
