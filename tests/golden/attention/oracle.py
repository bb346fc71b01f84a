# SPDX-License-Identifier: Apache-2.0
"""attention, rope and their gradients: PyTorch in float64 with masks written out, its scaled_dot_product_attention
where it has the case, and autograd."""
import itertools

import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32, rounded


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


# ------------------------------------------------------------------------------------------------------------ attention


def mask_of(sq, sk, causal, window):
    """Which keys a query sees. The last query stands at the last key: position i + sk - sq among the keys."""
    at, key = torch.arange(sq)[:, None] + sk - sq, torch.arange(sk)[None, :]
    mask = torch.ones(sq, sk, dtype=torch.bool)
    if causal:
        mask &= key <= at
    if window:
        mask &= (at - key).abs() <= window - 1
    return mask


def sequences(lengths_q, lengths_k, causal, window):
    """The mask of a packed batch: each sequence sees itself alone."""
    return torch.block_diag(*[mask_of(a, b, causal, window) for a, b in zip(lengths_q, lengths_k)]).bool()


def attend(q, k, v, mask, scale, softcap):
    """Scores (softcapped as Gemma 2 does it), probabilities, output and lse, heads first."""
    group = q.shape[2] // k.shape[2]
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = scale * (q @ k.transpose(-1, -2))
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    seen = mask.any(-1)
    masked = scores.masked_fill(~mask, -torch.inf)
    lse = torch.logsumexp(torch.where(seen[:, None], masked, 0.0), -1)
    weights = torch.softmax(torch.where(seen[:, None], masked, 0.0), -1) * seen[:, None]
    o = weights @ v
    if not softcap and seen.all():
        assert torch.allclose(o, F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale), rtol=0,
                              atol=1e-13)
    return o.transpose(1, 2), torch.where(seen, lse, -torch.inf)


# name, type, b, sq, sk, h, hk, d, scale, softcap, causal, window, lengths of packed sequences,
# q and k are small integers times
CALLS = (
    ("plain", "f32", 2, 4, 5, 2, 2, 6, 0, 0, 0, 0, None),
    ("grouped heads, own scale", "bf16", 1, 3, 4, 6, 2, 6, 0.3, 0, 0, 0, None),
    ("causal, more keys", "f32", 1, 4, 9, 2, 1, 8, 0, 0, 1, 0, None),
    ("causal, more queries, rows without a key", "f32", 1, 7, 3, 2, 2, 4, 0, 0, 1, 0, None),
    ("window", "f32", 1, 7, 7, 1, 1, 4, 0, 0, 0, 3, None),
    ("causal window, more keys", "f16", 1, 5, 9, 2, 1, 8, 0, 0, 1, 3, None),
    ("window beyond the keys, rows without one", "f32", 1, 9, 3, 1, 1, 4, 0, 0, 0, 2, None),
    ("window of one", "f32", 1, 4, 6, 2, 1, 4, 0, 0, 1, 1, None),
    ("softcap", "f32", 1, 4, 5, 2, 2, 8, -1, 1, 0, 0, None),
    ("softcap, causal, grouped", "bf16", 1, 4, 6, 4, 1, 6, 0, 1.5, 1, 4, None),
    ("packed, causal", "f32", 1, 11, 13, 1, 1, 4, 0, 0, 1, 0, ((3, 0, 6, 2), (5, 2, 4, 2))),
    ("packed, window and softcap", "f32", 1, 9, 9, 1, 1, 4, 0.3, 2, 1, 2, ((4, 5), (4, 5))),
    ("long rows", "f32", 1, 3, 40, 1, 1, 5, 0, 0, 1, 0, None),
    ("scores beyond 2^31", "f32", 1, 4, 9, 2, 1, 6, 1, 0, 0, 0, None, 2.0**13),
    ("scores beyond 2^31, causal", "bf16", 1, 5, 5, 1, 1, 6, -1, 0, 1, 0, None, 2.0**13),
    ("scores near the largest", "f32", 1, 3, 9, 1, 1, 4, 1, 0, 0, 0, None, 2.0**55),
)


