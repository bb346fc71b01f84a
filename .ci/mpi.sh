#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds examples/mpi with each MPI that is here, and runs it on 4 processes, which may be more than there are cores.
# Usage: mpi.sh BUILD, in the root of a checkout.
set -eu
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PKG_CONFIG_PATH="$build/meson-uninstalled" LD_LIBRARY_PATH="$build/dispatch" TRINE_TUNE=/dev/null
# Open MPI starts nothing as root unless it is told twice, and looks for ssh, which processes of one machine need not.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
tried=
for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then continue; fi
    # shellcheck disable=SC2046
    "mpicc.$mpi" -std=c11 -O2 -Wall -Wextra -Werror examples/mpi/singular.c -o "$work/$mpi" \
        $(pkg-config --cflags --libs trine) -lm
    timeout 120 "mpirun.$mpi" -n 4 "$work/$mpi" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    grep -q '^4 ranks: ' "$work/log" || { cat "$work/log"; echo "mpi: these are not 4 ranks" >&2; exit 1; }
    echo "$mpi: $(grep '^4 ranks: ' "$work/log")"
    tried="$tried $mpi"
done
[ "$tried" = ' openmpi mpich' ] || { echo "mpi: not tried with both Open MPI and MPICH, but with:$tried" >&2; exit 1; }
! readelf -d "$build/dispatch/libtrine.so" | grep NEEDED | grep -i mpi || { echo "mpi: libtrine links it" >&2; exit 1; }
