# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib

import pytest

# `trine.*` refuses JAX's arrays on a GPU, and most cases hand it some: unless told otherwise, JAX works on the CPU.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
SPEC = json.loads((pathlib.Path(os.environ["TEST_SPEC_JSON"])).read_text())
OPS = {op["name"]: op for op in SPEC["ops"]}


@pytest.fixture(params=OPS)
def op(request):
    """Each op of the specification."""
    return OPS[request.param]
