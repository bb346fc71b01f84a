# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib

import pytest

SPEC = json.loads((pathlib.Path(os.environ["TRINE_SPEC_JSON"])).read_text())
OPS = {op["name"]: op for op in SPEC["ops"]}


@pytest.fixture(params=OPS)
def op(request):
    """Each op of the specification."""
    return OPS[request.param]