def few_digits(dtype):
    """Inputs of short numbers: the files stay small."""
    return "bf16" if dtype == "f32" else dtype


def call_of(draw, dtype, b, sq, sk, h, hk, d, scale, softcap, causal, window, lengths, size=None):
    words = f"T={dtype} b={b} sq={sq} sk={sk} h={h} hk={hk} d={d}{f' scale={scale}' if scale else ''}"
    words += f" softcap={softcap} causal={causal} window={window}"
    few = few_digits(dtype)
    if size:  # so that scores are exact in f32, and lse is the largest where there is one
        q, k = size * draw.integers((b, sq, h, d), -63, 64), size * draw.integers((b, sk, hk, d), -63, 64)
        v = draw.normal((b, sk, hk, d), few)
    else:
        q, k = draw.normal((b, sq, h, d), few, 1.5), draw.normal((b, sk, hk, d), few, 1.5)
        v = draw.normal((b, sk, hk, d), few)
    packed = {}
    if lengths:
        words += f" nseq={len(lengths[0])} +cu_seqlens_q +cu_seqlens_k"
        packed = {"cu_seqlens_" + n: np.array([0, *itertools.accumulate(l)]) for n, l in zip("qk", lengths)}
    mask = sequences(*lengths, causal, window) if lengths else mask_of(sq, sk, causal, window)
    return words, q, k, v, packed, mask, (f32(scale) if scale else d**-0.5), f32(softcap)


def attention(draw):
    for name, *call in CALLS:
        words, q, k, v, packed, mask, scale, softcap = call_of(draw, *call)
        o, lse = attend(tensor(q), tensor(k), tensor(v), mask, scale, softcap)
        yield case(name, words + " +lse", {"q": q, "k": k, "v": v, **packed}, {"o": o.numpy(), "lse": lse.numpy()})


def attention_gradient(dout, q, k, v, o, lse, mask, scale, softcap):
    """From a given o and lse: Dao 2023, algorithm 2, with the derivative of tanh where scores are capped."""
    group = q.shape[2] // k.shape[2]
    heads = [tensor(x).transpose(1, 2) for x in (dout, q, o)]
    dout, q, o = heads
    k, v = (tensor(x).transpose(1, 2).repeat_interleave(group, 1) for x in (k, v))
    scores = scale * (q @ k.transpose(-1, -2))
    derivative = 1.0
    if softcap:
        derivative = 1 / torch.cosh(scores / softcap) ** 2
        scores = softcap * torch.tanh(scores / softcap)
    lse = tensor(lse)[..., None]
    p = torch.exp(scores - torch.where(torch.isfinite(lse), lse, 0.0))
    p = torch.where(mask & torch.isfinite(lse), p, 0.0)
    p = torch.where(lse.abs() >= 2**17, p.clamp(max=1), p)
    ds = p * (dout @ v.transpose(-1, -2) - (dout * o).sum(-1, keepdim=True)) * derivative
    dq, dk, dv = scale * (ds @ k), scale * (ds.transpose(-1, -2) @ q), p.transpose(-1, -2) @ dout
    summed = [x.unflatten(1, (-1, group)).sum(2) for x in (dk, dv)]
    return [x.transpose(1, 2).numpy() for x in (dq, *summed)]


