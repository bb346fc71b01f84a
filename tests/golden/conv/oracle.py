# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling by torch.nn.functional in float64, channels first as it has them, with the padding of all
sides told by F.pad; gradients by autograd."""
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case

CONVOLUTIONS = (  # name, T, B, n, h, w, c, cg, k, r, s, p, q, stride, pad (top, left), dilation, bias
    ("3 by 3", "f32", "f32", 2, 5, 6, 3, 3, 4, 3, 3, 5, 6, (1, 1), (1, 1), (1, 1), True),
    ("1 by 1", "bf16", "f32", 1, 4, 5, 6, 6, 5, 1, 1, 4, 5, (1, 1), (0, 0), (1, 1), True),
    ("strides", "f16", "f16", 1, 9, 7, 4, 4, 3, 3, 3, 5, 3, (2, 3), (1, 2), (1, 1), False),
    ("dilations, one side padded", "f64", "f64", 1, 8, 9, 2, 2, 3, 3, 2, 5, 6, (1, 2), (0, 3), (3, 2), True),
    ("groups", "f32", "f32", 2, 5, 4, 6, 2, 9, 3, 2, 4, 5, (1, 1), (1, 1), (1, 1), True),
    ("depthwise", "bf16", "bf16", 1, 7, 6, 5, 1, 5, 5, 3, 7, 6, (1, 1), (2, 1), (1, 1), True),
    ("depthwise, strides", "f32", "f32", 2, 7, 8, 3, 1, 3, 3, 3, 4, 3, (2, 3), (1, 0), (1, 2), False),
    ("depthwise, two of each", "f16", "f32", 1, 4, 5, 3, 1, 6, 2, 2, 4, 5, (1, 1), (1, 0), (1, 1), True),
    ("taps of a row", "f32", "f32", 1, 1, 12, 4, 4, 3, 1, 7, 1, 12, (1, 1), (0, 3), (1, 1), False),
    ("far beyond the edges", "f32", "f32", 1, 3, 3, 2, 2, 2, 2, 2, 6, 7, (2, 1), (4, 3), (1, 1), True),
    ("a stride beyond the taps", "f64", "f64", 1, 7, 7, 2, 2, 3, 2, 1, 2, 3, (4, 3), (0, 1), (1, 1), True),
)


def padded(x, sizes, taps, outs, stride, pad, dilation):
    """x with what its windows read beyond each edge; what they do not reach at the end is cut off."""
    sides = []
    for d in reversed(range(len(sizes))):
        end = (outs[d] - 1) * stride[d] + (taps[d] - 1) * dilation[d] + 1 - sizes[d] - pad[d]
        sides += [pad[d], end]
    return F.pad(x, sides)


def first(x):
    """Channels behind the images."""
    return torch.movedim(torch.as_tensor(x), -1, 1)


def last(x):
    return torch.movedim(x, 1, -1).numpy()


def convolved(x, weight, bias, outs, stride, pad, dilation):
    """Of x and weight with channels last."""
    x, weight = first(x), first(weight)
    x = padded(x, x.shape[2:], weight.shape[2:], outs, stride, pad, dilation)
    function = F.conv2d if len(outs) == 2 else F.conv3d
    return function(x, weight, bias, stride=stride, dilation=dilation, groups=x.shape[1] // max(weight.shape[1], 1))


def words_of(row):
    _, dtype, narrow, n, h, w, c, cg, k, r, s, p, q, stride, pad, dilation, _ = row
    return (f"T={dtype} B={narrow} n={n} h={h} w={w} c={c} cg={cg} k={k} r={r} s={s} p={p} q={q} "
            f"stride_h={stride[0]} stride_w={stride[1]} pad_top={pad[0]} pad_left={pad[1]} dilation_h={dilation[0]} "
            f"dilation_w={dilation[1]}")


def conv2d(draw):
    for row in CONVOLUTIONS:
        name, dtype, narrow, n, h, w, c, cg, k, r, s, p, q, stride, pad, dilation, bias = row
        ins = {"x": draw.normal((n, h, w, c), dtype), "weight": draw.normal((k, r, s, cg), dtype)}
        words = words_of(row)
        if not bias:
            words = words.replace(f" B={narrow}", "")
        if bias:
            ins["bias"], words = draw.normal(k, narrow), words + " +bias"
        y = convolved(ins["x"], ins["weight"], torch.tensor(ins["bias"]) if bias else None, (p, q), stride, pad,
                      dilation)
        yield case(name, words, ins, {"y": last(y)})


def conv2d_backward(draw):
    for row in CONVOLUTIONS:
        name, dtype, narrow, n, h, w, c, cg, k, r, s, p, q, stride, pad, dilation, bias = row
        if name == "far beyond the edges":
            continue
        ins = {"dy": draw.normal((n, p, q, k), dtype), "x": draw.normal((n, h, w, c), dtype),
               "weight": draw.normal((k, r, s, cg), dtype)}
        leaves = {f"d{name}": torch.tensor(ins[name], requires_grad=True) for name in ("x", "weight")}
        leaves["dbias"] = torch.zeros(k, dtype=torch.float64, requires_grad=True)
        y = convolved(leaves["dx"], leaves["dweight"], leaves["dbias"], (p, q), stride, pad, dilation)
        (y * first(ins["dy"])).sum().backward()
        asked = ["dx", "dweight"] + ["dbias"] * bias
        words = words_of(row) if bias else words_of(row).replace(f" B={narrow}", "")
        yield case(name, words + "".join(f" +{n}" for n in asked), ins, {n: leaves[n].grad.numpy() for n in asked})
        if name == "depthwise, two of each":
            for one in ("dx", "dweight", "dbias"):
                short = words if one == "dbias" else words.replace(f" B={narrow}", "")
                yield case(f"{name}, {one} alone", f"{short} +{one}", ins, {one: leaves[one].grad.numpy()})


def conv3d(draw):
    for name, dtype, narrow, x, weight, outs, stride, pad, dilation, bias in (
        ("3 by 3 by 3", "f32", "f32", (1, 4, 5, 4, 3), (4, 3, 3, 3, 3), (4, 5, 4), (1, 1, 1), (1, 1, 1), (1, 1, 1),
         True),
        ("patches", "bf16", "f32", (1, 4, 6, 4, 2), (5, 2, 3, 2, 2), (2, 2, 2), (2, 3, 2), (0, 0, 0), (1, 1, 1), True),
        ("groups", "f16", "f16", (2, 3, 4, 3, 4), (6, 2, 2, 1, 2), (3, 3, 3), (1, 1, 1), (1, 0, 0), (1, 1, 1), True),
        ("depthwise", "f32", "f32", (1, 5, 4, 5, 3), (3, 3, 2, 3, 1), (3, 4, 5), (2, 1, 1), (1, 1, 1), (1, 2, 1),
         False),
        ("dilations and strides", "f64", "f64", (1, 7, 5, 8, 2), (3, 2, 3, 2, 2), (3, 2, 3), (2, 3, 3), (1, 2, 0),
         (3, 2, 4), True),
    ):
        ins = {"x": draw.normal(x, dtype), "weight": draw.normal(weight, dtype)}
        words = (f"T={dtype} n={x[0]} d={x[1]} h={x[2]} w={x[3]} c={x[4]} k={weight[0]} t={weight[1]} r={weight[2]} "
                 f"s={weight[3]} cg={weight[4]} o={outs[0]} p={outs[1]} q={outs[2]}")
        for field, values, axes in (("stride", stride, "dhw"), ("dilation", dilation, "dhw")):
            words += "".join(f" {field}_{a}={v}" for a, v in zip(axes, values))
        words += "".join(f" pad_{a}={v}" for a, v in zip(("front", "top", "left"), pad))
        if bias:
            ins["bias"], words = draw.normal(weight[0], narrow), words + f" B={narrow} +bias"
        y = convolved(ins["x"], ins["weight"], torch.tensor(ins["bias"]) if bias else None, outs, stride, pad, dilation)
        yield case(name, words, ins, {"y": last(y)})


POOLS = (  # name, T, n, h, w, c, kernel, stride (None: the kernel), pad, dilation, what of x is replaced
    ("3 by 3", "f32", 2, 6, 7, 3, (3, 3), (2, 2), (1, 1), (1, 1), None),
    ("2 by 3", "bf16", 1, 6, 9, 4, (2, 3), None, (0, 0), (1, 1), None),
    ("dilated", "f16", 1, 9, 8, 3, (3, 2), (1, 2), (1, 1), (2, 3), None),
    ("overlapping", "f64", 1, 7, 6, 2, (5, 3), (1, 1), (2, 1), (1, 1), None),
    ("equal ones", "f32", 1, 6, 6, 3, (3, 3), (1, 2), (1, 1), (1, 1), "ties"),
    ("NaN and Inf", "f32", 1, 6, 7, 3, (3, 2), (1, 1), (1, 1), (1, 1), "nan"),
)


def pooled(draw):
    """Rows, the sizes of y and x."""
    for row in POOLS:
        name, dtype, n, h, w, c, kernel, stride, pad, dilation, other = row
        stride = stride or kernel
        sizes = [(size + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1
                 for d, size in enumerate((h, w))]
        x = draw.normal((n, h, w, c), dtype)
        if other == "ties":
            x = draw.integers((n, h, w, c), -1, 2)
        if other == "nan":
            x[0, 1, 1:5, 0], x[0, :, :, 1], x[0, 2, 3, 2] = np.nan, -np.inf, np.inf
        words = (f"T={dtype} n={n} h={h} w={w} c={c} p={sizes[0]} q={sizes[1]} kernel_h={kernel[0]} "
                 f"kernel_w={kernel[1]} pad_top={pad[0]} pad_left={pad[1]} dilation_h={dilation[0]} "
                 f"dilation_w={dilation[1]}")
        if row[7]:
            words += f" stride_h={stride[0]} stride_w={stride[1]}"
        yield name, dtype, words, x, sizes, dict(kernel_size=kernel, stride=stride, padding=pad), dilation


def mean(x, options, dilation, padded_too):
    """avg_pool2d, which has no dilation: by means of windows that are unfolded."""
    if dilation == (1, 1):
        return F.avg_pool2d(x, **options, count_include_pad=padded_too)
    n, c, h, w = x.shape
    kernel, options = options["kernel_size"], {k: v for k, v in options.items() if k != "kernel_size"}

    def sums(of):
        windows = F.unfold(of.reshape(n * c, 1, h, w), kernel, dilation=dilation, **options)
        return windows.sum(1)
    count = kernel[0] * kernel[1] if padded_too else sums(torch.ones_like(x))
    sizes = [(s + 2 * options["padding"][d] - dilation[d] * (kernel[d] - 1) - 1) // options["stride"][d] + 1
             for d, s in enumerate((h, w))]
    return (sums(x) / count).reshape(n, c, *sizes)


def pool2d(draw):
    for name, _, words, x, _, options, dilation in pooled(draw):
        y, indices = F.max_pool2d(first(x), **options, dilation=dilation, return_indices=True)
        yield case(name, words, {"x": x}, {"y": last(y)})
        yield case(f"{name}, indices", f"{words} +indices", {"x": x}, {"y": last(y), "indices": last(indices)})
        for kind, padded_too in (("mean", False), ("mean_padded", True)):
            if "NaN" not in name:
                y = mean(first(x), options, dilation, padded_too)
                yield case(f"{name}, {kind}", f"{words} kind={kind}", {"x": x}, {"y": last(y)})
    x = draw.normal((1, 2, 3, 4))
    beyond = np.full((1, 4, 4, 4), -np.inf)
    beyond[:, 1:3, :3] = x
    where = np.full((1, 4, 4, 4), -1.0)
    where[:, 1:3, :3] = np.arange(6).reshape(1, 2, 3, 1)
    yield case("windows beyond the edges", "T=f32 n=1 h=2 w=3 c=4 p=4 q=4 kernel_h=1 kernel_w=1 pad_top=1 +indices",
               {"x": x}, {"y": beyond, "indices": where})


def pool2d_backward(draw):
    for name, dtype, words, x, sizes, options, dilation in pooled(draw):
        dy = draw.normal((x.shape[0], *sizes, x.shape[3]), dtype)
        for kind in ("max", "mean", "mean_padded"):
            if "NaN" in name and kind != "max":
                continue
            leaf = torch.tensor(x, requires_grad=True)
            y = (F.max_pool2d(first(leaf), **options, dilation=dilation) if kind == "max" else
                 mean(first(leaf), options, dilation, kind == "mean_padded"))
            y.backward(first(dy))
            yield case(f"{name}, {kind}", f"{words} kind={kind}", {"dy": dy, "x": x}, {"dx": leaf.grad.numpy()})
