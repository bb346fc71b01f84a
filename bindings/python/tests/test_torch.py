# SPDX-License-Identifier: Apache-2.0
"""trine.torch: gradients, registered ops, torch.compile. Inputs are those of the golden vectors; what comes out is held
to the functions of trine, which other tests hold to the vectors, or to the vectors themselves."""
import inspect

import numpy as np
import pytest

import golden_vectors
import kinds
import trine
from composed_cases import composed
from conftest import OPS
from gradient_cases import GRADIENTS, by_hand, forward_of
from test_golden import inputs, tensors

torch = pytest.importorskip("torch")
import trine.torch  # noqa: E402: needs torch
from trine._eager import ready  # noqa: E402
from trine._ops import OPS as TABLE  # noqa: E402


def samples(op, count=2):
    """Tensors and parameters of the first cases of an op."""
    return [(inputs(case, kinds.Torch), case) for case in golden_vectors.cases(op)][:count]


def optional_outputs(op, case):
    table = tensors(op)
    return {n: True for n in case.outputs if "optional" in table[n]["flags"] and "in" not in table[n]["flags"]}


def floating(arguments):
    return [n for n, t in arguments.items() if t.is_floating_point() and t.element_size() > 1]


def same(got, want):
    got, want = (r if isinstance(r, tuple) else () if r is None else (r,) for r in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape
        assert torch.equal(g.float().nan_to_num(nan=7), w.float().nan_to_num(nan=7))


def test_same_as_eager(op):
    for arguments, case in samples(op):
        copies = {n: t.clone() for n, t in arguments.items()}
        wanted = optional_outputs(op, case)
        want = getattr(trine, op["name"])(**copies, **case.params, **wanted)
        again = {n: t.clone() for n, t in arguments.items()}
        same(getattr(trine.torch, op["name"])(**again, **case.params, **wanted), want)
        for name in arguments:
            same(again[name], copies[name])


def test_strided(op):
    """Inputs that the op cannot read as they lie."""
    arguments, case = samples(op, 1)[0]
    in_place = {t["name"] for t in op["tensors"] if {"in", "out"} <= set(t["flags"])}
    apart = {n: torch.stack([t, t], -1)[..., 0] if t.dim() and n not in in_place else t.clone()
             for n, t in arguments.items()}
    want = getattr(trine, op["name"])(**{n: t.clone() for n, t in arguments.items()}, **case.params,
                                      **optional_outputs(op, case))
    got = getattr(trine.torch, op["name"])(**apart, **case.params, **optional_outputs(op, case))
    if any("any_stride" in t["flags"] for t in op["tensors"]):  # read as they lie, maybe in another order
        torch.testing.assert_close(got, want, equal_nan=True)
    else:
        same(got, want)


def test_opcheck(op):
    """PyTorch's own checks: schema, fake tensors with fixed and free sizes, autograd's registration."""
    for arguments, case in samples(op):
        if any(t.is_floating_point() and t.element_size() == 1 for t in arguments.values()):
            continue  # which its comparison does not take
        table = TABLE[op["name"]]
        for name in floating(arguments):  # it takes two NaN for different
            arguments[name] = arguments[name].nan_to_num(nan=1.5, posinf=2.5, neginf=-2.5).clamp(-1e4, 1e4)
            if table.gradient and any(of == name for _, of in table.gradient.made):
                arguments[name].requires_grad_()
        for index in {"gather_rows": ["index"], "crop_resize_normalize": ["images"]}.get(op["name"], []):
            if index in arguments:  # and out of range is NaN
                arguments[index] %= arguments["x"].shape[0]
        args = [arguments.get(n) for n in table.positional]
        torch.library.opcheck(getattr(torch.ops.trine, op["name"]).default, args,
                              {**case.params, **optional_outputs(op, case)})


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(op, dynamic):
    arguments, case = samples(op, 1)[0]
    wanted = optional_outputs(op, case)
    function = getattr(trine.torch, op["name"])
    plain = {n: t.clone() for n, t in arguments.items()}
    want = function(**plain, **case.params, **wanted)
    torch._dynamo.reset()
    compiled = torch.compile(lambda tensors: function(**tensors, **case.params, **wanted), fullgraph=True,
                             dynamic=dynamic, backend="aot_eager")
    again = {n: t.clone() for n, t in arguments.items()}
    same(compiled(again), want)
    for name in arguments:
        same(again[name], plain[name])


def by_autograd(name, arguments, incoming, params, function):
    op = TABLE[name]
    wanted = {n: True for n in incoming if n in op.optional_outputs}
    needed = [of for _, of in op.gradient.made if of in arguments]
    leaves = {n: t.clone().requires_grad_(n in needed) for n, t in arguments.items()}
    results = function(leaves, params, wanted)
    results = results if isinstance(results, tuple) else (results,)
    names = [t.name for t in op.outputs if not t.optional or t.name in wanted]
    outputs = [(r, incoming[n]) for n, r in zip(names, results) if n in incoming]
    torch.autograd.backward([r for r, _ in outputs], [g for _, g in outputs])
    return {n: leaves[n].grad for n in needed}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    """Of autograd, eager and of the registered op: the bits that the gradient's op gives."""
    op, done = TABLE[name], 0

    def eager(leaves, params, wanted):
        return getattr(trine.torch, name)(**leaves, **params, **wanted)

    def registered(leaves, params, wanted):
        asked = {**wanted, **dict.fromkeys(op.gradient.extra(op, leaves, params), True)}
        out = getattr(torch.ops.trine, name)(*(leaves.get(n) for n in op.positional), **params, **asked)
        out = out if isinstance(out, tuple) else (out,)
        return tuple(o for o, t in zip(out, op.outputs) if not t.optional or t.name in wanted)

    for case in golden_vectors.cases(OPS[op.gradient.op.name]):
        built = forward_of(name, case, kinds.Torch)
        want = by_hand(name, *built, kinds.Torch)
        if want is None:
            continue
        for function in eager, registered:
            made = by_autograd(name, *built, function)
            assert list(made) == list(want)
            same(tuple(made.values()), tuple(want.values()))
        done += 1
    assert done > 0


def test_softmax():
    x = torch.randn(3, 5, 7, dtype=torch.float32, requires_grad=True)
    dy = torch.randn(3, 5, 7)
    trine.torch.softmax(x, scale=0.5).backward(dy)
    mine, x.grad = x.grad, None
    torch.softmax(x * 0.5, -1).backward(dy)
    torch.testing.assert_close(mine, x.grad)


def test_residual():
    """Two outputs that both have gradients."""
    x, residual = torch.randn(4, 16, requires_grad=True), torch.randn(4, 16, requires_grad=True)
    weight = torch.randn(16, requires_grad=True)
    grads = []
    for function in (lambda: trine.torch.rms_norm(x, weight=weight, residual=residual, residual_out=True),
                     lambda: (torch.nn.functional.rms_norm(x + residual, (16,), weight, 1e-6), x + residual)):
        y, h = function()
        (y.sin().sum() + (h * h).sum()).backward()
        grads.append([t.grad for t in (x, residual, weight)])
        x.grad = residual.grad = weight.grad = None
    for mine, theirs in zip(*grads):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def draw(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


COMPOSED = composed(torch.relu, torch.nn.functional.silu, torch.nn.functional.gelu, torch.float64,
                    lambda x, k: x.topk(k).values, lambda rows: torch.tensor(rows, dtype=torch.float64))


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("name,left,right,formula,params",
                         [(n, *case) for n, cases in COMPOSED.items() for case in cases])
def test_composed_gradients(name, left, right, formula, params, way):
    """Against PyTorch's own in float64."""
    torch.manual_seed(5)
    leaves = [draw(*shape).requires_grad_() for shape in (left, right) if shape is not None]

    def function(*leaves):
        return getattr(trine.torch, name)(*leaves, **params)
    if way == "compiled":
        torch._dynamo.reset()
        function = torch.compile(function, fullgraph=True, backend="aot_eager")
    results = function(*leaves)
    exact = [t.detach().double().requires_grad_() for t in leaves]
    wanted = formula(*exact)
    results, wanted = (r if isinstance(r, tuple) else (r,) for r in (results, wanted))
    weights = [draw(*r.shape, dtype=torch.float64) for r in wanted]
    sum((r * w).sum() for r, w in zip(results, weights)).backward()
    sum((r * w).sum() for r, w in zip(wanted, weights)).backward()
    for mine, theirs in zip(leaves, exact):
        assert mine.grad.dtype == mine.dtype
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=1e-4, atol=1e-4)


def test_product_with_all():
    """c, bias and scales, of which the last have no gradient."""
    a, b, c, bias = draw(5, 8), draw(8, 6), draw(5, 6), draw(6)
    leaves = [t.requires_grad_() for t in (a, b, c, bias)]
    a_scale, b_scale = torch.rand(5) + 0.5, torch.rand(6) + 0.5
    call = {"c": c, "bias": bias, "a_scale": a_scale, "b_scale": b_scale, "beta": 0.25}
    trine.torch.matmul(a, b, **call, activation="gelu_tanh").sin().sum().backward()
    mine = [t.grad for t in leaves]
    for leaf in leaves:
        leaf.grad = None
    z = a_scale[:, None] * b_scale * (a @ b) + 0.25 * c + bias
    torch.nn.functional.gelu(z, approximate="tanh").sin().sum().backward()
    for grad, leaf in zip(mine, leaves):
        torch.testing.assert_close(grad, leaf.grad, rtol=1e-4, atol=1e-4)
    call["a_scale"] = a_scale.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="no gradient of scales"):
        trine.torch.matmul(a, b, **call).sum().backward()


