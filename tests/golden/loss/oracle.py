# SPDX-License-Identifier: Apache-2.0
"""cross_entropy and its gradient: torch.nn.functional.cross_entropy in float64 and autograd; mpmath where large logits
would cancel. kl_div: torch.nn.functional.kl_div; jsd and the policy losses: their papers' formulas; gradients by
autograd, all in float64."""
import mpmath
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32, rounded


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


def losses(logits, labels, smoothing, z_loss, scale, ignored, dloss, weights=None):
    """Loss and log of the sum of exponentials by row, and the gradient of sum_i dloss[i] loss[i]."""
    x = tensor(logits, True)
    z = f32(scale) * x
    lse = torch.logsumexp(z, -1)
    loss = F.cross_entropy(z, torch.tensor(labels, dtype=torch.int64), reduction="none", label_smoothing=f32(smoothing),
                           ignore_index=ignored, weight=None if weights is None else tensor(weights))
    kept = torch.tensor(labels != ignored)
    loss = torch.where(kept, loss + (f32(z_loss) * lse**2 if z_loss else 0), 0.0)
    loss.backward(tensor(dloss).expand(loss.shape))
    return loss.detach().numpy(), lse.detach().numpy(), torch.where(kept[:, None], x.grad, 0.0).numpy()


def words_of(dtype, label_type, r, v, smoothing, z_loss, scale, ignored):
    words = f"T={dtype} L={label_type} r={r} v={v} label_smoothing={smoothing} z_loss={z_loss} logit_scale={scale}"
    return words + (f" ignore_index_set=1 ignore_index={ignored}" if ignored != -100 else "")


# name, type, of labels, rows, classes, smoothing, z_loss, logit_scale, ignored label, rows that have it
CALLS = (
    ("plain", "f32", "i64", 4, 37, 0, 0, 1, -100, ()),
    ("ignored rows", "f32", "i32", 5, 20, 0, 0, 1, -100, (0, 3)),
    ("smoothing with ignored rows", "f32", "i64", 5, 33, 0.1, 0, 1, -100, (1, 4)),
    ("much smoothing, an ignored label that is a class", "f32", "i64", 6, 19, 0.9, 0, 1, 3, (2, 5)),
    ("z-loss", "bf16", "i64", 3, 70, 0, 0.01, 1, -100, ()),
    ("scaled logits", "f16", "i32", 3, 40, 0, 0, 0.7, -100, (1,)),
    ("all at once", "bf16", "i32", 5, 50, 0.1, 0.01, -2, 7, (0,)),
)


# The same with the gradient's type behind the logits', and whether classes have weights.
MORE_CALLS = (
    ("class weights", "f32", "f32", "i64", 5, 23, 0, 0, 1, -100, (1,), True),
    ("class weights, all else at once", "f32", "f32", "i32", 5, 31, 0.1, 0.01, -2, 4, (0,), True),
    ("class weights, much smoothing", "bf16", "bf16", "i64", 4, 29, 0.9, 0, 0.7, -100, (), True),
    ("gradient in bf16", "f32", "bf16", "i64", 3, 21, 0.1, 0, 1, -100, (2,), False),
    ("gradient in f16 with class weights", "f32", "f16", "i32", 3, 19, 0, 0.01, 1, -100, (), True),
)


def class_weights(draw, v):
    """Some are 0, and one is negative, which means something, too."""
    weights = draw.uniform(v, 0, 2)
    weights[::5] = 0
    weights[3] = -0.75
    return weights


def drawn(draw, dtype, r, v, ignored, rows):
    labels = draw.random.randint(0, v, r)
    labels[-1] = v - 1 if v - 1 != ignored else 0
    labels[labels == ignored] = 1
    labels[list(rows)] = ignored
    return draw.normal((r, v), dtype, scale=2), labels


