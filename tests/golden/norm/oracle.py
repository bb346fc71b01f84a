# SPDX-License-Identifier: Apache-2.0
"""softmax, rms_norm, layer_norm and their gradients: PyTorch's functions and autograd in float64."""
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, dropout_factors, f32, rounded

DROPOUT = {"p": 0.3, "seed": 1234567890123456789, "offset": 12884901893}
DROPOUT_WORDS = f"dropout={DROPOUT['p']} seed={DROPOUT['seed']} offset={DROPOUT['offset']}"
TOLD = {"p": 0.3, "key": -(2**52) - 77, "stream": 2**40 + 3, "offset": 12884901893}  # the key is in a tensor
TOLD_WORDS = f"dropout={TOLD['p']} offset={TOLD['offset']} +philox"


def dropout_words(dropped):
    return f" {TOLD_WORDS if dropped is TOLD else DROPOUT_WORDS}" if dropped else ""


def factors(shape, dropped):
    if dropped is not TOLD:
        return dropout_factors(shape, **DROPOUT)
    return dropout_factors(shape, TOLD["p"], TOLD["key"] % 2**64, TOLD["stream"] + TOLD["offset"])


def philox(dropped):
    return {"philox": np.array([TOLD["key"], TOLD["stream"]])} if dropped is TOLD else {}


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


# -------------------------------------------------------------------------------------------------------------- softmax


def visible(s, n, causal):
    """The causal mask aligned at the bottom right: the last row sees all."""
    mask = torch.ones(s, n, dtype=torch.bool)
    return mask.tril(diagonal=n - s) if causal else mask


def softmax_of(x, scale, causal):
    mask = visible(*x.shape[-2:], causal)
    y = torch.softmax((f32(scale) * tensor(x)).masked_fill(~mask, -torch.inf), -1)
    return torch.where(mask.any(-1, keepdim=True), y, 0.0).masked_fill(~mask, 0.0).numpy()


def softmax(draw):
    x = draw.normal((3, 37), scale=3)
    yield case("rows", "T=f32 s=3 n=37", {"x": x}, {"y": softmax_of(x, 1, False)})
    x = draw.normal((2, 3, 70), "bf16", scale=2)
    yield case("negative scale", "T=bf16 g=2 s=3 n=70 scale=-2", {"x": x}, {"y": softmax_of(x, -2, False)})
    for name, s, n in (("causal, fewer rows", 4, 9), ("causal, more rows", 9, 4)):
        x = draw.normal((2, s, n))
        y = softmax_of(x, 0.125, True)
        for value, i, j in ((np.nan, 0, n - 1), (np.inf, 1, n - 1), (-np.inf, 0, n - 2)):
            if not visible(s, n, True)[i, j]:
                x[0, i, j] = value  # hidden, thus never read
        yield case(name, f"T=f32 g=2 s={s} n={n} scale=0.125 causal=1", {"x": x}, {"y": y})
    x = draw.normal((5, 20), scale=1e4)
    x[0, 3], x[1, 4], x[2, 5] = np.nan, np.inf, -np.inf
    x[3] = -np.inf
    yield case("large, NaN, Inf, nothing but -Inf", "T=f32 s=5 n=20", {"x": x}, {"y": softmax_of(x, 1, False)})
    x = draw.normal((2, 33), "f16", scale=2)
    yield case("f16", "T=f16 s=2 n=33", {"x": x}, {"y": softmax_of(x, 1, False)})


def softmax_backward(draw):
    for name, dtype, g, s, n, scale, causal in (
        ("rows", "f32", 1, 3, 37, 1, False),
        ("negative scale", "bf16", 2, 3, 70, -2, False),
        ("causal, fewer rows", "f32", 2, 4, 9, 0.125, True),
        ("causal, more rows", "f32", 2, 9, 4, 0.125, True),
        ("f16", "f16", 1, 2, 33, 1, False),
    ):
        x, dy = draw.normal((g, s, n), scale=2), draw.normal((g, s, n), dtype)
        y = rounded(softmax_of(x, scale, causal), dtype)
        mask = visible(s, n, causal)
        gradient = torch.ops.aten._softmax_backward_data(tensor(dy).masked_fill(~mask, 0.0), tensor(y), -1,
                                                         torch.float64)
        dx = (f32(scale) * gradient).masked_fill(~mask, 0.0).numpy()
        if causal:
            y[:, 0, n - 1], dy[:, 0, n - 1] = np.nan, np.inf  # hidden
        yield case(name, f"T={dtype} g={g} s={s} n={n} scale={scale} causal={int(causal)}", {"y": y, "dy": dy},
                   {"dx": dx})


