# SPDX-License-Identifier: Apache-2.0
"""Attention by lists of blocks: dense attention by PyTorch in float64, whose scores get the logarithm of the weight
that the lists give each pair of a query and a key, of 0 where none has it; gradients by autograd."""
import numpy as np
import torch

from vectors import case, f32, rounded

# name, type, b, sq, sk, h, hk, d, query block, key block, lists of each head of lists (the same ones in the batch),
# scale, softcap, causal, options
CALLS = (
    ("plain", "f32", 1, 8, 8, 1, 1, 4, 4, 4, [[[0], [1, 0]]], 0, 0, 0, ""),
    ("causal", "bf16", 2, 10, 10, 2, 2, 8, 4, 4, [[[0], [0, 1], [2, 0]]], 0, 0, 1, ""),
    ("a list of each head", "f32", 1, 7, 12, 2, 1, 5, 3, 5,
     [[[2], [0, 1], [1]], [[0, 1, 2], [], [2, 0]]], 0.5, 0, 1, ""),
    ("lists of groups", "f16", 1, 6, 9, 4, 2, 8, 2, 2, [[[4, 0], [1], [3, 2]], [[0], [0], [4]]], 0, 2, 0, ""),
    ("one query each", "f32", 1, 5, 9, 4, 2, 6, 1, 3, [[[0], [1, 2], [2], [0, 2], [1]]], 0, 0, 1, ""),
    ("weights", "f32", 2, 6, 10, 2, 2, 4, 3, 2, [[[0, 4, 2], [3, 1]]], 0, 0, 0, "bias"),
    ("weights under a cap", "bf16", 1, 4, 6, 2, 1, 4, 2, 3, [[[0, 1], [1, 0]], [[1], [0]]], -1, 3, 1, "bias"),
    ("none, twice, and too few lists", "f32", 1, 9, 7, 1, 1, 4, 4, 3,
     [[[0, -1, 0, 1, 7], [5, 2, 1, 3]]], 0, 0, 0, "bias"),
    ("more queries than keys", "f16", 1, 9, 4, 2, 1, 4, 4, 4, [[[0], [0], [0]]], 0, 0, 1, ""),
    ("a block of all", "f32", 1, 3, 5, 1, 1, 3, 100, 100, [[[0]]], 0, 0, 1, ""),
)


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


def csr(lists):
    """Starts and indices of the lists of each head, as long as the longest of them needs."""
    entries = max(sum(map(len, head)) for head in lists)
    starts = np.array([np.cumsum([0] + [len(one) for one in head]) for head in lists])
    indices = np.full((len(lists), entries), -1)
    for row, head in zip(indices, lists):
        row[: sum(map(len, head))] = sum(head, [])
    return starts, indices


def pair_weights(lists, bias, h, sq, sk, query_block, key_block, causal):
    """Of each head, query and key: the sum of e^bias over the entries that have the pair."""
    weights = torch.zeros(bias.shape[0], h, sq, sk, dtype=torch.float64)
    visible = torch.ones(sq, sk, dtype=torch.bool)
    if causal:
        visible = torch.ones(sq, sk, dtype=torch.bool).tril(sk - sq)
    for head in range(h):
        at = head * len(lists) // h
        e = 0
        for r, one in enumerate(lists[at]):
            for block in one:
                pairs = torch.zeros(sq, sk, dtype=torch.float64)
                if block >= 0:
                    pairs[r * query_block:(r + 1) * query_block, block * key_block:(block + 1) * key_block] = 1
                chosen = torch.nn.functional.one_hot(torch.tensor(head), h).double()[None, :, None, None]
                weights = weights + chosen * (pairs * visible) * bias[:, at, e, None, None, None].exp()
                e += 1
    return weights


def attend(q, k, v, weights, scale, softcap):
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    z = scale * torch.einsum("bihd,bjhd->bhij", q, k)
    if softcap:
        z = softcap * torch.tanh(z / softcap)
    some = weights.sum(-1) > 0
    z = z + torch.where(weights > 0, weights, 1.0).log().masked_fill(weights == 0, -torch.inf)
    z = torch.where(some[..., None], z, 0.0)
    o = torch.einsum("bhij,bjhd->bihd", torch.softmax(z, -1) * some[..., None], v)
    return o, torch.where(some, torch.logsumexp(z, -1), -torch.inf)