def cross_entropy(draw):
    for k, (name, dtype, label_type, r, v, smoothing, z_loss, scale, ignored, rows) in enumerate(CALLS):
        logits, labels = drawn(draw, dtype, r, v, ignored, rows)
        dloss = draw.normal(1 if k % 2 else r)
        loss, lse, dlogits = losses(logits, labels, smoothing, z_loss, scale, ignored, dloss)
        words = words_of(dtype, label_type, r, v, smoothing, z_loss, scale, ignored) + " +lse +dloss +dlogits"
        yield case(name, words, {"logits": logits, "labels": labels, "dloss": dloss},
                   {"loss": loss, "lse": lse, "dlogits": dlogits})
    yield from more_losses(draw)
    logits = draw.normal((3, 12))
    logits[0, 4] = logits[1, 5] = -np.inf
    labels = np.array([4, 6, 7])
    loss, lse, dlogits = losses(logits, labels, 0, 0, 1, -100, np.ones(1))
    yield case("a class of probability 0", words_of("f32", "i64", 3, 12, 0, 0, 1, -100) + " +lse",
               {"logits": logits, "labels": labels}, {"loss": loss, "lse": lse})
    logits, labels, loss, lse, dlogits = large_logits(draw)
    yield case("large logits", "T=f32 L=i32 r=6 v=6 +lse +dlogits", {"logits": logits, "labels": labels},
               {"loss": loss, "lse": lse, "dlogits": dlogits})


def more_losses(draw):
    draw = type(draw)("cross_entropy, more")  # so that the other cases stay as they are
    for k, (name, dtype, narrow, label_type, r, v, *parameters, rows, weighted) in enumerate(MORE_CALLS):
        logits, labels = drawn(draw, dtype, r, v, parameters[-1], rows)
        weights = class_weights(draw, v) if weighted else None
        dloss = draw.normal(1 if k % 2 else r)
        loss, lse, dlogits = losses(logits, labels, *parameters, dloss, weights)
        words = f"G={narrow} " + words_of(dtype, label_type, r, v, *parameters) + " +lse +dloss +dlogits"
        ins = {"logits": logits, "labels": labels, "dloss": dloss}
        if weighted:
            words, ins["class_weight"] = words + " +class_weight", weights
        yield case(name, words, ins, {"loss": loss, "lse": lse, "dlogits": dlogits})


def large_logits(draw):
    """Rows far from zero, in 60 digits: the loss is a difference of large numbers."""
    base = np.array([[-1e9], [1e4], [3e8], [-1e10], [1e10], [-3.4028234663852886e38]])
    steps = draw.integers((6, 6), 0, 3) * np.array([[64], [1], [32], [1024], [1024], [0]])
    logits = rounded(base + steps, "f32")
    logits[1] = logits[1, 0] + np.arange(6) / 4
    logits[3] = logits[3, 0]  # equal ones
    labels = np.array([0, 1, 2, 3, 5, 0])
    loss, lse, dlogits = np.zeros(6), np.zeros(6), np.zeros((6, 6))
    with mpmath.workdps(60):
        for i in range(6):
            z = [mpmath.mpf(x) for x in logits[i]]
            most = max(z)
            exact = most + mpmath.log(sum(mpmath.exp(x - most) for x in z))
            loss[i], lse[i] = float(exact - z[labels[i]]), float(exact)
            dlogits[i] = [float(mpmath.exp(x - exact) - (k == labels[i])) for k, x in enumerate(z)]
    return logits, labels, loss, lse, dlogits


def gradient(logits, labels, lse, smoothing, z_loss, scale, ignored, dloss, weights=None):
    """The derivative from a given lse: Szegedy et al. 2016, section 7, and that of z_loss lse^2, Chowdhery et al. 2022;
    of weighted classes each has its target times its weight, and the targets' sum takes the place of 1."""
    v = logits.shape[1]
    target = np.full(logits.shape, f32(smoothing) / v)
    kept = labels != ignored
    target[kept, labels[kept]] += 1 - f32(smoothing)
    target *= 1 if weights is None else weights
    p = np.exp(f32(scale) * logits - lse[:, None])
    d = dloss[:, None] * f32(scale) * (p * (target.sum(1, keepdims=True) + 2 * f32(z_loss) * lse[:, None]) - target)
    return np.where(kept[:, None], d, 0.0)


