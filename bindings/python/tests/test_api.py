# SPDX-License-Identifier: Apache-2.0
"""What the Python functions do with shapes, keywords, memory and mistakes."""
import ctypes
import inspect
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import kinds
import trine

needs_torch = pytest.mark.skipif(kinds.torch is None, reason="torch is not installed")


def rows(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rms_norm(x, eps=1e-6):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


# ---------------------------------------------------------------------------------------------------------- signatures

def test_signatures(op):
    function = getattr(trine, op["name"])
    signature = inspect.signature(function)
    sizes = {d["symbol"] for t in op["tensors"] if "in" not in t["flags"] for d in t["dims"]}
    assert set(signature.parameters) - {"out", "dtype"} - sizes <= {f["name"] for f in op["tensors"] + op["params"]}
    inputs = [t["name"] for t in op["tensors"] if "in" in t["flags"]]
    assert sorted(inputs) == sorted(n for n, p in signature.parameters.items() if p.kind != p.KEYWORD_ONLY)
    for name in ["Error bound", "Errors"] + [f["name"] + ": " for f in op["tensors"]]:
        assert name in function.__doc__


def test_names():
    assert set(trine.ops) <= set(trine.__all__) <= set(dir(trine))
    assert trine.devices()[0]["name"] == "cpu"
    assert [b["name"] for b in trine.backends()][0] == "cpu"
    assert trine.__version__.count(".") == 2


# -------------------------------------------------------------------------------------------------------------- shapes

def words_of(codes):
    """Eight codes of 4 bits along the last dimension in each i32, the first in the lowest bits."""
    parts = codes.reshape(*codes.shape[:-1], -1, 8).astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)
    return np.bitwise_or.reduce(parts, -1).view(np.int32)


