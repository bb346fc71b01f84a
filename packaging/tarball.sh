#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes trine-VERSION.tar.gz of the committed tree: the same bytes for any user, umask, time zone and day.
# Usage: tarball.sh DIRECTORY
set -eu
version=$(sed -n 's/.*TRINE_VERSION "\(.*\)"/\1/p' include/trine/version.h)
file=$1/trine-$version.tar.gz
# Times are the commit's; gzip writes neither a name nor a time.
git -c tar.umask=0022 archive --format=tar --prefix="trine-$version/" HEAD | gzip -9n >"$file"
sha256sum "$file"
