# SPDX-License-Identifier: Apache-2.0
"""trine.flash against attention written out in float64."""
import pytest

torch = pytest.importorskip("torch")
from trine.flash import flash_attn_func, flash_attn_varlen_func  # noqa: E402


def written_out(q, k, v, scale, visible, softcap=0.0, added=0.0):
    """q: b s h d; visible: queries by keys."""
    groups = q.shape[2] // k.shape[2]
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.mT * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores + added
    return (scores.masked_fill(~visible, -torch.inf).softmax(-1) @ v).transpose(1, 2)


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


@pytest.mark.parametrize("options,visible", [
    ({}, lambda i, j: (i >= 0) & (j >= 0)),
    ({"causal": True}, lambda i, j: j <= i),
    ({"window_size": (3, 0)}, lambda i, j: (j <= i) & (j >= i - 3)),
    ({"causal": True, "window_size": (2, -1)}, lambda i, j: (j <= i) & (j >= i - 2)),
    ({"window_size": (2, 2)}, lambda i, j: (j <= i + 2) & (j >= i - 2)),
    ({"window_size": (3, 1)}, lambda i, j: (j <= i + 1) & (j >= i - 3)),
    ({"window_size": (-1, 2)}, lambda i, j: j <= i + 2),
    ({"window_size": (2, -1)}, lambda i, j: j >= i - 2),
    ({"causal": True, "softcap": 2.0, "softmax_scale": 0.7}, lambda i, j: j <= i),
])
def test_dense(options, visible):
    q, k, v = draw(2, 7, 4, 16), draw(2, 11, 2, 16), draw(2, 11, 2, 16)
    seen = visible(torch.arange(7)[:, None] + 4, torch.arange(11)[None])
    got = flash_attn_func(q, k, v, **options)
    want = written_out(q, k, v, options.get("softmax_scale", 0.25), seen, options.get("softcap", 0.0))
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)
    mine = torch.autograd.grad(got.sin().sum(), (q, k, v))
    theirs = torch.autograd.grad(want.sin().sum(), (q, k, v))
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_packed():
    lengths = [3, 9, 1]
    starts = torch.tensor([0, 3, 12, 13], dtype=torch.int32)
    q, k, v = draw(13, 4, 16), draw(13, 2, 16), draw(13, 2, 16)
    got, lse, nothing = flash_attn_varlen_func(q, k, v, starts, starts, 9, 9, causal=True, return_attn_probs=True)
    assert lse.shape == (4, 13) and nothing is None
    for part, n in zip(range(3), lengths):
        rows = slice(starts[part], starts[part + 1])
        seen = torch.ones(n, n).tril().bool()
        want = written_out(q[None, rows], k[None, rows], v[None, rows], 0.25, seen)[0]
        torch.testing.assert_close(got[rows].double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4,), (2, 4)])
def test_slopes(shape):
    q, k, v, slopes = draw(2, 7, 4, 16), draw(2, 11, 2, 16), draw(2, 11, 2, 16), draw(*shape).detach().abs()
    far = (torch.arange(7)[:, None] + 4 - torch.arange(11)[None]).abs()
    got = flash_attn_func(q, k, v, alibi_slopes=slopes)
    want = written_out(q, k, v, 0.25, torch.ones(7, 11).bool(), added=-slopes[..., None, None].double() * far)
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


def test_dropout():
    """What is dropped is drawn anew at each call, and the gradient drops the same."""
    q, k = torch.zeros(1, 64, 1, 8), torch.zeros(1, 64, 1, 8)
    v = torch.eye(64)[None, :, None].requires_grad_()[..., :8]
    torch.manual_seed(3)
    first, second = (flash_attn_func(q, k, v, dropout_p=0.25) for _ in range(2))
    kept = 1 / 64 / 0.75
    assert not torch.equal(first, second)
    assert torch.all((first == 0) | ((first - kept).abs() < 1e-6))
    assert 0.15 < (first == 0).float().mean() < 0.35
    gradient, = torch.autograd.grad(first.sum(), v)
    torch.testing.assert_close(gradient[0, :8, 0, 0], first[0, :, 0].sum(0), rtol=1e-5, atol=1e-6)


def test_refusals():
    q = draw(1, 4, 2, 8)
    starts = torch.tensor([0, 4], dtype=torch.int32)
    with pytest.raises(NotImplementedError, match="paged"):
        flash_attn_varlen_func(q[0], q[0], q[0], starts, starts, 4, 4, block_table=starts)
    with pytest.raises(RuntimeError, match="no gradient of alibi_slopes"):
        flash_attn_func(q, q, q, alibi_slopes=draw(2)).sum().backward()
