# SPDX-License-Identifier: Apache-2.0
"""Peers of layers, losses and optimizers: PyTorch's operators, and those of flash-linear-attention, Liger-Kernel,
mamba_ssm and bitsandbytes where they are installed. Each takes (torch, settings, given, dtype), and gives what makes
the inputs and what runs."""
import importlib
import math

from torch_case import Backward, Unsupported, allow


def sizes(settings, names):
    return [int(settings.get(name, 1)) for name in names.split()]


def found(module, name):
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as why:
        raise Unsupported(f"{module}.{name}: {why}") from why


CONV = ("T", "B", "n", "d", "h", "w", "c", "cg", "k", "t", "r", "s", "o", "p", "q", "stride_d", "stride_h", "stride_w",
        "pad_front", "pad_top", "pad_left", "dilation_d", "dilation_h", "dilation_w")


def convolution(torch, s, dtype, deep):
    """Inputs with channels last, and PyTorch's strides, paddings and dilations; the padding is that of both sides."""
    n, h, w, c, cg, k, r, width = sizes(s, "n h w c cg k r s")
    stride, dilation = [sizes(s, f"{what}_h {what}_w") for what in ("stride", "dilation")]
    pad = [int(s.get("pad_top", 0)), int(s.get("pad_left", 0))]
    shape, window, form = (n, c, h, w), (k, cg, r, width), torch.channels_last
    if deep:
        d, t = sizes(s, "d t")
        stride, dilation = sizes(s, "stride_d") + stride, sizes(s, "dilation_d") + dilation
        pad = [int(s.get("pad_front", 0))] + pad
        shape, window, form = (n, c, d, h, w), (k, cg, t, r, width), torch.channels_last_3d

    def make():
        return tuple(torch.rand(z).to(dtype).to(memory_format=form) for z in (shape, window)) + \
            (torch.rand(k).to(dtype),)

    return make, stride, pad, dilation, c // cg


def conv2d(torch, s, given, dtype):
    allow(s, given, CONV, ("bias",))
    make, stride, pad, dilation, groups = convolution(torch, s, dtype, False)
    f = torch.nn.functional.conv2d
    return make, lambda x, w, b: f(x, w, b if "bias" in given else None, stride, pad, dilation, groups)


def conv3d(torch, s, given, dtype):
    allow(s, given, CONV, ("bias",))
    make, stride, pad, dilation, groups = convolution(torch, s, dtype, True)
    f = torch.nn.functional.conv3d
    return make, lambda x, w, b: f(x, w, b if "bias" in given else None, stride, pad, dilation, groups)


def conv2d_backward(torch, s, given, dtype):
    allow(s, given, CONV, ("dx", "dweight", "dbias"))
    make, stride, pad, dilation, groups = convolution(torch, s, dtype, False)
    n, k, p, q = sizes(s, "n k p q")
    f, wanted = torch.ops.aten.convolution_backward, [name in given for name in ("dx", "dweight", "dbias")]

    def with_dy():
        x, w, _ = make()
        return torch.rand(n, k, p, q).to(dtype).to(memory_format=torch.channels_last), x, w

    return with_dy, lambda dy, x, w: f(dy, x, w, [k], stride, pad, dilation, False, [0, 0], groups, wanted)


POOL = ("T", "n", "h", "w", "c", "p", "q", "kind", "kernel_h", "kernel_w", "stride_h", "stride_w", "pad_top",
        "pad_left")


def pooling(torch, s, given):
    size, stride = sizes(s, "kernel_h kernel_w"), sizes(s, "stride_h stride_w")
    pad = [int(s.get("pad_top", 0)), int(s.get("pad_left", 0))]
    if s.get("kind", "max") == "max":
        return lambda x: torch.nn.functional.max_pool2d(x, size, stride, pad, return_indices="indices" in given)
    return lambda x: torch.nn.functional.avg_pool2d(x, size, stride, pad, count_include_pad="padded" in s["kind"])


def pooled(torch, s, dtype):
    n, h, w, c = sizes(s, "n h w c")
    return lambda: (torch.rand(n, c, h, w).to(dtype).to(memory_format=torch.channels_last),)


def pool2d(torch, s, given, dtype):
    allow(s, given, POOL, ("indices",))
    return pooled(torch, s, dtype), pooling(torch, s, given)


