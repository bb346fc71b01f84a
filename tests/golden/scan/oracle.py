# SPDX-License-Identifier: Apache-2.0
"""linear_scan by scipy.signal.lfilter where the gate is constant, by the sums that define generalized advantages, and
by the unrolled products of gates; its gradient by torch's autograd through a loop, of numbers whose states are exact in
every type. conv1d_causal by torch.nn.functional.conv1d, as causal-conv1d's reference has it, and autograd."""
import math

import numpy as np
import scipy.signal
import torch
import torch.nn.functional as F

from vectors import case, f32


def unrolled(x, g, h0):
    """Each state as the sum of all terms so far times the gates that they passed through; channels last."""
    y = np.zeros_like(x)
    for t in range(len(x)):
        for j in range(x.shape[1]):
            terms = [x[i, j] * math.prod(g[i + 1:t + 1, j]) for i in range(t + 1)]
            start = 0.0 if h0 is None else h0[j] * math.prod(g[:t + 1, j])
            y[t, j] = math.fsum(terms + [start])
    return y


def linear_scan(draw):
    for name, dtype, b, t, n, start in (("states", "f32", 2, 9, 5, True), ("no states", "bf16", 1, 12, 9, False),
                                        ("f16", "f16", 3, 5, 4, True), ("one step", "bf16", 4, 1, 8, True)):
        for reverse in (0, 1):
            x, g = draw.normal((b, t, n), dtype), draw.uniform((b, t, n), -1, 1, dtype)
            h0 = draw.normal((b, n)) if start else None
            order = slice(None, None, -1) if reverse else slice(None)
            y = np.stack([unrolled(x[i][order], g[i][order], h0[i] if start else None)[order] for i in range(b)])
            words = f"T={dtype} b={b} t={t} n={n} s={b} reverse={reverse}" + " +h0" * start + " +last"
            yield case(name + ", reverse" * reverse, words, {"x": x, "g": g} | ({"h0": h0} if start else {}),
                       {"y": y, "last": y[:, 0 if reverse else -1]})
    x, h0 = draw.normal((1, 40, 3)), draw.normal((1, 3))
    y = np.stack([scipy.signal.lfilter([1.0], [1.0, -0.875], x[0, :, j], zi=[0.875 * h0[0, j]])[0] for j in range(3)],
                 axis=1)[None]
    yield case("a filter", "T=f32 b=1 t=40 n=3 s=1 +h0 +last", {"x": x, "g": np.full_like(x, 0.875), "h0": h0},
               {"y": y, "last": y[:, -1]})
    delta, done = draw.normal((1, 20, 6)), draw.integers((1, 20, 6), 0, 8) == 0
    decay = f32(0.99 * 0.95)
    advantage = np.zeros_like(delta)
    for t in range(20):
        for j in range(6):
            end = next((s + 1 for s in range(t, 20) if done[0, s, j]), 20)
            advantage[0, t, j] = math.fsum(decay**(s - t) * delta[0, s, j] for s in range(t, end))
    yield case("generalized advantages", "T=f32 b=1 t=20 n=6 reverse=1", {"x": delta, "g": np.where(done, 0, decay)},
               {"y": advantage})
    starts = np.array([0, 4, 4, 11])
    for reverse in (0, 1):
        for start in (False, True):
            x, g, h0 = draw.normal((1, 13, 7), "bf16"), draw.uniform((1, 13, 7), 0, 1, "bf16"), draw.normal((3, 7))
            y, last = np.zeros((1, 13, 7)), h0.copy() if start else np.zeros((3, 7))
            for i, (first, end) in enumerate(zip(starts, starts[1:])):
                order = slice(None, None, -1) if reverse else slice(None)
                y[0, first:end] = unrolled(x[0, first:end][order], g[0, first:end][order],
                                           h0[i] if start else None)[order]
                if end > first:
                    last[i] = y[0, first if reverse else end - 1]
            words = f"T=bf16 b=1 t=13 n=7 nseq=3 s=3 reverse={reverse} +cu_seqlens +last" + " +h0" * start
            yield case("packed" + ", reverse" * reverse + ", states" * start, words,
                       {"x": x, "g": g, "cu_seqlens": starts.astype(np.float64)} | ({"h0": h0} if start else {}),
                       {"y": y, "last": last})


