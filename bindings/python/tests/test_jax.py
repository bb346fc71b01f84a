# SPDX-License-Identifier: Apache-2.0
"""trine.jax: in jit, under vmap, gradients. What comes out is held to the golden vectors and to the functions of trine
for NumPy, which other tests hold to them."""
import os
import subprocess
import sys

import numpy as np
import pytest

import golden_vectors
import kinds
import trine
from composed_cases import composed
from conftest import OPS
from gradient_cases import GRADIENTS, by_hand, forward_of
from test_golden import ROUNDED_OFTEN, asked, coarsest, expect_near, inputs, tensors
from trine._ops import OPS as TABLE

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402: needs jax
import trine.jax  # noqa: E402
from trine import _trine  # noqa: E402


def rows(*shape, seed=0, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def prepared(case):
    """A function of the arguments of a golden case, the arguments, and the names of what is returned."""
    op, arguments, table = case.op, inputs(case, kinds.Jax), tensors(case.op)
    function = getattr(trine.jax, op["name"])
    made = {n for n in case.outputs if "in" not in table[n]["flags"]}
    wanted = {n: True for n in made if "optional" in table[n]["flags"]}
    wanted |= asked(case, function, made)
    names = [t["name"] for t in op["tensors"] if "out" in t["flags"] and
             (t["name"] in case.outputs or t["name"] in arguments or "optional" not in t["flags"])]

    def call(arguments):
        results = function(**arguments, **case.params, **wanted)
        return dict(zip(names, results if isinstance(results, tuple) else (results,), strict=True))

    return call, arguments, names


def same(got, want):
    assert list(got) == list(want)
    for name in want:
        g, w = np.asarray(got[name]), np.asarray(want[name])
        assert g.dtype == w.dtype and g.shape == w.shape, name
        assert g.tobytes() == w.tobytes() or np.array_equal(g.astype(np.float64), w.astype(np.float64), True), name


# ----------------------------------------------------------------------------------------------------------------- ops

def test_golden(op):
    """Each op's vectors through jit."""
    checked, table = 0, tensors(op)
    for case in golden_vectors.cases(op):
        call, arguments, _ = prepared(case)
        results = jax.jit(call)(arguments)
        if any(kinds.Jax.make([0], case.dtype(table[n])).dtype != results[n].dtype for n in case.outputs):
            continue  # the case asks for another type than is made unasked, which other outputs may depend on
        checked += 1
        for name, (shape, values) in case.outputs.items():
            assert isinstance(results[name], jax.Array)
            got = kinds.Jax.read(results[name])
            if all("broadcast" in t["flags"] for t in op["tensors"] if "in" in t["flags"]):
                got = np.broadcast_to(got, shape)  # an output that is given may be larger, one that is made is not
            expect_near(got, np.array(values, dtype=np.float64).reshape(shape),
                        coarsest(case, name), f"{case.name}, {name}", ROUNDED_OFTEN.get(op["name"], 0))
    assert checked


def test_eager(op):
    """The bits of the function for NumPy, and nothing given is written."""
    case = golden_vectors.cases(op)[0]
    call, arguments, names = prepared(case)
    before = {n: np.array(a) for n, a in arguments.items()}
    results = call(arguments)
    same(arguments, before)
    table = tensors(op)
    there = {n: a for n, a in before.items()}
    outputs = {n: np.empty(r.shape, r.dtype) for n, r in results.items() if "in" not in table[n]["flags"]}
    getattr(trine, op["name"])(**there, **outputs, **case.params)
    same(results, {n: there[n] if n in there else outputs[n] for n in names})


def pairs(arguments):
    """Two of each argument. Integers may be offsets that ascend: those are alike."""
    return {n: jnp.stack([a, a[::-1] if a.ndim and jnp.issubdtype(a.dtype, jnp.floating) else a])
            for n, a in arguments.items()}


def test_vmap(op):
    """Of all arguments and of each alone: what a loop gives."""
    for case in golden_vectors.cases(op)[:2]:
        call, arguments, _ = prepared(case)
        both = pairs(arguments)
        for batched in [set(both)] + [{n} for n in both]:
            fixed = {n: a for n, a in arguments.items() if n not in batched}

            def one(mapped):
                return call({**fixed, **mapped})

            mapped = {n: both[n] for n in batched}
            got = jax.jit(jax.vmap(one))(mapped)
            loop = [one({n: a[i] for n, a in mapped.items()}) for i in range(2)]
            for name in loop[0]:
                want = np.stack([np.asarray(r[name]) for r in loop])
                assert got[name].dtype == want.dtype
                expect_near(kinds.Jax.read(got[name]), want.astype(np.float64), kinds_name(want.dtype),
                            f"{case.name}, {name} over {batched}")


def kinds_name(dtype):
    return next(short for short, long in kinds.LONG.items() if long == dtype.name)


def calls(function, *arguments):
    """How many custom calls a computation has, and how many loops."""
    text = str(jax.make_jaxpr(function)(*arguments))
    return text.count("ffi_call["), text.count("scan[")


def test_vmap_folds():
    """Where the table allows it there is one call, and no loop."""
    x, weight, labels = rows(3, 4, 8), rows(8, seed=1), jnp.zeros((3, 4), jnp.int32)
    for function, arguments in [
            (lambda x: trine.jax.rms_norm(x, weight=weight), (x,)), (trine.jax.softmax, (x[0],)),
            (lambda x: trine.jax.softmax(x, causal=True), (x[0],)), (trine.jax.cross_entropy, (x, labels)),
            (trine.jax.matmul, (x, x.mT)), (lambda a: trine.jax.matmul(a, x[0].T), (x,)),
            (lambda b: trine.jax.matmul(x[0], b), (x.mT,)), (trine.jax.swiglu, (x, x)),
            (lambda a: trine.jax.add(a, x[0]), (rows(3, 8),)), (lambda i: trine.jax.embedding(x[0], i), (labels,)),
            (trine.jax.attention, (rows(3, 4, 2, 8),) * 3)]:
        assert calls(jax.vmap(function), *arguments) == (1, 0)
        got = jax.vmap(function)(*arguments)
        size = len(arguments[0])
        loop = [function(*(a[i] for a in arguments)) for i in range(size)]
        assert got.shape == (size, *loop[0].shape)
        np.testing.assert_allclose(got, jnp.stack(loop), rtol=1e-6, atol=1e-6)
    assert calls(jax.vmap(lambda t: trine.jax.embedding(t, labels[0])), x) == (1, 1)
    assert calls(jax.vmap(trine.jax.embedding), x, labels) == (1, 1)
    assert calls(jax.vmap(lambda x: trine.jax.global_norm_clip(x, max_norm=1.0, y=True)), x[0]) == (1, 1)
    assert calls(jax.vmap(lambda x: trine.jax.dropout(x, p=0.5, seed=1)), x) == (1, 1)  # the same elements of each
    twice = jax.vmap(jax.vmap(lambda x: trine.jax.rms_norm(x, weight=weight)))
    same({"y": twice(x)}, {"y": trine.jax.rms_norm(x, weight=weight)})
    same({"y": jax.vmap(trine.jax.gelu, in_axes=1, out_axes=1)(x)}, {"y": trine.jax.gelu(x)})


# ----------------------------------------------------------------------------------------------------------- gradients

def by_vjp(name, arguments, incoming, params):
    op = TABLE[name]
    wanted = {n: True for n in incoming if n in op.optional_outputs}
    names = [t.name for t in op.outputs if not t.optional or t.name in wanted]

    def function(needed):
        results = getattr(trine.jax, name)(**{**arguments, **needed}, **params, **wanted)
        results = dict(zip(names, results if isinstance(results, tuple) else (results,)))
        return {n: results[n] for n in incoming}

    needed = {of: arguments[of] for _, of in op.gradient.made if of in arguments}
    if any(r.dtype != incoming[n].dtype for n, r in jax.eval_shape(function, needed).items()):
        return None  # JAX has gradients of an output's type only
    return jax.jit(lambda n, g: jax.vjp(function, n)[1](g)[0])(needed, incoming)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    """The bits that the gradient's op gives."""
    done = 0
    for case in golden_vectors.cases(OPS[TABLE[name].gradient.op.name]):
        arguments, incoming, params = forward_of(name, case, kinds.NumPy)
        want = by_hand(name, arguments, incoming, params, kinds.NumPy)
        if want is None:
            continue
        made = by_vjp(name, {n: jnp.asarray(a) for n, a in arguments.items()},
                      {n: jnp.asarray(a) for n, a in incoming.items()}, params)
        if made is not None:
            # What is broadcast has a sum, which XLA takes in an order of its own.
            if "bias" in want and name == "attention":
                np.testing.assert_allclose(made.pop("bias"), want.pop("bias"), 1e-6, 1e-6)
            same({n: made[n] for n in want}, want)
            done += 1
    assert done > 0


COMPOSED = composed(jax.nn.relu, jax.nn.silu, lambda x: jax.nn.gelu(x, approximate=False), jnp.bfloat16,
                    lambda x, k: jax.lax.top_k(x, k)[0], jnp.array)


def weighted(results):
    results = results if isinstance(results, tuple) else (results,)
    return sum((r.astype(jnp.float32) * rows(*r.shape, seed=i + 3)).sum() for i, r in enumerate(results))


@pytest.mark.parametrize("name,left,right,formula,params",
                         [(n, *case) for n, cases in COMPOSED.items() for case in cases])
def test_composed_gradients(name, left, right, formula, params):
    """Against JAX's own."""
    leaves = [rows(*shape, seed=i) for i, shape in enumerate((left, right)) if shape is not None]
    places = tuple(range(len(leaves)))
    function = getattr(trine.jax, name)
    mine = jax.jit(jax.grad(lambda *l: weighted(function(*l, **params)), places))(*leaves)
    theirs = jax.grad(lambda *l: weighted(formula(*l)), places)(*leaves)
    for got, want in zip(mine, theirs):
        assert got.dtype == jnp.float32
        tolerance = 2e-2 if name == "cast" else 1e-4
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_product_with_all():
    """c, bias and scales, of which the last have no gradient."""
    leaves = rows(5, 8), rows(8, 6, seed=1), rows(5, 6, seed=2), rows(6, seed=3)
    a_scale, b_scale = jnp.linspace(0.5, 1.5, 5), jnp.linspace(0.5, 1.5, 6)
    a_scale, b_scale = a_scale.astype(jnp.float32), b_scale.astype(jnp.float32)

    def mine(a, b, c, bias, a_scale=a_scale):
        return jnp.sin(trine.jax.matmul(a, b, c=c, bias=bias, a_scale=a_scale, b_scale=b_scale, beta=0.25,
                                        activation="gelu_tanh")).sum()

    def theirs(a, b, c, bias):
        return jnp.sin(jax.nn.gelu(a_scale[:, None] * b_scale * (a @ b) + 0.25 * c + bias)).sum()

    for got, want in zip(jax.grad(mine, (0, 1, 2, 3))(*leaves), jax.grad(theirs, (0, 1, 2, 3))(*leaves)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="no gradient of scales"):
        jax.grad(mine, 4)(*leaves, a_scale)


@pytest.mark.parametrize("activation", ["none", "relu", "silu", "gelu_erf", "gelu_tanh"])
def test_product_in_f64(activation):
    """Of which other ops have not the type."""
    a, b, bias = (rows(*shape, seed=i).astype(jnp.float64) for i, shape in enumerate(((5, 8), (8, 6), (6,))))
    formula = {"none": lambda z: z, "relu": jax.nn.relu, "silu": jax.nn.silu,
               "gelu_erf": lambda z: jax.nn.gelu(z, approximate=False), "gelu_tanh": jax.nn.gelu}[activation]
    mine = jax.grad(lambda *l: jnp.sin(trine.jax.matmul(l[0], l[1], bias=l[2], activation=activation)).sum(),
                    (0, 1, 2))(a, b, bias)
    theirs = jax.grad(lambda a, b, bias: jnp.sin(formula(a @ b + bias)).sum(), (0, 1, 2))(a, b, bias)
    for got, want in zip(mine, theirs):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_only_what_is_needed():
    """A gradient that nobody asks for is not computed."""
    x, weight = rows(4, 8), rows(8, seed=1)

    def loss(x, weight):
        return trine.jax.rms_norm(x, weight=weight).sum()

    def outputs(places):
        equation = [l for l in str(jax.make_jaxpr(jax.grad(loss, places))(x, weight)).split("\n") if "ffi_call[" in l]
        assert len(equation) == 2
        return equation[1].split("=")[0].count(":")

    assert outputs(0) == 1 and outputs((0, 1)) == 2
    both = jax.grad(lambda x: (lambda y, h: h.sum())(*trine.jax.rms_norm(x, residual=x, residual_out=True)))(x)
    np.testing.assert_allclose(both, 2)  # of the sum alone, which needs no gradient of y


def test_labels():
    """Integers have no gradient, and may have 32 bits."""
    logits = rows(4, 8)
    for dtype in jnp.int32, jnp.int64:
        labels = jnp.array([1, 2, 3, 7], dtype)
        loss, pull = jax.vjp(lambda x, l: trine.jax.cross_entropy(x, l).sum(), logits, labels)
        dlogits, dlabels = pull(jnp.ones_like(loss))
        assert dlabels.dtype == jax.dtypes.float0
        np.testing.assert_allclose(dlogits, jax.nn.softmax(logits) - jax.nn.one_hot(labels, 8), atol=1e-6)


def test_dropout():
    x = rows(64, 64)
    y, pull = jax.vjp(lambda x: trine.jax.dropout(x, p=0.5, seed=3), x)
    np.testing.assert_array_equal(pull(jnp.ones_like(y))[0], jnp.where(y == 0, 0.0, 2.0))
    assert not np.array_equal(trine.jax.dropout(x, p=0.5, seed=2**64 - 1), y)
    drop = jax.jit(lambda x, philox: trine.jax.dropout(x, p=0.5, philox=philox))
    same({"y": drop(x, jnp.array([3, 0]))}, {"y": y})
    assert drop._cache_size() == 1 and not np.array_equal(drop(x, jnp.array([4, 0])), y) and drop._cache_size() == 1


def test_nested():
    """jit in jit, scan, checkpoint, gradients through all of them and of a batch."""
    weights, x = rows(3, 8, seed=1), rows(5, 8)

    def layer(x, weight):
        return x + trine.jax.gelu(trine.jax.rms_norm(x, weight=weight))

    def plain(x, weight):
        h = x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight
        return x + jax.nn.gelu(h)

    def by_scan(step):
        return lambda w, x: jnp.sin(jax.lax.scan(lambda x, w: (step(x, w), None), x, w)[0]).sum()

    want = jax.grad(by_scan(plain), (0, 1))(weights, x)
    for step in layer, jax.jit(layer), jax.checkpoint(layer):
        for got, exact in zip(jax.jit(jax.grad(by_scan(step), (0, 1)))(weights, x), want):
            np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-5)
    loss = by_scan(layer)
    one = jax.jit(jax.grad(loss, 1))
    each = jax.jit(jax.vmap(one, (None, 0)))(weights, x)
    np.testing.assert_allclose(each, jnp.stack([one(weights, row) for row in x]), rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------- calls and mistakes

def test_jit_is_not_traced_again():
    traced = []

    @jax.jit
    def function(x):
        traced.append(x)
        return trine.jax.rms_norm(x, eps=1e-5)

    for _ in range(3):
        function(rows(4, 8)), trine.jax.relu2(rows(3, 9))
    assert len(traced) == 1
    before = trine.jax._jitted.cache_info().misses
    trine.jax.relu2(rows(3, 9))
    assert trine.jax._jitted.cache_info().misses == before


def test_tensors_for_parameters():
    """What changes from step to step, as arrays: one computation."""
    p, g = rows(64), rows(64, seed=1)
    step = jax.jit(lambda p, lr, step: trine.jax.adamw(p, g, p * 0, p * 0, lr_tensor=lr, step_tensor=step))
    for lr, number in (0.5, 1), (0.25, 7):
        want = trine.jax.adamw(p, g, p * 0, p * 0, lr=lr, step=number)
        got = step(p, jnp.array([lr], jnp.float32), jnp.array([number]))
        np.testing.assert_array_equal(got[0], want[0])
    assert step._cache_size() == 1


def test_in_place_memory():
    """What is updated in place is where it was, if the caller gives it away."""
    p, g, m, v = (rows(4096, seed=i) for i in range(4))
    step = jax.jit(lambda p, g, m, v: trine.jax.adamw(p, g, m, abs(v), lr=0.1, step=1), donate_argnums=(0, 2))
    want = trine.jax.adamw(p, g, m, abs(v), lr=0.1, step=1)
    places = p.unsafe_buffer_pointer(), m.unsafe_buffer_pointer()
    got = step(p, g, m, v)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
    assert (got[0].unsafe_buffer_pointer(), got[1].unsafe_buffer_pointer()) == places


@pytest.mark.parametrize("shape", [(0, 8), (3, 0, 8), (3, 0)])
def test_nothing(shape):
    y, pull = jax.vjp(trine.jax.gelu, jnp.zeros(shape, jnp.float32))
    assert y.shape == shape and pull(y)[0].shape == shape


def test_types():
    x = rows(4, 8)
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        got = jax.jit(lambda x: trine.jax.cast(x, dtype=name))(x)
        assert got.dtype == name
        np.testing.assert_allclose(trine.jax.cast(got, dtype="f32"), x, rtol=0.13, atol=0.02)
    assert trine.jax.cast(x, dtype=jnp.float16).dtype == jnp.float16
    half = x.astype(jnp.bfloat16)
    assert trine.jax.matmul(half, half.T, dtype="f32").dtype == jnp.float32
    assert trine.jax.rms_norm(half).dtype == jnp.bfloat16


def test_without_64_bits():
    with jax.enable_x64(False):
        x = jnp.asarray(np.ones((4, 8)))
        assert x.dtype == jnp.float32
        with pytest.raises(TypeError, match="y is of float64, which JAX has only with jax_enable_x64"):
            trine.jax.cast(x, dtype="f64")
        labels = np.array([1, 2, 3, 4])
        loss = trine.jax.cross_entropy(x, labels)
        np.testing.assert_allclose(loss, np.log(8), rtol=1e-6)
        assert jax.grad(lambda x: trine.jax.cross_entropy(x, labels).sum())(x).dtype == jnp.float32
        drop = jax.jit(lambda x, philox: trine.jax.dropout(x, p=0.5, philox=philox))
        for seed in (3, -3):
            same({"y": drop(x, jnp.array([seed, 0]))}, {"y": trine.jax.dropout(x, p=0.5, seed=seed & (2**64 - 1))})
        key = jnp.array([2**32 - 3, 0], jnp.uint32)
        same({"y": drop(x, key)}, {"y": trine.jax.dropout(x, p=0.5, seed=2**32 - 3)})
        grad = jax.grad(lambda x: drop(x, jax.random.key_data(jax.random.key(7))).sum())(x)
        assert set(np.unique(grad)) == {0, 2}


@pytest.mark.parametrize("error,match,call", [
    (TypeError, r"rms_norm\(\) needs x", lambda x: trine.jax.rms_norm()),
    (TypeError, r"embedding\(\) needs ids", lambda x: trine.jax.embedding(x)),
    (trine.ArgumentError, "step is 0", lambda x: trine.jax.adamw(*[x[0]] * 4)),
    (TypeError, "no argument 'epsilon'", lambda x: trine.jax.rms_norm(x, epsilon=1)),
    (TypeError, "by place", lambda x: trine.jax.gelu(x, x)),
    (TypeError, "two values for 'x'", lambda x: trine.jax.rms_norm(x, x=x)),
    (TypeError, "y cannot be given", lambda x: trine.jax.rms_norm(x, y=x)),
    (TypeError, "out cannot be given", lambda x: trine.jax.rms_norm(x, out=x)),
    (TypeError, "eps must be known", lambda x: jax.jit(lambda e: trine.jax.rms_norm(x, eps=e))(0.5)),
    (TypeError, "dtype is f16, but the inputs decide", lambda x: trine.jax.gelu(x, dtype="f16")),
    (TypeError, "global_norm_clip has no gradient of x",
     lambda x: jax.grad(lambda x: trine.jax.global_norm_clip(x, max_norm=1.0, y=True).sum())(x[0])),
    (TypeError, "gelu has no second derivative",
     lambda x: jax.grad(lambda x: jax.grad(lambda x: trine.jax.gelu(x).sum())(x).sum())(x)),
    (trine.ArgumentError, r"(?m)^rms_norm: weight has shape \[3\], but n = 8 from x$",
     lambda x: trine.jax.rms_norm(x, weight=x[0, :3])),
    (trine.ArgumentError, "weight has shape", lambda x: jax.jit(trine.jax.rms_norm)(x, weight=x[0, :3])),
    (trine.ArgumentError, "type bool", lambda x: trine.jax.gelu(x > 0)),
    (trine.ArgumentError, "f64", lambda x: trine.jax.rms_norm(x.astype(jnp.float64))),
    (trine.ArgumentError, "17 dimensions", lambda x: trine.jax.gelu(x.reshape((1,) * 15 + (3, 8)))),
    (trine.ArgumentError, "'cubic', not one of tanh, erf", lambda x: trine.jax.gelu(x, form="cubic")),
    (trine.ArgumentError, "seed cannot be -1", lambda x: trine.jax.dropout(x, p=0.5, seed=-1)),
])
def test_mistakes(error, match, call):
    with pytest.raises(error, match=match):
        call(rows(3, 8))


def test_mistakes_of_data():
    """What only the op can see while it runs is XLA's error, with the library's sentence."""
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: .*embedding: .*9"):
        trine.jax.embedding(rows(4, 8), jnp.array([1, 9])).block_until_ready()


def test_foreign_calls():
    """A custom call that is not as trine made it."""
    struct, x = jax.ShapeDtypeStruct((3, 8), jnp.float32), rows(3, 8)
    packed = _trine._xla_pack("gelu", (("x", "f32", (3, 8)),), (("y", "f32", (3, 8)),))
    call = jax.ffi.ffi_call("trine", struct)
    same({"y": call(x, call=packed)}, {"y": trine.jax.gelu(x)})
    for attributes, match in [({}, "not trine's"), ({"call": b"short"}, "not trine's"),
                              ({"call": bytes([packed[0] ^ 1]) + packed[1:]}, "gelu: .*export it again"),
                              ({"call": packed[:-1]}, "export it again"),
                              ({"call": packed[:4] + b"\xff" * 4 + packed[8:]}, "export it again")]:
        with pytest.raises(jax.errors.JaxRuntimeError, match=match):
            call(x, **attributes).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="XLA did not bring x"):
        call(call=packed).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="y has shape|shape"):
        jax.ffi.ffi_call("trine", jax.ShapeDtypeStruct((2, 8), jnp.float32))(x, call=packed).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="gelu: x has elements of XLA's type 15"):
        call(x.astype(jnp.complex64), call=packed).block_until_ready()