def pool2d_backward(torch, s, given, dtype):
    allow(s, given, POOL)
    return pooled(torch, s, dtype), Backward(torch, pooling(torch, s, ()))


RECURRENT = ("T", "b", "s", "t", "h", "d", "bias", "gates", "c", "dbias", "h0", "c0", "last_h", "last_c")


def recurrence(torch, kind, s, dtype):
    """A layer of one head as wide as all: cuDNN's, which multiplies the inputs too and knows no heads."""
    b, t, h, d = sizes(s, "b t h d")
    layers = {}

    def run(x):
        if x.device not in layers:
            layers[x.device] = getattr(torch.nn, kind)(h * d, h * d, batch_first=True).to(x.device, dtype)
        return layers[x.device](x)[0]

    return (lambda: (torch.rand(b, t, h * d).to(dtype),)), run


def lstm(torch, s, given, dtype):
    allow(s, given, RECURRENT, RECURRENT)
    return recurrence(torch, "LSTM", s, dtype)


def gru(torch, s, given, dtype):
    allow(s, given, RECURRENT, RECURRENT)
    return recurrence(torch, "GRU", s, dtype)


def lstm_backward(torch, s, given, dtype):
    allow(s, given, RECURRENT, RECURRENT)
    make, run = recurrence(torch, "LSTM", s, dtype)
    return make, Backward(torch, run)


def gru_backward(torch, s, given, dtype):
    allow(s, given, RECURRENT, RECURRENT)
    make, run = recurrence(torch, "GRU", s, dtype)
    return make, Backward(torch, run)


def masked(torch, s, given, dtype):
    b, h, sq, sk = sizes(s, "b h sq sk")
    scale = float(s.get("scale", 1))

    def make():
        mask = torch.rand(b, 1, sq, sk) < 0.1
        if int(s.get("causal", 0)):
            mask = torch.ones(sq, sk, dtype=torch.bool).triu(1 + sk - sq)
        return torch.randn(b, h, sq, sk).to(dtype), mask, torch.rand(1, h, sq, sk).to(dtype)

    def run(x, mask, bias):
        x = x * scale if scale != 1 else x
        x = x + bias if "bias" in given else x
        x = x.masked_fill(mask, -math.inf) if "mask" in given or int(s.get("causal", 0)) else x
        return torch.softmax(x, -1)

    return make, run


MASKED = ("T", "B", "b", "h", "sq", "sk", "scale", "causal")


def softmax_masked(torch, s, given, dtype):
    allow(s, given, MASKED, ("mask", "bias"))
    return masked(torch, s, given, dtype)


def gelu_bias(torch, s, given, dtype):
    allow(s, given, ("T", "W", "r", "n", "form"))
    r, n = sizes(s, "r n")
    form = "none" if s.get("form") == "erf" else "tanh"
    return (lambda: (torch.randn(r, n).to(dtype), torch.randn(n).to(dtype))), \
        lambda x, b: torch.nn.functional.gelu(x + b, approximate=form)


def dropout_add(torch, s, given, dtype):
    allow(s, given, ("T", "W", "r", "n", "p", "seed"), ("bias", "residual"))
    r, n = sizes(s, "r n")
    f, p = torch.nn.functional.dropout, float(s["p"])
    return (lambda: (torch.randn(r, n).to(dtype), torch.randn(n).to(dtype), torch.randn(r, n).to(dtype))), \
        lambda x, b, y: y + f(x + b, p)


def matmul_symmetric(torch, s, given, dtype):
    allow(s, given, ("T", "O", "m", "k", "beta", "a"), ("c",))
    m, k = sizes(s, "m k")
    if "c" in given:
        return (lambda: (torch.rand(m, k).to(dtype), torch.rand(m, m).to(dtype))), \
            lambda a, c: torch.addmm(c, a, a.t())
    if s.get("a") == "transposed":
        return (lambda: (torch.rand(k, m).to(dtype),)), lambda a: a.t() @ a
    return (lambda: (torch.rand(m, k).to(dtype),)), lambda a: a @ a.t()


