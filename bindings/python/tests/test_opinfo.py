# SPDX-License-Identifier: Apache-2.0
"""The samples that PyTorch tests its own functions with, through thin maps to trine's ops, against PyTorch in float64:
values in each type, gradients in f32. What PyTorch calls a mistake must be an error here too. What is not answered is
in DEVIATES, each with its reason."""
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import trine  # noqa: E402
import trine.torch as ops  # noqa: E402

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


class Deviates(Exception):
    """A sample that trine has no answer to, or another one."""


SCALAR = "a tensor without dimensions: refused, one of one element is not"
EPS = "eps is negative: refused"
SHARES = "labels that are shares of classes: labels are classes"
CORNER = "a causal mask that begins at the top left: it ends at the bottom right, so that a cache may be longer"
DROPS = "dropout in attention: other elements are dropped"
NORM = "rows of the table that are renormalized: it is read alone"
COUNTED = "gradients divided by how often a row is read: they are sums"
SPARSE = "a sparse gradient: it is dense"
LEADING = "a table of several dimensions: its rows are those of all"
DEVIATES = {
    "add": {SCALAR}, "sub": {SCALAR}, "mul": {SCALAR}, "softmax": {SCALAR}, "nn.functional.silu": {SCALAR},
    "nn.functional.rms_norm": {EPS}, "nn.functional.layer_norm": {EPS},
    "nn.functional.cross_entropy": {SHARES},
    "nn.functional.scaled_dot_product_attention": {CORNER, DROPS},
    "nn.functional.embedding": {SCALAR, NORM, COUNTED, SPARSE},
}
ACCEPTED = {"nn.functional.embedding": {"'weight' must be 2-D": LEADING}}  # what is a mistake for PyTorch alone


# ----------------------------------------------------------------------------------------------------------------- maps

def rows_of(x, shape, weight, eps):
    """A norm of PyTorch's is over the last dimensions, which may be several."""
    if not shape or tuple(x.shape[x.dim() - len(shape):]) != tuple(shape) or (weight is not None and
                                                                             tuple(weight.shape) != tuple(shape)):
        raise RuntimeError("the last dimensions are others")
    if eps is not None and eps < 0:
        with pytest.raises(ValueError, match="eps"):
            ops.rms_norm(x, eps=eps)
        raise Deviates(EPS)
    return x.reshape(*x.shape[:x.dim() - len(shape)], math.prod(shape))


def rms_norm(x, shape, weight=None, eps=None):
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    rows = rows_of(x, shape, weight, eps)
    return ops.rms_norm(rows, weight=None if weight is None else weight.flatten(), eps=eps).reshape(x.shape)


def layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    rows = rows_of(x, shape, weight, eps)
    weight, bias = (None if t is None else t.flatten() for t in (weight, bias))
    return ops.layer_norm(rows, weight=weight, bias=bias, eps=eps).reshape(x.shape)


def softmax(x, dim):
    return ops.softmax(x.movedim(dim, -1)).movedim(-1, dim)


def cross_entropy(logits, labels, weight=None, reduction="mean", **options):
    if labels.is_floating_point():
        raise Deviates(SHARES)
    losses = ops.cross_entropy(logits.movedim(1, -1), labels, class_weight=None if weight is None else weight.float(),
                               **options)
    if reduction == "none":
        return losses
    kept = labels != options.get("ignore_index", -100)
    count = kept.sum() if weight is None else weight[labels[kept]].float().sum()
    return losses.sum() / (count if reduction == "mean" else 1)


