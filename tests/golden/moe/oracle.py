# SPDX-License-Identifier: Apache-2.0
"""Routing as transformers has it for Mixtral, Qwen3 and DeepSeek-V3, by torch in float64, and gradients by its own;
moe_align by Python's sort, which is stable; sums by math.fsum; experts as transformers' Mixtral loops over them."""
import math

import numpy as np
import torch

from vectors import case, f32


def moe_route(draw):
    for name, dtype, t, e, k, gate, renormalise, scale, groups, kept, bias, scores in (
        ("mixtral", "bf16", 5, 8, 2, "softmax", 1, 1, 0, 0, False, False),
        ("all scores, not made to sum to 1", "f32", 3, 40, 4, "softmax", 0, 1, 0, 0, False, True),
        ("sigmoid", "f16", 4, 20, 3, "sigmoid", 0, 2.5, 0, 0, False, True),
        ("bias steers the choice alone", "f32", 5, 16, 4, "sigmoid", 1, 1, 0, 0, True, False),
        ("bias beside softmax", "bf16", 4, 33, 3, "softmax", 1, 1.5, 1, 1, True, True),
        ("deepseek-v3", "f32", 6, 64, 8, "sigmoid", 1, 2.5, 8, 4, True, False),
        ("groups without bias", "f32", 4, 24, 4, "softmax", 0, 16, 4, 2, False, False),
        ("groups without bias, f16", "f16", 4, 30, 5, "sigmoid", 1, 1, 5, 3, False, True),
        ("all groups", "bf16", 3, 12, 3, "sigmoid", 1, -0.5, 3, 0, True, False),
        ("as many as there are", "f32", 3, 7, 7, "softmax", 0, 1, 0, 0, False, False),
    ):
        logits = draw.normal((t, e), dtype, scale=2)
        steer = draw.normal(e, scale=0.5) if bias else None
        x = torch.tensor(logits)
        s = torch.softmax(x, -1) if gate == "softmax" else torch.sigmoid(x)
        choice = s + torch.tensor(steer) if bias else s
        if groups > 1 and kept:
            best = choice.view(t, groups, e // groups).topk(2, dim=-1).values.sum(-1)
            mask = torch.zeros_like(best).scatter_(1, best.topk(kept, dim=-1, sorted=False).indices, 1)
            choice = choice.masked_fill(mask.repeat_interleave(e // groups, 1) == 0, -math.inf)
        experts = choice.topk(k, dim=-1).indices
        weights = s.gather(1, experts)
        if renormalise:
            weights = weights / weights.sum(-1, keepdim=True)
        words = f"T={dtype} t={t} e={e} k={k} gate={gate} renormalise={renormalise} scale={scale} groups={groups} "
        words += f"groups_kept={kept}" + " +bias" * bias + " +scores" * scores
        ins = {"logits": logits} | ({"bias": steer} if bias else {})
        outs = {"weights": (weights * f32(scale)).numpy(), "experts": experts.numpy().astype(np.float64)}
        yield case(name, words, ins, outs | ({"scores": s.numpy()} if scores else {}))
    ties = np.array([[1, 3, 3, 0, -0.0, 3], [-2, -2, -2, -2, -2, -2], [0, -0.0, 5, -1, 5, 0]])
    s = torch.softmax(torch.tensor(ties), -1)
    experts = torch.sort(torch.tensor(ties), dim=-1, descending=True, stable=True).indices[:, :4]
    yield case("equals", "T=f32 t=3 e=6 k=4", {"logits": ties},
               {"weights": s.gather(1, experts).numpy(), "experts": experts.numpy().astype(np.float64)})
    lost = np.array([[-200.0, -100, -90, -300]])
    yield case("sigmoids that vanish", "T=f32 t=1 e=4 k=2 gate=sigmoid renormalise=1", {"logits": lost},
               {"weights": np.zeros((1, 2)), "experts": np.array([[2.0, 1.0]])})
    few = draw.normal((2, 9))
    s = 1 / (1 + np.exp(-few))
    outs = {"weights": np.zeros((2, 4)), "experts": np.full((2, 4), -1.0)}
    for i, row in enumerate(s):  # groups of 3: one of them has no fourth expert
        best = max(range(3), key=lambda g: sum(sorted(row[3 * g:3 * g + 3])[1:]))
        order = sorted(range(3 * best, 3 * best + 3), key=lambda j: -row[j])
        outs["experts"][i, :3], outs["weights"][i, :3] = order, row[order] / math.fsum(row[order])
    yield case("a group of fewer experts", "T=f32 t=2 e=9 k=4 gate=sigmoid renormalise=1 groups=3 groups_kept=1",
               {"logits": few}, outs)


def moe_route_backward(draw):
    for name, dtype, t, e, k, gate, renormalise, scale, scores in (
        ("mixtral", "bf16", 5, 8, 2, "softmax", 1, 1, False),
        ("weights and scores", "f32", 3, 40, 4, "softmax", 0, 1.5, True),
        ("made to sum to 1, and scores", "f32", 4, 20, 3, "softmax", 1, -0.5, True),
        ("softmax alone", "f16", 4, 33, 5, "softmax", 0, 2.5, False),
        ("sigmoid", "f16", 4, 20, 3, "sigmoid", 0, 2.5, True),
        ("deepseek-v3", "f32", 6, 64, 8, "sigmoid", 1, 2.5, False),
        ("sigmoid, made to sum to 1, and scores", "bf16", 3, 12, 3, "sigmoid", 1, 1, True),
        ("as many as there are", "f32", 3, 7, 7, "softmax", 1, 1, False),
        ("slots without an expert", "f32", 4, 9, 4, "softmax", 1, 1, True),
    ):
        logits, dweights = draw.normal((t, e), dtype, scale=2), draw.normal((t, k))
        dscores = draw.normal((t, e)) if scores else np.zeros((t, e))
        x = torch.tensor(logits, requires_grad=True)
        s = torch.softmax(x, -1) if gate == "softmax" else torch.sigmoid(x)
        experts = s.topk(k, dim=-1).indices
        there = torch.ones(t, k)
        if "without" in name:
            there[0, 3] = there[1, 2:] = there[2] = 0
        weights = s.gather(1, experts) * there
        if renormalise:
            if gate == "softmax":  # so that what others have in common is not in it
                weights = torch.exp(x.gather(1, experts)) * there
            total = weights.sum(-1, keepdim=True)
            weights = torch.where(total > 0, weights / torch.where(total > 0, total, 1), 0)
        ((weights * f32(scale) * torch.tensor(dweights)).sum() + (s * torch.tensor(dscores)).sum()).backward()
        named = np.where(there.numpy() > 0, experts.numpy(), np.where(np.arange(k) % 2, e, -1)).astype(np.float64)
        ins = {"dweights": dweights, "logits": logits, "experts": named} | ({"dscores": dscores} if scores else {})
        yield case(name, f"T={dtype} t={t} e={e} k={k} gate={gate} renormalise={renormalise} scale={scale}" +
                   " +dscores" * scores, ins, {"dlogits": x.grad.numpy()})


def moe_align(draw):
    for name, wide, t, k, e, m, b, capacity, blocks in (
        ("no padding", "i32", 12, 2, 5, 24, 1, 0, False),
        ("blocks of 4", "i64", 10, 3, 6, 14, 4, 0, True),
        ("capacity", "i32", 20, 2, 4, 13, 4, 5, True),
        ("capacity of 1", "i32", 9, 2, 3, 18, 1, 1, False),
        ("room that is left over", "i32", 6, 1, 9, 20, 3, 0, True),
        ("nobody's", "i64", 8, 2, 4, 40, 2, 0, True),
        ("all on one", "i32", 15, 1, 7, 8, 16, 0, True),
        ("one token", "i32", 1, 4, 8, 4, 8, 0, True),
    ):
        experts = draw.integers((t, k), 0, e)
        if name == "nobody's":
            experts.flat[[0, 3, 5, 15]] = -1, e, 2**40, -(2**33)
        if name == "all on one":
            experts[:] = 5
        flat = [int(x) for x in experts.flat]
        queues = [[i for i in range(t * k) if flat[i] == j] for j in range(e)]
        kept = [q[:capacity] if capacity else q for q in queues]
        line, offsets, owner = [], [0], []
        for j, q in enumerate(kept):
            line += q + [-1] * (-len(q) % b)
            owner += [j] * ((len(line) - offsets[-1]) // b)
            offsets.append(len(line))
        room = m * b - len(line)
        assert room >= 0
        line, owner = line + [-1] * room, owner + [-1] * (m - len(owner))
        places = [line.index(i) if i in line else -1 for i in range(t * k)]
        outs = {"counts": [len(q) for q in queues], "offsets": offsets, "rows": np.reshape(line, (m, b)),
                "places": np.reshape(places, (t, k))} | ({"block_experts": owner} if blocks else {})
        words = f"I={wide} t={t} k={k} e={e} m={m} b={b} capacity={capacity}" + " +block_experts" * blocks
        yield case(name, words, {"experts": experts}, {n: np.asarray(x, dtype=np.float64) for n, x in outs.items()})


def moe_combine(draw):
    for name, dtype, out, p, n, t, k, weighted in (
        ("weighted", "f32", "f32", 9, 5, 4, 2, True),
        ("weighted, bf16", "bf16", "bf16", 12, 9, 3, 4, True),
        ("wider result", "f16", "f32", 12, 9, 3, 4, True),
        ("sums alone", "bf16", "f32", 6, 10, 5, 3, False),
        ("slots that were dropped", "f32", "f32", 6, 7, 4, 3, True),
    ):
        x, places, weights = draw.normal((p, n), dtype), draw.integers((t, k), 0, p), draw.uniform((t, k), 0, 1)
        if "dropped" in name:
            places[0] = -1
            places[1, 1], places[2, 2] = -1, p
        y = np.zeros((t, n))
        for i in range(t):
            used = [a for a in range(k) if 0 <= places[i, a] < p]
            for j in range(n):
                y[i, j] = math.fsum((weights[i, a] if weighted else 1) * x[int(places[i, a]), j] for a in used)
        ins = {"x": x, "places": places} | ({"weights": weights} if weighted else {})
        yield case(name, f"T={dtype} O={out} p={p} n={n} t={t} k={k}" + " +weights" * weighted, ins, {"y": y})


def moe_combine_backward(draw):
    for name, dtype, of_dy, p, n, t, k, weighted, wanted in (
        ("all of it", "f32", "f32", 9, 5, 4, 2, True, True),
        ("bf16", "bf16", "bf16", 12, 9, 3, 4, True, True),
        ("a wider gradient", "f16", "f32", 12, 9, 3, 4, True, True),
        ("sums alone", "bf16", "f32", 20, 10, 5, 3, False, True),
        ("one place for several slots", "f32", "f32", 3, 7, 4, 3, True, True),
        ("slots that were dropped", "f32", "f32", 16, 7, 4, 3, True, False),
    ):
        x, dy, weights = draw.normal((p, n), dtype), draw.normal((t, n), of_dy), draw.uniform((t, k), 0, 1)
        places = draw.integers((t, k), 0, p)
        if "dropped" in name:
            places = np.random.default_rng(5).permutation(p)[:t * k].reshape(t, k).astype(np.float64)
            places[0] = -1
            places[1, 1], places[2, 2] = -1, p
        inside = torch.tensor((places >= 0) & (places < p))
        a = torch.tensor(x, requires_grad=True)
        w = torch.tensor(weights if weighted else np.ones((t, k)), requires_grad=True)
        rows = a[torch.tensor(places).clamp(0, p - 1).long()] * inside[..., None]
        ((rows * w[..., None]).sum(1) * torch.tensor(dy)).sum().backward()
        ins = {"dy": dy, "x": x, "places": places} | ({"weights": weights} if weighted else {})
        outs = {"dx": a.grad.numpy()} | ({"dweights": (w.grad * inside).numpy()} if wanted else {})
        yield case(name, f"T={dtype} O={of_dy} p={p} n={n} t={t} k={k}" + " +weights" * weighted +
                   " +dweights" * wanted, ins, outs)


def moe_mlp(draw):
    for name, dtype, wide, t, h, k, e, f, gated, words in (
        ("mixtral", "f32", "f32", 5, 6, 2, 4, 7, "silu", ""),
        ("transposed", "f32", "f32", 4, 5, 3, 6, 4, "silu", "w_gate_up=transposed w_down=transposed"),
        ("biases and a shared expert", "f32", "f32", 5, 6, 2, 3, 5, "gelu_tanh", "+bias_gate_up +bias_down +shared"),
        ("bf16", "bf16", "bf16", 6, 8, 2, 5, 8, "silu", "+bias_down +shared"),
        ("f16", "f16", "f32", 4, 9, 4, 4, 6, "gelu_erf", "+bias_gate_up"),
        ("slots without an expert", "f32", "f32", 5, 4, 2, 3, 3, "silu", "+bias_down +shared"),
    ):
        x, weights = draw.normal((t, h), dtype), draw.uniform((t, k), 0, 1)
        experts = draw.integers((t, k), 0, e)
        if "without" in name:
            experts[0, 1], experts[2] = -1, e
        up, down = draw.normal((e, 2 * f, h), dtype), draw.normal((e, h, f), dtype)
        bias_up = draw.normal((e, 2 * f), wide) if "+bias_gate_up" in words else np.zeros((e, 2 * f))
        bias_down = draw.normal((e, h), wide) if "+bias_down" in words else np.zeros((e, h))
        shared = draw.normal((t, h), dtype) if "+shared" in words else np.zeros((t, h))
        act = {"silu": torch.nn.functional.silu, "gelu_erf": torch.nn.functional.gelu,
               "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh")}[gated]
        y = torch.tensor(shared)
        for j in range(e):
            token, slot = torch.where(torch.tensor(experts) == j)
            gate, other = torch.nn.functional.linear(torch.tensor(x)[token], torch.tensor(up[j]),
                                                     torch.tensor(bias_up[j])).chunk(2, dim=-1)
            made = torch.nn.functional.linear(act(gate) * other, torch.tensor(down[j]), torch.tensor(bias_down[j]))
            y = y.index_add(0, token, made * torch.tensor(weights)[token, slot, None])
        ins = {"x": x, "weights": weights, "experts": experts, "w_gate_up": up, "w_down": down}
        ins |= {key: value for key, value in (("bias_gate_up", bias_up), ("bias_down", bias_down), ("shared", shared))
                if f"+{key}" in words}
        yield case(name, f"T={dtype} B={wide} t={t} h={h} k={k} e={e} g={2 * f} f={f} gated={gated} {words}".strip(),
                   ins, {"y": y.numpy()})