def test_export():
    """A computation that is kept."""
    x = rows(3, 8)
    exported = jax.export.export(jax.jit(trine.jax.gelu),
                                 disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("trine")])(x)
    same({"y": exported.call(x)}, {"y": trine.jax.gelu(x)})


def test_many_at_once():
    """Calls that do not depend on one another, which XLA may run at the same time, and threads."""
    import threading
    xs = [rows(64, 256, seed=i) for i in range(16)]
    many = jax.jit(lambda xs: [trine.jax.rms_norm(trine.jax.gelu(x)) for x in xs])
    want, wrong = [np.asarray(trine.jax.rms_norm(trine.jax.gelu(x))) for x in xs], []

    def work():
        for _ in range(10):
            wrong.extend(1 for y, w in zip(many(xs), want) if not np.array_equal(y, w))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


SHARDED = """
import jax, jax.numpy as jnp, numpy as np, trine.jax
P = jax.sharding.PartitionSpec
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
draw = np.random.default_rng(0).standard_normal
weights = [jnp.asarray(draw(s), jnp.float32) for s in ((9, 16), (16,), (16, 7))]
ids, labels = jnp.arange(32).reshape(4, 8) % 9, jnp.arange(32).reshape(4, 8) % 7

def loss(table, weight, head, ids, labels):
    x = trine.jax.rms_norm(trine.jax.embedding(table, ids), weight=weight)
    x = jax.vmap(trine.jax.gelu)(x)
    return trine.jax.cross_entropy(trine.jax.matmul(x, head), labels)

want = jax.grad(lambda w: loss(*w, ids, labels).sum())(weights)
for check in False, True:
    specs = (P(), P(), P(), P("d"), P("d"))
    sharded = jax.shard_map(loss, mesh=mesh, in_specs=specs, out_specs=P("d"), check_vma=check)
    got = jax.jit(jax.grad(lambda w: sharded(*w, ids, labels).sum()))(weights)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
"""


def test_shard_map():
    """Weights that all devices have, and a batch that is shared among two."""
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", SHARDED], env=flags, check=True)


def test_pointers():
    """The functions of trine point to those of trine.jax."""
    class Elsewhere:
        def block_until_ready(self):
            return self

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **arguments):
            raise AssertionError("must not be asked")

    with pytest.raises(trine.ArgumentError, match=r"x does not lend its memory: .*trine\.jax"):
        trine.rms_norm(Elsewhere())
    with pytest.raises(trine.ArgumentError, match=r"x does not lend its memory: JAX is tracing it: .*trine\.jax"):
        jax.jit(trine.rms_norm)(rows(3, 8))
