# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells in float64: torch.nn's LSTM, GRU and RNN, head by head, and sLSTM step by step as Beck et al. 2024,
section 2.2, has it. Gradients by autograd through steps at the values that a forward saved."""
import numpy as np
import torch

from vectors import case, rounded

# Gates of wx, matrices, rows of gates and bias, states besides h.
CELLS = {"lstm": (4, 4, 4, "c"), "gru": (3, 3, 4, ""), "slstm": (4, 4, 4, "cnm"), "elman": (1, 1, 1, "")}
CALLS = (  # name, type, batch, steps, heads, size, with bias, with start states, packed
    ("plain", "f32", 2, 4, 1, 5, False, False, False),
    ("heads, bias and start states", "f32", 2, 3, 3, 4, True, True, False),
    ("bf16", "bf16", 1, 5, 2, 6, True, False, False),
    ("f16 with start states", "f16", 2, 2, 2, 3, True, True, False),
    ("packed", "f32", 1, 9, 2, 4, True, True, True),
    ("packed without start states", "bf16", 1, 9, 1, 5, False, False, True),
)
OFFSETS = [0, 3, 3, 7]  # the second is empty, and there is room behind the last


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


def inputs_of(draw, op, dtype, b, t, h, d, bias, start, packed):
    """In full rank: gates and matrices have a dimension even where there is one."""
    gates, matrices, rows, states = CELLS[op]
    s = len(OFFSETS) - 1 if packed else b
    ins = {"wx": draw.normal((b, t, gates, h, d), dtype), "r": draw.normal((h, matrices, d, d), dtype, scale=0.5)}
    if bias:
        ins["bias"] = draw.normal((rows, h, d), dtype, scale=0.5)
    if packed:
        ins["cu_seqlens"] = np.array(OFFSETS, dtype=np.float64)
    if start:
        ins["h0"] = draw.uniform((s, h, d), -1, 1)
        for state in states:
            ins[f"{state}0"] = draw.uniform((s, h, d), 1, 3) if state == "n" else draw.normal((s, h, d))
    return ins


def sequences(ins, b, t, packed):
    """Of each: its number, its member of the batch, and its steps."""
    if packed:
        return [(i, 0, first, last) for i, (first, last) in enumerate(zip(OFFSETS, OFFSETS[1:]))]
    return [(i, i, 0, t) for i in range(b)]


def module(op, r, bias, d):
    """torch.nn's own of one head, whose input product is the identity."""
    gates = CELLS[op][0]
    net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "elman": torch.nn.RNN}[op](gates * d, d, batch_first=True,
                                                                                  dtype=torch.float64)
    with torch.no_grad():
        net.weight_ih_l0.copy_(torch.eye(gates * d))
        net.weight_hh_l0.copy_(tensor(r).reshape(gates * d, d))
        net.bias_ih_l0.zero_(), net.bias_hh_l0.zero_()
        if bias is not None:
            net.bias_ih_l0.copy_(tensor(bias)[:gates].reshape(-1))
        if bias is not None and op == "gru":
            net.bias_hh_l0[2 * d:].copy_(tensor(bias)[3])
    return net


def step_of(op, wx, product, bias, states, saved=None):
    """The paper's step of one head: gates, and states after it. `saved` puts a rounded value in the place of one."""
    rounding = saved is not None
    saved = saved or (lambda name, x: x)
    if op == "gru":
        r, z = (saved(q, wx[q] + product[q] + bias[q]) for q in (0, 1))
        a = saved(3, product[2] + bias[3])
        n = saved(2, wx[2] + bias[2] + torch.sigmoid(r) * a)
        z_ = torch.sigmoid(z)
        return [r, z, n, a], [z_ * states[0] + (1 - z_) * torch.tanh(n)]
    g = [saved(q, wx[q] + product[q] + bias[q]) for q in range(len(wx))]
    if op == "elman":
        return g, [torch.tanh(g[0])]
    i, f, z, o = g
    if op == "lstm":
        c = saved("c", torch.sigmoid(f) * states[1] + torch.sigmoid(i) * torch.tanh(z))
        return g, [torch.sigmoid(o) * torch.tanh(c), c]
    _, c, n, m = states
    kept = n != 0
    m_before = torch.where(kept, m, -torch.inf)
    m = saved("m", torch.maximum(i, torch.nn.functional.logsigmoid(f) + m_before).detach())
    forget = torch.where(kept, torch.exp(torch.nn.functional.logsigmoid(f) + torch.where(kept, m_before, 0.0) - m), 0.0)
    c = saved("c", forget * c + torch.exp(i - m) * torch.tanh(z))
    n = forget * n + torch.exp(i - m)
    assert rounding or (n > 1 - 1e-12).all()  # so that the paper's max(n, 1) does not matter
    n = saved("n", n)
    return g, [torch.sigmoid(o) * c / n, c, n, m]


def own_states(op, ins, i, head, d):
    names = ["h", *CELLS[op][3]]
    return [tensor(ins[f"{n}0"])[i, head] if f"{n}0" in ins else torch.zeros(d, dtype=torch.float64) for n in names]