# Megatron's scaled masked softmax: torch.softmax of what masked_fill leaves. Rows of nothing are 0, as of attention in
# PyTorch's scaled_dot_product_attention where no key is seen. (name, types, sizes, mask's shape, bias's, scale, causal)
SCORES = (
    ("no mask", "f32", "f32", (2, 3, 3, 21), None, None, 0.125, False),
    ("a mask for all heads", "bf16", "bf16", (2, 2, 4, 33), (2, 1, 4, 33), None, 0.125, False),
    ("a mask of keys", "f16", "f16", (2, 2, 3, 20), (2, 1, 1, 20), None, -2, False),
    ("a mask of rows", "f32", "f32", (1, 2, 5, 9), (1, 2, 5, 1), None, 1, False),
    ("bias of the batch", "f32", "f32", (2, 2, 3, 17), None, (2, 3, 17), 0.5, False),
    ("bias of another type, of keys", "bf16", "f32", (1, 3, 4, 24), None, (24,), 0.125, False),
    ("bias of rows, causal, more rows", "f32", "f32", (1, 2, 7, 4), None, (2, 7, 1), 0.125, True),
    ("mask, bias, causal, fewer rows", "bf16", "bf16", (2, 2, 3, 19), (2, 1, 3, 19), (2, 3, 19), 0.125, True),
    ("mask, bias, causal, no batch", "f32", "f32", (3, 8), (3, 8), (1, 8), -0.5, True),
)


def full(t, shape):
    return None if t is None else np.broadcast_to(t, shape)


def scores_of(x, mask, bias, scale, causal):
    """y, and what is visible."""
    seen = visible(*x.shape[-2:], causal).expand(x.shape)
    if mask is not None:
        seen = seen & torch.tensor(full(mask, x.shape) != 0)
    z = f32(scale) * tensor(x) + (0 if bias is None else tensor(full(bias, x.shape)))
    y = torch.softmax(z.masked_fill(~seen, -torch.inf), -1)
    return torch.where((seen & ~(z == -torch.inf)).any(-1, keepdim=True), y, 0.0).masked_fill(~seen, 0.0).numpy(), seen


def scores_words(dtype, of_bias, shape, scale, causal, mask, bias):
    sizes = " ".join(f"{n}={v}" for n, v in zip("b h sq sk".split()[-len(shape):], shape))
    words = f"T={dtype} B={of_bias} {sizes} scale={scale} causal={int(causal)}"
    return words + (" +mask" if mask is not None else "") + (" +bias" if bias is not None else "")


def softmax_masked(draw):
    for name, dtype, of_bias, shape, mask_shape, bias_shape, scale, causal in SCORES:
        x = draw.normal(shape, dtype, scale=2)
        mask = draw.integers(mask_shape, 0, 3) if mask_shape else None
        bias = draw.normal(bias_shape, of_bias) if bias_shape else None
        if mask is not None and mask_shape[-1] > 1:
            mask.reshape(-1, mask_shape[-1])[0] = 0  # a row of nothing
        y, seen = scores_of(x, mask, bias, scale, causal)
        x[(~seen).numpy() & (draw.integers(shape, 0, 3) == 0)] = np.nan  # never read
        ins = {"x": x} | ({} if mask is None else {"mask": mask}) | ({} if bias is None else {"bias": bias})
        yield case(name, scores_words(dtype, of_bias, shape, scale, causal, mask, bias), ins, {"y": y})
    x, bias, mask = draw.normal((6, 10)), draw.normal((6, 10)), np.ones((6, 10))
    bias[0], bias[1, 3:], bias[2, 4] = -np.inf, -np.inf, np.inf
    x[3, 2], x[4, 5] = np.nan, np.inf
    mask[2:5, 7:] = 0
    x[5, :6], bias[5, :6] = 3e4, 40 * np.arange(6)
    y, _ = scores_of(x, mask, bias, 1, False)
    words = scores_words("f32", "f32", x.shape, 1, False, mask, bias)
    yield case("a bias of -Inf and of Inf, NaN, far apart", words, {"x": x, "mask": mask, "bias": bias}, {"y": y})