def embedding(table, ids, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    for given, reason in (max_norm, NORM), (scale_grad_by_freq, COUNTED), (sparse, SPARSE):
        if given:
            raise Deviates(reason)
    if padding_idx is not None:  # whose row gets no gradient
        kept = torch.ones(table.shape[0], 1, dtype=torch.bool)
        kept[padding_idx] = False
        table = torch.where(kept, table, table.detach())
    return ops.embedding(table, ids)


def matmul(a, b, **options):
    if b.dim() == 1:
        return matmul(a, b[:, None], **options)[..., 0]
    if a.dim() == 1:
        return matmul(a[None], b, **options)[..., 0, :]
    if b.dim() == 2:
        return ops.matmul(a, b, **options)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (t.expand(*batch, *t.shape[-2:]).reshape(math.prod(batch), *t.shape[-2:]) for t in (a, b))
    return ops.matmul(a, b, **options).reshape(*batch, a.shape[-2], b.shape[-1])


def product_and_sum(c, a, b, beta=1, alpha=1):
    c = c.expand(*a.shape[:-1], b.shape[-1])
    return ops.matmul(a, b, c=c, alpha=alpha, beta=beta) if beta else ops.matmul(a, b, alpha=alpha)


def linear(x, weight, bias=None):
    if weight.dim() == 1:
        return matmul(x, weight)
    return ops.matmul(x, weight.mT, bias=bias)


def total(x, dim=None, keepdim=False):
    dims = range(x.dim()) if dim is None or dim == () else [dim] if isinstance(dim, int) else dim
    dims = sorted({d % max(x.dim(), 1) for d in dims}) if x.dim() else []
    left = [d for d in range(x.dim()) if d not in dims]
    shape = [x.shape[d] for d in left]
    rows = x.permute((*left, *dims)).reshape(math.prod(shape), math.prod(x.shape[d] for d in dims))
    return ops.reduce_sum(rows, row_sums=True).reshape([1 if d in dims else x.shape[d] for d in range(x.dim())]
                                                       if keepdim else shape)


def attention(q, k, v, attn_mask=None, is_causal=False, dropout_p=0.0, enable_gqa=False):
    if dropout_p:
        raise Deviates(DROPS)
    if is_causal and q.shape[-2] != k.shape[-2]:
        raise Deviates(CORNER)
    batch = torch.broadcast_shapes(q.shape[:-3], k.shape[:-3]) or (1,)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill(~attn_mask, -torch.inf)
    out = ops.attention(*(t.expand(*batch, *t.shape[-3:]).transpose(-2, -3) for t in (q, k, v)), causal=is_causal,
                        bias=attn_mask)
    return out.transpose(-2, -3).reshape(*torch.broadcast_shapes(q.shape[:-3], k.shape[:-3]), *q.shape[-3:])


MAPS = {
    "add": lambda a, b, alpha=1: ops.add(a, b, beta=alpha), "sub": lambda a, b, alpha=1: ops.add(a, b, beta=-alpha),
    "mul": ops.mul, "sum": total, "matmul": matmul, "mm": matmul, "bmm": matmul, "addmm": product_and_sum,
    "baddbmm": product_and_sum, "softmax": softmax, "nn.functional.linear": linear,
    "nn.functional.rms_norm": rms_norm, "nn.functional.layer_norm": layer_norm,
    "nn.functional.cross_entropy": cross_entropy, "nn.functional.embedding": embedding,
    "nn.functional.gelu": lambda x, approximate: ops.gelu(x, form={"none": "erf"}.get(approximate, approximate)),
    "nn.functional.silu": lambda x: ops.swiglu(x, torch.ones_like(x)),
    "nn.functional.scaled_dot_product_attention": attention,
}
INFOS = {info.name: info for info in op_db if info.name in MAPS and not info.variant_test_name}


def leaves_of(sample):
    return [t for t in (sample.input, *sample.args, *sample.kwargs.values()) if isinstance(t, torch.Tensor) and
            t.requires_grad]


def in_f64(sample):
    def wide(value):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        return value.detach().double().requires_grad_(value.requires_grad)
    return sample.transform(wide)


def test_all_are_there():
    assert INFOS.keys() == MAPS.keys()


def near(got, want, tolerance):
    """Beside the largest value: scores of attention are some 100 here, whose last bit is 1e-5 of a probability."""
    size = want.abs().nan_to_num().max().item() if want.numel() else 0
    torch.testing.assert_close(got, want, equal_nan=True, rtol=tolerance, atol=1e-5 * max(size, 1))


def compare_gradients(sample, exact, got, want):
    if not leaves_of(sample):
        return
    incoming = torch.randn_like(got)
    made = torch.autograd.grad(got, leaves_of(sample), incoming, allow_unused=True)
    told = torch.autograd.grad(want, leaves_of(exact), incoming.double())
    for mine, theirs in zip(made, told):
        near(torch.zeros_like(theirs) if mine is None else mine.double(), theirs, 1e-4)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples(name, dtype):
    torch.manual_seed(7)
    info, seen, done = INFOS[name], set(), 0
    samples = [s for grad in (False, True) for s in info.sample_inputs("cpu", dtype, requires_grad=grad)]
    for sample in samples:
        exact = in_f64(sample)
        try:
            got = MAPS[name](sample.input, *sample.args, **sample.kwargs)
        except Deviates as reason:
            seen.add(str(reason))
            continue
        except trine.ArgumentError as error:
            assert "has rank 0" in str(error)
            seen.add(SCALAR)
            continue
        want = info.op(exact.input, *exact.args, **exact.kwargs)
        assert got.dtype == dtype or name == "nn.functional.cross_entropy"  # whose losses are of f32
        if dtype != torch.float32:
            torch.testing.assert_close(got, want.to(got.dtype), equal_nan=True)
        else:
            near(got.double(), want, 1e-5)
            compare_gradients(sample, exact, got, want)
        done += 1
    assert done > 0
    assert seen == DEVIATES.get(name, set())


@pytest.mark.parametrize("name", [n for n, info in INFOS.items() if info.error_inputs_func])
def test_mistakes(name):
    taken = set()
    for error in INFOS[name].error_inputs("cpu"):
        sample = error.sample_input
        try:
            MAPS[name](sample.input, *sample.args, **sample.kwargs)
            taken.add(str(error.error_regex))
        except (RuntimeError, ValueError):
            pass
    assert taken == ACCEPTED.get(name, {}).keys()


DROPOUT = [info for info in op_db if info.name == "nn.functional.dropout"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dropout(dtype):
    """What is dropped is not what PyTorch drops, but where p is 0 or 1; the rest is as large."""
    torch.manual_seed(7)
    for sample in DROPOUT[0].sample_inputs("cpu", dtype, requires_grad=True):
        p = sample.kwargs.get("p", 0.5) if sample.kwargs.get("training", True) else 0.0
        x = sample.input.detach().reshape(-1 if sample.input.dim() == 0 else sample.input.shape).requires_grad_()
        y = ops.dropout(x, p=p)
        kept = (y != 0) & (x != 0)
        if p in (0, 1):
            torch.testing.assert_close(y, torch.nn.functional.dropout(x, p))
        torch.testing.assert_close(y, torch.where(kept, x / (1 - p) if p < 1 else x, torch.zeros_like(x)))
        gradient, = torch.autograd.grad(y, x, torch.ones_like(y))
        assert torch.equal(gradient != 0, kept)