@pytest.mark.parametrize("compiled", [False, True])
def test_autocast(compiled):
    """Products are computed in autocast's type, with gradients in that of the leaves; the rest takes what comes."""
    a, b, bias, c = draw(5, 8), draw(8, 6), draw(6), draw(5, 6)
    q, k, v = draw(1, 5, 4, 16), draw(1, 7, 2, 16), draw(1, 7, 2, 16)
    low = {n: t.bfloat16() for n, t in dict(a=a, b=b, bias=bias, c=c, q=q, k=k, v=v).items()}

    def under(function, *arguments, **options):
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function, fullgraph=True, backend="aot_eager")
        with torch.autocast("cpu", torch.bfloat16):
            return function(*arguments, **options)

    ops = trine.torch
    same(under(ops.matmul, a, b), ops.matmul(low["a"], low["b"]))
    same(under(ops.matmul, a, low["b"], bias=bias, c=c, beta=1.0),
         ops.matmul(low["a"], low["b"], bias=low["bias"], c=low["c"], beta=1.0))
    same(under(ops.matmul, a, b, bias=bias, dtype=torch.float32),
         ops.matmul(low["a"], low["b"], bias=bias, dtype=torch.float32))
    same(under(ops.attention, q, k, v), ops.attention(low["q"], low["k"], low["v"]))
    same(under(ops.matmul, a.double(), b.double()), ops.matmul(a.double(), b.double()))
    labels = torch.tensor([3, 0, -100, 2, 1])
    same(under(ops.linear_cross_entropy, a, b.T.contiguous(), labels),
         ops.linear_cross_entropy(low["a"], low["b"].T.contiguous(), labels))
    for function in ops.rms_norm, ops.softmax, ops.gelu:
        same(under(function, a), function(a))
    leaf = b.clone().requires_grad_()
    under(ops.matmul, a, leaf).sum().backward()
    assert leaf.grad.dtype == torch.float32
    torch.testing.assert_close(leaf.grad, low["a"].float().sum(0)[:, None].expand(8, 6), rtol=2e-2, atol=2e-2)
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        assert ops.matmul(a, b).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        into = torch.empty(5, 6)
        assert ops.matmul(a, b, out=into, bias=bias) is into