def softmax_masked_backward(draw):
    for name, dtype, of_bias, shape, mask_shape, bias_shape, scale, causal in SCORES:
        x, dy = draw.normal(shape, scale=2), draw.normal(shape, dtype)
        mask = draw.integers(mask_shape, 0, 3) if mask_shape else None
        bias = draw.normal(bias_shape, of_bias) if bias_shape else None
        y = rounded(scores_of(x, mask, bias, scale, causal)[0], dtype)
        gradient = torch.ops.aten._softmax_backward_data(tensor(dy), tensor(y), -1, torch.float64).numpy()
        gone = ~visible(*shape[-2:], causal).expand(shape).numpy()
        assert (gradient[gone] == 0).all()
        y[gone & (draw.integers(shape, 0, 2) == 0)], dy[gone] = np.nan, np.inf  # never read
        outs = {"dx": f32(scale) * gradient} | ({} if bias is None else {"dbias": gradient})
        words = scores_words(dtype, of_bias, shape, scale, causal, None, None)
        yield case(name, words + ("" if bias is None else " +dbias"), {"y": y, "dy": dy}, outs)


# -------------------------------------------------------------------------------------------------------------- forward


def hidden(x, residual, dropped):
    h = np.asarray(x, dtype=np.float64)
    if dropped:
        h = h * factors(h.shape, dropped)
    return h if residual is None else h + residual


def norm_words(dtype, r, n, weight_type, residual_type, eps, offset, before_weight, dropped, extra):
    words = f"T={dtype} R={residual_type or dtype} W={weight_type or dtype} r={r} n={n} eps={eps} "
    words += f"weight_offset={offset}{' rounding=before_weight' if before_weight else ''}"
    return words + dropout_words(dropped) + extra


def rms_norm(draw):
    # name, type, rows, length, of weight, of residual, eps, weight_offset, rounding before the weight, dropout, mean,
    # scale
    for name, dtype, r, n, weight_type, residual_type, eps, offset, before_weight, dropped, mean, *scale in (
        ("plain", "f32", 3, 37, None, None, 1e-6, 0, False, False, 0),
        ("weight", "f32", 3, 70, "f32", None, 1e-5, 0, False, False, 0),
        ("Gemma, 1 + weight", "bf16", 2, 40, "bf16", None, 1e-6, 1, False, False, 0),
        ("an offset between", "f32", 2, 33, "f32", None, 1e-2, 0.375, False, False, 0),
        ("Llama, rounded before the weight", "bf16", 3, 48, "f32", None, 1e-5, 0, True, False, 0),
        ("f16 rounded before 1 + weight, residual", "f16", 2, 35, "f16", "f16", 1e-5, 1, True, False, 0),
        ("residual", "bf16", 3, 24, "bf16", "f32", 1e-6, 0, False, False, 0),
        ("dropout and residual", "f32", 4, 21, "f32", "f32", 1e-6, 1, False, True, 0),
        ("mean far from zero, eps that counts", "f32", 2, 19, None, None, 3, 0, False, False, 50),
        ("squares beyond f32", "f32", 2, 21, "f32", None, 1e-6, 0, False, False, 0, 2.0**65),
        ("squares beyond f32, residual", "bf16", 2, 16, "bf16", "bf16", 1e-6, 1, False, False, 0, 2.0**100),
        ("near the largest, a subnormal rstd", "f32", 2, 9, None, None, 1e-6, 0, False, False, 0, 2.0**126),
        ("squares below f32, no eps", "f32", 2, 21, "f32", "f32", -0.0, 0, False, True, 0, 2.0**-90),
        ("rstd beyond f32, no eps", "f32", 2, 9, None, None, -0.0, 0, False, False, 0, 2.0**-135),
        ("dropout by a key in a tensor", "bf16", 3, 22, "bf16", "bf16", 1e-6, 0, False, TOLD, 0),
    ):
        x = draw.normal((r, n), dtype, *scale, mean=mean)
        weight = draw.normal(n, weight_type) if weight_type else None
        residual = draw.normal((r, n), residual_type, *scale) if residual_type else None
        h = hidden(x, residual, dropped)
        assert np.isfinite(h).all()
        rstd = torch.rsqrt(tensor(h).pow(2).mean(-1) + f32(eps)).numpy()
        xhat = F.rms_norm(tensor(h), (n,), eps=f32(eps)).numpy()
        if before_weight:  # LlamaRMSNorm of Hugging Face: weight * hidden_states.to(input_dtype)
            y = rounded(xhat, dtype) * (weight + f32(offset))
        else:
            factor = None if weight is None else tensor(weight + f32(offset))
            y = F.rms_norm(tensor(h), (n,), factor, f32(eps)).numpy()
        ins, outs, extra = {"x": x} | philox(dropped), {"y": y}, " +rstd"
        if residual is not None:
            ins["residual"], outs["residual_out"], extra = residual, h, extra + " +residual +residual_out"
        if weight is not None:
            ins["weight"], extra = weight, extra + " +weight"
        outs["rstd"] = rstd
        yield case(name,
                   norm_words(dtype, r, n, weight_type, residual_type, eps, offset, before_weight, dropped, extra), ins,
                   outs)


