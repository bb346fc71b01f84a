# SPDX-License-Identifier: Apache-2.0
"""Gradients of trine.torch against what is not trine's: differences of each op's own values, and PyTorch's gradients of
the formulas in float64. Where an op has f64, it is PyTorch's gradcheck."""
import pytest

import golden_vectors
from conftest import OPS

torch = pytest.importorskip("torch")
import trine.torch as ops  # noqa: E402: needs torch
from trine._ops import OPS as TABLE  # noqa: E402
from torch.nn import functional as F  # noqa: E402

DIFFERENTIABLE = [n for n, op in TABLE.items() if op.gradient]


def draw(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


# ---------------------------------------------------------------------------------------------------------- differences

def in_f32(name):
    """Cases of the golden vectors in f32: their shapes, integers and parameters, with other values."""
    table = {t["name"]: t for t in OPS[name]["tensors"]}
    for case in golden_vectors.cases(OPS[name]):
        dtypes = {n: case.dtype(table[n]) for n in case.inputs}
        if set(dtypes.values()) - {"i32", "i64"} != {"f32"}:
            continue
        arguments = {}
        for n, (shape, values) in case.inputs.items():
            integers = {"i32": torch.int32, "i64": torch.int64}.get(dtypes[n])
            numbers = draw(*shape).abs() + 0.5 if (table[n]["fill"] or "").startswith("positive") else draw(*shape)
            arguments[n] = numbers if integers is None else torch.tensor(values, dtype=integers).reshape(shape)
        yield arguments, case


# Without old_logp the ratio is to the policy itself, held fixed: it is 1 along every step, and its gradient is not 0.
HELD_FIXED = {"policy_loss": "old_logp"}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_differences(name):
    """Along a random direction, all outputs weighted at random. An op that chooses has differences only where both
    steps choose the same; where a slope changes within a step, a shorter one must agree."""
    torch.manual_seed(3)
    op, done = TABLE[name], 0
    for arguments, case in in_f32(name):
        if name in HELD_FIXED and HELD_FIXED[name] not in arguments:
            continue
        leaves = {n: arguments[n].requires_grad_() for _, n in op.gradient.made
                  if n in arguments and arguments[n].is_floating_point() and not n.endswith("_scale")}
        wanted = {n: True for n in op.optional_outputs if n in case.outputs or n not in op.gradient.differentiable}
        weights, chosen, sizes = {}, [], []

        def value(moved):
            results = getattr(ops, name)(**{**arguments, **moved}, **case.params, **wanted)
            results = results if isinstance(results, tuple) else (results,)
            chosen.append([r for r in results if not r.is_floating_point()])
            names = [t.name for t in op.outputs if not t.optional or t.name in wanted]
            terms = [r.double() * weights.setdefault(n, draw(*r.shape, dtype=torch.float64))
                     for n, r in zip(names, results) if n in op.gradient.differentiable]
            sizes.append(sum(t.detach().abs().sum() for t in terms))
            return sum(t.sum() for t in terms)
        total = value({})
        if not leaves or not torch.is_tensor(total) or not total.requires_grad:
            continue
        gradients = torch.autograd.grad(total, list(leaves.values()))
        directions = {n: draw(*t.shape) for n, t in leaves.items()}
        told = sum((g.double() * d).sum() for g, d in zip(gradients, directions.values()))
        size = sum((g.double() * d).abs().sum() for g, d in zip(gradients, directions.values()))
        tries = []
        for step in (2.0**-7, 2.0**-10, 2.0**-13):
            allowed = 3e-3 * size + 1e-4 + 2.0**-24 * sizes[0] / step
            with torch.no_grad():
                tries.append((value({n: leaves[n] + step * d for n, d in directions.items()}) -
                              value({n: leaves[n] - step * d for n, d in directions.items()})) / (2 * step))
            if abs(tries[-1] - told) <= allowed or not torch.isfinite(tries[-1]):
                break
        if not all(torch.equal(a, b) for moved in chosen[1:] for a, b in zip(chosen[0], moved)):
            continue
        if not torch.isfinite(tries[-1]):  # the maximum of nothing
            continue
        assert abs(tries[-1] - told) <= allowed, f"{name}, {case.name}: {told} told, {tries} seen"
        done += 1
    assert done > 0


# ------------------------------------------------------------------------------------------------------------------ f64

@pytest.mark.parametrize("shapes,params", [
    (((4, 5), (5, 3)), {}), (((2, 4, 5), (2, 5, 3)), {"alpha": 0.5}), (((1, 4, 5), (2, 5, 3)), {}),
    (((4, 5), (5, 3), (4, 3)), {"beta": 0.25}), (((4, 5), (5, 3), None, (3,)), {"activation": "relu"}),
    (((4, 5), (5, 3), (4, 3), (3,)), {"beta": -1.0, "activation": "silu"}),
    (((4, 5), (5, 3)), {"activation": "gelu_erf"}), (((4, 5), (5, 3)), {"activation": "gelu_tanh"}),
    (((2, 4, 5), (5, 3), (1, 4, 3)), {"beta": 1.0})])
def test_gradcheck(shapes, params):
    torch.manual_seed(1)
    leaves = [s and draw(*s, dtype=torch.float64).requires_grad_() for s in shapes]
    assert torch.autograd.gradcheck(lambda *l: ops.matmul(*l, **params), leaves)


# ------------------------------------------------------------------------------------------------------ formulas in f64

def rms_norm(x, weight=None, residual=None, eps=1e-6, weight_offset=0.0):
    h = x if residual is None else x + residual
    y = h * (h.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (y if weight is None else y * (weight + weight_offset)), h


def layer_norm(x, weight=None, bias=None, residual=None, eps=1e-5):
    h = x if residual is None else x + residual
    return F.layer_norm(h, h.shape[-1:], weight, bias, eps), h


def l1_norm(x, weight=None, bias=None, eps=1e-5):
    d = x - x.mean(-1, keepdim=True)
    y = d / (d.abs().mean(-1, keepdim=True) + eps)
    return (y if weight is None else y * weight) + (0 if bias is None else bias)


def first(function):
    return lambda *leaves, **params: function(*leaves, **params)[0]


def attention(q, k, v, causal=False, window=None, softcap=None, scale=None):
    """b s h d, heads of keys in groups."""
    group = q.shape[2] // k.shape[2]
    k, v = (t.repeat_interleave(group, 2) for t in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * (scale or q.shape[-1]**-0.5)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    ahead = torch.arange(k.shape[1])[None, :] - torch.arange(q.shape[1])[:, None] - (k.shape[1] - q.shape[1])
    hidden = torch.zeros_like(ahead, dtype=torch.bool)
    if causal:
        hidden |= ahead > 0
    if window:
        hidden |= ahead.abs() >= window
    return torch.einsum("bhij,bjhd->bihd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v)


def rope(x, cos, sin, interleaved=False):
    left, right = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    turned = left * cos - right * sin, right * cos + left * sin
    return torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)


def cross_entropy(logits, labels, z_loss=0.0, logit_scale=1.0, class_weight=None, **options):
    z = logits * logit_scale
    counted = labels != options.get("ignore_index", -100)
    weight = None if class_weight is None else class_weight.to(z.dtype)
    losses = F.cross_entropy(z, labels, reduction="none", weight=weight, **options)
    return losses + z_loss * z.logsumexp(-1).pow(2) * counted


ANGLES = torch.linspace(-3, 3, 5 * 4).reshape(5, 4)
LABELS = torch.tensor([3, 0, -100, 8, 5])
SEEN = (torch.arange(35).reshape(5, 7) % 3 != 0).to(torch.uint8)
FORMULAS = [  # the op, its leaves' shapes, what else it takes by place, parameters, and the formula
    ("rms_norm", [(5, 9)], [], {}, first(rms_norm)),
    ("rms_norm", [(2, 5, 9), (9,)], [], {"eps": 1e-3, "weight_offset": 1.0}, first(rms_norm)),
    ("rms_norm", [(5, 9), (9,), (5, 9)], [], {"residual_out": True}, lambda *l, residual_out: rms_norm(*l)),
    ("layer_norm", [(5, 9)], [], {}, first(layer_norm)),
    ("layer_norm", [(2, 5, 9), (9,), (9,)], [], {"eps": 1e-3}, first(layer_norm)),
    ("layer_norm", [(5, 9), (9,), (9,), (5, 9)], [], {"residual_out": True}, lambda *l, residual_out: layer_norm(*l)),
    ("l1_norm", [(5, 9)], [], {}, l1_norm),
    ("l1_norm", [(2, 5, 9), (9,), (9,)], [], {"eps": 1e-3}, l1_norm),
    ("softmax", [(3, 5, 7)], [], {"scale": 0.5}, lambda x, scale: (x * scale).softmax(-1)),
    ("softmax", [(3, 7, 7)], [], {"causal": True},
     lambda x, causal: x.masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)),
    ("softmax_masked", [(2, 3, 5, 7)], [SEEN], {"scale": 0.5},
     lambda x, mask, scale: (x * scale).masked_fill(mask == 0, -torch.inf).softmax(-1)),
    *(("gelu_bias", [(2, 5, 9), (9,)], [], {"form": form}, lambda x, bias, form: F.gelu(
        x + bias, approximate={"erf": "none"}.get(form, form))) for form in ("erf", "tanh")),
    ("conv2d", [(2, 5, 6, 4), (6, 3, 2, 2), (6,)], [], {"p": 3, "q": 6, "stride_h": 2, "pad_top": 1, "pad_left": 1},
     lambda x, weight, bias, **_: F.conv2d(F.pad(x.movedim(-1, 1), (1, 0, 1, 1)), weight.movedim(-1, 1), bias, (2, 1),
                                           groups=2).movedim(1, -1)),
    ("pool2d", [(2, 5, 6, 4)], [], {"p": 3, "q": 3, "kernel_h": 3, "kernel_w": 2, "stride_h": 1, "kind": "mean"},
     lambda x, **_: F.avg_pool2d(x.movedim(-1, 1), (3, 2), (1, 2)).movedim(1, -1)),
    ("soft_threshold", [(2, 5, 9), (2,)], [], {},
     lambda x, threshold: torch.sign(x) * F.relu(x.abs() - threshold[:, None, None])),
    ("dropout_add", [(2, 5, 9), (9,), (2, 5, 9)], [], {"p": 0.0}, lambda x, bias, residual, p: x + bias + residual),
    ("cross_entropy", [(5, 9)], [LABELS], {}, cross_entropy),
    ("cross_entropy", [(5, 9)], [LABELS], {"label_smoothing": 0.2, "z_loss": 0.1, "logit_scale": 0.5}, cross_entropy),
    ("cross_entropy", [(5, 9)], [LABELS], {"class_weight": torch.linspace(0, 2, 9)}, cross_entropy),
    ("cross_entropy", [(5, 9)], [LABELS], {"class_weight": torch.linspace(0, 2, 9), "label_smoothing": 0.2,
                                           "z_loss": 0.1}, cross_entropy),
    ("cross_entropy", [(2, 5, 9)], [LABELS.abs().remainder(9).repeat(2, 1)], {"ignore_index": 8},
     lambda x, labels, **options: F.cross_entropy(x.mT, labels, reduction="none", **options)),
    ("attention", [(2, 5, 4, 8), (2, 7, 2, 8), (2, 7, 2, 8)], [], {}, attention),
    ("attention", [(2, 5, 4, 8), (2, 7, 4, 8), (2, 7, 4, 8)], [], {"causal": True, "scale": 0.5}, attention),
    ("attention", [(1, 7, 4, 8), (1, 7, 1, 8), (1, 7, 1, 8)], [],
     {"causal": True, "window": 3, "softcap": 2.0}, attention),
    ("rope", [(2, 5, 3, 8)], [ANGLES.cos(), ANGLES.sin()], {}, rope),
    ("rope", [(2, 5, 3, 8)], [ANGLES.cos(), ANGLES.sin()], {"interleaved": True}, rope),
    ("swiglu", [(2, 5, 9), (2, 5, 9)], [], {}, lambda gate, up: F.silu(gate) * up),
    *(("geglu", [(5, 9), (5, 9)], [], {"form": form}, lambda gate, up, form: F.gelu(
        gate, approximate={"erf": "none"}.get(form, form)) * up) for form in ("erf", "tanh")),
    *(("gelu", [(5, 9)], [], {"form": form}, lambda x, form: F.gelu(x, approximate={"erf": "none"}.get(form, form)))
      for form in ("erf", "tanh")),
    ("relu2", [(5, 9)], [], {}, lambda x: F.relu(x).pow(2)),
    ("embedding", [(9, 6)], [torch.tensor([[3, 0, 3], [8, 8, 8]])], {}, lambda table, ids: F.embedding(ids, table)),
]


@pytest.mark.parametrize("name,shapes,others,params,formula", FORMULAS, ids=[f[0] for f in FORMULAS])
def test_formulas(name, shapes, others, params, formula):
    """To some units of f32 beside the largest: the formula's own gradient in f32 is not nearer."""
    torch.manual_seed(2)
    leaves = [draw(*shape).requires_grad_() for shape in shapes]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    results = getattr(ops, name)(*leaves, *others, **params)
    wanted = formula(*exact, *[t.double() if t.is_floating_point() else t for t in others], **params)
    results, wanted = (r if isinstance(r, tuple) else (r,) for r in (results, wanted))
    assert [r.shape for r in results] == [w.shape for w in wanted]
    incoming = [draw(*r.shape) for r in results]
    torch.autograd.backward(results, incoming)
    torch.autograd.backward(wanted, [g.double() for g in incoming])
    for result, want in zip(results, wanted):
        torch.testing.assert_close(result.double(), want, rtol=1e-5, atol=1e-6 * want.abs().max().item())
    for leaf, want in zip(leaves, exact):
        torch.testing.assert_close(leaf.grad.double(), want.grad, rtol=1e-5, atol=2e-6 * want.grad.abs().max().item())


def experts_layer(x, router, w_gate_up, w_down, k, capacity):
    """Routed, sorted, gathered, gated, added up; with a capacity in groups that begin at its multiples."""
    e, t = router.shape[0], x.shape[0]
    weights, experts = ops.moe_route(x @ router.mT, k=k, renormalise=True)
    counts, offsets, rows, places = ops.moe_align(experts, e=e, m=t * k, b=1)
    full = {"counts": counts} if capacity else {}
    if capacity:
        offsets = torch.arange(e + 1, dtype=torch.int32) * capacity
        rank = torch.stack([torch.cumsum(experts.view(-1) == j, 0) - 1 for j in range(e)])
        places = experts * capacity + rank.gather(0, experts.view(1, -1).long()).view_as(experts).int()
        rows = torch.full((e * capacity,), -1, dtype=torch.int32)
        rows[places.view(-1).long()] = torch.arange(t * k, dtype=torch.int32)
    gate, up = ops.grouped_matmul(x, w_gate_up, offsets, gather=rows.view(-1), divide=k, **full).chunk(2, -1)
    made = ops.grouped_matmul(ops.swiglu(gate, up), w_down, offsets, **full)
    return ops.moe_combine(made, places, weights)


@pytest.mark.parametrize("capacity", [0, 24])
def test_experts(capacity):
    """A layer of experts by its parts, and its gradients, against a loop over the experts; moe_mlp makes the same."""
    torch.manual_seed(4)
    t, h, e, f, k = 24, 16, 5, 12, 2
    leaves = [draw(*shape).requires_grad_() for shape in ((t, h), (e, h), (e, 2 * f, h), (e, h, f))]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    x, router, w_gate_up, w_down = exact
    top, chosen = (x @ router.mT).topk(k)
    want, weights = 0, torch.softmax(top, -1)
    for a in range(k):
        gate, up = torch.einsum("th,tfh->tf", x, w_gate_up[chosen[:, a]]).chunk(2, -1)
        want = want + weights[:, a, None] * torch.einsum("tf,thf->th", F.silu(gate) * up, w_down[chosen[:, a]])
    y = experts_layer(*leaves, k, capacity)
    dy = draw(t, h)
    y.backward(dy)
    want.backward(dy.double())
    torch.testing.assert_close(y.double(), want, rtol=1e-5, atol=1e-5 * want.abs().max().item())
    for leaf, w in zip(leaves, exact):
        torch.testing.assert_close(leaf.grad.double(), w.grad, rtol=1e-5, atol=1e-5 * w.grad.abs().max().item())
    with torch.no_grad():
        x, router, w_gate_up, w_down = leaves
        whole = ops.moe_mlp(x, *ops.moe_route(x @ router.mT, k=k, renormalise=True), w_gate_up, w_down)
    torch.testing.assert_close(whole, y.detach(), rtol=0, atol=0)