@pytest.mark.parametrize("awq", [False, True])
def test_weights_of_others(awq):
    """As docs/python.md has it."""
    n, k, groups = 24, 64, 4
    draw = np.random.default_rng(0)
    weights, points = draw.integers(0, 16, (k, n)), draw.integers(0, 15, (groups, n))
    scales, x = draw.standard_normal((groups, n)).astype(np.float16), rows((3, k)).astype(np.float16)
    if awq:
        turned = [0, 2, 4, 6, 1, 3, 5, 7]
        qweight, qzeros = (words_of(m.reshape(-1, n // 8, 8)[..., turned].reshape(-1, n)) for m in (weights, points))
        codes = trine.unpack_codes(qweight, k=n, dtype="u8", order="awq").T
        zeros = trine.unpack_codes(qzeros, k=n, dtype="u8", order="awq").T.astype(np.float16)
    else:
        qweight, qzeros = words_of(weights.T).T, words_of(points - 1 & 15)
        codes = trine.unpack_codes(qweight.T, k=k, dtype="u8")
        zeros = trine.unpack_codes(qzeros, k=n, dtype="u8").T.astype(np.float16) + np.float16(1)
        points = (points - 1 & 15) + 1
    packed = trine.pack_codes(codes.reshape(n, groups, k // groups), words=k // groups // 2)
    y = trine.matmul_quantized(x, packed, np.ascontiguousarray(scales.T), zeros=np.ascontiguousarray(zeros))
    spread = np.repeat(np.arange(groups), k // groups)
    expected = x.astype(float) @ ((weights - points[spread]) * scales[spread].astype(float))
    np.testing.assert_allclose(y, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7), (2, 1, 3, 7), (2, 2, 2, 2, 2, 2, 7), (0, 7), (2, 0, 7)])
def test_leading_dimensions(shape):
    x, weight = rows(shape), rows(7, 1)
    y, rstd = trine.rms_norm(x, weight=weight, rstd=True)
    assert y.shape == shape and rstd.shape == shape[:-1]
    np.testing.assert_allclose(y, rms_norm(x) * weight, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("a,b", [((1, 3, 1, 7), None), ((2, 3, 1, 7), (7,)), ((3, 1, 1), (1, 1, 7)), ((1, 1), (7,)),
                                 ((2, 1, 1, 7), (3, 4, 1)), ((5, 7), (1, 5, 7))])
def test_dimensions_of_one(a, b):
    x = rows(a)
    if b is None:
        assert trine.chain(x, program="y0 = x0").shape == a
    else:
        y = rows(b, 1)
        z = trine.chain(x, y, program="y0 = x0 + x1")
        np.testing.assert_array_equal(z.reshape((x + y).shape), x + y)


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 1, 3, 7)])
def test_values_of_rows(shape):
    x = rows(shape)
    program = "m = max_row(x0); e = exp(x0 - m); s = sum_row(e); y0 = e / s; r0 = m + log(s)"
    y, r = trine.chain(x, program=program, r0=True)
    wanted = np.log(np.exp(x.astype(np.float64)).sum(-1))
    assert r.shape == shape[:-1] and r.dtype == np.float32
    np.testing.assert_allclose(r, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, np.exp(x - wanted[..., None]), rtol=1e-5)
    np.testing.assert_array_equal(trine.chain(x, program=program), y)
    with pytest.raises(ValueError, match='"r0" is of a row, but its value is of elements'):
        trine.chain(x, program="y0 = x0; r0 = x0")


@pytest.mark.parametrize("types", [("float64", None), ("float64", "float32"), ("float32", "float64")])
def test_chain_in_float64(types):
    x, weight = rows((3, 7)).astype(types[0]), rows((7,), 1).astype(types[1] or types[0])
    program = "m = mean_row(x0); c = (x0 - m) * x1; y0 = exp(c) * 0.1; r0 = sum_row(c)"
    y, r = trine.chain(x, weight, program=program, r0=True)
    wide = x.astype(np.float64)
    c = (wide - wide.mean(-1, keepdims=True)) * weight
    assert y.dtype == r.dtype == types[0]
    once = 0 if types[0] == "float64" else 2**-24  # of the result alone
    np.testing.assert_allclose(y, np.exp(c) * 0.1, rtol=1e-14 + once)
    np.testing.assert_allclose(r, c.sum(-1), rtol=1e-13 + once, atol=1e-14)
    y = trine.chain(x, weight, program=program, dtype=np.float64)
    np.testing.assert_allclose(y, np.exp(c) * 0.1, rtol=1e-14)


@pytest.mark.parametrize("a,b,d", [((4, 8), (8, 5), (4, 5)), ((8,), (8, 5), (5,)), ((3, 4, 8), (8, 5), (3, 4, 5)),
                                   ((4, 8), (3, 8, 5), (3, 4, 5)), ((3, 4, 8), (3, 8, 5), (3, 4, 5)),
                                   ((2, 3, 4, 8), (8, 5), (2, 3, 4, 5)), ((2, 3, 4, 8), (2, 3, 8, 5), (2, 3, 4, 5)),
                                   ((1, 1, 4, 8), (6, 8, 5), (6, 4, 5)), ((0, 8), (8, 5), (0, 5)),
                                   ((4, 0), (0, 5), (4, 5))])
def test_products(a, b, d):
    x, y = rows(a), rows(b, 1)
    z = trine.matmul(x, y)
    assert z.shape == d
    np.testing.assert_allclose(z, (x @ y).reshape(d), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(trine.matmul(x, np.ascontiguousarray(y.swapaxes(-1, -2)).swapaxes(-1, -2)), z, rtol=1e-4,
                               atol=1e-5)


def test_strides():
    x = rows((6, 4, 32))
    np.testing.assert_allclose(trine.rms_norm(x[::2, 1]), rms_norm(x[::2, 1]), rtol=1e-5)
    np.testing.assert_allclose(trine.rms_norm(x[1:, :, 8:24]), rms_norm(x[1:, :, 8:24]), rtol=1e-5)
    np.testing.assert_allclose(trine.rms_norm(x[::-1, 0]), rms_norm(x[::-1, 0]), rtol=1e-5)
    with pytest.raises(trine.ArgumentError, match="do not lie behind one another"):
        trine.rms_norm(x[:, 1:])  # two dimensions that are one of the op
    with pytest.raises(trine.ArgumentError, match="stride"):
        trine.rms_norm(x[0, :, ::2])


# ------------------------------------------------------------------------------------------------------------- outputs

def test_outputs():
    x = rows((3, 8))
    y = np.empty_like(x)
    assert trine.rms_norm(x, out=y) is y
    rstd = np.empty(3, np.float32)
    assert trine.rms_norm(x, y=y, rstd=rstd)[1] is rstd
    assert isinstance(trine.rms_norm(x, rstd=False), np.ndarray)
    assert trine.rms_norm(x, out=x) is x
    np.testing.assert_allclose(x, y)
    gate, up = rows((3, 8)), rows((3, 8), 1)
    outputs = np.empty_like(x), np.empty_like(x)
    assert trine.swiglu_backward(x, gate, up, out=outputs)[1] is outputs[1]
    with pytest.raises(TypeError, match="tuple of 2"):
        trine.swiglu_backward(x, gate, up, out=x)
    with pytest.raises(TypeError, match="out and y"):
        trine.rms_norm(x, out=y, y=y)
    with pytest.raises(trine.ArgumentError, match="one of|at least|row_sums"):
        trine.reduce_sum(x)


def test_types():
    x = rows((3, 8))
    assert trine.cast(x, dtype="f16").dtype == np.float16
    assert trine.cast(x, dtype=np.float16).dtype == trine.cast(x, dtype=np.dtype("f2")).dtype == np.float16
    assert trine.matmul(x.astype(np.float16), x.T.astype(np.float16)).dtype == np.float16
    assert trine.matmul(x.astype(np.float16), x.T.astype(np.float16), dtype="f32").dtype == np.float32
    c = np.zeros((3, 3), np.float32)
    assert trine.matmul(x, x.T, c, dtype="f32").dtype == np.float32
    with pytest.raises(TypeError, match="dtype is f16, but the inputs decide"):
        trine.matmul(x, x.T, c, dtype="f16")
    with pytest.raises(trine.ArgumentError, match="int4"):
        trine.cast(x, dtype="int4")
    with pytest.raises(TypeError, match="no argument 'dtype'|inputs decide"):
        trine.gelu(x, dtype="f16")


@pytest.mark.skipif(kinds.ml_dtypes is not None, reason="ml_dtypes is installed")
def test_types_numpy_lacks():
    with pytest.raises(ImportError, match="no bfloat16: install ml_dtypes"):
        trine.cast(rows((3, 8)), dtype="bf16")


def test_parameters():
    x = rows((3, 8)) * np.float32(1e-3)
    np.testing.assert_allclose(trine.rms_norm(x, eps=0), rms_norm(x, 0), rtol=1e-5)  # zero is zero
    np.testing.assert_allclose(trine.rms_norm(x, eps=None), rms_norm(x), rtol=1e-5)
    a, c = rows((8, 8)), rows((8, 8), 1)
    assert np.array_equal(trine.matmul(a, a, c), trine.matmul(a, a, c=c, beta=1))  # what the signature says
    np.testing.assert_allclose(trine.matmul(a, a, c), a @ a + c, rtol=1e-4, atol=1e-5)
    assert np.array_equal(trine.matmul(a, a, c, beta=0), trine.matmul(a, a))
    assert np.array_equal(trine.gelu(x, form="erf"), trine.gelu(x, form=1))
    assert np.array_equal(trine.scale(x, alpha=0), np.zeros_like(x))
    logits, labels = rows((2, 5)), np.array([1, 4])
    assert trine.cross_entropy(logits, labels, ignore_index=4)[1] == 0
    assert trine.cross_entropy(logits, labels, ignore_index=None)[1] > 0
    m = np.zeros(8, np.float32)
    p = np.ones(8, np.float32)
    assert trine.adamw(p, p.copy(), m, m.copy(), lr=0.5, step=1) is None
    np.testing.assert_allclose(p, 0.5, rtol=1e-5)
    assert trine.adamw(p, p.copy(), m, m.copy(), lr=0.5, step_tensor=np.array(2)) is None  # in place of step


# ------------------------------------------------------------------------------------------------------------ mistakes

def test_lists():
    arrays = [rows((n,), n) for n in (3, 0, 1000)]
    calls = [{"x": x, "alpha": alpha, "dtype": "f16"} for x, alpha in zip(arrays, (2, 3, None))]
    found = trine.run_list("scale", iter(calls))
    assert all((y == trine.scale(**call)).all() for y, call in zip(found, calls))
    assert trine.run_list("scale", []) == []
    chains = [{"x0": rows((2, n), n), "x1": rows((n,), 1), "program": "m = max_row(x0); y0 = (x0 - m) * x1; r1 = m",
               "r1": True} for n in (3, 1000, 3, 8)]
    for call, (y, m) in zip(chains, trine.run_list("chain", chains), strict=True):
        np.testing.assert_array_equal(m, call["x0"].max(-1))
        np.testing.assert_array_equal(y, (call["x0"] - m[..., None]) * call["x1"])
    norm, coefficient = trine.run_list("global_norm_clip", [{"x": arrays[0], "norm": True, "coefficient": True}])[0]
    assert norm.shape == coefficient.shape == (1,)
    params = [x.copy() for x in arrays]
    assert trine.run_list("adamw", [{"param": p, "grad": x, "m": x * 0, "v": x * 0, "lr": 0.5, "step": 1}
                                    for p, x in zip(params, arrays)]) == [None] * 3
    assert (params[2] != arrays[2]).any()
    same = arrays[2][:5]
    for error, words, op, wrong in (
            (trine.ArgumentError, "run_list: there is no op \"scales\"", "scales", []),
            (TypeError, "a call of scale in a list must be a dictionary", "scale", [same]),
            (TypeError, "scale\\(\\) has no argument 3", "scale", [{3: same}]),
            (TypeError, "scale\\(\\) has no argument 'z'", "scale", [{"x": same, "z": same}]),
            (TypeError, "scale\\(\\) needs x", "scale", [{"x": same}, {}]),
            (trine.ArgumentError, "call 0 of the list: scale: output y overlaps y of call 1", "scale",
             [{"x": same, "out": same}, {"x": arrays[0], "out": arrays[2][2:5]}]),
            (TypeError, "not iterable", "scale", 3)):
        before = same.copy()
        with pytest.raises(error, match=words):
            trine.run_list(op, wrong)
        assert (same == before).all()
    for wrong in ((), ("scale",), (3, [])):
        with pytest.raises(TypeError):
            trine.run_list(*wrong)


@pytest.mark.parametrize("error,match,call", [
    (TypeError, "needs x", lambda x: trine.rms_norm()),
    (TypeError, "no argument 'epsilon'", lambda x: trine.rms_norm(x, epsilon=1)),
    (TypeError, "by place", lambda x: trine.rms_norm(x, None, None, None, x)),
    (TypeError, "two values for 'x'", lambda x: trine.rms_norm(x, x=x)),
    (TypeError, "must be an array", lambda x: trine.rms_norm(1.0)),
    (TypeError, "must be an array", lambda x: trine.rms_norm([1.0])),
    (trine.ArgumentError, "step is 0", lambda x: trine.adamw(x[0], x[1], x[2], x[0] + 1)),
    (TypeError, "eps cannot be", lambda x: trine.rms_norm(x, eps="small")),
    (trine.ArgumentError, "weight has shape", lambda x: trine.rms_norm(x, weight=x[0, :3])),
    (trine.ArgumentError, "complex|type Z", lambda x: trine.rms_norm(x.astype(complex))),
    (trine.ArgumentError, "type .*bool|type \\?", lambda x: trine.rms_norm(x > 0)),
    (trine.ArgumentError, "f64", lambda x: trine.rms_norm(x.astype(np.float64))),
    (trine.ArgumentError, "'cubic', not one of tanh, erf", lambda x: trine.gelu(x, form="cubic")),
    (trine.ArgumentError, "form is 7", lambda x: trine.gelu(x, form=7)),
    (trine.ArgumentError, "seed cannot be -1", lambda x: trine.dropout(x, p=0.5, seed=-1)),
    (trine.ArgumentError, "p is 1.5", lambda x: trine.dropout(x, p=1.5)),
    (trine.ArgumentError, "overlaps", lambda x: trine.matmul(x[:, :3], x[:, :3], out=x[:, :3])),
    (trine.ArgumentError, "rank 2", lambda x: trine.attention(x[None, None, None, None], x, x)),
    (trine.ArgumentError, "17 dimensions", lambda x: trine.gelu(x.reshape((1,) * 15 + (3, 8)))),
    (ValueError, "threads", lambda x: trine.set_threads(-1)),
    (trine.ArgumentError, "no op \"norm\"", lambda x: trine.explain("norm", x)),
    (trine.ArgumentError, "from step 3 to 2", lambda x: trine.arena_plan([(1, 3, 2)])),
    (trine.ArgumentError, "no power of 2", lambda x: trine.arena_plan([], alignment=3)),
    (TypeError, "a lifetime is", lambda x: trine.arena_plan([(1, 2)])),
    (TypeError, "iterable", lambda x: trine.arena_plan(1)),
])
def test_mistakes(error, match, call):
    with pytest.raises(error, match=match):
        call(rows((3, 8)))


def test_arena():
    offsets, report = trine.arena_plan([(1000, 0, 1), (500, 1, 2), (900, 2, 3)])
    assert offsets == [0, 1024, 0]
    assert report == {"bytes": 1536, "live": 1536, "step": 1, "separate": 2560, "smallest": True}
    assert trine.arena_plan(iter([(3, 0, 0)]), alignment=1) == (
        [0], {"bytes": 3, "live": 3, "step": 0, "separate": 3, "smallest": True})


def test_read_only():
    x = rows((3, 8))
    fixed = np.zeros_like(x)
    fixed.flags.writeable = False
    np.testing.assert_allclose(trine.rms_norm(fixed), 0)
    with pytest.raises(trine.ArgumentError, match="y is written, but its memory is read-only"):
        trine.rms_norm(x, out=fixed)
    with pytest.raises(trine.ArgumentError, match="param is written"):
        trine.adamw(fixed[0], x[0], x[1], x[2], step=1)
    assert not fixed.any()


def test_errors_leave_nothing():
    """What a failed call held is given back."""
    x = rows((3, 8))
    before = sys.getrefcount(x)
    for _ in range(100):
        with pytest.raises(trine.ArgumentError):
            trine.rms_norm(x, weight=x)
        trine.rms_norm(x)
        trine.rms_norm(x, out=x)
    assert sys.getrefcount(x) == before
    x.resize((4, 8))  # no buffer is held


def test_explain():
    x = rows((3, 8))
    kernels = trine.explain("rms_norm", x, eps=1e-5)
    assert sum(k["chosen"] for k in kernels) == 1 and kernels[0]["refused"] is None


# --------------------------------------------------------------------------------------------------------- other arrays

class Lent:
    """An array that is known by DLPack alone."""

    def __init__(self, array, old=False):
        self.array, self.old, self.lent = array, old, 0

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **arguments):
        if self.old and arguments:
            raise TypeError("no arguments")
        capsule = self.array.__dlpack__(**arguments)
        self.lent += 1
        return capsule


@pytest.mark.parametrize("old", [False, True])
def test_dlpack(old):
    x = rows((3, 8))
    lent = Lent(x, old)
    before = sys.getrefcount(x)
    y = trine.rms_norm(lent)
    assert isinstance(y, np.ndarray) and lent.lent == 1
    np.testing.assert_allclose(y, rms_norm(x), rtol=1e-5)
    assert sys.getrefcount(x) == before


def test_foreign_device():
    class Elsewhere(Lent):
        def __dlpack__(self, **arguments):
            capsule = self.array.__dlpack__()
            api = ctypes.pythonapi.PyCapsule_GetPointer
            api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            pointer = api(capsule, b"dltensor")
            ctypes.c_int32.from_address(pointer + 8).value = self.kind
            return capsule

        def __dlpack_device__(self):
            return self.kind, 0

    lent = Elsewhere(rows((3, 8)))
    lent.kind = 8
    with pytest.raises(trine.ArgumentError, match="type 8"):
        trine.rms_norm(lent, out=lent)
    lent.kind = 10
    if any(b["name"] == "hip" and b["devices"] for b in trine.backends()):
        pytest.skip("there is a device of AMD")
    with pytest.raises(trine.UnsupportedError, match="hip:0, but trine's hip backend is not in use: "):
        trine.rms_norm(lent, out=lent)


def test_buffers():
    import array
    x = array.array("f", range(1, 9))
    np.testing.assert_allclose(trine.rms_norm(x), rms_norm(np.array(x)), rtol=1e-5)
    with pytest.raises(trine.ArgumentError, match="read-only"):
        trine.rms_norm(x, out=memoryview(bytes(32)).cast("f"))


@needs_torch
def test_torch():
    torch = kinds.torch
    x = torch.randn(3, 8)
    assert isinstance(trine.rms_norm(x), torch.Tensor)
    y = torch.empty(3, 8)
    assert trine.rms_norm(torch.nn.Parameter(x, requires_grad=False), out=y) is y
    torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, (8,), eps=1e-6))
    grad = x.clone().requires_grad_()
    with pytest.raises(trine.ArgumentError, match=r"x requires grad.*trine\.torch\.rms_norm.*x\.detach\(\)"):
        trine.rms_norm(grad)
    with torch.no_grad():
        torch.testing.assert_close(trine.rms_norm(grad), y)
    with pytest.raises(trine.ArgumentError, match="weight does not lend its memory: .*meta"):
        trine.rms_norm(x, weight=torch.ones(8, device="meta"))


@needs_torch
def test_kinds_mix():
    x = rows((3, 8))
    y = trine.rms_norm(x, weight=kinds.torch.ones(8))
    assert isinstance(y, np.ndarray)


# ------------------------------------------------------------------------------------------------ threads and processes

def test_threads():
    x = rows((64, 512))
    want = trine.rms_norm(x)
    wrong = []

    def work():
        for _ in range(200):
            if not np.array_equal(trine.rms_norm(x), want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for i, worker in enumerate(workers):
        worker.start()
        trine.set_threads(i % 3)
    for worker in workers:
        worker.join()
    trine.set_threads(0)
    assert not wrong


def test_fork():
    x = rows((512, 512))
    want = trine.matmul(x, x)
    child = os.fork()
    if child == 0:
        os._exit(not np.array_equal(trine.matmul(x, x), want))
    assert os.waitpid(child, 0)[1] == 0


def test_import_is_light():
    """An import loads no array library and touches no device."""
    code = "import sys, trine; sys.exit(any(m in sys.modules for m in ('numpy', 'torch', 'jax')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