def layer_norm(draw):
    for name, dtype, r, n, weight_type, bias, residual_type, eps, offset, before_weight, dropped, mean, *scale in (
        ("plain", "f32", 3, 37, None, False, None, 1e-5, 0, False, False, 0),
        ("weight and bias", "f32", 3, 70, "f32", True, None, 1e-5, 0, False, False, 0),
        ("bias alone", "bf16", 2, 40, None, True, None, 1e-6, 0, False, False, 0),
        ("offset", "bf16", 2, 40, "f32", True, None, 1e-6, 1, False, False, 0),
        ("rounded before the weight", "f16", 3, 33, "f16", True, None, 1e-5, 0, True, False, 0),
        ("residual", "bf16", 3, 24, "bf16", True, "f32", 1e-5, 0, False, False, 0),
        ("dropout and residual", "f32", 4, 21, "f32", True, "f32", 1e-5, 0.5, False, True, 0),
        ("mean far beyond the spread", "f32", 2, 29, "f32", False, None, 1e-5, 0, False, False, 4096),
        ("eps that counts", "f32", 2, 19, None, False, None, 3, 0, False, False, -2),
        ("squares beyond f32", "f32", 2, 21, "f32", True, None, 1e-5, 0, False, False, 0, 2.0**65),
        ("squares beyond f32, residual", "bf16", 2, 16, "bf16", True, "bf16", 1e-5, 0, False, False, 0, 2.0**100),
        ("sums beyond f32, mean far from zero", "f32", 2, 17, None, False, None, 1e-5, 0, False, False, -(2.0**127),
         2.0**124),
        ("squares below f32, no eps", "f32", 2, 21, "f32", True, "f32", -0.0, 0, False, True, 0, 2.0**-90),
        ("rstd beyond f32, no eps", "f32", 2, 9, None, False, None, -0.0, 0, False, False, 0, 2.0**-135),
        ("dropout by a key in a tensor", "f16", 3, 22, "f16", True, None, 1e-5, 0, False, TOLD, 0),
    ):
        x = draw.normal((r, n), dtype, *scale, mean=mean)
        weight = draw.normal(n, weight_type) if weight_type else None
        shift = draw.normal(n, weight_type or dtype) if bias else None
        residual = draw.normal((r, n), residual_type, *scale) if residual_type else None
        h = hidden(x, residual, dropped)
        assert np.isfinite(h).all()
        factor = None if weight is None else tensor(weight + f32(offset))
        _, mean_of, rstd = torch.native_layer_norm(tensor(h), (n,), None, None, f32(eps))
        if before_weight:
            xhat = rounded(F.layer_norm(tensor(h), (n,), eps=f32(eps)).numpy(), dtype)
            y = xhat * (weight + f32(offset)) + shift
        else:
            y = F.layer_norm(tensor(h), (n,), factor, None if shift is None else tensor(shift), f32(eps)).numpy()
        ins, outs, extra = {"x": x} | philox(dropped), {"y": y}, " +mean +rstd"
        if residual is not None:
            ins["residual"], outs["residual_out"], extra = residual, h, extra + " +residual +residual_out"
        if weight is not None:
            ins["weight"], extra = weight, extra + " +weight"
        if shift is not None:
            ins["bias"], extra = shift, extra + " +bias"
        outs["mean"], outs["rstd"] = mean_of.reshape(r).numpy(), rstd.reshape(r).numpy()
        yield case(name,
                   norm_words(dtype, r, n, weight_type, residual_type, eps, offset, before_weight, dropped, extra), ins,
                   outs)


# ------------------------------------------------------------------------------------------------------------ gradients


def backward_words(dtype, r, n, weight_type, wide_type, offset, dropped, extra):
    words = f"T={dtype} R={wide_type or dtype} W={weight_type or dtype} r={r} n={n} weight_offset={offset}"
    return words + dropout_words(dropped) + extra


