# SPDX-License-Identifier: Apache-2.0
"""AdamW, SGD and Muon by torch.optim in float64, AdamW with moments in 8 bits by bitsandbytes' own recipe of a table
and NumPy's f32; what chance rounds by NumPy's bits; Adafactor by torch.optim.Adafactor in float64; Lion by algorithm 2
of Chen et al. 2023 with torch's operations; clipping by Pascanu et al. 2013, algorithm 1, with math.fsum.

Not torch.nn.utils.clip_grad_norm_: that adds 1e-6 to the norm, which neither the paper nor this library does."""
import math
from unittest import mock

import numpy as np
import torch

from vectors import case, f32, philox, rounded


def by_chance(x, seed, stream):
    """x as bf16, by the upper half of dropout's words: up if it is less than the lower half of x's bits in f32."""
    count = x.size
    words = np.array([philox(seed, stream, b) for b in range(-(-count // 8))], dtype=np.uint64).reshape(-1)
    halves = np.stack([words >> np.uint64(16), words & np.uint64(0xFFFF)], axis=-1).reshape(-1)[:count]
    bits = x.astype(np.float32).reshape(-1).view(np.uint32).astype(np.uint64)
    bits = (bits >> np.uint64(16)) + (halves < (bits & np.uint64(0xFFFF)))
    return (bits << np.uint64(16)).astype(np.uint32).view(np.float32).astype(np.float64).reshape(x.shape)


SEED, STREAM = 987654321987, 3
CHANCE = f" stochastic=1 seed={SEED} stream={STREAM}"


def chance_cases(words, ins, outs, stream_told=5):
    """A case whose param of bf16 is rounded by chance, and one whose key is in a tensor."""
    exact = outs["param"]
    yield case("by chance", words + CHANCE, ins, outs | {"param": by_chance(exact, SEED, STREAM)})
    told = np.array([SEED, stream_told])
    yield case("by chance, the key in a tensor", words + f" stochastic=1 stream={STREAM} +philox",
               ins | {"philox": told}, outs | {"param": by_chance(exact, SEED, STREAM + stream_told)})


def stepped(param, grad, m, v, step, lr, beta1, beta2, eps, weight_decay):
    """One step of an optimizer that has made step - 1, with its moments as given."""
    p = torch.tensor(param, requires_grad=True)
    optimizer = torch.optim.AdamW([p], lr=f32(lr), betas=(f32(beta1), f32(beta2)), eps=f32(eps),
                                  weight_decay=f32(weight_decay), foreach=False)
    state = {"step": torch.tensor(float(step - 1), dtype=torch.float64), "exp_avg": torch.tensor(m),
             "exp_avg_sq": torch.tensor(v)}
    optimizer.state[p] = state
    p.grad = torch.tensor(grad)
    optimizer.step()
    return p.detach().numpy(), state["exp_avg"].numpy(), state["exp_avg_sq"].numpy()


def adamw(draw):
    for name, dtype, grads, moments, copy, n, step, lr, beta1, beta2, eps, weight_decay, scale in (
        ("first step", "f32", "f32", "f32", None, 37, 1, 1e-3, 0.9, 0.999, 1e-8, 0, None),
        ("second step, decay", "f32", "f32", "f32", "bf16", 40, 2, 0.1, 0.9, 0.999, 1e-8, 0.1, None),
        ("late step", "f32", "bf16", "f32", "f16", 40, 1000, 1e-3, 0.9, 0.999, 1e-8, 0.01, None),
        ("very late step", "f32", "f32", "f32", None, 24, 1000000, 1e-2, 0.9, 0.999, 1e-8, 0.01, None),
        ("other betas, large eps", "bf16", "f16", "bf16", None, 33, 3, 0.1, 0.5, 0.95, 1e-3, 0.1, None),
        ("scaled gradient", "f32", "f16", "f32", "bf16", 40, 7, 0.1, 0.9, 0.999, 1e-3, 0.1, 1 / 3),
        ("f16", "f16", "f16", "f32", None, 24, 12, 1e-2, 0.9, 0.95, 1e-8, 0.01, 2.5),
    ):
        param, grad = draw.normal(n, dtype), draw.normal(n, grads)
        m, v = draw.normal(n, moments, scale=0.3), np.abs(draw.normal(n, moments, scale=0.3))
        if step == 1:
            m, v = np.zeros(n), np.zeros(n)
        scaled = grad * (1 if scale is None else f32(scale))
        after = stepped(param, scaled, m.copy(), v.copy(), step, lr, beta1, beta2, eps, weight_decay)
        words = f"T={dtype} G={grads} S={moments} C={copy or 'bf16'} n={n} lr={lr} beta1={beta1} beta2={beta2} "
        words += f"eps={eps} weight_decay={weight_decay} step={step}"
        ins, outs = {"param": param, "grad": grad, "m": m, "v": v}, dict(zip(("param", "m", "v"), after))
        if copy:
            outs["copy"], words = after[0], words + " +copy"
        if scale is not None:
            ins["grad_scale"], words = np.array([f32(scale)]), words + " +grad_scale"
        yield case(name, words, ins, outs)
    for name, lr, step, found, gradient in (
        ("lr and step in tensors", 0.1, 3, None, 1),
        ("a late step in a tensor", 1e-2, 2**40 + 1, None, 1),
        ("nothing found", 0.1, 2, 0.0, 1),
        ("a step that is skipped", 0.1, 2, 1.0, np.inf),
        ("a step that a NaN skips", 0.1, 2, np.nan, np.nan),
    ):
        n = 19
        param, grad, m, v = draw.normal(n), draw.normal(n) * gradient, draw.normal(n), np.abs(draw.normal(n))
        after = stepped(param, grad, m.copy(), v.copy(), step, lr, 0.9, 0.95, 1e-8, 0.1)
        if found is not None and found != 0:  # torch.amp.GradScaler: the optimizer's step is left out
            after = param, m, v
        words = f"T=f32 G=f32 S=f32 C=bf16 n={n} beta2=0.95 weight_decay=0.1 +copy +lr_tensor +step_tensor"
        ins = {"param": param, "grad": grad, "m": m, "v": v, "lr_tensor": np.array([f32(lr)]),
               "step_tensor": np.array([step])}
        if found is not None:
            ins["found_inf"], words = np.array([found]), words + " +found_inf"
        yield case(name, words, ins, dict(zip(("param", "m", "v"), after)) | {"copy": after[0]})


    n = 43
    param, grad, m, v = draw.normal(n, "bf16"), draw.normal(n), draw.normal(n), np.abs(draw.normal(n))
    outs = dict(zip(("param", "m", "v"), stepped(param, grad, m.copy(), v.copy(), 3, 1e-3, 0.9, 0.999, 1e-8, 0.1)))
    yield from chance_cases(f"T=bf16 G=f32 S=f32 C=bf16 n={n} lr=0.001 weight_decay=0.1 step=3 +copy",
                            {"param": param, "grad": grad, "m": m, "v": v}, outs | {"copy": outs["param"]})


def dynamic_map(signed):
    """As bitsandbytes 0.45 makes it (functional.create_dynamic_map, 7 bits of exponent at most, of 8), in float64."""
    data = []
    for i in range(7):
        bounds = np.linspace(0.1, 1, 2**i + 1 if signed else 2 ** (i + 1) + 1)
        means = (bounds[:-1] + bounds[1:]) / 2 * 10.0 ** (i - 6)
        data += means.tolist() + ((-means).tolist() if signed else [])
    table = np.float32(sorted(data + [0, 1]))
    assert len(table) == 256
    return table


def nearest(x, table):
    """Of two that are as near the one nearer to 0."""
    away = np.abs(x.astype(np.float64)[:, None] - table.astype(np.float64)[None, :])
    best = away.min(1, keepdims=True)
    return np.where(away == best, np.abs(table)[None, :], np.inf).argmin(1)


def quantized_stepped(param, grad, scale, m, v, m_most, v_most, step, lr, beta1, beta2, eps, weight_decay):
    one, maps = np.float32, (dynamic_map(True), dynamic_map(False))
    block = np.arange(len(param)) // 256
    m_most, v_most = one(m_most), one(v_most)
    g = one(grad) * one(scale)
    first = one(beta1) * (maps[0][m] * m_most[block]) + one(1 - f32(beta1)) * g
    second = one(beta2) * (maps[1][v] * v_most[block]) + one(1 - f32(beta2)) * (g * g)
    lr, beta1, beta2 = f32(lr), f32(beta1), f32(beta2)
    a, b = first.astype(np.float64), second.astype(np.float64)
    after = param - lr * f32(weight_decay) * param - lr / (1 - beta1**step) * a / (
        np.sqrt(b) / math.sqrt(1 - beta2**step) + f32(eps))
    most = [np.array([np.abs(x[block == k]).max() for k in range(block[-1] + 1)]) for x in (first, second)]
    codes = []
    for x, largest, table, zero in zip((first, second), most, maps, (127, 0)):
        whole = (largest > 0) & np.isfinite(largest)
        with np.errstate(all="ignore"):
            share = np.where(whole[block], x / largest[block], one(0))
        codes.append(np.where(whole[block], nearest(share, table), zero).astype(np.float64))
    return {"param": after, "m": codes[0], "v": codes[1], "m_most": most[0].astype(np.float64),
            "v_most": most[1].astype(np.float64)}


def adamw_quantized(draw):
    for name, dtype, grads, copy, n, step, lr, beta1, beta2, eps, weight_decay, scale in (
        ("first step", "f32", "f32", None, 300, 1, 1e-3, 0.9, 0.999, 1e-8, 0, None),
        ("decay", "f32", "bf16", "bf16", 257, 2, 0.1, 0.9, 0.999, 1e-8, 0.1, None),
        ("bf16", "bf16", "bf16", None, 256, 1000, 1e-2, 0.5, 0.95, 1e-3, 0.1, None),
        ("scaled gradient", "f16", "f32", "f16", 40, 7, 0.1, 0.9, 0.999, 1e-3, 0.1, 1 / 3),
        ("nothing there", "f32", "f32", None, 260, 3, 0.1, 0.9, 0.999, 1e-3, 0, None),
    ):
        blocks = -(-n // 256)
        param, grad = draw.normal(n, dtype), draw.normal(n, grads) * (name != "nothing there")
        m, v = draw.integers(n, 0, 256).astype(int), draw.integers(n, 0, 256).astype(int)
        m_most, v_most = np.abs(draw.normal(blocks)), np.abs(draw.normal(blocks))
        if name in ("first step", "nothing there"):
            m_most, v_most = np.zeros(blocks), np.zeros(blocks)
        outs = quantized_stepped(param, grad, 1 if scale is None else scale, m, v, m_most, v_most, step, lr, beta1,
                                 beta2, eps, weight_decay)
        words = f"T={dtype} G={grads} C={copy or 'bf16'} n={n} k={blocks} lr={lr} beta1={beta1} beta2={beta2} "
        words += f"eps={eps} weight_decay={weight_decay} step={step}"
        ins = {"param": param, "grad": grad, "m": m, "v": v, "m_most": m_most, "v_most": v_most}
        if copy:
            outs["copy"], words = outs["param"], words + " +copy"
        if scale is not None:
            ins["grad_scale"], words = np.array([f32(scale)]), words + " +grad_scale"
        yield case(name, words, ins, outs)
    n, found = 19, np.array([np.nan])
    ins = {"param": draw.normal(n), "grad": draw.normal(n) * np.nan, "m": draw.integers(n, 0, 256),
           "v": draw.integers(n, 0, 256), "m_most": np.ones(2), "v_most": np.ones(2)}
    outs = {k: ins[k] for k in ("param", "m", "v", "m_most", "v_most")} | {"copy": ins["param"]}
    yield case("a step that a NaN skips", f"T=f32 G=f32 C=bf16 n={n} k=2 lr=0.1 step=2 +copy +found_inf",
               ins | {"found_inf": found}, outs)


    n = 300
    param, grad = draw.normal(n, "bf16"), draw.normal(n)
    m, v = draw.integers(n, 0, 256).astype(int), draw.integers(n, 0, 256).astype(int)
    most = np.abs(draw.normal(4))
    ins = {"param": param, "grad": grad, "m": m, "v": v, "m_most": most[:2], "v_most": most[2:]}
    outs = quantized_stepped(param, grad, 1, m, v, ins["m_most"], ins["v_most"], 3, 1e-3, 0.9, 0.999, 1e-8, 0.1)
    yield from chance_cases(f"T=bf16 G=f32 C=bf16 n={n} k=2 lr=0.001 weight_decay=0.1 step=3", ins, outs)


def adafactor_stepped(param, grad, row_var, col_var, step, lr, beta2_decay, eps1, eps2, clip, weight_decay):
    p = torch.tensor(param, requires_grad=True)
    optimizer = torch.optim.Adafactor([p], lr=f32(lr), beta2_decay=f32(beta2_decay), eps=(f32(eps1), f32(eps2)),
                                      d=f32(clip), weight_decay=f32(weight_decay), foreach=False)
    state = {"step": torch.tensor(float(step - 1), dtype=torch.float64)}
    if row_var is None:
        state["variance"] = torch.tensor(col_var)
    else:
        state["row_var"], state["col_var"] = torch.tensor(row_var)[:, None].clone(), torch.tensor(col_var)[None].clone()
    optimizer.state[p] = state
    p.grad = torch.tensor(grad)
    optimizer.step()
    outs = {"param": p.detach().numpy()}
    if row_var is None:
        return outs | {"col_var": state["variance"].numpy()}
    return outs | {"row_var": state["row_var"].numpy()[:, 0], "col_var": state["col_var"].numpy()[0]}


def adafactor(draw):
    units = {"f32": 2.0**-23, "bf16": 2.0**-7, "f16": 2.0**-10}
    for name, dtype, grads, copy, shape, step, lr, decay, eps1, eps2, clip, weight_decay, scale in (
        ("first step", "f32", "f32", None, (7, 19), 1, 1e-2, -0.8, None, 1e-3, 1, 0, None),
        ("decay", "f32", "bf16", "bf16", (5, 24), 2, 0.1, -0.8, None, 1e-3, 1, 0.1, None),
        ("clipped", "bf16", "bf16", None, (9, 16), 100, 0.5, -0.5, None, 1e-3, 1.5, 0.1, None),
        ("large eps", "f16", "f32", "f16", (4, 11), 10, 1e-2, -0.8, 0.5, 1, 1, 0, 1 / 3),
        ("unit of f16", "f16", "f16", None, (3, 8), 3, 1e-2, -0.8, None, 1e-3, 1, 0, None),
        ("vector", "f32", "f32", None, (37,), 5, 1e-2, -0.8, None, 1e-3, 1, 0.1, None),
        ("vector, clipped", "bf16", "f16", "bf16", (20,), 5, 1, -0.8, 1e-3, 1e-3, 1.25, 0, 2.5),
        ("late", "f32", "f32", None, (3, 5), 1000000, 1e-2, -0.8, None, 1e-3, 1, 0.01, None),
        ("one row", "f32", "f32", None, (1, 9), 4, 1e-2, -0.8, None, 1e-3, 1, 0, None),
        ("nothing there", "f32", "f32", None, (3, 6), 4, 1e-2, -0.8, None, 1e-3, 1, 0, None),
    ):
        param, grad = draw.normal(shape, dtype), draw.normal(shape, grads) * (name != "nothing there")
        matrix = len(shape) == 2
        size = 0.01 if "clipped" in name else 0.3
        row_var, col_var = np.abs(draw.normal(shape[0], scale=size)), np.abs(draw.normal(shape[-1], scale=size))
        if step == 1 or name == "nothing there":
            row_var, col_var = np.zeros(shape[0]), np.zeros(shape[-1])
        scaled = grad * (1 if scale is None else f32(scale))
        outs = adafactor_stepped(param, scaled, row_var if matrix else None, col_var, step, lr, decay,
                                 eps1 or units[dtype], eps2, clip, weight_decay)
        words = f"T={dtype} G={grads} C={copy or 'bf16'} c={shape[-1]} lr={lr} beta2_decay={decay} eps2={eps2} "
        words += f"clip={clip} weight_decay={weight_decay} step={step}" + (f" eps1={eps1}" if eps1 else "")
        ins = {"param": param, "grad": grad, "col_var": col_var}
        if matrix:
            ins["row_var"], words = row_var, words + f" r={shape[0]} +row_var"
        if copy:
            outs["copy"], words = outs["param"], words + " +copy"
        if scale is not None:
            ins["grad_scale"], words = np.array([f32(scale)]), words + " +grad_scale"
        yield case(name, words, ins, outs)
    for name, found in (("scalars in tensors", 0.0), ("a step that is skipped", 2.0)):
        param, grad, row_var, col_var = draw.normal((4, 7)), draw.normal((4, 7)), np.ones(4), np.ones(7)
        outs = {"param": param, "row_var": row_var, "col_var": col_var}
        if not found:
            outs = adafactor_stepped(param, grad, row_var, col_var, 9, 0.25, -0.8, 2.0**-23, 1e-3, 1, 0.1)
        ins = {"param": param, "grad": grad, "col_var": np.ones(7), "row_var": np.ones(4),
               "lr_tensor": np.array([0.25]), "step_tensor": np.array([9.0]), "found_inf": np.array([found])}
        words = "T=f32 G=f32 C=bf16 r=4 c=7 weight_decay=0.1 +row_var +copy +lr_tensor +step_tensor +found_inf"
        yield case(name, words, ins, outs | {"copy": outs["param"]})


    param, grad, row_var, col_var = draw.normal((5, 11), "bf16"), draw.normal((5, 11)), np.ones(5), np.ones(11)
    outs = adafactor_stepped(param, grad, row_var, col_var, 9, 1e-2, -0.8, 2.0**-7, 1e-3, 1, 0.1)
    yield from chance_cases("T=bf16 G=f32 C=bf16 r=5 c=11 lr=0.01 weight_decay=0.1 step=9 +row_var",
                            {"param": param, "grad": grad, "col_var": np.ones(11), "row_var": np.ones(5)}, outs)


def sgd_stepped(param, grad, moment, lr, momentum, dampening, weight_decay, scale, nesterov):
    """torch.optim.SGD; its decay is that of the gradient, so this one is applied before. torch's Nesterov has no
    dampening: with it this is torch.lerp, as torch.optim.Muon has it."""
    p = torch.tensor(param) * (1 - f32(lr) * f32(weight_decay))
    p.requires_grad_(True)
    p.grad = torch.tensor(grad)
    if moment is None:
        torch.optim.SGD([p], lr=f32(lr) * f32(scale), maximize=False).step()
        return {"param": p.detach().numpy(), "update": grad}
    if nesterov and dampening:
        assert momentum == dampening
        m = torch.tensor(moment).lerp(p.grad, 1 - f32(momentum))
        u = p.grad.lerp(m, f32(momentum))
        p = p.detach() - f32(lr) * f32(scale) * u
        return {"param": p.numpy(), "moment": m.numpy(), "update": u.numpy()}
    optimizer = torch.optim.SGD([p], lr=f32(lr) * f32(scale), momentum=f32(momentum), dampening=f32(dampening),
                                nesterov=nesterov)
    optimizer.state[p] = {"momentum_buffer": torch.tensor(moment)}
    before = p.detach().numpy().copy()
    optimizer.step()
    after, m = p.detach().numpy(), optimizer.state[p]["momentum_buffer"].numpy()
    return {"param": after, "moment": m, "update": (before - after) / (f32(lr) * f32(scale))}


def sgd(draw):
    for name, dtype, grads, moments, copy, shape, momentum, dampening, wd, scale, nesterov, grad_scale in (
        ("plain", "f32", "f32", None, None, (5, 7), 0, 0, 0, 1, 0, None),
        ("plain with decay", "bf16", "f16", None, "bf16", (37,), 0, 0, 0.1, 0.25, 0, 1 / 3),
        ("momentum", "f32", "f32", "f32", None, (3, 16), 0.9, 0, 0, 1, 0, None),
        ("momentum and dampening", "f32", "bf16", "f32", "f16", (3, 16), 0.9, 0.5, 0.1, 3, 0, None),
        ("Nesterov", "f32", "f32", "f32", "bf16", (4, 9), 0.9, 0, 0.1, 1, 1, 2.5),
        ("Nesterov as Muon's", "f16", "f32", "bf16", None, (2, 11), 0.95, 0.95, 0, 1, 1, None),
        ("bf16", "bf16", "bf16", "bf16", None, (33,), 0.5, 0, 0.1, 1, 0, None),
    ):
        param, grad = draw.normal(shape, dtype), draw.normal(shape, grads)
        moment = draw.normal(shape, moments) if moments else None
        scaled = grad * (1 if grad_scale is None else f32(grad_scale))
        outs = sgd_stepped(param, scaled, moment, 0.25, momentum, dampening, wd, scale, bool(nesterov))
        words = f"T={dtype} G={grads} S={moments or 'f32'} C={copy or 'bf16'} c={shape[-1]} lr=0.25 "
        words += f"momentum={momentum} dampening={dampening} weight_decay={wd} scale={scale} nesterov={nesterov} "
        words += "+param +update" + (f" r={shape[0]}" if len(shape) == 2 else "") + (" +moment" if moments else "")
        ins = {"param": param, "grad": grad} | ({"moment": moment} if moments else {})
        if copy:
            outs["copy"], words = outs["param"], words + " +copy"
        if grad_scale is not None:
            ins["grad_scale"], words = np.array([f32(grad_scale)]), words + " +grad_scale"
        yield case(name, words, ins, outs)
    for name, found in (("scalars in tensors", 0.0), ("a step that a NaN skips", np.nan)):
        param, grad, moment = draw.normal((4, 7)), draw.normal((4, 7)), draw.normal((4, 7))
        outs = sgd_stepped(param, grad, moment, 0.25, 0.9, 0, 0.1, 1, False)
        if found != 0:
            outs = {"param": param, "moment": moment, "update": np.zeros((4, 7))}
        ins = {"param": param, "grad": grad * (1 if found == 0 else np.nan), "moment": moment,
               "lr_tensor": np.array([0.25]), "found_inf": np.array([found])}
        words = ("T=f32 G=f32 S=f32 C=bf16 r=4 c=7 momentum=0.9 weight_decay=0.1 +param +moment +update +copy "
                 "+lr_tensor +found_inf")
        yield case(name, words, ins, outs | {"copy": outs["param"]})
    grad, moment = draw.normal((4, 7)), draw.normal((4, 7))
    outs = sgd_stepped(np.zeros((4, 7)), grad, moment, 0.25, 0.9, 0.9, 0, 1, True)
    del outs["param"]
    yield case("without a param",
               "T=f32 G=f32 S=f32 C=bf16 r=4 c=7 momentum=0.9 dampening=0.9 nesterov=1 +moment +update",
               {"grad": grad, "moment": moment}, outs)
    param, grad, moment = draw.normal((5, 11), "bf16"), draw.normal((5, 11)), draw.normal((5, 11))
    outs = sgd_stepped(param, grad, moment, 1e-3, 0.9, 0, 0.1, 1, False)
    del outs["update"]
    yield from chance_cases("T=bf16 G=f32 S=f32 C=bf16 r=5 c=11 lr=0.001 momentum=0.9 weight_decay=0.1 +param +moment",
                            {"param": param, "grad": grad, "moment": moment}, outs)


def muon_stepped(param, grad, moment, lr, momentum, weight_decay, eps, coefficients, steps, nesterov, adjust):
    """torch.optim.Muon, whose iteration in bf16 is made to go on in float64."""
    p = torch.tensor(param, requires_grad=True)
    optimizer = torch.optim.Muon([p], lr=f32(lr), weight_decay=f32(weight_decay), momentum=f32(momentum),
                                 nesterov=nesterov, ns_coefficients=tuple(f32(c) for c in coefficients), eps=f32(eps),
                                 ns_steps=steps, adjust_lr_fn=adjust)
    optimizer.state[p] = {"momentum_buffer": torch.tensor(moment)}
    p.grad = torch.tensor(grad)
    with mock.patch.object(torch, "bfloat16", torch.float64):
        optimizer.step()
    return {"param": p.detach().numpy(), "moment": optimizer.state[p]["momentum_buffer"].numpy()}


def muon(draw):
    quintic, cubic = (3.4445, -4.775, 2.0315), (1.5, -0.5, 0.0)
    for name, dtype, grads, moments, copy, shape, momentum, wd, eps, coefficients, steps, update, adjust in (
        ("plain", "f32", "f32", "f32", None, (4, 6), 0.95, 0, 1e-7, quintic, 5, "nesterov", "original"),
        ("more rows than columns", "f32", "bf16", "f32", "bf16", (9, 4), 0.95, 0.1, 1e-7, quintic, 5, "nesterov",
         "original"),
        ("two steps", "f32", "f32", "f32", None, (7, 12), 0.5, 0.1, 1e-7, quintic, 2, "nesterov", "match_rms"),
        ("without Nesterov", "f32", "f16", "f32", None, (5, 5), 0.9, 0, 1e-7, quintic, 3, "moment", "original"),
        ("of the third degree", "f32", "f32", "f32", "f16", (3, 8), 0.95, 0, 1e-7, cubic, 4, "nesterov", "match_rms"),
        ("bf16", "bf16", "bf16", "bf16", None, (6, 3), 0.95, 0.1, 1e-7, quintic, 1, "nesterov", "original"),
        ("one row", "f16", "f32", "f32", "f16", (1, 7), 0.95, 0, 1e-7, quintic, 5, "nesterov", "match_rms"),
        ("a large eps", "f32", "f32", "f32", None, (2, 3), 0.95, 0, 4.0, quintic, 5, "nesterov", "original"),
        ("nothing there", "f32", "f32", "f32", None, (2, 3), 0.95, 0.1, 1e-7, quintic, 5, "nesterov", "original"),
    ):
        some = name != "nothing there"
        param, grad = draw.normal(shape, dtype), draw.normal(shape, grads) * some
        moment = draw.normal(shape, moments, scale=0.3) * some
        outs = muon_stepped(param, grad, moment, 0.25, momentum, wd, eps, coefficients, steps, update == "nesterov",
                            "match_rms_adamw" if adjust == "match_rms" else adjust)
        a, b, c = ("-0" if x == 0 else x for x in coefficients)
        words = f"T={dtype} G={grads} S={moments} C={copy or 'bf16'} m={shape[0]} n={shape[1]} lr=0.25 "
        words += f"momentum={momentum} weight_decay={wd} eps={eps} ns_a={a} ns_b={b} ns_c={c} ns_steps={steps} "
        words += f"update={update} adjust={adjust}"
        if copy:
            outs["copy"], words = outs["param"], words + " +copy"
        yield case(name, words, {"param": param, "grad": grad, "moment": moment}, outs)


    for name, found, scale in (("scalars in tensors", 0.0, 1 / 3), ("a step that is skipped", 1.0, 1)):
        param, grad, moment = draw.normal((4, 7)), draw.normal((4, 7)), draw.normal((4, 7))
        outs = muon_stepped(param, grad * f32(scale), moment, 0.25, 0.95, 0.1, 1e-7, quintic, 3, True, "original")
        if found:
            outs = {"param": param, "moment": moment}
        ins = {"param": param, "grad": grad * (np.inf if found else 1), "moment": moment, "lr_tensor": np.array([0.25]),
               "grad_scale": np.array([f32(scale)]), "found_inf": np.array([found])}
        words = "T=f32 G=f32 S=f32 C=bf16 m=4 n=7 weight_decay=0.1 ns_steps=3 +copy +lr_tensor +grad_scale +found_inf"
        yield case(name, words, ins, outs | {"copy": outs["param"]})
    param, grad, moment = draw.normal((5, 11), "bf16"), draw.normal((5, 11)), draw.normal((5, 11))
    outs = muon_stepped(param, grad, moment, 1e-2, 0.95, 0.1, 1e-7, quintic, 2, True, "original")
    yield from chance_cases("T=bf16 G=f32 S=f32 C=bf16 m=5 n=11 lr=0.01 weight_decay=0.1 ns_steps=2",
                            {"param": param, "grad": grad, "moment": moment}, outs)


def lion_stepped(param, grad, m, lr, beta1, beta2, weight_decay):
    """Algorithm 2 of the paper. Signs must not hang on roundings."""
    p, g, exp_avg = torch.tensor(param), torch.tensor(grad), torch.tensor(m)
    update = exp_avg * f32(beta1) + g * (1 - f32(beta1))
    assert not (update.abs() < 1e-4).logical_and(update != 0).any()
    p = p.mul(1 - f32(lr) * f32(weight_decay)).add(update.sign(), alpha=-f32(lr))
    return p.numpy(), (exp_avg * f32(beta2) + g * (1 - f32(beta2))).numpy()


def lion(draw):
    for name, dtype, grads, moments, copy, n, lr, beta1, beta2, weight_decay, scale in (
        ("no decay", "f32", "f32", "f32", None, 37, 1e-2, 0.9, 0.99, 0, None),
        ("decay", "f32", "f32", "f32", "bf16", 40, 0.1, 0.9, 0.99, 0.1, None),
        ("mixed", "f32", "bf16", "f32", "f16", 40, 1e-3, 0.9, 0.99, 1, None),
        ("other betas", "bf16", "f16", "bf16", None, 33, 0.1, 0.5, 0.95, 0.1, None),
        ("scaled gradient", "f32", "f16", "f32", "bf16", 40, 0.1, 0.9, 0.99, 0.1, 1 / 3),
        ("f16", "f16", "f16", "f32", None, 24, 1e-2, 0.95, 0.98, 0.01, 2.5),
        ("nothing moves", "f32", "f32", "f32", None, 9, 0.5, 0.9, 0.99, 0, None),
    ):
        param, grad, m = draw.normal(n, dtype), draw.normal(n, grads), draw.normal(n, moments, scale=0.3)
        if name == "nothing moves":
            grad, m = np.zeros(n), np.zeros(n)
        after = lion_stepped(param, grad * (1 if scale is None else f32(scale)), m, lr, beta1, beta2, weight_decay)
        words = f"T={dtype} G={grads} S={moments} C={copy or 'bf16'} n={n} lr={lr} beta1={beta1} beta2={beta2} "
        words += f"weight_decay={weight_decay}"
        ins, outs = {"param": param, "grad": grad, "m": m}, dict(zip(("param", "m"), after))
        if copy:
            outs["copy"], words = after[0], words + " +copy"
        if scale is not None:
            ins["grad_scale"], words = np.array([f32(scale)]), words + " +grad_scale"
        yield case(name, words, ins, outs)
    for name, found, gradient in (("lr in a tensor", None, 1), ("nothing found", 0.0, 1),
                                  ("a step that is skipped", 1.0, np.inf), ("a step that a NaN skips", np.nan, np.nan)):
        n = 19
        param, grad, m = draw.normal(n), draw.normal(n) * gradient, draw.normal(n)
        after = (param, m) if found else lion_stepped(param, grad, m, 0.1, 0.9, 0.99, 0.1)
        words = f"T=f32 G=f32 S=f32 C=bf16 n={n} weight_decay=0.1 +copy +lr_tensor"
        ins = {"param": param, "grad": grad, "m": m, "lr_tensor": np.array([f32(0.1)])}
        if found is not None:
            ins["found_inf"], words = np.array([found]), words + " +found_inf"
        yield case(name, words, ins, dict(zip(("param", "m"), after)) | {"copy": after[0]})


    n = 43
    param, grad, m = draw.normal(n, "bf16"), draw.normal(n), draw.normal(n)
    outs = dict(zip(("param", "m"), lion_stepped(param, grad, m, 1e-3, 0.9, 0.99, 0.1)))
    yield from chance_cases(f"T=bf16 G=f32 S=f32 C=bf16 n={n} lr=0.001 weight_decay=0.1",
                            {"param": param, "grad": grad, "m": m}, outs)


def global_norm_clip(draw):
    for name, dtype, squares, n, others, max_norm, included in (
        ("clipped", "f32", "f64", 37, None, 1, False),
        ("within the limit", "f32", "f32", 20, None, 100, False),
        ("no limit", "bf16", "f64", 24, None, 0, False),
        ("with others", "bf16", "f32", 40, [3.5, 0.25, 100], 0.01, False),
        ("with others, f16", "f16", "f64", 33, [1e6], 2.5, False),
        ("nothing but zeros", "f32", "f64", 9, None, 1, False),
        ("one of all", "f32", "f64", 21, [3.5, 21.25, 0.125], 2, True),
        ("included in nothing", "f32", "f32", 21, None, 1.5, True),
    ):
        x = draw.normal(n, dtype) * (name != "nothing but zeros")
        total = math.fsum(v * v for v in x)
        own = [] if included and others else [v * v for v in x]
        norm = math.sqrt(math.fsum(own + [float(v) for v in rounded(others or [], squares)]))
        coefficient = min(1.0, f32(max_norm) / norm) if max_norm and norm else 1.0
        ins, limit = {"x": x}, f" max_norm={max_norm}" if max_norm else ""
        words = f"T={dtype} Q={squares} n={n}{limit} +y +sum_squares +norm +coefficient"
        if others:
            ins["other_squares"], words = rounded(others, squares), words + f" g={len(others)} +other_squares"
        words += " own_included=1" * included
        outs = {"y": coefficient * x, "sum_squares": [total], "norm": [norm], "coefficient": [coefficient]}
        yield case(name, words, ins, outs)
