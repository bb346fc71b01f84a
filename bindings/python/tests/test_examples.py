# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation (docs/site/examples.py): each program runs, and the command that stands beside it
makes of the same inputs the same outputs."""
import os
import pathlib
import shlex
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "docs" / "site"))
import examples  # noqa: E402

SPEC = examples.specification.read(os.environ["TEST_SPEC_JSON"])
TOOL = os.environ["TEST_TOOL"]


def dtype_of(name):
    if name in examples.NUMPY:
        return np.dtype(examples.NUMPY[name])
    return np.dtype(getattr(pytest.importorskip("ml_dtypes"), examples.ML_DTYPES[name]))


@pytest.fixture(params=[(op.name, narrow) for op in SPEC.ops for narrow in (False, True)],
                ids=lambda param: param[0] + "-narrow" * param[1])
def example(request):
    """A call, what its program's inputs are called, and the program's variables before its last call and after. It is
    the call that is shown, or one of the types that ml_dtypes has, as of ops that NumPy has no types for."""
    name, narrow = request.param
    call = examples.Call(next(op for op in SPEC.ops if op.name == name), *[examples.ML_DTYPES] * narrow)
    for tensor in call.tensors:
        dtype_of(call.type_of(tensor))
    text, holds = examples.py_text(call, next((op for op in SPEC.ops if op.backward is call.op), None))
    lines, last = text.split("\n"), text.rfind(f"trine.{call.op.name}(")
    last = text.count("\n", 0, last)
    after = {}
    exec("\n".join(lines[:last]), after)
    before = {name: np.array(value) for name, value in after.items() if isinstance(value, np.ndarray)}
    exec("\n".join(lines[last:]), after)
    return call, holds, before, after


def test_outputs(example):
    call, holds, _, after = example
    outputs = [t for t in call.tensors if t.is_out]
    assert outputs
    for tensor in outputs:
        array = after[holds.get(tensor.name, tensor.name)]
        assert list(array.shape) == call.shape_of(tensor)
        assert array.dtype == dtype_of(call.type_of(tensor))
        # a score may be -Inf, where there is no split
        assert call.structured or not np.isnan(array.astype(np.float64)).any()


def test_command(example, tmp_path):
    call, holds, before, after = example
    for tensor in call.tensors:
        if tensor.is_in:
            np.save(tmp_path / f"{tensor.name}.npy", before[holds[tensor.name]])
    for command in (examples.run_command(call), examples.explain_command(call)):
        words = shlex.split(command.replace("\\\n", " "))
        assert words.pop(0) == "trine"
        run = subprocess.run([TOOL, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False)
        assert run.returncode == 0, run.stdout
    for tensor in call.tensors:
        if tensor.is_out:
            expected = after[holds.get(tensor.name, tensor.name)]
            np.testing.assert_array_equal(np.load(tmp_path / f"{tensor.name}.npy"), expected.astype(np.float64))