def rms_norm_backward(draw):
    for name, dtype, r, n, weight_type, wide_type, offset, dresidual, dropped, *scale in (
        ("plain", "f32", 3, 37, None, None, 0, False, False),
        ("weight", "f32", 5, 40, "f32", None, 0, False, False),
        ("1 + weight", "bf16", 3, 33, "bf16", "f32", 1, False, False),
        ("gradient of the residual stream", "f16", 3, 24, "f32", "f16", 0, True, False),
        ("dropout", "f32", 4, 21, "f32", None, 0.375, True, True),
        ("h near the largest, a subnormal rstd", "f32", 2, 19, "f32", None, 0, False, False, 2.0**125),
        ("small h", "bf16", 2, 19, None, "bf16", 0, False, False, 2.0**-118),
        ("dropout by a key in a tensor", "f32", 3, 22, "f32", None, 0, True, TOLD),
    ):
        wide = wide_type or dtype
        dy, h = draw.normal((r, n), dtype), draw.normal((r, n), wide, *scale)
        weight = draw.normal(n, weight_type) if weight_type else None
        more = draw.normal((r, n), wide) if dresidual else None
        rstd = rounded(1 / np.sqrt((h**2).mean(-1) * (1.001 if scale else 1) + (0 if scale else 0.01)), "f32")
        # The eps by which each row's rstd is the very f32 that is saved: so autograd derives the forward itself.
        eps = 1 / rstd**2 - (h**2).mean(-1)
        assert (eps > 0).all()
        dh, dweight = np.zeros((r, n)), np.zeros(n)
        for i in range(r):
            row, w = tensor(h[i], True), None if weight is None else tensor(weight + f32(offset), True)
            F.rms_norm(row, (n,), w, float(eps[i])).backward(tensor(dy[i]))
            dh[i] = row.grad.numpy()
            dweight += 0 if w is None else w.grad.numpy()
        if weight is None:  # that of a weight of ones
            dweight = (dy * F.rms_norm(tensor(h), (n,)).numpy() * 0).sum(0)
            for i in range(r):
                dweight += dy[i] * F.rms_norm(tensor(h[i]), (n,), eps=float(eps[i])).numpy()
        dh = dh if more is None else dh + more
        dx = dh * factors((r, n), dropped) if dropped else dh
        ins, extra = {"dy": dy, "h": h} | philox(dropped), " +dh +dweight"
        if weight is not None:
            ins["weight"], extra = weight, extra + " +weight"
        ins["rstd"] = rstd
        if more is not None:
            ins["dresidual"], extra = more, extra + " +dresidual"
        yield case(name, backward_words(dtype, r, n, weight_type, wide_type, offset, dropped, extra), ins,
                   {"dx": dx, "dh": dh, "dweight": dweight})


def layer_norm_backward(draw):
    for name, dtype, r, n, weight_type, wide_type, offset, dresidual, dropped, mean_at, *scale in (
        ("plain", "f32", 3, 37, None, None, 0, False, False, 0),
        ("weight", "f32", 5, 40, "f32", None, 0, False, False, 0),
        ("1 + weight", "bf16", 3, 33, "bf16", "f32", 1, False, False, 0),
        ("gradient of the residual stream", "f16", 3, 24, "f32", "f16", 0, True, False, 0),
        ("dropout", "f32", 4, 21, "f32", None, 0.375, True, True, 0),
        ("mean beyond the spread", "f32", 2, 26, "f32", None, 0, False, False, 30),
        ("differences beyond f32", "f32", 2, 19, "f32", None, 0, False, False, -(2.0**127), 2.0**122),
        ("small h", "bf16", 2, 19, None, "bf16", 0, False, False, 0, 2.0**-118),
        ("dropout by a key in a tensor", "f32", 3, 22, "f32", None, 0, True, TOLD, 0),
    ):
        wide = wide_type or dtype
        dy, h = draw.normal((r, n), dtype), draw.normal((r, n), wide, *scale, mean=mean_at)
        if scale and mean_at:  # one far on the other side
            h[:, 5] = 1.75 * 2.0**127
        assert np.isfinite(h).all()
        weight = draw.normal(n, weight_type) if weight_type else None
        more = draw.normal((r, n), wide) if dresidual else None
        mean, rstd = rounded(h.mean(-1), "f32"), rounded(1 / np.sqrt(h.var(-1) + (0 if scale else 1e-5)), "f32")
        # PyTorch's gradient takes mean and rstd as saved; weight and bias of ones and zeros stand for absent ones.
        factor = torch.ones(n, dtype=torch.float64) if weight is None else tensor(weight + f32(offset))
        backward = torch.ops.aten.native_layer_norm_backward
        dh, dweight, dbias = backward(tensor(dy), tensor(h), (n,), tensor(mean)[:, None], tensor(rstd)[:, None], factor,
                                      torch.zeros(n, dtype=torch.float64), [True] * 3)
        dh = dh.numpy() if more is None else dh.numpy() + more
        dx = dh * factors((r, n), dropped) if dropped else dh
        ins, extra = {"dy": dy, "h": h} | philox(dropped), " +dh +dweight +dbias"
        if weight is not None:
            ins["weight"], extra = weight, extra + " +weight"
        ins["mean"], ins["rstd"] = mean, rstd
        if more is not None:
            ins["dresidual"], extra = more, extra + " +dresidual"
        words = backward_words(dtype, r, n, weight_type, wide_type, offset, dropped, extra)
        yield case(name, words, ins, {"dx": dx, "dh": dh, "dweight": dweight.numpy(), "dbias": dbias.numpy()})