def cross_entropy_backward(draw):
    for name, dtype, label_type, r, v, smoothing, z_loss, scale, ignored, rows in CALLS:
        logits, labels = drawn(draw, dtype, r, v, ignored, rows)
        dloss = draw.normal(r)
        parameters = (smoothing, z_loss, scale, ignored, dloss)
        _, lse, by_autograd = losses(logits, labels, *parameters)
        assert np.abs(gradient(logits, labels, lse, *parameters) - by_autograd).max() < 1e-14
        lse = rounded(lse, "f32")
        yield case(
            name,
            words_of(dtype, label_type, r, v, smoothing, z_loss, scale, ignored),
            {"logits": logits, "labels": labels, "lse": lse, "dloss": dloss},
            {"dlogits": gradient(logits, labels, lse, *parameters)},
        )
    yield from more_gradients(draw)
    logits, labels, _, lse, dlogits = large_logits(draw)
    dloss = draw.normal(6)
    ins = {"logits": logits, "labels": labels, "lse": rounded(lse, "f32"), "dloss": dloss}
    yield case("large logits", "T=f32 L=i32 r=6 v=6", ins, {"dlogits": dloss[:, None] * dlogits})


def more_gradients(draw):
    draw = type(draw)("cross_entropy_backward, more")
    for name, dtype, narrow, label_type, r, v, *parameters, rows, weighted in MORE_CALLS:
        logits, labels = drawn(draw, dtype, r, v, parameters[-1], rows)
        weights = class_weights(draw, v) if weighted else None
        dloss = draw.normal(r)
        _, lse, by_autograd = losses(logits, labels, *parameters, dloss, weights)
        assert np.abs(gradient(logits, labels, lse, *parameters, dloss, weights) - by_autograd).max() < 1e-14
        lse = rounded(lse, "f32")
        words = f"G={narrow} " + words_of(dtype, label_type, r, v, *parameters)
        ins = {"logits": logits, "labels": labels, "lse": lse, "dloss": dloss}
        if weighted:
            words, ins["class_weight"] = words + " +class_weight", weights
        yield case(name, words, ins, {"dlogits": gradient(logits, labels, lse, *parameters, dloss, weights)})


def heads(x, weight, labels, bias, smoothing, z_loss, scale, ignored, dloss, weights=None):
    """Loss and lse by token, and the gradients of sum_i dloss[i] loss[i] in x, weight and bias: the layer and its loss
    in float64."""
    inputs = [tensor(a, True) for a in (x, weight, np.zeros(len(weight)) if bias is None else bias)]
    z = f32(scale) * F.linear(*inputs)
    lse = torch.logsumexp(z, -1)
    loss = F.cross_entropy(z, torch.tensor(labels, dtype=torch.int64), reduction="none", label_smoothing=f32(smoothing),
                           ignore_index=ignored, weight=None if weights is None else tensor(weights))
    kept = torch.tensor(labels != ignored)
    loss = torch.where(kept, loss + (f32(z_loss) * lse**2 if z_loss else 0), 0.0)
    gradients = torch.autograd.grad(loss, inputs, tensor(dloss).expand(loss.shape))
    return (loss.detach().numpy(), lse.detach().numpy(), *(g.numpy() for g in gradients))


# name, types of x, bias and dweight, of labels, tokens, width, classes, bias, smoothing, z_loss, logit_scale, ignored
# label, tokens that have it
HEADS = (
    ("plain", "f32", "f32", "f32", "i64", 5, 7, 23, False, 0, 0, 1, -100, ()),
    ("bias and ignored tokens", "f32", "f32", "f32", "i32", 6, 9, 20, True, 0, 0, 1, -100, (0, 3)),
    ("smoothing, z-loss, scale", "f32", "f32", "f32", "i64", 5, 12, 19, True, 0.1, 0.01, -2, 3, (2,)),
    ("bf16", "bf16", "bf16", "bf16", "i64", 5, 16, 24, True, 0.1, 0.01, 0.7, -100, (1,)),
    ("bf16, gradient of the weight in f32", "bf16", "f32", "f32", "i32", 4, 16, 33, True, 0, 0, 1, -100, ()),
    ("f16", "f16", "f16", "f16", "i32", 4, 8, 17, True, 0.9, 0, 1, 7, (0, 2)),
)