def linear_scan_backward(draw):
    for name, dtype, b, t, n, starts, start, end in (
        ("states", "f32", 2, 9, 5, None, True, True), ("no states", "bf16", 1, 12, 9, None, False, False),
        ("f16", "f16", 3, 5, 4, None, True, False), ("a last state alone", "bf16", 2, 6, 3, None, False, True),
        ("packed", "bf16", 1, 13, 7, [0, 4, 4, 11], True, True), ("packed, alone", "f32", 1, 9, 4, [0, 3, 9], False,
                                                                  False),
    ):
        for reverse in (0, 1):
            count = len(starts) - 1 if starts else b
            values = {"x": draw.integers((b, t, n), -3, 4), "g": draw.integers((b, t, n), -2, 3) / 2,
                      "h0": draw.integers((count, n), -3, 4) * 2.0**(t if dtype == "f32" else 0)}
            if dtype != "f32":
                values["g"] = np.trunc(values["g"])
            dy, dlast = draw.normal((b, t, n), dtype), draw.normal((count, n))
            x, g, h0 = (torch.tensor(values[k], requires_grad=True) for k in ("x", "g", "h0"))
            y, total = np.zeros((b, t, n)), torch.zeros((), dtype=torch.float64)
            for i in range(count):
                batch, first, last = (0, starts[i], starts[i + 1]) if starts else (i, 0, t)
                steps = list(range(first, last))[::-1 if reverse else 1]
                h = h0[i] if start else None
                for k in steps:
                    h = x[batch, k] if h is None else g[batch, k] * h + x[batch, k]
                    y[batch, k] = h.detach()
                    total = total + (h * torch.tensor(dy[batch, k])).sum()
                if end and h is not None:
                    total = total + (h * torch.tensor(dlast[i])).sum()
            total.backward()
            zero = np.zeros((b, t, n))
            ins = {"dy": dy, "g": values["g"], "y": y}
            outs = {"dx": x.grad.numpy(), "dg": zero if g.grad is None else g.grad.numpy()}
            words = f"T={dtype} b={b} t={t} n={n} s={count} reverse={reverse}"
            if starts:
                ins["cu_seqlens"], words = np.array(starts, dtype=np.float64), words + f" nseq={count} +cu_seqlens"
            if start:
                ins["h0"], outs["dh0"], words = values["h0"], h0.grad.numpy(), words + " +h0 +dh0"
            if end:
                ins["dlast"], words = dlast, words + " +dlast"
            yield case(name + ", reverse" * reverse, words, ins, outs)


def convolved(x, weight, bias, before, silu):
    """causal-conv1d's own reference, of one sequence with channels last, by torch.nn.functional.conv1d; and what it
    leaves for the next call."""
    n, k = weight.shape
    padded = torch.cat([torch.zeros(k - 1, n, dtype=torch.float64) if before is None else before, x])
    z = F.conv1d(padded.T[None], weight[:, None], bias, groups=n)[0].T if len(x) else torch.zeros_like(x)
    return F.silu(z) if silu else z, padded[len(padded) - (k - 1):]


CONVOLUTIONS = (  # name, T, W, b, t, n, k, offsets, bias, start, silu
    ("mamba", "bf16", "f32", 2, 9, 5, 4, None, True, False, 1),
    ("states", "f32", "f32", 2, 7, 9, 4, None, True, True, 0),
    ("one step", "bf16", "bf16", 3, 1, 8, 4, None, True, True, 1),
    ("two taps", "f16", "f16", 1, 12, 3, 2, None, False, False, 0),
    ("one tap", "f32", "f32", 1, 4, 3, 1, None, True, False, 1),
    ("eight taps", "f16", "f32", 1, 20, 5, 8, None, False, True, 1),
    ("fewer steps than taps", "f32", "f32", 2, 3, 4, 7, None, False, True, 0),
    ("packed", "bf16", "bf16", 1, 14, 6, 3, [0, 4, 4, 5, 12], True, False, 1),
    ("packed, states", "f32", "f32", 1, 11, 5, 4, [0, 2, 2, 9], True, True, 0),
)


def convolution(draw, row):
    """Inputs, by name, and what stands in a case's words."""
    _, dtype, narrow, b, t, n, k, starts, bias, start, silu = row
    count = len(starts) - 1 if starts else b
    ins = {"x": draw.normal((b, t, n), dtype), "weight": draw.normal((n, k), narrow)}
    words = f"T={dtype} W={narrow} b={b} t={t} n={n} k={k} s={count} silu={silu}"
    if bias:
        ins["bias"], words = draw.normal(n, narrow), words + " +bias"
    if starts:
        ins["cu_seqlens"], words = np.array(starts, dtype=np.float64), words + f" nseq={count} +cu_seqlens"
    if start:
        ins["x0"], words = draw.normal((count, k - 1, n), dtype), words + " +x0"
    return ins, words, [(0, starts[i], starts[i + 1]) if starts else (i, 0, t) for i in range(count)]


def conv1d_causal(draw):
    for row in CONVOLUTIONS:
        ins, words, sequences = convolution(draw, row)
        given = {name: torch.tensor(value) for name, value in ins.items()}
        y, last = np.zeros_like(ins["x"]), []
        for i, (batch, first, end) in enumerate(sequences):
            of, after = convolved(given["x"][batch, first:end], given["weight"], given.get("bias"),
                                  given["x0"][i] if "x0" in ins else None, row[-1])
            y[batch, first:end] = of
            last.append(after.numpy())
        yield case(row[0], words + " +last", ins, {"y": y, "last": np.stack(last)})


def conv1d_causal_backward(draw):
    for row in CONVOLUTIONS:
        ins, words, sequences = convolution(draw, row)
        given = {name: torch.tensor(value, requires_grad=name != "cu_seqlens") for name, value in ins.items()}
        dy, total = draw.normal(ins["x"].shape, row[1]), torch.zeros((), dtype=torch.float64)
        for i, (batch, first, end) in enumerate(sequences):
            of, _ = convolved(given["x"][batch, first:end], given["weight"], given.get("bias"),
                              given["x0"][i] if "x0" in ins else None, row[-1])
            total = total + (of * torch.tensor(dy[batch, first:end])).sum()
        total.backward()
        outs = {f"d{name}": given[name].grad.numpy() for name in ("x", "weight", "bias", "x0") if name in ins}
        words += " +dbias" * ("bias" in ins) + " +dx0" * ("x0" in ins)
        yield case(row[0], words, {"dy": dy} | ins, outs)
