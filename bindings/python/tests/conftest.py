# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib

import pytest

# Cases hand JAX's arrays to `trine.*`, which takes those of the host.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
SPEC = json.loads((pathlib.Path(os.environ["SPEC_JSON"])).read_text())
OPS = {op["name"]: op for op in SPEC["ops"]}


@pytest.fixture(params=OPS)
def op(request):
    """Each op of the specification."""
    return OPS[request.param]
