#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python package as pip builds and installs it: its wheel in a virtual environment with NumPy alone, then in one
# with PyTorch, JAX and transformers, which stays in the user's cache. What the network does not give is not tested, and
# said. Usage: python.sh BUILD, in the root of a checkout.
set -eu
build=$1 root=$PWD work=$PWD/build-python
# Of CUDA's libraries PyTorch finds those that are not named here in CUDA 13 on the machine.
torch="torch==2.15.0 nvidia-nccl-cu13==2.30.7 nvidia-nvshmem-cu13==3.7.2 nvidia-cusparselt-cu13==0.8.1 nvidia-cufile"
others="filelock typing-extensions sympy networkx jinja2 fsspec setuptools expecttest jax==0.10.2 transformers==5.24.0
    ml_dtypes numpy pytest pytest-xdist"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}/usr/local/cuda/lib64"
export TEST_SPEC_JSON="$root/$build/bindings/spec.json" TEST_TOOL="$root/$build/tools/trine" PYTHONDONTWRITEBYTECODE=1

suite() { # ENVIRONMENT
    (cd / && "$1/bin/python" -m pytest -q -n "$(nproc)" -p no:cacheprovider "$root/bindings/python/tests")
}

frameworks() { # ENVIRONMENT: PyTorch and JAX in it; false if they cannot be had
    [ ! -f "$1/whole" ] || return 0
    rm -rf "$1"
    # shellcheck disable=SC2086
    /usr/bin/python3 -m venv "$1" && "$1/bin/pip" install -q --no-deps $torch && "$1/bin/pip" install -q $others &&
        "$1/bin/python" -c 'import torch, jax, transformers' && touch "$1/whole"
}

rm -rf "$work" build-wheel
mkdir -p "$work"
/usr/bin/python3 -m venv "$work/plain"
# Debian's pip takes a setting but once.
if ! "$work/plain/bin/pip" install -q --upgrade pip numpy pytest pytest-xdist; then
    echo "python: not tested, PyPI cannot be reached"
    exit 0
fi
ninja -C "$build" --quiet bindings/spec.json
"$work/plain/bin/pip" wheel -q --no-deps -w "$work" . -Csetup-args=-Dcuda=disabled -Csetup-args=-Dhip=disabled \
    -Csetup-args=--werror -Cbuild-dir=build-wheel
wheel=$(echo "$work"/trine-*-cp311-abi3-*.whl)
"$work/plain/bin/pip" install -q "$wheel"
suite "$work/plain"

environment=${XDG_CACHE_HOME:-$HOME/.cache}/trine/python-$(echo "$torch $others" | cksum | cut -d' ' -f1)
if frameworks "$environment"; then
    "$environment/bin/pip" install -q --no-deps --force-reinstall "$wheel"
    suite "$environment"
else
    echo "python: not tested with PyTorch and JAX, which could not be installed"
fi
echo "python: $(basename "$wheel"), $(du -h "$wheel" | cut -f1)"
