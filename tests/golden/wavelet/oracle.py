# SPDX-License-Identifier: Apache-2.0
"""Wavelet transforms by PyWavelets in float64; thresholds by PyTorch and its autograd, and Stein's estimate by its
definition."""
import numpy as np
import pywt
import torch
import torch.nn.functional as F

from vectors import case, f32

NAMES = {f"bior{a}_{b}": f"bior{a}.{b}" for a, b in ((1, 3), (1, 5), (2, 2), (2, 4), (3, 1), (3, 3), (4, 4))}

ROWS = (  # wavelet, edge, rows, samples
    ("haar", "symmetric", 2, 7), ("db2", "zero", 2, 9), ("db3", "constant", 1, 12), ("db4", "periodic", 2, 11),
    ("db5", "reflect", 1, 14), ("db6", "smooth", 1, 13), ("db7", "antisymmetric", 1, 15), ("db8", "antireflect", 1, 18),
    ("bior1_3", "periodization", 2, 9), ("bior1_5", "symmetric", 1, 12), ("bior2_2", "reflect", 2, 8),
    ("bior2_4", "antireflect", 1, 10), ("bior3_1", "smooth", 2, 6), ("bior3_3", "antisymmetric", 1, 9),
    ("bior4_4", "symmetric", 2, 12), ("db8", "symmetric", 1, 3), ("db8", "antireflect", 1, 3), ("db6", "reflect", 1, 2),
    ("db5", "periodization", 1, 3), ("bior4_4", "periodization", 1, 7), ("db4", "antisymmetric", 1, 1),
    ("db8", "periodic", 1, 5), ("db3", "periodization", 2, 16), ("db7", "smooth", 1, 2),
)
IMAGES = (  # wavelet, edge, images, rows, columns
    ("haar", "periodization", 1, 5, 6), ("db2", "symmetric", 2, 4, 7), ("db3", "antireflect", 1, 5, 4),
    ("bior2_2", "smooth", 1, 6, 5), ("bior4_4", "reflect", 1, 7, 6), ("db4", "periodization", 1, 7, 9),
    ("db2", "zero", 1, 3, 8), ("bior1_3", "antisymmetric", 1, 4, 3), ("db5", "constant", 1, 6, 3),
    ("bior3_1", "periodic", 1, 5, 5),
)


def words_of(dtype, wavelet, edge, n, h, w, k, p, q):
    return f"T={dtype} n={n} h={h} w={w} k={k} p={p} q={q} wavelet={wavelet} edge={edge}"


def transformed(x, wavelet, edge, k):
    """PyWavelets' bands of x, in its order."""
    name = NAMES.get(wavelet, wavelet)
    if k == 2:
        return np.stack(pywt.dwt(x, name, edge, axis=-1), axis=1)
    approximation, details = pywt.dwt2(x, name, edge)
    return np.stack((approximation, *details), axis=1)


def drawn(draw):
    for i, (wavelet, edge, h, w) in enumerate(ROWS):
        dtype = "f32" if i % 4 == 1 else "f64"
        yield wavelet, edge, dtype, 2, draw.normal((1, h, w), dtype)
    for i, (wavelet, edge, n, h, w) in enumerate(IMAGES):
        dtype = "f32" if i % 4 == 1 else "f64"
        yield wavelet, edge, dtype, 4, draw.normal((n, h, w), dtype)


def dwt(draw):
    for wavelet, edge, dtype, k, x in drawn(draw):
        y = transformed(x, wavelet, edge, k)
        yield case(f"{wavelet} {edge} of {'rows' if k == 2 else 'images'}, {x.shape[1]} by {x.shape[2]}",
                   words_of(dtype, wavelet, edge, *x.shape, *y.shape[1:]), {"x": x}, {"y": y})


