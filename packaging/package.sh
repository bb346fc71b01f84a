#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the release tarball from the committed tree, and Debian packages from the tarball, in build-package/.
set -eu
version=$(sed -n 's/.*TRINE_VERSION "\(.*\)"/\1/p' include/trine/version.h)
rm -rf build-package
mkdir build-package
git archive --prefix="trine-$version/" HEAD | tar -x -C build-package
tar -C build-package -czf "build-package/trine_$version.orig.tar.gz" --sort=name --mtime=@0 --owner=0 --group=0 \
    --numeric-owner "trine-$version"
cp -r packaging/debian "build-package/trine-$version/debian"
cd "build-package/trine-$version"
dpkg-buildpackage -us -uc
cd ..
ls -l ./*.deb ./*.orig.tar.gz
if command -v lintian >/dev/null; then lintian --fail-on error ./*.changes; fi