def forward(op, ins, b, t, h, d, packed):
    """All outputs, in full rank."""
    gates, matrices, rows, states = CELLS[op]
    s = len(OFFSETS) - 1 if packed else b
    outs = {"y": np.zeros((b, t, h, d)), "gates": np.zeros((b, t, rows, h, d))}
    outs.update({n: np.zeros((b, t, h, d)) for n in states}, **{f"last_{n}": np.zeros((s, h, d)) for n in "h" + states})
    bias = tensor(ins.get("bias", np.zeros((rows, h, d))))
    for i, member, first, last in sequences(ins, b, t, packed):
        for head in range(h):
            now = own_states(op, ins, i, head, d)
            for k in range(first, last):
                g, now = step_of(op, tensor(ins["wx"])[member, k, :, head], tensor(ins["r"])[head] @ now[0],
                                 bias[:, head], now)
                outs["gates"][member, k, :, head] = torch.stack(g)
                for name, x in zip("y" + states, now):
                    outs[name][member, k, head] = x
            for name, x in zip("h" + states, now):
                outs[f"last_{name}"][i, head] = x
            if op != "slstm" and last > first:
                check(op, ins, outs, i, member, first, last, head, d)
    return outs


def check(op, ins, outs, i, member, first, last, head, d):
    """torch.nn's own says the same, and its values are those that are written."""
    net = module(op, ins["r"][head], ins["bias"][:, head] if "bias" in ins else None, d)
    start = [s.reshape(1, 1, d) for s in own_states(op, ins, i, head, d)]
    x = tensor(ins["wx"])[member, first:last, :, head].reshape(1, last - first, -1)
    y, end = net(x, tuple(start) if op == "lstm" else start[0])
    y = y.detach().numpy()[0]
    assert np.abs(y - outs["y"][member, first:last, head]).max() < 1e-13
    outs["y"][member, first:last, head] = y
    for name, value in zip("hc", end if op == "lstm" else [end]):
        outs[f"last_{name}"][i, head] = value.detach().numpy().reshape(-1)


def calls(draw, op):
    for name, dtype, b, t, h, d, bias, start, packed in CALLS:
        ins = inputs_of(draw, op, dtype, b, t, h, d, bias, start, packed)
        words = f"T={dtype} b={b} t={t} h={h} d={d} s={len(OFFSETS) - 1 if packed else b}" + " nseq=3" * packed
        yield name, words, ins, (b, t, h, d, packed)


def passed(op, arrays):
    """As they are passed: elman has no dimension of gates."""
    if op != "elman":
        return arrays
    drop = {"wx": 2, "gates": 2, "dwx": 2, "r": 1, "dr": 1, "bias": 0, "dbias": 0}
    return {n: np.squeeze(x, drop[n]) if n in drop else x for n, x in arrays.items()}


def forward_cases(draw, op):
    for name, words, ins, sizes in calls(draw, op):
        outs = forward(op, ins, *sizes)
        words += "".join(f" +{n}" for n in [*ins, *outs] if n not in ("wx", "r", "y"))
        yield case(name, words, passed(op, ins), passed(op, outs))


def at(value, x):
    """The value, with the gradient of x."""
    return tensor(value) + (x - x.detach())


def backward_cases(draw, op):
    gates, matrices, rows, states = CELLS[op]
    moving = ["h", "c"] if op == "lstm" else ["h"]  # states whose gradient is passed on
    for name, words, made, sizes in calls(draw, op):
        b, t, h, d, packed = sizes
        dtype = words.split()[0][2:]
        outs = forward(op, made, *sizes)
        ins = {"dy": draw.normal((b, t, h, d), dtype), "gates": rounded(outs["gates"], dtype),
               **{n: rounded(outs[n], "f32") for n in states}, "y": rounded(outs["y"], dtype), "r": made["r"]}
        ins.update({n: made[n] for n in ("cu_seqlens", "h0", *(f"{n}0" for n in states)) if n in made})
        starts = {n: tensor(ins[f"{n}0"], True) for n in moving if f"{n}0" in ins}
        if starts:
            ins.update({f"dlast_{n}": draw.normal(starts["h"].shape) for n in moving})
        wx, r = tensor(made["wx"], True), tensor(made["r"], True)
        bias = tensor(made.get("bias", np.zeros((rows, h, d))), True)
        total = 0
        for i, member, first, last in sequences(made, b, t, packed):
            for head in range(h):
                now = own_states(op, ins, i, head, d)
                for j, n in enumerate(moving):
                    now[j] = starts[n][i, head] if n in starts else now[j]
                for k in range(first, last):
                    def saved(what, x, place=(member, k), head=head):
                        if isinstance(what, int):
                            return at(ins["gates"][place][what, head], x)
                        return at(ins[what][place][head], x)
                    _, now = step_of(op, wx[member, k, :, head], r[head] @ now[0], bias[:, head], now, saved)
                    now[0] = at(ins["y"][member, k, head], now[0])
                    total = total + (now[0] * tensor(ins["dy"])[member, k, head]).sum()
                for j, n in enumerate(moving):
                    if starts:
                        total = total + (now[j] * tensor(ins[f"dlast_{n}"])[i, head]).sum()
        total.backward()
        grads = {"dwx": wx.grad, "dr": r.grad, "dbias": bias.grad, **{f"d{n}0": x.grad for n, x in starts.items()}}
        grads = {n: x.numpy() for n, x in grads.items()}
        words += "".join(f" +{n}" for n in [*ins, *grads] if n not in ("dy", "gates", "y", "r", "dwx", "dr", *states))
        yield case(name, words, passed(op, ins), passed(op, grads))


def lstm(draw):
    yield from forward_cases(draw, "lstm")


def lstm_backward(draw):
    yield from backward_cases(draw, "lstm")


def gru(draw):
    yield from forward_cases(draw, "gru")


def gru_backward(draw):
    yield from backward_cases(draw, "gru")


def slstm(draw):
    yield from forward_cases(draw, "slstm")


def slstm_backward(draw):
    yield from backward_cases(draw, "slstm")


def elman(draw):
    yield from forward_cases(draw, "elman")


def elman_backward(draw):
    yield from backward_cases(draw, "elman")