# The same, of weighted classes.
WEIGHTED_HEADS = (
    ("class weights", "f32", "f32", "f32", "i64", 5, 7, 21, False, 0, 0, 1, -100, (3,)),
    ("class weights, all else at once", "bf16", "f32", "f32", "i32", 5, 8, 18, True, 0.1, 0.01, -2, 3, (2,)),
)


def drawn_head(draw, dtype, bias_type, t, k, v, with_bias, ignored, rows):
    _, labels = drawn(draw, "f32", t, v, ignored, rows)
    bias = draw.normal(v, bias_type) if with_bias else None
    return draw.normal((t, k), dtype), draw.normal((v, k), dtype, scale=0.5), labels, bias


def linear_cross_entropy(draw):
    for n, (name, dtype, bias_type, out, label_type, t, k, v, with_bias, *rest, rows) in enumerate(HEADS):
        x, weight, labels, bias = drawn_head(draw, dtype, bias_type, t, k, v, with_bias, rest[-1], rows)
        dloss = draw.normal(1 if n % 2 else t)
        loss, lse, dx, dweight, dbias = heads(x, weight, labels, bias, *rest, dloss)
        ins = {"x": x, "weight": weight, "labels": labels, "dloss": dloss}
        outs = {"loss": loss, "lse": lse, "dx": dx, "dweight": dweight}
        if with_bias:
            ins["bias"], outs["dbias"] = bias, dbias
        yield case(name, head_words(dtype, bias_type, out, label_type, t, k, v, with_bias, *rest) + " +lse +dloss",
                   ins, outs)
    yield from weighted_heads(draw)
    yield near_logits()


def weighted_heads(draw):
    for name, dtype, bias_type, out, label_type, t, k, v, with_bias, *rest, rows in WEIGHTED_HEADS:
        x, weight, labels, bias = drawn_head(draw, dtype, bias_type, t, k, v, with_bias, rest[-1], rows)
        weights, dloss = class_weights(draw, v), draw.normal(t)
        loss, lse, dx, dweight, dbias = heads(x, weight, labels, bias, *rest, dloss, weights)
        ins = {"x": x, "weight": weight, "labels": labels, "dloss": dloss, "class_weight": weights}
        outs = {"loss": loss, "lse": lse, "dx": dx, "dweight": dweight}
        if with_bias:
            ins["bias"], outs["dbias"] = bias, dbias
        words = head_words(dtype, bias_type, out, label_type, t, k, v, with_bias, *rest)
        yield case(name, words + " +lse +dloss +class_weight", ins, outs)


def near_logits():
    """Logits that follow each other in float64, far from zero: times the scale some of them are the same there. In 60
    digits. The other row's loss is as large as they are, since f32 cannot tell them apart."""
    v, base, unit = 16, 3 * 2.0**62, 2.0**11
    steps = np.arange(v) - 3.0
    x, weight = np.array([[2.0**31, 2.0**5]] * 2), np.stack([np.full(v, 3 * 2.0**31), steps * 2.0**6], 1)
    weight[0] = -weight[0, 0], 0
    logits = weight @ x[0]
    assert (logits[1:] == base + steps[1:] * unit).all()
    labels, scale = np.array([v - 1, 0]), 0.7
    with mpmath.workdps(60):
        z = [mpmath.mpf(f32(scale)) * mpmath.mpf(a) for a in logits]
        lse = max(z) + mpmath.log(sum(mpmath.exp(a - max(z)) for a in z))
        loss = [float(lse - z[y]) for y in labels]
    return case("logits that follow each other in float64",
                f"T=f32 B=f32 D=f32 L=i64 t=2 k=2 v={v} logit_scale={scale} +lse",
                {"x": x, "weight": weight, "labels": labels},
                {"loss": np.array(loss), "lse": np.full(2, float(lse))})


def head_words(dtype, bias_type, out, label_type, t, k, v, with_bias, smoothing, z_loss, scale, ignored):
    words = words_of(dtype, label_type, t, v, smoothing, z_loss, scale, ignored).replace(f" r={t} ", f" t={t} k={k} ")
    words = words.replace(" L=", f" B={bias_type} D={out} L=")
    return words + " +dx +dweight" + (" +bias +dbias" if with_bias else "")


