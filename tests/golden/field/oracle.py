# SPDX-License-Identifier: Apache-2.0
"""Neural fields: the hash encoding as Muller et al. 2022, section 3, and tiny-cuda-nn's documentation have it, in NumPy
with Python's integers; small networks by torch.nn.functional in float64. Gradients by autograd."""
import itertools
import math

import numpy as np
import torch

from vectors import case, rounded

PRIMES = (1, 2654435761, 805459861, 3674653429)
GRIDS = (  # name, type, places, axes, rows of each level, features, growth, first resolution, smoothstep
    ("dense levels, and one that is none", "f32", 6, 2, (16, 64, 100), 2, 2, 4, False),
    ("hashed levels of a power of two", "f32", 6, 3, (16, 16, 32, 64), 2, 1.5, 8, False),
    ("hashed levels of any size", "f32", 5, 3, (17, 90, 31), 1, 1.3819, 5, True),
    ("four axes", "f32", 4, 4, (81, 64, 50), 2, 2, 3, False),
    ("a level without rows", "bf16", 5, 2, (9, 0, 40), 4, 1, 3, True),
    ("f16", "f16", 6, 3, (27, 20, 16), 8, 1.25, 3, False),
)
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, float(np.float32(0.01))),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exponential": torch.exp,
}
NETS = (  # name, type, rows, inputs, width, layers behind the first, outputs, activation, of the output, with biases
    ("no layer behind the first", "f32", 4, 5, 16, 0, 3, "relu", "none", False),
    ("one, with biases", "f32", 3, 6, 7, 1, 2, "relu", "sigmoid", True),
    ("deep", "f32", 3, 4, 5, 3, 2, "tanh", "exponential", True),
    ("leaky", "f32", 4, 3, 6, 2, 4, "leaky_relu", "leaky_relu", False),
    ("sigmoids", "bf16", 3, 5, 6, 1, 3, "sigmoid", "tanh", True),
    ("f16", "f16", 3, 8, 9, 2, 3, "relu", "relu", True),
    ("exponentials and no activation", "f32", 3, 3, 4, 1, 2, "exponential", "none", False),
)


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


def row_of(corner, resolution, size):
    if resolution ** len(corner) <= size:
        return sum(c * resolution**k for k, c in enumerate(corner)) % size
    word = 0
    for c, prime in zip(corner, PRIMES):
        word ^= c * prime % 2**32
    return word % size


def encode(x, table, sizes, growth, base, smooth):
    """y of n l f, as a function of the torch tensors x and table. Where a place lies is decided in f32."""
    n, d = x.shape
    out = []
    first = 0
    for level, size in enumerate(sizes):
        scale = np.float32(base * float(np.float32(growth)) ** level - 1)
        resolution = math.ceil(scale) + 1
        rows = []
        for i in range(n):
            inside = np.clip(x[i].detach().numpy(), 0, 1).astype(np.float32)
            place = inside * scale + np.float32(0.5)
            cell = np.floor(place)
            moves = torch.where((x[i] < 0) | (x[i] > 1), 0.0, x[i] - x[i].detach())  # torch.clamp's ends do not
            t = tensor(place.astype(np.float64) - cell) + float(scale) * moves
            y = torch.zeros(table.shape[1], dtype=torch.float64)
            for q in itertools.product((0, 1), repeat=d) if size else ():
                weight = torch.ones((), dtype=torch.float64)
                for k in range(d):
                    u = t[k] if q[k] else 1 - t[k]
                    weight = weight * (u * u * (3 - 2 * u) if smooth else u)
                y = y + weight * table[first + row_of([int(c) + s for c, s in zip(cell, q)], resolution, size)]
            rows.append(y)
        out.append(torch.stack(rows))
        first += size
    return torch.stack(out, dim=1)


