# SPDX-License-Identifier: Apache-2.0
"""Each op through Python, on the arrays of each library, against the golden vectors of oracles that are not trine's.

How near a value must be is held elsewhere, to its bound; here arguments must reach the library as they were given, so
that errors beside the largest value are what is looked for."""
import inspect

import numpy as np
import pytest

import golden_vectors
import kinds
import trine

ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4, "e4m3fnuz": 2.0**-4,
            "e5m2": 2.0**-3, "e5m2fnuz": 2.0**-3, "e8m0": 2.0**-1}
SMALLEST = {"f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133, "e4m3": 2.0**-9, "e4m3fnuz": 2.0**-10,
            "e5m2": 2.0**-16, "e5m2fnuz": 2.0**-17, "e8m0": 2.0**-127}
LARGEST = {"f32": 3.4028235e38, "bf16": 3.3895314e38, "f16": 65504.0, "e4m3": 448.0, "e4m3fnuz": 240.0,
           "e5m2": 57344.0, "e5m2fnuz": 57344.0, "e8m0": 2.0**127}

# Ops whose gradients, or y, are rounded to the type of an input on the way to an output that may be wider.
ROUNDED_AS = {"linear_cross_entropy": "x", "linear_cross_entropy_backward": "x", "rms_norm_matmul": "x"}

# And those that round to their type so often on the way, errors beside the largest value.
ROUNDED_OFTEN = {"moe_mlp": 4, "rms_norm_matmul": 2}


@pytest.fixture(params=kinds.KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


def tensors(op):
    return {t["name"]: t for t in op["tensors"]}


def coarsest(case, name):
    """The coarsest type that an output is rounded to."""
    table = tensors(case.op)
    dtype = case.dtype(table[name])
    if case.op["name"] in ROUNDED_AS and name[0] in "dy":
        return max(dtype, case.dtype(table[ROUNDED_AS[case.op["name"]]]), key=ROUNDOFF.get)
    return dtype


def inputs(case, kind):
    """None where the library lacks a type of the case."""
    table, made = tensors(case.op), {}
    for name, (shape, values) in case.inputs.items():
        integers = all(isinstance(v, int) for v in values)
        array = kind.make(np.array(values, dtype=np.int64 if integers else np.float64).reshape(shape),
                          case.dtype(table[name]))
        if array is None:
            return None
        made[name] = array
    return made


def asked(case, function, made):
    """The keyword `dtype`, where the inputs do not decide the type of an output that is made."""
    table = tensors(case.op)
    bound = {table[n]["type"] for n in case.inputs}
    open_type = [n for n in table if n in made and table[n]["type_is_variable"] and table[n]["type"] not in bound]
    if not open_type or "dtype" not in inspect.signature(function).parameters:
        return {}
    return {"dtype": case.dtype(table[open_type[0]])}


def expect_near(got, want, dtype, what, often=0):
    __tracebackhide__ = True
    assert got.shape == want.shape, what
    with np.errstate(all="ignore"):
        want = np.where(np.abs(want) > LARGEST.get(dtype, np.inf), np.copysign(np.inf, want), want)
        finite = np.isfinite(want)
        scale = np.abs(want[finite]).max(initial=0)
        roundoff = ROUNDOFF.get(dtype, 0)
        beside = max(min(1e-3, 4096 * roundoff), often * roundoff) * scale
        allowed = 2 * roundoff * np.abs(want) + beside + SMALLEST.get(dtype, 0)
        near = np.abs(got - want) <= allowed
        near |= (np.isnan(got) & np.isnan(want)) | (got == want) | (np.isinf(want) & ~np.isfinite(got))
    assert near.all(), f"{what}: {got[~near][:4]} instead of {want[~near][:4]}"


def check(case, kind, out):
    """`out`: outputs are given, not made. False where the library has not the types."""
    op, table, arguments = case.op, tensors(case.op), inputs(case, kind)
    if arguments is None:
        return False
    results = {}
    for name, (shape, values) in case.outputs.items():
        if "in" in table[name]["flags"]:
            results[name] = arguments[name]
        else:
            made = kind.make(np.zeros(shape), case.dtype(table[name]))
            if made is None:
                return False
            results[name] = made if out else True
    made = [t["name"] for t in op["tensors"] if "in" not in t["flags"] and
            (t["name"] in results or "optional" not in t["flags"])]
    function = getattr(trine, op["name"])
    words = {} if out else asked(case, function, made)
    returned = function(**{**arguments, **results}, **case.params, **words)
    if made:
        returned = returned if len(made) > 1 else (returned,)
        assert len(returned) == len(made)
        results.update(zip(made, returned))
        if out:
            assert all(r is results[n] for n, r in zip(made, returned))
    assert all(isinstance(results[name], kind.type) for name in case.outputs)
    if not out and any(kind.make([0], case.dtype(table[n])).dtype != results[n].dtype for n in case.outputs):
        return True  # the case asks for another type than is made unasked, which other outputs may depend on
    for name, (shape, values) in case.outputs.items():
        got = kind.read(results[name])
        if not out and all("broadcast" in t["flags"] for t in op["tensors"] if "in" in t["flags"]):
            got = np.broadcast_to(got, shape)  # an output that is given may be larger, one that is made is not
        expect_near(got, np.array(values, dtype=np.float64).reshape(shape), coarsest(case, name),
                    f"{case.name}, {name}", ROUNDED_OFTEN.get(op["name"], 0))
    return True


@pytest.mark.parametrize("out", [False, True], ids=["made", "given"])
def test_golden(op, kind, out):
    immutable = kind is not kinds.NumPy and kind.name == "jax"
    if immutable and (out or any({"in", "out"} <= set(t["flags"]) for t in op["tensors"])):
        pytest.skip("arrays of JAX cannot be written")
    done = [check(case, kind, out) for case in golden_vectors.cases(op)]
    assert any(done)