def linear_cross_entropy_backward(draw):
    for name, dtype, bias_type, out, label_type, t, k, v, with_bias, *rest, rows in HEADS:
        x, weight, labels, bias = drawn_head(draw, dtype, bias_type, t, k, v, with_bias, rest[-1], rows)
        dloss = draw.normal(t)
        shift = np.zeros(v) if bias is None else bias
        _, lse, *by_autograd = heads(x, weight, labels, bias, *rest, dloss)
        lse = rounded(lse, "f32")
        g = gradient(x @ weight.T + shift, labels, lse, *rest, dloss)
        made = {"dx": g @ weight, "dweight": g.T @ x, "dbias": g.sum(0)}
        assert all(np.abs(made[n] - a).max() < 1e-5 for n, a in zip(made, by_autograd))
        ins = {"x": x, "weight": weight, "labels": labels, "lse": lse, "dloss": dloss}
        if with_bias:
            ins["bias"] = bias
        else:
            del made["dbias"]
        yield case(name, head_words(dtype, bias_type, out, label_type, t, k, v, with_bias, *rest), ins, made)
    yield from weighted_head_gradients(draw)


def weighted_head_gradients(draw):
    for name, dtype, bias_type, out, label_type, t, k, v, with_bias, *rest, rows in WEIGHTED_HEADS:
        x, weight, labels, bias = drawn_head(draw, dtype, bias_type, t, k, v, with_bias, rest[-1], rows)
        weights, dloss = class_weights(draw, v), draw.normal(t)
        shift = np.zeros(v) if bias is None else bias
        _, lse, *by_autograd = heads(x, weight, labels, bias, *rest, dloss, weights)
        lse = rounded(lse, "f32")
        g = gradient(x @ weight.T + shift, labels, lse, *rest, dloss, weights)
        made = {"dx": g @ weight, "dweight": g.T @ x, "dbias": g.sum(0)}
        assert all(np.abs(made[n] - a).max() < 1e-5 for n, a in zip(made, by_autograd))
        ins = {"x": x, "weight": weight, "labels": labels, "lse": lse, "dloss": dloss, "class_weight": weights}
        if with_bias:
            ins["bias"] = bias
        else:
            del made["dbias"]
        words = head_words(dtype, bias_type, out, label_type, t, k, v, with_bias, *rest)
        yield case(name, words + " +class_weight", ins, made)


# ---------------------------------------------------------------------------------------------------------- divergences

# name, type, rows, classes, logits, logit_scale, weighted
DIVERGENCES = (
    ("log-probabilities", "f32", 4, 37, False, 1, False),
    ("logits", "f32", 5, 21, True, 1, False),
    ("logits by a temperature, weighted", "bf16", 5, 33, True, 0.5, True),
    ("scaled logits in f16", "f16", 3, 40, True, 1.75, True),
    ("log-probabilities in bf16, weighted", "bf16", 4, 24, False, 1, True),
)


def log_softmax_rows(draw, shape, dtype):
    """Log-probabilities, rounded to the type."""
    return rounded(torch.log_softmax(tensor(draw.normal(shape, scale=2)), -1).numpy(), dtype)


def divergence_inputs(draw, dtype, r, v, logits, weighted):
    make = (lambda: draw.normal((r, v), dtype, scale=2)) if logits else (lambda: log_softmax_rows(draw, (r, v), dtype))
    ins = {"input": make(), "target": make()}
    if weighted:
        ins["weight"] = draw.uniform(r, -1, 2)
        ins["weight"][1] = 0
    return ins


def logs_of(x, logits, scale):
    return torch.log_softmax(f32(scale) * x, -1) if logits else x


def divergence(ins, loss_of, logits, scale, dloss):
    """Losses of rows by a formula of log q and log p, and the gradient by input. Rows of weight 0 are 0."""
    x = tensor(ins["input"], True)
    loss = loss_of(logs_of(x, logits, scale), tensor(ins["target"]))
    weight = tensor(ins.get("weight", np.ones(len(loss))))
    loss = torch.where(weight != 0, loss * weight, 0.0)
    loss.backward(tensor(dloss))
    return loss.detach().numpy(), x.grad.numpy()