def test_autocast_rule():
    """Which ops are made of products follows from the table."""
    assert all(TABLE[n].products for n in ("matmul", "attention", "attention_backward"))
    assert not any(TABLE[n].products for n in ("rms_norm", "softmax", "cross_entropy", "rope", "gelu", "embedding"))


def test_dropout():
    x = draw(64, 64).requires_grad_()
    y = trine.torch.dropout(x, p=0.5, seed=3)
    y.sum().backward()
    assert torch.equal(x.grad, torch.where(y == 0, 0.0, 2.0))
    assert torch.equal(trine.torch.dropout(x.detach(), p=0.5, seed=3), y)
    assert not torch.equal(trine.torch.dropout(x.detach(), p=0.5, seed=4), y)


def test_dropout_draws():
    """Without a seed from PyTorch's generator: reproducible, anew in each call, and the same in the gradient."""
    x = torch.ones(64, 64, requires_grad=True)
    seen = []
    for _ in range(2):
        torch.manual_seed(11)
        seen.append([trine.torch.rms_norm(x, dropout=0.5, residual_out=True)[1] for _ in range(2)])
    assert torch.equal(seen[0][0], seen[1][0]) and torch.equal(seen[0][1], seen[1][1])
    assert not torch.equal(seen[0][0], seen[0][1])
    assert not torch.equal(*(trine.torch.dropout(x, p=0.5, seed=None, offset=None) for _ in range(2)))
    seen[0][0].sum().backward()
    assert torch.equal(x.grad, seen[0][0].detach())
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: trine.torch.dropout(x, p=0.5), fullgraph=True, backend="aot_eager")
    assert not torch.equal(compiled(x), compiled(x))


def test_tokens_are_drawn():
    """Those of the op that draws too: anew in each call, and by the seed alone where one is given."""
    logits = torch.zeros(16, 1000)
    seen = []
    for _ in range(2):
        torch.manual_seed(12)
        seen.append([trine.torch.sample(logits, temperature=1.0) for _ in range(2)])
    assert torch.equal(seen[0][0], seen[1][0]) and torch.equal(seen[0][1], seen[1][1])
    assert not torch.equal(seen[0][0], seen[0][1])
    assert torch.equal(*(trine.torch.sample(logits, temperature=1.0, seed=4) for _ in range(2)))
    draft, probs = torch.zeros(64, 1, dtype=torch.int32), torch.full((64, 2, 5), 0.2)
    assert not torch.equal(*(trine.torch.speculative_verify(draft, probs)[1] for _ in range(2)))