def call_of(draw, name, dtype, b, sq, sk, h, hk, d, query_block, key_block, lists, scale, softcap, causal, options):
    starts, indices = csr(lists)
    hl, blocks, entries = len(lists), starts.shape[1] - 1, indices.shape[1]
    words = f"T={dtype} b={b} sq={sq} sk={sk} h={h} hk={hk} hl={hl} d={d} blocks={blocks} entries={entries} "
    words += f"softcap={softcap} causal={causal} query_block={query_block} key_block={key_block}"
    words += (f" scale={scale}" if scale else "") + (" +bias" if "bias" in options else "")
    few = "bf16" if dtype == "f32" else dtype
    q, k, v = (draw.normal(shape, few, 1.5) for shape in ((b, sq, h, d), (b, sk, hk, d), (b, sk, hk, d)))
    inputs = {"starts": np.tile(starts, (b, 1, 1)), "indices": np.tile(indices, (b, 1, 1))}
    bias = np.zeros((b, hl, entries))
    if "bias" in options:
        inputs["bias"] = bias = draw.normal((b, hl, entries), "bf16", 2)
    how = lists, h, sq, sk, query_block, key_block, causal
    return words, q, k, v, inputs, bias, how, (f32(scale) if scale else d**-0.5), f32(softcap)


def attention_blocks(draw):
    for name, *call in CALLS:
        words, q, k, v, inputs, bias, how, scale, softcap = call_of(draw, name, *call)
        weights = pair_weights(how[0], tensor(bias), *how[1:])
        o, lse = attend(tensor(q), tensor(k), tensor(v), weights, scale, softcap)
        yield case(name, words + " +lse", {"q": q, "k": k, "v": v, **inputs}, {"o": o.numpy(), "lse": lse.numpy()})


def attention_blocks_backward(draw):
    """Autograd's gradients of attention, and of what has the same gradients where o and lse are exact: they are given
    rounded, and so are expected to be used."""
    for name, *call in CALLS:
        words, q, k, v, inputs, bias, how, scale, softcap = call_of(draw, name, *call)
        dout = draw.normal(q.shape, "bf16" if call[0] == "f32" else call[0])
        leaves = {"dq": tensor(q, True), "dk": tensor(k, True), "dv": tensor(v, True), "dbias": tensor(bias, True)}
        weights = pair_weights(how[0], leaves["dbias"], *how[1:])
        o, lse = attend(leaves["dq"], leaves["dk"], leaves["dv"], weights, scale, softcap)
        saved = {"o": rounded(o.detach().numpy(), call[0]), "lse": rounded(lse.detach().numpy(), "f32")}
        group = q.shape[2] // k.shape[2]
        wide_k, wide_v = (leaves[n].repeat_interleave(group, 2) for n in ("dk", "dv"))
        z = scale * torch.einsum("bihd,bjhd->bhij", leaves["dq"], wide_k)
        z = softcap * torch.tanh(z / softcap) if softcap else z
        given = tensor(np.where(np.isfinite(saved["lse"]), saved["lse"], 0.0))[..., None]
        p = weights * torch.exp(z - given)
        D = torch.einsum("bihd,bihd->bhi", tensor(dout), tensor(saved["o"]))[..., None]
        whole = (torch.einsum("bhij,bjhd->bihd", p, wide_v) * tensor(dout)).sum() - (p * D).sum()
        exact = torch.autograd.grad(o, list(leaves.values()), tensor(dout), retain_graph=True)
        have = torch.autograd.grad(whole, list(leaves.values()))
        for one, other in zip(exact, have):
            assert (one - other).abs().max() < (1e-5 if call[0] == "f32" else 0.2)
        outs = {n: x.numpy() for n, x in zip(leaves, have) if n != "dbias" or "bias" in inputs}
        words += " +dbias" if "bias" in inputs else ""
        yield case(name, words, {"dout": dout, "q": q, "k": k, "v": v, **saved, **inputs}, outs)