def matmul_sparse24(torch, s, given, dtype):
    """The same product with all weights, dense."""
    allow(s, given, ("T", "O", "m", "n", "k", "h", "q", "activation"))
    if s["T"] == "i8":
        raise Unsupported("i8")
    m, n, k = sizes(s, "m n k")
    return (lambda: (torch.rand(m, k).to(dtype), torch.rand(n, k).to(dtype))), torch.nn.functional.linear


def rms_norm_matmul(torch, s, given, dtype):
    """The norm by torch.nn.functional.rms_norm, and the product."""
    allow(s, given, ("T", "R", "W", "O", "B", "r", "k", "n", "b", "activation"),
          ("weight", "bias", "residual", "residual_out", "rstd"))
    r, k, n = sizes(s, "r k n")
    if s["T"] == "f32" or s.get("R") == "f32":
        raise Unsupported("f32")

    def run(x, residual, weight, b):
        x = x + residual if "residual" in given else x
        x = torch.nn.functional.rms_norm(x, (k,), weight, 1e-6)
        return torch.nn.functional.linear(x, b)

    return (lambda: tuple(torch.rand(z).to(dtype) for z in ((r, k), (r, k), (k,), (n, k)))), run


def segment_reduce(torch, s, given, dtype):
    allow(s, given, ("T", "I", "p", "e", "n", "kind"))
    p, e, n = sizes(s, "p e n")
    kind = {"sum": "sum", "max": "amax", "mean": "mean", "product": "prod"}.get(s.get("kind", "sum"))
    if kind is None:
        raise Unsupported(s["kind"])

    def make():
        return torch.rand(p, n).to(dtype), torch.randint(0, e, (p,)).sort()[0][:, None].expand(p, n).contiguous()

    return make, lambda x, at: torch.zeros(e, n, dtype=x.dtype, device=x.device).scatter_reduce_(
        0, at, x, kind, include_self=False)


def step(make_optimizer, torch, n, dtype):
    """A step of an optimizer of one tensor of sizes n."""
    state = {}

    def run(p, g):
        if p.data_ptr() not in state:
            state[p.data_ptr()] = make_optimizer([p])
        p.grad = g
        state[p.data_ptr()].step()

    return (lambda: (torch.randn(n).to(dtype), torch.randn(n).to(dtype))), run


OPTIMIZER = ("T", "G", "S", "C", "n", "m", "r", "c", "k", "lr", "step", "momentum", "precision")


def sgd(torch, s, given, dtype):
    allow(s, given, OPTIMIZER, ("param", "moment"))
    momentum = float(s.get("momentum", 0))
    return step(lambda p: torch.optim.SGD(p, lr=0.01, momentum=momentum, fused=True), torch, sizes(s, "r c"), dtype)


def adafactor(torch, s, given, dtype):
    allow(s, given, OPTIMIZER, ("row_var",))
    return step(lambda p: torch.optim.Adafactor(p, lr=0.01), torch, sizes(s, "r c"), dtype)


def muon(torch, s, given, dtype):
    allow(s, given, OPTIMIZER, ("copy",))
    return step(lambda p: torch.optim.Muon(p, lr=0.02), torch, sizes(s, "m n"), dtype)


def adamw_quantized(torch, s, given, dtype):
    """bitsandbytes.optim.AdamW8bit."""
    allow(s, given, OPTIMIZER)
    optimizer = found("bitsandbytes.optim", "AdamW8bit")
    return step(lambda p: optimizer(p, lr=1e-3), torch, sizes(s, "n"), dtype)


def lion(torch, s, given, dtype):
    """bitsandbytes.optim.Lion."""
    allow(s, given, OPTIMIZER)
    optimizer = found("bitsandbytes.optim", "Lion")
    return step(lambda p: optimizer(p, lr=1e-4), torch, sizes(s, "n"), dtype)


def kl_div(torch, s, given, dtype):
    """From the logits of both; Liger-Kernel's, which takes log-probabilities, where it is given those."""
    allow(s, given, ("T", "r", "v", "logits", "target_probabilities"))
    r, v = sizes(s, "r v")
    f, logits = torch.nn.functional, int(s.get("logits", 0))

    def run(x, y):
        if logits:
            x, y = f.log_softmax(x, -1), f.log_softmax(y, -1)
        return f.kl_div(x, y, reduction="none", log_target="target_probabilities" not in s).sum(-1)

    return (lambda: tuple(torch.randn(r, v).log_softmax(-1).to(dtype) for _ in range(2))), run


