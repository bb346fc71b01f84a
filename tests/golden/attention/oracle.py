# SPDX-License-Identifier: Apache-2.0
"""attention, also over paged caches, rope and their gradients: PyTorch in float64 with masks written out, its
scaled_dot_product_attention where it has the case, and autograd. Caches are written by PyTorch's own conversions."""
import itertools

import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, dropout_factors, f32, rounded


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


# ------------------------------------------------------------------------------------------------------------ attention


def mask_of(sq, sk, causal, window, left=0, right=0):
    """Which keys a query sees. The last query stands at the last key: position i + sk - sq among the keys."""
    at, key = torch.arange(sq)[:, None] + sk - sq, torch.arange(sk)[None, :]
    mask = torch.ones(sq, sk, dtype=torch.bool)
    if causal:
        mask &= key <= at
    if window:
        mask &= (at - key).abs() <= window - 1
    if left:
        mask &= at - key <= left - 1
    if right:
        mask &= key - at <= right - 1
    return mask


def distances(sq, sk):
    return (torch.arange(sq)[:, None] + sk - sq - torch.arange(sk)[None, :]).abs().double()


def pasted(size, blocks):
    """A matrix that has these (row, column, matrix) in it, and else 0."""
    whole = torch.zeros(*size, dtype=blocks[0][2].dtype if blocks else torch.bool)
    for row, column, block in blocks:
        whole[row:row + block.shape[0], column:column + block.shape[1]] = block
    return whole


def sights(sq, sk, windows, packed, used):
    """Masks and distances of each member of the batch, or of the sequences of one, and which queries count."""
    offsets = [packed["cu_seqlens_" + n].tolist() if packed else None for n in "qk"]
    starts = list(zip(*(o[:-1] for o in offsets))) if packed else None
    whole = list(zip(*(np.diff(o).tolist() for o in offsets))) if packed else None
    count = len(starts) if packed else len(next(iter(used.values()))) if used else 1
    masks, far, counts = [], [], []
    for n in range(count):
        full = whole[n] if packed else (sq, sk)
        lengths = [int(used["seqused_" + name][n]) if "seqused_" + name in used else full[i]
                   for i, name in enumerate("qk")]
        at = starts[n] if packed else (0, 0)
        masks.append((*at, mask_of(*lengths, *windows)))
        far.append((*at, distances(*lengths)))
        counts.append((at[0], 0, torch.ones(lengths[0], 1, dtype=torch.bool)))
    each = [masks, far, counts]
    sizes = [(sq, sk), (sq, sk), (sq, 1)]
    if packed:
        return [pasted(size, blocks)[None] for size, blocks in zip(sizes, each)]
    return [torch.stack([pasted(size, [block]) for block in blocks]) for size, blocks in zip(sizes, each)]


def scores_of(q, k, scale, softcap, added):
    """Softcapped as Gemma 2 does it, with what is added; and their derivative by those before."""
    scores = scale * (q @ k.transpose(-1, -2))
    derivative = 1.0
    if softcap:
        derivative = 1 / torch.cosh(scores / softcap) ** 2
        scores = torch.tanh(scores / softcap) * softcap
    return scores + added, derivative


def heads_first(q, k, v):
    group = q.shape[2] // k.shape[2]
    return q.transpose(1, 2), *(x.transpose(1, 2).repeat_interleave(group, 1) for x in (k, v))


def attend(q, k, v, mask, counts, scale, softcap, added, sinks, factors):
    """Output and lse, from a column of the scores for each sink, whose weight goes nowhere."""
    q, k, v = heads_first(q, k, v)
    scores, _ = scores_of(q, k, scale, softcap, added)
    b, h, sq, _ = scores.shape
    masked = scores.masked_fill(~mask[:, None], -torch.inf)
    if sinks is not None:
        extra = sinks[None, :, None, None].expand(b, h, sq, 1).masked_fill(~counts[:, None], -torch.inf)
        masked = torch.cat((masked, extra), -1)
    seen = (masked > -torch.inf).any(-1)
    safe = torch.where(seen[..., None], masked, 0.0)
    lse = torch.logsumexp(safe, -1)
    weights = torch.softmax(safe, -1)[..., :k.shape[2]] * seen[..., None]
    o = (weights * factors) @ v
    if not softcap and sinks is None and seen.all() and isinstance(factors, float):
        assert torch.allclose(o, F.scaled_dot_product_attention(
            q, k, v, attn_mask=(added + torch.zeros(b, h, sq, k.shape[2], dtype=torch.float64)).masked_fill(
                ~mask[:, None], -torch.inf), scale=scale), rtol=0, atol=1e-13)
    return o.transpose(1, 2), torch.where(seen, lse, -torch.inf)


