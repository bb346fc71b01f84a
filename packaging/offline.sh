#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the release tarball, with its tools, tests, examples and pages, and runs some of the tests, where there is no
# network: a build downloads nothing. Device code is left out, since its compilers are the same programs either way.
# Usage: offline.sh TARBALL DIRECTORY
set -eu
rm -rf "$2"
mkdir -p "$2"
tar -C "$2" -xzf "$1"
cd "$2"/trine-*
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
own=
[ "$(id -u)" = 0 ] || own=--map-root-user
# shellcheck disable=SC2016
unshare --net $own sh -euc '
python3 - <<END
import errno, socket, sys
try:
    socket.create_connection(("192.0.2.1", 443), timeout=5)
except OSError as error:
    sys.exit(error.errno != errno.ENETUNREACH)
sys.exit("there is a network")
END
meson setup build --wrap-mode nodownload --werror -Dcuda=disabled -Dhip=disabled -Dpeers=disabled >setup.log 2>&1 ||
    { cat setup.log; exit 1; }
ninja -C build --quiet
meson test -C build --no-rebuild api derive dispatch environment fork functions places plugins tables threads tuning \
    >test.log 2>&1 || { cat test.log; exit 1; }
sed -n "s/^Ok: *\([0-9]*\).*/\1/p" test.log >passed
build/tools/trine check --device cpu --budget 20 --seed 1 --quiet
'
echo "offline: built without a network; $(cat passed) tests passed"