def jsd(torch, s, given, dtype):
    """Liger-Kernel's, of log-probabilities: it makes the gradient too."""
    allow(s, given, ("T", "r", "v", "logits", "beta"))
    r, v = sizes(s, "r v")
    f, beta = found("liger_kernel.ops.jsd", "LigerJSDFunction"), float(s.get("beta", 0.5))

    def run(x, y):
        with torch.enable_grad():
            x.requires_grad_(True)
            return f.apply(x.log_softmax(-1), y.log_softmax(-1), None, beta)

    return (lambda: tuple(torch.randn(r, v).to(dtype) for _ in range(2))), run


DELTA = ("T", "b", "s", "t", "h", "hk", "d", "e", "nseq")


def delta(torch, s, given, dtype):
    """flash-linear-attention's chunks; a step of decoding is its recurrent kernel."""
    b, t, h, hk, d, e = sizes(s, "b t h hk d e")
    if "nseq" in s:
        raise Unsupported("packed sequences")
    recurrent = t == 1
    if "g" in given and "beta" in given:
        f = found("fla.ops.gated_delta_rule",
                  "fused_recurrent_gated_delta_rule" if recurrent else "chunk_gated_delta_rule")
    elif "beta" in given:
        f = found("fla.ops.delta_rule", "fused_recurrent_delta_rule" if recurrent else "chunk_delta_rule")
    else:
        f = found("fla.ops.simple_gla", "fused_recurrent_simple_gla" if recurrent else "chunk_simple_gla")

    def make():
        k = torch.nn.functional.normalize(torch.randn(b, t, h, d), dim=-1).to(dtype)
        return (torch.randn(b, t, h, d).to(dtype), k, torch.randn(b, t, h, e).to(dtype), -torch.rand(b, t, h),
                torch.rand(b, t, h).to(dtype), torch.randn(b, h, d, e))

    def run(q, k, v, g, beta, state):
        extra = {"initial_state": state, "output_final_state": True} if "s0" in given else {}
        extra |= {"g": g} if "g" in given else {}
        extra |= {"beta": beta} if "beta" in given else {}
        return f(q, k, v, **extra)[0]

    return make, run


def gated_delta(torch, s, given, dtype):
    allow(s, given, DELTA, ("g", "beta", "s0", "last"))
    return delta(torch, s, given, dtype)


def gated_delta_backward(torch, s, given, dtype):
    allow(s, given, DELTA, ("g", "beta", "dg", "dbeta"))
    make, run = delta(torch, s, given, dtype)

    def with_five():
        return make()[:5]

    return with_five, Backward(torch, lambda q, k, v, g, beta: run(q, k, v, g, beta, None))


SSD = ("T", "b", "s", "t", "h", "p", "g", "n", "nseq", "softplus")


def ssd(torch, s, given, dtype):
    """mamba_ssm's chunked scan."""
    allow(s, given, SSD, ("d", "dt_bias"))
    b, t, h, p, g, n = sizes(s, "b t h p g n")
    if "nseq" in s:
        raise Unsupported("packed sequences")
    f = found("mamba_ssm.ops.triton.ssd_combined", "mamba_chunk_scan_combined")

    def make():
        return (torch.randn(b, t, h, p).to(dtype), torch.rand(b, t, h).to(dtype), -torch.rand(h),
                torch.randn(b, t, g, n).to(dtype), torch.randn(b, t, g, n).to(dtype), torch.rand(h), torch.rand(h))

    return make, lambda x, dt, a, bb, c, d, bias: f(x, dt, a, bb, c, 256, D=d, dt_bias=bias, dt_softplus=True)


OPS = {f.__name__: f for f in (conv2d, conv2d_backward, conv3d, pool2d, pool2d_backward, lstm, lstm_backward, gru,
                               gru_backward, softmax_masked, gelu_bias, dropout_add, matmul_symmetric,
                               matmul_sparse24, rms_norm_matmul, segment_reduce, sgd, adafactor, muon,
                               adamw_quantized, lion, kl_div, jsd, gated_delta, gated_delta_backward, ssd)}