# name, type, b, sq, sk, h, hk, d, scale, softcap, causal, window, lengths of packed sequences,
# q and k are small integers times; options
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
    ("windows of two widths", "f32", 1, 6, 8, 1, 1, 4, 0, 0, 0, 0, None, None, {"left": 3, "right": 2}),
    ("bias of heads", "bf16", 2, 4, 5, 4, 2, 4, 0, 0, 0, 0, None, None, {"bias": (1, 4, 4, 5)}),
    ("bias of keys, causal, softcap", "f32", 2, 4, 5, 2, 1, 4, 0, 2, 1, 0, None, None, {"bias": (2, 1, 1, 5)}),
    ("slopes", "f16", 2, 4, 6, 2, 2, 4, 0, 0, 1, 0, None, None, {"slopes": (2,)}),
    ("sinks, rows without a key", "bf16", 1, 5, 3, 4, 2, 4, 0, 0, 1, 0, None, None, {"sinks": True}),
    ("sinks, window to the left", "f32", 1, 6, 6, 2, 1, 4, 0, 0, 1, 0, None, None, {"sinks": True, "left": 2}),
    ("used lengths", "f32", 3, 4, 5, 2, 2, 4, 0, 0, 1, 0, None, None,
     {"seqused_q": (4, 0, 2), "seqused_k": (3, 5, 5)}),
    ("used lengths of packed sequences, room, slopes", "f32", 1, 9, 12, 2, 1, 4, 0, 0, 0, 0, ((3, 0, 4), (4, 2, 5)),
     None, {"seqused_q": (2, 0, 4), "seqused_k": (4, 1, 3), "slopes": (1, 2), "sinks": True}),
    ("dropout", "f32", 2, 3, 11, 2, 1, 4, 0, 0, 0, 0, None, None, {"dropout": (0.3, 7, 5)}),
    ("dropout, causal, bias", "bf16", 1, 5, 9, 2, 2, 4, 0, 0, 1, 0, None, None,
     {"dropout": (0.5, 2**40 + 1, 2**33), "bias": (1, 2, 5, 9)}),
)


def few_digits(dtype):
    """Inputs of short numbers: the files stay small."""
    return "bf16" if dtype == "f32" else dtype


def added_of(draw, few, b, h, options, far):
    """The tensors of bias and slopes, and what they add to scores."""
    inputs, added = {}, torch.zeros(1, 1, 1, 1, dtype=torch.float64)
    if "bias" in options:
        inputs["bias"] = draw.normal(options["bias"], few)
        added = added + tensor(inputs["bias"])
    if "slopes" in options:
        inputs["alibi_slopes"] = np.abs(draw.normal(options["slopes"], "bf16"))
        added = added - tensor(inputs["alibi_slopes"]).expand(b, h)[:, :, None, None] * far[:, None]
    return inputs, added