def idwt(draw):
    """Of bands that are no transform's; and of those that are, of an odd width, the width itself."""
    for wavelet, edge, dtype, k, x in drawn(draw):
        name = NAMES.get(wavelet, wavelet)
        sizes = transformed(x, wavelet, edge, k).shape
        y = draw.normal(sizes, dtype)
        if k == 2:
            back = pywt.idwt(y[:, 0], y[:, 1], name, edge, axis=-1)
        else:
            back = pywt.idwt2((y[:, 0], tuple(y[:, 1:].swapaxes(0, 1))), name, edge)
        back = back[:, :x.shape[1] if k == 4 else None, :x.shape[2]]
        yield case(f"{wavelet} {edge} of {'rows' if k == 2 else 'images'}, {x.shape[1]} by {x.shape[2]}",
                   words_of(dtype, wavelet, edge, *back.shape, *sizes[1:]), {"y": y}, {"x": back})


THRESHOLDS = ((2, 3, 9, "f32", "ordinary"), (3, 1, 16, "f64", "ordinary"), (1, 2, 8, "f64", "none"),
              (2, 2, 10, "f32", "equal ones"))


def soft_threshold(draw):
    for b, h, w, dtype, kind in THRESHOLDS:
        x, threshold = draw.normal((b, h, w), dtype), draw.uniform(b, 0.2, 1.2, dtype)
        if kind == "none":
            threshold[:] = 0
        if kind == "equal ones":
            x[0, 0, :4] = threshold[0], -threshold[0], 0, np.inf
            x[0, 1, 2] = np.nan
        y = np.stack([F.softshrink(torch.tensor(x[i]), float(threshold[i])).numpy() for i in range(b)]) + 0.0
        yield case(f"{kind}, {dtype}", f"T={dtype} b={b} h={h} w={w}", {"x": x, "threshold": threshold}, {"y": y})


def soft_threshold_backward(draw):
    for b, h, w, dtype, kind in THRESHOLDS:
        if kind == "none":
            continue
        x, threshold = draw.normal((b, h, w), dtype), draw.uniform(b, 0.2, 1.2, dtype)
        dy = draw.normal((b, h, w), dtype)
        if kind == "equal ones":
            x[0, 0, :3] = threshold[0], -threshold[0], 0
        leaf, level = torch.tensor(x, requires_grad=True), torch.tensor(threshold, requires_grad=True)
        size = leaf.abs() - level[:, None, None]
        (torch.where(size > 0, torch.sign(leaf) * size, 0) * torch.tensor(dy)).sum().backward()
        ins = {"dy": dy, "x": x, "threshold": threshold}
        outs = {"dx": leaf.grad.numpy() + 0.0, "dthreshold": level.grad.numpy()}
        yield case(f"{kind}, {dtype}", f"T={dtype} b={b} h={h} w={w} +dx +dthreshold", ins, outs)
        yield case(f"{kind}, {dtype}, the threshold's alone", f"T={dtype} b={b} h={h} w={w} +dthreshold", ins,
                   {"dthreshold": outs["dthreshold"]})


def sure_risk(draw):
    """SURE of an estimate x + g(x) is n s^2 + sum g^2 + 2 s^2 sum g', and g = -x or -+t."""
    for b, h, w, g, dtype, sigma in ((2, 3, 9, 5, "f32", 1.0), (3, 1, 16, 7, "f64", 0.3), (1, 4, 8, 4, "f64", 2.5)):
        x, threshold = draw.normal((b, h, w), dtype, scale=2), draw.uniform(g, 0, 3, dtype)
        threshold[0], threshold[1] = 0, abs(x[0, 0, 0])
        variance = f32(sigma) ** 2
        risk = np.zeros((b, g))
        for i in range(b):
            for j in range(g):
                inside = np.abs(x[i]) <= threshold[j]
                change = np.where(inside, -x[i], -np.sign(x[i]) * threshold[j])
                risk[i, j] = x[i].size * variance + (change**2).sum() - 2 * variance * inside.sum()
        yield case(f"deviation {sigma}, {dtype}", f"T={dtype} b={b} g={g} h={h} w={w} sigma={sigma}",
                   {"x": x, "threshold": threshold}, {"risk": risk})
