# SPDX-License-Identifier: Apache-2.0
"""gated_delta and ssd as attention: no state, but all pairs of steps in float64, the delta rule by solving the
triangular system of its corrections (Yang et al. 2024, section 3.2); their gradients by torch's autograd through that.
ssd's matrix is that of Dao and Gu 2024, equation 3, with segment sums."""
import numpy as np
import torch

from vectors import case


def gates(g, steps):
    """[i, j]: the product of the gates of steps j+1 .. i, 0 for j > i; and that of steps 0 .. i."""
    total = torch.cumsum(g, 0)
    apart = total[:, None] - total[None, :]
    return torch.where(torch.tril(torch.ones(steps, steps)) > 0, apart, -torch.inf).exp(), total.exp()


def attended(q, k, v, g, beta, s0):
    """What a head's steps give, and its last state: q, k [t, d], v [t, e], g, beta [t] or None, s0 [d, e]."""
    steps = len(q)
    decay, past = gates(torch.zeros(steps, dtype=torch.float64) if g is None else g, steps)
    if beta is None:
        u = v
    else:
        # u_i = beta_i (v_i - past_i S0^T k_i - sum over j < i of decay_ij (k_i.k_j) u_j)
        apart = torch.tril(decay * (k @ k.T), -1) * beta[:, None]
        u = torch.linalg.solve_triangular(apart + torch.eye(steps, dtype=torch.float64),
                                          beta[:, None] * (v - past[:, None] * (k @ s0)), upper=False)
    o = (decay * (q @ k.T)) @ u + past[:, None] * (q @ s0)
    if steps == 0:
        return o, s0
    return o, (decay[-1][:, None] * k).T @ u + past[-1] * s0


DELTA = (  # name, T, b, t, h, hk, d, e, offsets, g, beta, s0, scale
    ("gated delta rule", "f32", 2, 5, 2, 2, 4, 3, None, True, True, True, 0),
    ("shared keys", "bf16", 1, 9, 4, 2, 8, 3, None, True, True, False, 0),
    ("deltanet", "f16", 1, 7, 1, 1, 9, 5, None, False, True, True, 0.5),
    ("gates alone", "bf16", 1, 12, 2, 1, 4, 3, None, True, False, True, 0),
    ("linear attention", "f32", 1, 6, 2, 2, 3, 5, None, False, False, False, -0.75),
    ("one step", "bf16", 2, 1, 2, 2, 8, 5, None, True, True, True, 0),
    ("wide", "f32", 1, 5, 1, 1, 17, 9, None, True, True, False, 0),
    ("packed", "bf16", 1, 10, 2, 1, 5, 3, [0, 4, 4, 9], True, True, True, 0),
    ("packed, alone", "f32", 1, 7, 2, 2, 4, 3, [0, 3, 7], False, True, False, 0),
)


def delta_inputs(draw, row):
    _, dtype, b, t, h, hk, d, e, starts, g, beta, start, scale = row
    count = len(starts) - 1 if starts else b
    ins = {"q": draw.normal((b, t, hk, d), dtype), "k": draw.normal((b, t, hk, d), dtype) / (1 if d < 8 else 4),
           "v": draw.normal((b, t, h, e), dtype)}
    words = f"T={dtype} b={b} t={t} h={h} hk={hk} d={d} e={e} s={count}" + f" scale={scale}" * (scale != 0)
    if g:
        ins["g"], words = -draw.uniform((b, t, h), 0, 2), words + " +g"
    if beta:
        ins["beta"], words = draw.uniform((b, t, h), 0, 1), words + " +beta"
    if starts:
        ins["cu_seqlens"], words = np.array(starts, dtype=np.float64), words + f" nseq={count} +cu_seqlens"
    if start:
        ins["s0"], words = draw.normal((count, h, d, e)), words + " +s0"
    sequences = [(0, starts[i], starts[i + 1]) if starts else (i, 0, t) for i in range(count)]
    return ins, words, sequences


def delta_outputs(row, given, sequences):
    _, _, b, t, h, hk, d, e, _, _, _, _, scale = row
    factor = float(np.float32(scale)) if scale else float(np.float32(d**-0.5))
    o, last = {}, []
    for i, (batch, first, end) in enumerate(sequences):
        states = []
        for head in range(h):
            of = (batch, slice(first, end))
            key = head // (h // hk)
            s0 = given["s0"][i, head] if "s0" in given else torch.zeros(d, e, dtype=torch.float64)
            y, state = attended(given["q"][of][:, key], given["k"][of][:, key], given["v"][of][:, head],
                                given["g"][of][:, head] if "g" in given else None,
                                given["beta"][of][:, head] if "beta" in given else None, s0)
            o[batch, first, end, head] = factor * y
            states.append(state)
        last.append(torch.stack(states))
    return o, torch.stack(last)


def placed(parts, shape):
    y = np.zeros(shape)
    for (batch, first, end, head), of in parts.items():
        y[batch, first:end, head] = of.detach().numpy()
    return y


def gradients(parts, last, dout, dlast, given, names):
    total = sum((of * torch.tensor(dout[batch, first:end, head])).sum()
                for (batch, first, end, head), of in parts.items())
    if dlast is not None:
        total = total + (last * torch.tensor(dlast)).sum()
    total.backward()
    of = {f"d{n}": np.zeros(given[n].shape) if given[n].grad is None else given[n].grad.numpy() for n in names}
    if "dg" in of and "s0" not in given:  # the first gate has nothing to multiply: what is there is rounding
        for batch, first, end, head in parts:
            if end > first:
                assert abs(of["dg"][batch, first, head]) < 1e-14
                of["dg"][batch, first, head] = 0
    return of


