# SPDX-License-Identifier: Apache-2.0
"""window_score as the code of the paper has it (SnapKV, update_kv of snapkv_utils.py), by PyTorch in float64: the mask
inside the window, the softmax, the sum over the window, and torch's own pooling."""
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32


def window_score(draw):
    for name, dtype, b, w, s, h, hk, o, d, n, scale, pooling, radius in (
        ("the paper's", "f32", 1, 8, 40, 4, 4, 4, 8, 32, 0, "avg", 2),
        ("largest", "f32", 2, 4, 30, 2, 2, 2, 6, 26, 0, "max", 2),
        ("shared keys", "bf16", 1, 5, 37, 6, 2, 6, 6, 32, 0, "avg", 1),
        ("added up over heads", "f16", 2, 3, 20, 4, 2, 2, 8, 17, 0.5, "max", 1),
        ("added up over half of the heads", "f32", 1, 3, 20, 8, 2, 4, 8, 17, -0.7, "avg", 3),
        ("not pooled", "f32", 1, 7, 25, 3, 1, 1, 9, 18, 0, "avg", 0),
        ("wider than the row", "bf16", 1, 2, 9, 1, 1, 1, 4, 7, 0, "avg", 5),
        ("largest of all", "f32", 1, 2, 9, 1, 1, 1, 4, 7, 0, "max", 9),
        ("fewer keys", "f16", 1, 4, 24, 2, 1, 1, 8, 11, 0, "avg", 1),
        ("one far above", "f32", 1, 4, 24, 2, 1, 2, 8, 20, 6, "avg", 1),
        ("all keys but the last", "f32", 1, 1, 12, 2, 2, 2, 8, 11, 0, "avg", 1),
    ):
        q, k = draw.normal((b, w, h, d), dtype), draw.normal((b, s, hk, d), dtype)
        if name == "one far above":
            k[0, 5] *= 4
        query = torch.tensor(q).transpose(1, 2)
        key = torch.tensor(k).transpose(1, 2).repeat_interleave(h // hk, dim=1)
        weights = query @ key.transpose(2, 3) * (f32(scale) if scale else d**-0.5)
        mask = torch.full((w, w), torch.finfo(torch.float64).min, dtype=torch.float64)
        cond = torch.arange(w)
        mask.masked_fill_(cond < (cond + 1).view(w, 1), 0)
        weights[:, :, -w:, -w:] += mask
        weights = F.softmax(weights, dim=-1)
        summed = weights[:, :, -w:, :-w].sum(dim=-2)[:, :, :n]
        summed = summed.reshape(b, o, h // o, n).sum(dim=2)
        size = 2 * radius + 1
        pool = F.avg_pool1d if pooling == "avg" else F.max_pool1d
        if radius > n // 2 and pooling == "max":
            scores = summed.amax(dim=-1, keepdim=True).expand(b, o, n)
        else:
            scores = pool(summed, kernel_size=size, padding=size // 2, stride=1)
        words = f"T={dtype} b={b} w={w} s={s} h={h} hk={hk} o={o} d={d} n={n} pooling={pooling} radius={radius}"
        words += f" scale={scale}" if scale else ""
        yield case(name, words, {"q": q, "k": k}, {"scores": np.array(scores)})
