#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python package as pip builds and installs it: its wheel in a virtual environment with NumPy alone, then in one
# with PyTorch and JAX, which stays in the user's cache. Usage: python.sh BUILD, in the root of a checkout.
set -eu
build=$1
work=$PWD/build-python
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trine/python
# The frameworks and what they ask for. Of CUDA's libraries PyTorch finds the rest in CUDA 13 on the machine.
frameworks="torch==2.15.0 nvidia-nccl-cu13==2.30.7 nvidia-nvshmem-cu13==3.7.2 nvidia-cusparselt-cu13==0.8.1
    nvidia-cufile filelock typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec setuptools
    jax==0.10.2 jaxlib==0.10.2 scipy opt_einsum
    transformers==5.24.0 huggingface-hub tokenizers safetensors pyyaml regex tqdm requests charset-normalizer idna
    urllib3 certifi hf-xet httpx httpcore anyio h11 sniffio typer click rich markdown-it-py mdurl shellingham"
common="numpy ml_dtypes pytest iniconfig packaging pluggy pygments expecttest"

if ! /usr/bin/python3 -m pip download -q --no-deps -d "$work/pip" iniconfig >/dev/null 2>&1; then
    echo "python: skipped, PyPI cannot be reached"
    exit 0
fi
ninja -C "$build" --quiet bindings/spec.json
export TRINE_SPEC_JSON="$PWD/$build/bindings/spec.json" PYTHONDONTWRITEBYTECODE=1
tests="-m pytest -q -p no:cacheprovider $PWD/bindings/python/tests"

rm -rf "$work" && mkdir -p "$work" "$cache"
/usr/bin/python3 -m venv "$work/plain"
"$work/plain/bin/pip" wheel -q --no-deps -w "$work" . -Csetup-args=-Dcuda=disabled -Csetup-args=-Dhip=disabled \
    -Csetup-args=--werror
wheel=$(echo "$work"/trine-*-cp311-abi3-*.whl)
"$work/plain/bin/pip" install -q "$wheel" numpy pytest
(cd / && "$work/plain/bin/python" $tests)

stamp=$(echo "$frameworks $common" | cksum | cut -d' ' -f1)
if [ ! -f "$cache/$stamp/whole" ]; then
    rm -rf "$cache/$stamp"
    /usr/bin/python3 -m venv "$cache/$stamp"
    # shellcheck disable=SC2086
    "$cache/$stamp/bin/pip" install -q --no-deps $frameworks $common
    touch "$cache/$stamp/whole"
fi
"$cache/$stamp/bin/pip" install -q --no-deps --force-reinstall "$wheel"
(cd / && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64 "$cache/$stamp/bin/python" $tests)
echo "python: $(basename "$wheel"), $(du -h "$wheel" | cut -f1)"