def attention_backward(draw):
    for name, *call in CALLS:
        words, q, k, v, packed, mask, scale, softcap = call_of(draw, *call)
        dtype, dout = call[0], draw.normal(q.shape, few_digits(call[0]))
        leaves = [tensor(x, True) for x in (q, k, v)]
        o, lse = attend(*leaves, mask, scale, softcap)
        o.backward(tensor(dout))
        o, lse = o.detach().numpy(), lse.detach().numpy()
        for have, want in zip(attention_gradient(dout, q, k, v, o, lse, mask, scale, softcap), leaves):
            assert np.abs(have - want.grad.numpy()).max() < 1e-13 * max(1, np.abs(q).max(), np.abs(k).max())
        o, lse = rounded(o, dtype), rounded(lse, "f32")
        dq, dk, dv = attention_gradient(dout, q, k, v, o, lse, mask, scale, softcap)
        yield case(name, words, {"dout": dout, "q": q, "k": k, "v": v, "o": o, "lse": lse, **packed},
                   {"dq": dq, "dk": dk, "dv": dv})


# ----------------------------------------------------------------------------------------------------------------- rope


def turned(x, cos, sin, interleaved):
    """x [b] s h d by angles s c. Neighbours as complex numbers, Su et al. 2021, section 3.2.1; or halves by Hugging
    Face's rotate_half."""
    c = cos.shape[-1]
    cos, sin, rest = cos[..., :, None, :], sin[..., :, None, :], x[..., 2 * c :]
    x = x[..., : 2 * c]
    if interleaved:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], c, 2).contiguous())
        y = torch.view_as_real(pairs * torch.complex(cos, sin)).flatten(-2)
    else:
        rotated = torch.cat((-x[..., c:], x[..., :c]), -1)
        y = x * torch.cat((cos, cos), -1) + rotated * torch.cat((sin, sin), -1)
    return torch.cat((y, rest), -1)


# name, types of x and of the tables, b, s, h, d, rows of the tables, pairs, positions, interleaved, free tables
TURNS = (
    ("halves", "f32", "f32", 2, 3, 2, 16, 5, 8, None, 0, False),
    ("neighbours", "f32", "f32", 2, 3, 2, 16, 5, 8, None, 1, False),
    ("part of the head, halves", "f32", "f32", 1, 4, 2, 24, 4, 5, None, 0, False),
    ("part of the head, neighbours", "bf16", "f32", 1, 4, 2, 24, 4, 5, None, 1, False),
    ("positions, halves", "f32", "f32", 2, 3, 1, 12, 40, 6, "i32", 0, False),
    ("positions, neighbours", "f16", "f16", 2, 3, 1, 12, 40, 6, "i64", 1, False),
    ("tables that are no angles", "bf16", "bf16", 1, 3, 2, 8, 3, 4, None, 0, True),
)


def turn_of(draw, dtype, table_type, b, s, h, d, p, c, positions, interleaved, free):
    words = f"T={dtype} W={table_type} I={positions or 'i32'} b={b} s={s} h={h} d={d} p={p} c={c} "
    words += f"interleaved={interleaved}" + (" +positions" if positions else "")
    angles = np.arange(p)[:, None] * 10000.0 ** (-np.arange(c) / c)
    cos, sin = (draw.normal((p, c), table_type) if free else rounded(f(angles), table_type) for f in (np.cos, np.sin))
    rows = np.array([[31, 0, 7], [7, 39, 8]]) if positions else np.broadcast_to(np.arange(s), (b, s))
    ins = {"cos": cos, "sin": sin, **({"positions": rows} if positions else {})}
    return words, draw.normal((b, s, h, d), dtype), ins, tensor(cos[rows]), tensor(sin[rows])


def rope(draw):
    for name, *turn in TURNS:
        words, x, ins, cos, sin = turn_of(draw, *turn)
        yield case(name, words, {"x": x, **ins}, {"y": turned(tensor(x), cos, sin, turn[-2]).numpy()})


def rope_backward(draw):
    for name, *turn in TURNS:
        words, dy, ins, cos, sin = turn_of(draw, *turn)
        x = tensor(np.zeros(dy.shape), True)
        turned(x, cos, sin, turn[-2]).backward(tensor(dy))
        yield case(name, words, {"dy": dy, **ins}, {"dx": x.grad.numpy()})