def test_in_place_is_never_a_copy():
    """What cannot be updated where it lies is refused, not updated in a copy that is lost."""
    m, v, grad = torch.zeros(8), torch.zeros(8), torch.ones(8)
    apart = torch.ones(8, 2)[:, 0]
    with pytest.raises(trine.ArgumentError, match="stride"):
        trine.torch.adamw(apart, grad, m, v, lr=0.5, step=1)
    with pytest.raises(trine.ArgumentError, match="stride"):
        torch.ops.trine.adamw(apart, grad, m, v, lr=0.5, step=1)


def test_any_strides_are_read_as_they_are():
    """An op that reads any strides gets no copy."""
    table = TABLE["reduce_sum"].inputs[0]
    tensor = torch.zeros(6, 8).t()[::2]
    assert ready(tensor, table) is tensor


def test_signatures(op):
    """As those of trine, and kept: what the op does not have, or has not been given, is an error."""
    function = getattr(trine.torch, op["name"])
    assert inspect.signature(function) == inspect.signature(getattr(trine, op["name"]))
    with pytest.raises(TypeError, match=f"{op['name']}.*argument"):
        function()
    with pytest.raises(TypeError, match=f"{op['name']}.*argument"):
        function(*[torch.zeros(2)] * (1 + len(TABLE[op["name"]].positional)))


def test_optional_outputs_recorded():
    """Those asked for come in the order of the table; those that the gradient needs besides do not come."""
    x, residual = torch.randn(4, 16, requires_grad=True), torch.randn(4, 16)
    for asked in {"rstd": True}, {"rstd": True, "mean": None}, {"mean": True, "rstd": True}, {"residual_out": True}, {}:
        got = trine.torch.layer_norm(x, residual=residual, **asked)
        with torch.no_grad():
            same(got, trine.layer_norm(x, residual=residual, **asked))
        for name, output in zip(["y", *[n for n in ("residual_out", "mean", "rstd") if asked.get(n)]],
                                got if isinstance(got, tuple) else (got,)):
            assert output.requires_grad == (name in ("y", "residual_out"))
        first, = torch.autograd.grad((got[0] if isinstance(got, tuple) else got).sin().sum(), x)
        y = torch.nn.functional.layer_norm(x + residual, (16,), eps=1e-5)
        torch.testing.assert_close(first, *torch.autograd.grad(y.sin().sum(), x), rtol=1e-4, atol=1e-5)


def test_only_what_is_needed():
    x, weight = torch.randn(4, 16), torch.randn(16, requires_grad=True)
    trine.torch.rms_norm(x, weight=weight).sum().backward()
    assert weight.grad is not None and x.grad is None
    y = trine.torch.rms_norm(x, weight=weight.detach())
    assert not y.requires_grad
    with torch.no_grad():
        assert not trine.torch.rms_norm(x, weight=weight).requires_grad


def test_mistakes():
    x = torch.randn(4, 16, requires_grad=True)
    with pytest.raises(RuntimeError, match="global_norm_clip has no gradient: .*detach"):
        trine.torch.global_norm_clip(x.flatten(), max_norm=1.0, y=True)
    with pytest.raises(RuntimeError, match="out cannot be given where gradients are recorded"):
        trine.torch.rms_norm(x, out=torch.empty(4, 16))
    with pytest.raises(trine.ArgumentError, match="weight has shape"):
        trine.torch.rms_norm(x, weight=torch.ones(3))
    with pytest.raises(RuntimeError, match="once_differentiable|differentiat"):
        y = trine.torch.rms_norm(x)
        grad, = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
        grad.sum().backward()
    with pytest.raises(TypeError, match="no argument 'epsilon'"):
        trine.torch.rms_norm(x.detach(), epsilon=1)


def test_threads_of_autograd():
    """Gradients of many at once, from threads that are PyTorch's and ours."""
    import threading
    want, wrong = [None], []

    def work(first):
        x = torch.linspace(-3, 3, 64 * 32).reshape(64, 32).requires_grad_()
        for _ in range(20):
            x.grad = None
            trine.torch.rms_norm(trine.torch.gelu(x)).sin().sum().backward()
            if first:
                want[0] = x.grad.clone()
            elif not torch.equal(x.grad, want[0]):
                wrong.append(1)

    work(True)
    threads = [threading.Thread(target=work, args=(False,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