def words_of_divergence(dtype, r, v, logits, scale, ins, more=""):
    return f"T={dtype} r={r} v={v} logits={int(logits)} logit_scale={scale}{more}" + \
        (" +weight" if "weight" in ins else "")


def kl_calls(draw):
    """Name, words, inputs, and the loss of log q and the target."""
    for name, dtype, r, v, logits, scale, weighted in DIVERGENCES:
        ins = divergence_inputs(draw, dtype, r, v, logits, weighted)
        yield name, words_of_divergence(dtype, r, v, logits, scale, ins), ins, logits, scale, \
            lambda q, p, l=logits, c=scale: F.kl_div(q, logs_of(p, l, c), reduction="none", log_target=True).sum(-1)
    for logits in (False, True):
        ins = divergence_inputs(draw, "f32", 4, 19, logits, True)
        ins["target"] = draw.uniform((4, 19), 0, 0.2)
        ins["target"][:, ::4] = 0
        yield "probabilities" + " with logits" * logits, \
            words_of_divergence("f32", 4, 19, logits, 0.75, ins, " target_probabilities=1"), ins, logits, 0.75, \
            lambda q, p: F.kl_div(q, p, reduction="none").sum(-1)


def kl_div(draw):
    for name, words, ins, logits, scale, loss_of in kl_calls(draw):
        loss, _ = divergence(ins, loss_of, logits, scale, np.ones(len(ins["input"])))
        yield case(name, words, ins, {"loss": loss})
    with np.errstate(divide="ignore"):
        ins = {"input": np.log([[0.5, 0.5, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]),
               "target": np.log([[0.25, 0.25, 0.5], [1, 0, 0], [1, 0, 0]])}
    ins = {name: rounded(x, "f32") for name, x in ins.items()}
    loss = np.array([np.inf, -ins["input"][1, 0], -ins["input"][2, 0]])
    yield case("classes of probability 0", "T=f32 r=3 v=3", ins, {"loss": loss})


def kl_div_backward(draw):
    for name, words, ins, logits, scale, loss_of in kl_calls(draw):
        dloss = draw.normal(len(ins["input"]))
        _, dinput = divergence(ins, loss_of, logits, scale, dloss)
        yield case(name, words, {**ins, "dloss": dloss}, {"dinput": dinput})


def jensen_shannon(q, p, beta):
    """Agarwal et al. 2024, equation 1, and the two divergences that its limits are taken for."""
    kl = lambda a, b: (a.exp() * (a - b)).sum(-1)  # noqa: E731
    if beta in (0, 1):
        return kl(q, p) if beta else kl(p, q)
    m = (f32(beta) * p.exp() + (1 - f32(beta)) * q.exp()).log()
    return f32(beta) * kl(p, m) + (1 - f32(beta)) * kl(q, m)


def jsd_calls(draw):
    for k, (name, dtype, r, v, logits, scale, weighted) in enumerate(DIVERGENCES):
        for beta in (0.5, 0.1) if k % 2 else (0.5, 0, 1):
            ins = divergence_inputs(draw, dtype, r, v, logits, weighted)
            yield f"{name}, beta {beta}", words_of_divergence(dtype, r, v, logits, scale, ins, f" beta={beta}"), ins, \
                logits, scale, lambda q, p, l=logits, c=scale, b=beta: jensen_shannon(q, logs_of(p, l, c), b)


def jsd(draw):
    for name, words, ins, logits, scale, loss_of in jsd_calls(draw):
        loss, _ = divergence(ins, loss_of, logits, scale, np.ones(len(ins["input"])))
        yield case(name, words, ins, {"loss": loss})


def jsd_backward(draw):
    for name, words, ins, logits, scale, loss_of in jsd_calls(draw):
        dloss = draw.normal(len(ins["input"]))
        _, dinput = divergence(ins, loss_of, logits, scale, dloss)
        yield case(name, words, {**ins, "dloss": dloss}, {"dinput": dinput})


# -------------------------------------------------------------------------------------------------------- policy losses

# name, sequences, tokens, inputs besides logp, clip_low, clip_high, kl_weight, sequence_ratio, mean, packed
POLICIES = (
    ("ppo", 2, 9, "old_logp advantages", 0.2, 0.2, 0, 0, 0, False),
    ("grpo", 3, 11, "old_logp ref_logp returns mask", 0.2, 0.2, 0.04, 0, 1, False),
    ("dapo", 3, 12, "old_logp returns mask", 0.2, 0.28, 0, 0, 0, False),
    ("gspo", 4, 7, "old_logp ref_logp returns mask", 0.05, 0.1, 0.1, 1, 1, False),
    ("gspo, advantages of tokens", 2, 10, "old_logp advantages", 0.1, 0.2, 0, 1, 0, False),
    ("fresh samples", 2, 6, "ref_logp returns advantages", 0.2, 0.2, 0.5, 0, 1, False),
    ("packed", 3, 17, "old_logp ref_logp returns mask", 0.2, 0.25, 0.1, 0, 1, True),
    ("packed, ratios of sequences", 3, 17, "old_logp returns", 0.02, 0.05, 0, 1, 1, True),
)


def policy_inputs(draw, s, t, names, packed):
    rows = 1 if packed else s
    ins = {"logp": draw.uniform((rows, t), -3, 0)}
    for name in names.split():
        ins[name] = draw.normal(s) if name == "returns" else draw.normal((rows, t)) if name == "advantages" else \
            draw.integers((rows, t), 0, 2) if name == "mask" else \
            rounded(ins["logp"] + draw.normal((rows, t), scale=0.3), "f32")
    if packed:
        ins["cu_seqlens"] = np.array([0, 5, 5, 15.0])
    elif "mask" in ins:
        ins["mask"][-1] = 0  # a sequence of which no token counts
    return ins


def policy_losses(ins, s, t, low, high, kl_weight, sequence_ratio, mean, packed):
    """Sequence by sequence, as TRL's GRPOTrainer has the terms."""
    logp = tensor(ins["logp"], True)
    result = []
    for i in range(s):
        first, last = ins["cu_seqlens"][i:i + 2].astype(int) if packed else (0, t)
        part = lambda name, i=i, f=first, l=last: tensor(ins[name])[0 if packed else i, f:l]  # noqa: E731
        own = logp[0 if packed else i, first:last]
        mask = part("mask") != 0 if "mask" in ins else torch.ones(last - first, dtype=torch.bool)
        n = max(int(mask.sum()), 1)
        log_ratio = own - (part("old_logp") if "old_logp" in ins else own.detach())
        if sequence_ratio:
            log_ratio = (torch.where(mask, log_ratio, 0.0).sum() / n).expand(own.shape)
        ratio = log_ratio.exp()
        advantage = (part("advantages") if "advantages" in ins else 0) + \
            (tensor(ins["returns"])[i] if "returns" in ins else 0) + torch.zeros(own.shape, dtype=torch.float64)
        loss = -torch.minimum(ratio * advantage, ratio.clamp(1 - f32(low), 1 + f32(high)) * advantage)
        if "ref_logp" in ins:
            d = part("ref_logp") - own
            loss = loss + f32(kl_weight) * (d.exp() - d - 1)
        result.append(torch.where(mask, loss, 0.0).sum() / (n if mean else 1))
    return logp, torch.stack(result)


def policy_cases(draw):
    for name, s, t, names, low, high, kl_weight, sequence_ratio, mean, packed in POLICIES:
        ins = policy_inputs(draw, s, t, names, packed)
        words = f"T=f32 b={1 if packed else s} t={t} s={s}{' nseq=3' * packed} clip_low={low} clip_high={high} " \
            f"kl_weight={kl_weight} sequence_ratio={sequence_ratio} mean={mean}" + \
            "".join(f" +{n}" for n in ins if n != "logp")
        logp, loss = policy_losses(ins, s, t, low, high, kl_weight, sequence_ratio, mean, packed)
        yield name, words, ins, logp, loss


def policy_loss(draw):
    for name, words, ins, _, loss in policy_cases(draw):
        yield case(name, words, ins, {"loss": loss.detach().numpy()})


def policy_loss_backward(draw):
    for name, words, ins, logp, loss in policy_cases(draw):
        dloss = draw.normal(len(loss))
        loss.backward(tensor(dloss))
        yield case(name, words, {**ins, "dloss": dloss}, {"dlogp": logp.grad.numpy()})