def grid_inputs(draw, dtype, n, d, sizes, f):
    x = draw.uniform((n, d), 0, 1)
    x[0], x[1] = 0, 1
    x[2, 0], x[3, d - 1] = -0.25, 1.5
    return {"x": x, "table": draw.normal((sum(sizes) + 3, f), dtype),
            "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.float64)}


def words_of(ins, dtype, n, d, sizes, f, growth, base, smooth):
    return f"T={dtype} I=i32 n={n} d={d} e={len(ins['table'])} l={len(sizes)} f={f} per_level_scale={growth} " \
        f"base_resolution={base} interpolation={'smoothstep' if smooth else 'linear'}"


def given(names, needed):
    """The optional tensors among them, as words of a call."""
    return "".join(f" +{n}" for n in names if n not in needed)


def hash_encode(draw):
    for name, dtype, n, d, sizes, f, growth, base, smooth in GRIDS:
        ins = grid_inputs(draw, dtype, n, d, sizes, f)
        y = encode(tensor(ins["x"]), tensor(ins["table"]), sizes, growth, base, smooth)
        yield case(name, words_of(ins, dtype, n, d, sizes, f, growth, base, smooth), ins,
                   {"y": y.numpy()})


def hash_encode_backward(draw):
    for name, dtype, n, d, sizes, f, growth, base, smooth in GRIDS:
        ins = grid_inputs(draw, dtype, n, d, sizes, f)
        ins = {"dy": draw.normal((n, len(sizes), f), dtype), **ins}
        x, table = tensor(ins["x"], True), tensor(ins["table"], True)
        encode(x, table, sizes, growth, base, smooth).backward(tensor(ins["dy"]))
        yield case(name, words_of(ins, dtype, n, d, sizes, f, growth, base, smooth) + " +dx +dtable", ins,
                   {"dx": x.grad.numpy(), "dtable": table.grad.numpy()})


def net_inputs(draw, dtype, r, k, h, m, o, biases):
    ins = {"x": draw.normal((r, k), dtype), "w_in": draw.normal((h, k), dtype, scale=0.6)}
    if m:
        ins["w"] = draw.normal((m, h, h), dtype, scale=0.5)
    ins["w_out"] = draw.normal((o, h), dtype, scale=0.6)
    if biases:
        ins["b_in"] = draw.normal((h,), dtype, scale=0.5)
        if m:
            ins["b"] = draw.normal((m, h), dtype, scale=0.5)
        ins["b_out"] = draw.normal((o,), dtype, scale=0.5)
    return ins


def net_words(dtype, r, k, h, m, o, activation, output):
    return f"T={dtype} r={r} k={k} h={h} m={m} o={o} activation={activation} output_activation={output}"


def layers_of(net, m):
    """Weights and biases of each layer."""
    return [(net["w_in"], net.get("b_in")),
            *[(net["w"][i], net["b"][i] if "b" in net else None) for i in range(m)],
            (net["w_out"], net.get("b_out"))]


def before(kind, a):
    """Where the activation gives a."""
    leak = float(np.float32(0.01))
    return {"none": a, "relu": a, "leaky_relu": torch.where(a > 0, a, a / leak), "sigmoid": torch.logit(a),
            "tanh": torch.atanh(a), "exponential": torch.log(a)}[kind]


def run(net, m, activation, output, dtype, saved=None):
    """Activations of all layers; with `saved` at what a forward has written, as its gradient is taken."""
    a, out = net["x"], []
    layers = layers_of(net, m)
    for number, (w, b) in enumerate(layers):
        kind = output if number == len(layers) - 1 else activation
        z = torch.nn.functional.linear(a, w, b)
        if saved is not None:
            z = before(kind, saved[number]) + z - z.detach()
        a = ACTIVATIONS[kind](z)
        out.append(a)
        if saved is None:
            a = a if dtype == "f32" else tensor(rounded(a.detach().numpy(), dtype))
    return out


def mlp_fused(draw):
    for name, dtype, r, k, h, m, o, activation, output, biases in NETS:
        ins = net_inputs(draw, dtype, r, k, h, m, o, biases)
        values = run({n: tensor(x) for n, x in ins.items()}, m, activation, output, dtype)
        words = net_words(dtype, r, k, h, m, o, activation, output) + given(ins, ("x", "w_in", "w_out"))
        yield case(name, words + " +hidden", ins,
                   {"y": values[-1].numpy(), "hidden": np.stack([v.numpy() for v in values[:-1]])})


def mlp_fused_backward(draw):
    for name, dtype, r, k, h, m, o, activation, output, biases in NETS:
        ins = net_inputs(draw, dtype, r, k, h, m, o, biases)
        net = {n: tensor(x, True) for n, x in ins.items()}
        values = [tensor(rounded(v.detach().numpy(), dtype))
                  for v in run(net, m, activation, output, dtype)]
        dy = draw.normal((r, o), dtype)
        run(net, m, activation, output, dtype, saved=values)[-1].backward(tensor(dy))
        saved = {"hidden": np.stack([v.numpy() for v in values[:-1]]), "y": values[-1].numpy()}
        ins = {"dy": dy, **{n: ins[n] for n in ("x", "w_in", "w", "w_out") if n in ins}, **saved}
        grads = {f"d{n}": net[n].grad.numpy() for n in net}
        words = net_words(dtype, r, k, h, m, o, activation, output) + \
            given([*ins, *grads], ("dy", "x", "w_in", "w_out", "hidden", "y", "dw_in", "dw_out"))
        yield case(name, words, ins, grads)