def call_of(draw, dtype, b, sq, sk, h, hk, d, scale, softcap, causal, window, lengths, size=None, options={}):
    words = f"T={dtype} B={dtype if 'sinks' in options or 'bias' in options else 'f32'}"
    words += f" b={b} sq={sq} sk={sk} h={h} hk={hk} d={d}{f' scale={scale}' if scale else ''}"
    words += f" softcap={softcap} causal={causal} window={window}"
    few = few_digits(dtype)
    if size:  # so that scores are exact in f32, and lse is the largest where there is one
        q, k = size * draw.integers((b, sq, h, d), -63, 64), size * draw.integers((b, sk, hk, d), -63, 64)
        v = draw.normal((b, sk, hk, d), few)
    else:
        q, k = draw.normal((b, sq, h, d), few, 1.5), draw.normal((b, sk, hk, d), few, 1.5)
        v = draw.normal((b, sk, hk, d), few)
    packed, used = {}, {n: np.array(options[n]) for n in ("seqused_q", "seqused_k") if n in options}
    if lengths:
        words += f" nseq={len(lengths[0])} +cu_seqlens_q +cu_seqlens_k"
        packed = {"cu_seqlens_" + n: np.array([0, *itertools.accumulate(l)]) for n, l in zip("qk", lengths)}
    if used:
        words += f" nused={len(next(iter(used.values())))}"
    windows = causal, window, options.get("left", 0), options.get("right", 0)
    words += f" window_left={windows[2]} window_right={windows[3]}"
    mask, far, counts = sights(sq, sk, windows, packed, used)
    inputs, added = added_of(draw, few, b, h, options, far)
    if "sinks" in options:
        inputs["sinks"] = draw.normal((h,), few)
    factors = 1.0
    if "dropout" in options:
        p, seed, offset = options["dropout"]
        words += f" dropout={p} seed={seed} offset={offset}"
        factors = tensor(dropout_factors((b, h, sq, -(-sk // 8) * 8), p, seed, offset)[..., :sk])
    words += "".join(f" +{name}" for name in (*used, *inputs))
    sinks = tensor(inputs["sinks"]) if "sinks" in inputs else None
    how = mask, counts, (f32(scale) if scale else d**-0.5), f32(softcap), added, sinks, factors
    return words, q, k, v, {**packed, **used, **inputs}, how


def attention(draw):
    for name, *call in CALLS:
        words, q, k, v, inputs, how = call_of(draw, *call)
        o, lse = attend(tensor(q), tensor(k), tensor(v), *how)
        yield case(name, words + " +lse", {"q": q, "k": k, "v": v, **inputs}, {"o": o.numpy(), "lse": lse.numpy()})


def attention_gradient(dout, q, k, v, o, lse, mask, counts, scale, softcap, added, sinks, factors):
    """From a given o and lse: Dao 2023, algorithm 2, with the derivative of tanh where scores are capped."""
    group = q.shape[2] // k.shape[2]
    dout, o = (tensor(x).transpose(1, 2) for x in (dout, o))
    q, k, v = heads_first(tensor(q), tensor(k), tensor(v))
    scores, derivative = scores_of(q, k, scale, softcap, added)
    lse = tensor(lse)[..., None]
    finite, mask = torch.isfinite(lse), mask[:, None]

    def weight(z):
        p = torch.exp(z - torch.where(finite, lse, 0.0))
        return torch.where(lse.abs() >= 2**17, p.clamp(max=1), p)

    p = torch.where(mask & finite, weight(scores), 0.0)
    delta = (dout * o).sum(-1, keepdim=True)
    dz = p * (factors * (dout @ v.transpose(-1, -2)) - delta)
    ds = dz * derivative
    dq, dk, dv = scale * (ds @ k), scale * (ds.transpose(-1, -2) @ q), (p * factors).transpose(-1, -2) @ dout
    summed = [x.unflatten(1, (-1, group)).sum(2) for x in (dk, dv)]
    out = dict(zip(("dq", "dk", "dv"), (x.transpose(1, 2).numpy() for x in (dq, *summed))))
    if sinks is not None:
        weights = torch.where(counts[:, None] & finite, weight(sinks[None, :, None, None]), 0.0)
        out["dsinks"] = -(weights * delta).sum((0, 2, 3)).numpy()
    return out, dz


def attention_backward(draw):
    for name, *call in CALLS:
        words, q, k, v, inputs, how = call_of(draw, *call)
        dtype, dout = call[0], draw.normal(q.shape, few_digits(call[0]))
        leaves = {"dq": tensor(q, True), "dk": tensor(k, True), "dv": tensor(v, True)}
        mask, counts, scale, softcap, added, sinks, factors = how
        if sinks is not None:
            leaves["dsinks"] = sinks = sinks.requires_grad_()
        bias = added.expand(q.shape[0], q.shape[2], q.shape[1], k.shape[1]).clone().requires_grad_()
        how = mask, counts, scale, softcap, bias, sinks, factors
        o, lse = attend(leaves["dq"], leaves["dk"], leaves["dv"], *how)
        o.backward(tensor(dout))
        o, lse = o.detach().numpy(), lse.detach().numpy()
        how = [x.detach() if isinstance(x, torch.Tensor) else x for x in how]
        out, dz = attention_gradient(dout, q, k, v, o, lse, *how)
        limit = 1e-13 * max(1, np.abs(q).max(), np.abs(k).max())
        for n, have in out.items():
            assert np.abs(have - leaves[n].grad.numpy()).max() < limit
        assert (dz - bias.grad).abs().max() < limit
        o, lse = rounded(o, dtype), rounded(lse, "f32")
        out, dz = attention_gradient(dout, q, k, v, o, lse, *how)
        if "bias" in inputs:
            out["dbias"] = dz.numpy()
        words += "".join(f" +{n}" for n in out if n in ("dbias", "dsinks"))
        yield case(name, words, {"dout": dout, "q": q, "k": k, "v": v, "o": o, "lse": lse, **inputs}, out)


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


# --------------------------------------------------------------------------------------------------------- paged caches


def stored(x, scale, dtype):
    """What a cache of this type holds of f32 numbers, as PyTorch converts them; it lets 8-bit types overflow."""
    x = torch.tensor(x, dtype=torch.float32)
    if scale is not None:
        x = x / torch.tensor(scale, dtype=torch.float32)[:, None]
    if dtype == "e4m3":
        return x.clamp(-448, 448).to(torch.float8_e4m3fn).double().numpy()
    if dtype == "i8":
        return torch.nan_to_num(x, nan=0).round().clamp(-128, 127).to(torch.int8).double().numpy()
    return x.to({"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[dtype]).double().numpy()


# name, types of tokens, cache and slots, hk, d, dv, pages, page, slots, scales
WRITES = (
    ("plain", "f32", "f32", "i32", 2, 5, 3, 3, 4, (7, 0, 11, 4), None),
    ("passed over, and one slot twice", "bf16", "bf16", "i64", 1, 8, 8, 2, 3, (5, -1, 2, 6, 5, 2**32, 2), None),
    ("keys alone", "f16", "f16", "i32", 1, 12, 0, 2, 2, (3, 1), None),
    ("e4m3, a scale for each head", "f32", "e4m3", "i64", 2, 9, 9, 2, 3, (4, 1, 0), (2,)),
    ("e4m3, one scale", "bf16", "e4m3", "i32", 2, 8, 16, 2, 2, (0, 3), (1,)),
    ("i8", "f16", "i8", "i32", 2, 9, 8, 2, 3, (5, 3, 5), (2,)),
    ("i8 without scales", "f32", "i8", "i32", 1, 16, 16, 1, 2, (1,), None),
    ("scaled, of the same type", "bf16", "bf16", "i32", 2, 4, 4, 1, 3, (2, 0), (2,)),
)


def kv_cache_write(draw):
    for name, dtype, cache, wide, hk, d, dv, pages, page, slots, scales in WRITES:
        words = f"T={dtype} C={cache} I={wide} t={len(slots)} hk={hk} d={d} pages={pages} page={page}"
        words += f" dv={dv} +v +v_cache" if dv else ""
        ins, outs = {}, {}
        for part, width in (("k", d), ("v", dv))[:2 if dv else 1]:
            x = draw.normal((len(slots), hk, width), dtype, 40.0 if cache == "i8" else 3.0)
            if cache != dtype:
                x.reshape(-1)[:4] = np.inf, -np.inf, np.nan, 2.0**15
            scale = np.abs(draw.normal(scales, "f32")) + 0.01 if scales else None
            scale = rounded(scale, "f32") if scales else None
            before = draw.integers((pages, page, hk, width), -9, 9)
            after = before.reshape(pages * page, hk, width).copy()
            full = None if scale is None else np.broadcast_to(scale, (hk,))
            for token, slot in zip(x, slots):
                if 0 <= slot < pages * page:
                    after[slot] = stored(token, full, cache)
            ins |= {part: x, part + "_cache": before}
            if scales:
                ins[part + "_scale"], words = scale, f"{words} +{part}_scale"
            outs[part + "_cache"] = after.reshape(before.shape)
        yield case(name, words, {**ins, "slots": np.array(slots)}, outs)


# name, types of queries and cache, b, sq, h, hk, d, dv, pages, page, table, lengths, scale, softcap, window, options
DECODES = (
    ("plain", "f32", "f32", 2, 1, 2, 2, 6, 6, 4, 3, ((2, 0), (3, 1)), (5, 6), 0, 0, 0, ()),
    ("grouped heads, several tokens", "bf16", "bf16", 2, 3, 4, 2, 8, 5, 5, 2, ((4, 0, 3), (1, 2, 0)), (6, 4), 0.3, 0, 0,
     ()),
    ("nothing, and fewer keys than tokens", "f32", "f32", 3, 3, 2, 1, 4, 4, 3, 4, ((0,), (1,), (2,)), (0, 2, 4), 0, 0,
     0, ()),
    ("pages that are not there", "f16", "f16", 3, 2, 2, 1, 4, 4, 3, 2, ((0, -1, 2), (3, 1, 7), (-1, 5, -1)), (6, 5, 6),
     0, 0, 0, ()),
    ("window", "f32", "f32", 2, 3, 2, 1, 4, 4, 4, 3, ((3, 0, 2), (1, 2, 3)), (9, 5), 0, 0, 3, ()),
    ("window of one, softcap", "bf16", "bf16", 1, 2, 4, 1, 8, 8, 3, 4, ((2, 1),), (7,), -1, 1.5, 1, ()),
    ("sinks", "bf16", "bf16", 2, 2, 4, 2, 6, 4, 3, 3, ((1, 0), (2, 2)), (6, 1), 0, 0, 0, ("sinks",)),
    ("latent", "bf16", "bf16", 2, 1, 4, 1, 12, 8, 4, 3, ((3, 1), (0, 2)), (4, 6), 0, 0, 0, ("latent",)),
    ("e4m3", "bf16", "e4m3", 2, 2, 4, 2, 8, 8, 3, 4, ((2, 0), (1, 2)), (8, 5), 0, 0, 0, ("scales",)),
    ("e4m3, latent", "f32", "e4m3", 1, 2, 2, 1, 10, 7, 3, 3, ((2, 0),), (5,), 0, 0, 0, ("scales", "latent")),
    ("i8, softcap, sinks", "f16", "i8", 2, 1, 4, 2, 8, 6, 3, 3, ((2, 0), (1, 1)), (5, 3), 0, 2, 0, ("scales", "sinks")),
    ("long", "f32", "f32", 1, 2, 1, 1, 3, 2, 9, 33, ((8, 1, 7, 2, 6, 3, 5, 4, 0),), (290,), 0, 0, 0, ()),
)


def gathered(cache, scale, table, length, full):
    """The keys of a sequence, those that are not there or behind its end 0; and which are there."""
    pages, page = cache.shape[:2]
    keys, there = np.zeros((full, *cache.shape[2:])), np.zeros(full, bool)
    for j in range(length):
        at = table[j // page]
        if 0 <= at < pages:
            keys[j], there[j] = cache[at, j % page] * scale[:, None], True
    return keys, there


def attention_decode(draw):
    for name, *sizes, table, lengths, scale, softcap, window, options in DECODES:
        dtype, cache, b, sq, h, hk, d, dv, pages, page = sizes
        columns = len(table[0])
        words = f"T={dtype} C={cache} B=f32 b={b} sq={sq} h={h} hk={hk} d={d} dv={dv} pages={pages} page={page}"
        words += f" maxpages={columns} softcap={softcap} window_left={window}" + (f" scale={scale}" if scale else "")
        few = few_digits(dtype) if cache == dtype else cache
        ins = {"q": draw.normal((b, sq, h, d), few_digits(dtype), 1.5)}
        ones, sides, scales = np.ones(hk), {}, {}
        for part, width in (("k", d), ("v", dv))[:1 if "latent" in options else 2]:
            shape = (pages, page, hk, width)
            sides[part] = draw.integers(shape, -100, 101) if cache == "i8" else draw.normal(shape, few)
            if "scales" in options:
                typical = 0.02 if cache == "i8" else 1.5
                scales[part] = np.abs(draw.normal((hk,), "bf16", typical)) + 2.0**-6
        each = [[gathered(sides[part], scales.get(part, ones), table[n], lengths[n], columns * page) for n in range(b)]
                for part in sides]
        k = np.stack([keys for keys, _ in each[0]])
        v = np.stack([keys for keys, _ in each[-1]])[..., :dv]
        mask = torch.zeros(b, sq, columns * page, dtype=torch.bool)
        for n, (_, there) in enumerate(each[0]):
            seen = mask_of(sq, lengths[n], True, 0, window)
            mask[n, :, :lengths[n]] = seen & torch.tensor(there[:lengths[n]])
        used = {n: set() for n in range(pages)}
        for n in range(b):
            for j in range(lengths[n]):
                used.setdefault(table[n][j // page], set()).add(j % page)
        for part in sides if cache != "i8" else ():
            for at in range(pages):
                for place in set(range(page)) - used[at]:
                    sides[part][at, place] = np.nan
        sinks = draw.normal((h,), "bf16") if "sinks" in options else None
        how = mask, torch.ones(b, sq, 1, dtype=torch.bool), (f32(scale) if scale else d**-0.5), f32(softcap)
        added = torch.zeros(1, 1, 1, 1, dtype=torch.float64)
        out, lse = attend(tensor(ins["q"]), tensor(k), tensor(v), *how, added,
                          None if sinks is None else tensor(sinks), 1.0)
        ins |= {part + "_cache": x for part, x in sides.items()} | {part + "_scale": x for part, x in scales.items()}
        ins |= {"block_table": np.array(table), "lengths": np.array(lengths)}
        ins |= {} if sinks is None else {"sinks": sinks}
        words += "".join(f" +{n}" for n in ins if n in ("v_cache", "k_scale", "v_scale", "sinks")) + " +lse"
        yield case(name, words, ins, {"out": out.numpy(), "lse": lse.numpy()})


# name, types of states and of the result, b, sq, h, d, keys of both parts
MERGES = (
    ("plain", "f32", "f32", 2, 3, 2, 5, 4, 6),
    ("narrowed", "f32", "bf16", 1, 2, 3, 8, 7, 2),
    ("bf16", "bf16", "bf16", 2, 1, 4, 9, 3, 3),
    ("f16", "f16", "f16", 1, 5, 1, 16, 2, 30),
    ("without weight, far apart", "f32", "f16", 1, 6, 1, 4, 3, 3),
)


def attention_merge(draw):
    for name, wide, dtype, b, sq, h, d, first, second in MERGES:
        q = tensor(draw.normal((b, sq, h, d), "bf16"))
        k, v = (tensor(draw.normal((b, first + second, h, d), "bf16")) for _ in range(2))
        counts, added = torch.ones(b, sq, 1, dtype=torch.bool), torch.zeros(1, 1, 1, 1, dtype=torch.float64)

        def state(keys):
            mask = torch.ones(b, sq, len(range(first + second)[keys]), dtype=torch.bool)
            return attend(q, k[:, keys], v[:, keys], mask, counts, d**-0.5, 0.0, added, None, 1.0)

        def merged(a, x, b, y):
            lse = np.logaddexp(x, y)
            with np.errstate(invalid="ignore"):
                p, r = (np.where(z == -np.inf, 0, np.exp(z - lse)).swapaxes(1, 2)[..., None] for z in (x, y))
            return np.where(p > 0, a, 0) * p + np.where(r > 0, b, 0) * r, lse

        one, two = ([x.numpy() for x in state(keys)] for keys in (slice(first), slice(first, None)))
        for have, want in zip(merged(*one, *two), state(slice(None))):
            assert np.abs(have - want.numpy()).max() < 1e-13
        a, c = (rounded(x[0], "bf16" if wide == "f32" else wide) for x in (one, two))
        x, y = (rounded(z[1], "bf16") for z in (one, two))
        if "without" in name:
            x[0, 0, :3], y[0, 0, 1:4] = (-np.inf, -np.inf, 2.0), (-np.inf, 30.0, -np.inf)
            a[0, 0], a[0, 1], c[0, 1], c[0, 3] = np.nan, np.inf, np.nan, np.nan
        out, lse = merged(a, x, c, y)
        yield case(name, f"S={wide} T={dtype} b={b} sq={sq} h={h} d={d} +lse",
                   {"out_a": a, "lse_a": x, "out_b": c, "lse_b": y}, {"out": out, "lse": lse})