def l1_forward(x, eps, weight, bias):
    """By torch's operations, whose own derivative is the gradient's oracle."""
    mean = x.mean(-1, keepdim=True)
    rmad = 1 / ((x - mean).abs().mean(-1, keepdim=True) + eps)
    y = (x - mean) * rmad
    y = y if weight is None else y * weight
    return y if bias is None else y + bias, mean[..., 0], rmad[..., 0]


def l1_norm(draw):
    for name, dtype, r, n, weight_type, eps, mean_at in (
        ("plain", "f32", 3, 17, None, 1e-5, 0),
        ("weight and bias", "f32", 2, 40, "f32", 0.25, 1),
        ("bf16", "bf16", 3, 24, "bf16", 1e-5, 0),
        ("bf16 by f32", "bf16", 2, 31, "f32", 1e-3, 2),
        ("f16", "f16", 2, 9, "f16", 0, 0),
        ("mean beyond the spread", "f32", 2, 26, "f32", 1e-5, 30),
    ):
        x = draw.normal((r, n), dtype, mean=mean_at)
        weight, bias = (draw.normal(n, weight_type), draw.normal(n, weight_type)) if weight_type else (None, None)
        y, mean, rmad = l1_forward(tensor(x), f32(eps), None if weight is None else tensor(weight),
                                   None if bias is None else tensor(bias))
        words = f"T={dtype} W={weight_type or dtype} r={r} n={n} eps={eps if eps else '-0'} +mean +rmad"
        ins = {"x": x}
        if weight_type:
            ins, words = ins | {"weight": weight, "bias": bias}, words + " +weight +bias"
        yield case(name, words, ins, {"y": y.numpy(), "mean": mean.numpy(), "rmad": rmad.numpy()})


def l1_norm_backward(draw):
    """By autograd of l1_forward, with an eps that makes rmad what is saved of it; f32 has the means of so few
    sixteenths."""
    for name, dtype, r, n, weight_type in (
        ("plain", "f32", 3, 16, None),
        ("weight", "f32", 2, 32, "f32"),
        ("bf16", "bf16", 3, 32, "bf16"),
        ("bf16 by f32", "bf16", 4, 16, "f32"),
        ("f16", "f16", 2, 8, "f16"),
        ("one column", "f32", 3, 1, "f32"),
    ):
        x, dy = draw.integers((r, n), -99, 99) / 16, draw.normal((r, n), dtype)
        weight = draw.normal(n, weight_type) if weight_type else np.ones(n)
        mean, rmad = (v.numpy() for v in l1_forward(tensor(x), 0.3, None, None)[1:])
        saved = rounded(rmad, "f32")
        assert (rounded(mean, "f32") == mean).all()
        at = [tensor(v).requires_grad_() for v in (x, weight, np.zeros(n))]
        eps = 1 / saved - np.abs(x - mean[:, None]).mean(-1)
        l1_forward(at[0], tensor(eps)[:, None], at[1], at[2])[0].backward(tensor(dy))
        ins = {"dy": dy, "x": x, "mean": mean, "rmad": saved}
        words = f"T={dtype} W={weight_type or dtype} r={r} n={n} +dweight +dbias"
        if weight_type:
            ins, words = ins | {"weight": weight}, words + " +weight"
        yield case(name, words, ins, dict(zip(("dx", "dweight", "dbias"), (v.grad.numpy() for v in at))))