def tensors(ins, grad):
    return {n: torch.tensor(x, requires_grad=grad and n != "cu_seqlens") for n, x in ins.items()}


def gated_delta(draw):
    for row in DELTA:
        ins, words, sequences = delta_inputs(draw, row)
        o, last = delta_outputs(row, tensors(ins, False), sequences)
        yield case(row[0], words + " +last", ins, {"o": placed(o, ins["v"].shape), "last": last.numpy()})


def gated_delta_backward(draw):
    for number, row in enumerate(DELTA):
        ins, words, sequences = delta_inputs(draw, row)
        given = tensors(ins, True)
        o, last = delta_outputs(row, given, sequences)
        dout, dlast = draw.normal(ins["v"].shape, row[1]), draw.normal(tuple(last.shape)) if number % 2 == 0 else None
        names = [n for n in ("q", "k", "v", "g", "beta", "s0") if n in ins]
        outs = gradients(o, last, dout, dlast, given, names)
        words += "".join(f" +d{n}" for n in names if n in ("g", "beta", "s0")) + " +dlast" * (dlast is not None)
        yield case(row[0], words, {"dout": dout} | ins | ({} if dlast is None else {"dlast": dlast}), outs)


SSD = (  # name, T, b, t, h, g, p, n, offsets, d, dt_bias, s0, softplus
    ("softplus", "bf16", 2, 6, 2, 1, 3, 4, None, True, True, False, 1),
    ("states", "f32", 1, 7, 4, 2, 3, 5, None, True, False, True, 0),
    ("plain", "f16", 1, 8, 2, 2, 5, 4, None, False, False, False, 0),
    ("a bias alone", "f32", 1, 6, 3, 1, 3, 4, None, False, True, True, 0),
    ("one step", "bf16", 2, 1, 2, 1, 5, 8, None, True, True, True, 1),
    ("wide", "f32", 1, 5, 1, 1, 9, 17, None, True, False, False, 1),
    ("packed", "bf16", 1, 10, 2, 1, 3, 5, [0, 4, 4, 9], True, True, True, 1),
    ("packed, alone", "f32", 1, 7, 2, 2, 3, 4, [0, 3, 7], False, False, False, 0),
)


def ssd_inputs(draw, row):
    _, dtype, b, t, h, g, p, n, starts, d, bias, start, softplus = row
    count = len(starts) - 1 if starts else b
    ins = {"x": draw.normal((b, t, h, p), dtype),
           "dt": draw.normal((b, t, h)) if softplus else draw.uniform((b, t, h), 0.25, 1),
           "a": -draw.uniform(h, 0.25, 2), "b": draw.normal((b, t, g, n), dtype),
           "c": draw.normal((b, t, g, n), dtype)}
    words = f"T={dtype} b={b} t={t} h={h} g={g} p={p} n={n} s={count} softplus={softplus}"
    if d:
        ins["d"], words = draw.normal(h), words + " +d"
    if bias:
        ins["dt_bias"], words = draw.uniform(h, -0.125, 0.5), words + " +dt_bias"
    if starts:
        ins["cu_seqlens"], words = np.array(starts, dtype=np.float64), words + f" nseq={count} +cu_seqlens"
    if start:
        ins["s0"], words = draw.normal((count, h, p, n)), words + " +s0"
    return ins, words, [(0, starts[i], starts[i + 1]) if starts else (i, 0, t) for i in range(count)]


def ssd_outputs(row, given, sequences):
    _, _, b, t, h, g, p, n, _, _, _, _, softplus = row
    y, last = {}, []
    dt = given["dt"] + given["dt_bias"] if "dt_bias" in given else given["dt"]
    if softplus:
        dt = torch.nn.functional.softplus(dt)
    for i, (batch, first, end) in enumerate(sequences):
        states = []
        for head in range(h):
            of, group = (batch, slice(first, end)), head // (h // g)
            x, step = given["x"][of][:, head], dt[of][:, head]
            s0 = given["s0"][i, head] if "s0" in given else torch.zeros(p, n, dtype=torch.float64)
            out, state = attended(given["c"][of][:, group], given["b"][of][:, group], step[:, None] * x,
                                  step * given["a"][head], None, s0.T)
            y[batch, first, end, head] = out + given["d"][head] * x if "d" in given else out
            states.append(state.T)
        last.append(torch.stack(states))
    return y, torch.stack(last)


def ssd(draw):
    for row in SSD:
        ins, words, sequences = ssd_inputs(draw, row)
        y, last = ssd_outputs(row, tensors(ins, False), sequences)
        yield case(row[0], words + " +last", ins, {"y": placed(y, ins["x"].shape), "last": last.numpy()})


def ssd_backward(draw):
    for number, row in enumerate(SSD):
        ins, words, sequences = ssd_inputs(draw, row)
        given = tensors(ins, True)
        y, last = ssd_outputs(row, given, sequences)
        dy, dlast = draw.normal(ins["x"].shape, row[1]), draw.normal(tuple(last.shape)) if number % 2 == 0 else None
        names = [n for n in ("x", "dt", "a", "b", "c", "d", "dt_bias", "s0") if n in ins]
        outs = gradients(y, last, dy, dlast, given, names)
        words += "".join(f" +d{n}" for n in names if n in ("d", "dt_bias", "s0")) + " +dlast" * (dlast is not None)
        yield case(row[0], words, {"dy": dy} | ins | ({} if dlast is None else {"dlast": dlast}), outs)
