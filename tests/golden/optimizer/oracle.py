# SPDX-License-Identifier: Apache-2.0
"""AdamW by torch.optim.AdamW in float64; clipping by Pascanu et al. 2013, algorithm 1, with math.fsum.

Not torch.nn.utils.clip_grad_norm_: that adds 1e-6 to the norm, which neither the paper nor this library does."""
import math

import numpy as np
import torch

from vectors import case, f32, rounded


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
