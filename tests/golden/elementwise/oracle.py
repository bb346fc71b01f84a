# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops: definitions in 50 digits by mpmath and derivatives by its differences, PyTorch beside them; types by
ml_dtypes; Philox by randomgen. gaussian_axpy's numbers in NumPy's f32, which rounds each operation by itself, beside
the formula in mpmath."""
import mpmath
import numpy as np
import torch
import torch.nn.functional as F

from vectors import FLOATS, case, codes, dropout_factors, f32, philox, rounded

mpmath.mp.dps = 50


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


def each(function, *arrays):
    """The function of mpmath numbers on each element."""
    flat = [float(function(*(mpmath.mpf(float(v)) for v in values)))
            for values in zip(*(np.asarray(a).reshape(-1) for a in arrays))]
    return np.array(flat).reshape(np.shape(arrays[0]))


def close(mine, theirs):
    """PyTorch has no digits left where 1 + erf or 1 + tanh cancel: there mpmath's are better, and the two agree to its
    absolute error."""
    theirs = theirs.detach().numpy()
    assert np.abs(mine - theirs).max() < 1e-13 * max(1, np.abs(theirs).max())
    return mine


# ---------------------------------------------------------------------------------------------------------- activations


def swiglu_of(gate, up):
    return gate / (1 + mpmath.exp(-gate)) * up


def wide(draw, shape, dtype):
    """Around zero, and in the first row into both tails."""
    x = draw.normal(shape, dtype, scale=2)
    x[0] = rounded(np.linspace(-11, 11, shape[1]), dtype)
    return x


def swiglu(draw):
    for dtype, r, n in (("f32", 2, 37), ("bf16", 2, 40), ("f16", 2, 24)):
        gate, up = wide(draw, (r, n), dtype), draw.normal((r, n), dtype)
        y = close(each(swiglu_of, gate, up), F.silu(tensor(gate)) * tensor(up))
        yield case(dtype, f"T={dtype} r={r} n={n}", {"gate": gate, "up": up}, {"y": y})


def swiglu_backward(draw):
    for dtype, r, n in (("f32", 2, 37), ("bf16", 2, 40), ("f16", 2, 24)):
        dy, gate, up = draw.normal((r, n), dtype), wide(draw, (r, n), dtype), draw.normal((r, n), dtype)
        g, u = tensor(gate, True), tensor(up, True)
        (F.silu(g) * u).backward(tensor(dy))
        dgate = close(dy * each(lambda a, b: mpmath.diff(lambda x: swiglu_of(x, b), a), gate, up), g.grad)
        dup = close(dy * each(lambda a: swiglu_of(a, 1), gate), u.grad)
        yield case(dtype, f"T={dtype} r={r} n={n}", {"dy": dy, "gate": gate, "up": up}, {"dgate": dgate, "dup": dup})


# Hendrycks and Gimpel 2016, section 2: x times the normal distribution, and its approximation.
GELU = {
    "erf": lambda x: x * mpmath.ncdf(x),
    "tanh": lambda x: x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))),
}
TORCH = {"erf": "none", "tanh": "tanh"}


def gelu(draw):
    for form, dtype, r, n in (("tanh", "f32", 2, 37), ("erf", "f32", 2, 37), ("tanh", "bf16", 2, 40),
                              ("erf", "bf16", 2, 40), ("erf", "f16", 2, 24)):
        x = wide(draw, (r, n), dtype)
        y = close(each(GELU[form], x), F.gelu(tensor(x), approximate=TORCH[form]))
        yield case(f"{form} {dtype}", f"T={dtype} r={r} n={n} form={form}", {"x": x}, {"y": y})


def gelu_backward(draw):
    for form, dtype, r, n in (("tanh", "f32", 2, 37), ("erf", "f32", 2, 37), ("tanh", "bf16", 2, 40),
                              ("erf", "bf16", 2, 40), ("tanh", "f16", 2, 24)):
        dy, x = draw.normal((r, n), dtype), wide(draw, (r, n), dtype)
        leaf = tensor(x, True)
        F.gelu(leaf, approximate=TORCH[form]).backward(tensor(dy))
        dx = close(dy * each(lambda a: mpmath.diff(GELU[form], a), x), leaf.grad)
        yield case(f"{form} {dtype}", f"T={dtype} r={r} n={n} form={form}", {"dy": dy, "x": x}, {"dx": dx})


# Shazeer 2020, eq. 6, by either form: Hugging Face's T5DenseGatedActDense (T5 v1.1, gelu_new) and GemmaMLP
# (gelu_pytorch_tanh) are the tanh, ModernBertMLP (gelu) the erf.
GEGLU = (
    ("tanh", "f32", 2, 37),
    ("erf", "f32", 2, 37),
    ("tanh", "bf16", 2, 40),
    ("erf", "bf16", 3, 24),
    ("erf", "f16", 2, 24),
    ("tanh", "f16", 1, 29),
)


def geglu(draw):
    for form, dtype, r, n in GEGLU:
        gate, up = wide(draw, (r, n), dtype), draw.normal((r, n), dtype)
        theirs = F.gelu(tensor(gate), approximate=TORCH[form]) * tensor(up)
        y = close(each(lambda a, b: GELU[form](a) * b, gate, up), theirs)
        yield case(f"{form} {dtype}", f"T={dtype} r={r} n={n} form={form}", {"gate": gate, "up": up}, {"y": y})
    for form in GELU:
        gate, up = (draw.normal((20000,), "bf16", scale=s) for s in (1, 2.0**-124))
        gate = -np.abs(gate)
        steps = np.abs(F.gelu(tensor(gate), approximate=TORCH[form]).numpy() * up) * 2.0**133
        beside = np.where((steps > 32) & (steps < 128), np.abs(steps % 1 - 0.5) / (steps + 1), 1)
        gate, up = (x[np.argsort(np.abs(beside - 2.0**-18))[:40]].reshape(1, 40) for x in (gate, up))
        y = each(lambda a, b: GELU[form](a) * b, gate, up)
        yield case(f"{form} bf16, y beside the middle of two subnormal numbers", f"T=bf16 r=1 n=40 form={form}",
                   {"gate": gate, "up": up}, {"y": y})


def geglu_backward(draw):
    for form, dtype, r, n in GEGLU:
        dy, gate, up = draw.normal((r, n), dtype), wide(draw, (r, n), dtype), draw.normal((r, n), dtype)
        g, u = tensor(gate, True), tensor(up, True)
        (F.gelu(g, approximate=TORCH[form]) * u).backward(tensor(dy))
        dgate = close(dy * up * each(lambda a: mpmath.diff(GELU[form], a), gate), g.grad)
        dup = close(dy * each(GELU[form], gate), u.grad)
        words, ins = f"T={dtype} r={r} n={n} form={form}", {"dy": dy, "gate": gate, "up": up}
        yield case(f"{form} {dtype}", words, ins, {"dgate": dgate, "dup": dup})


# So et al. 2021, section 3. The first row begins with zeros, NaN, Inf, ends of the type, and squares that f16 holds.
RELU2 = (("f32", 3, 37), ("bf16", 2, 40), ("f16", 3, 25))
LARGEST = {"f32": 3.4028234663852886e38, "bf16": 3.3895313892515355e38, "f16": 65504.0}


def ends(draw, shape, dtype):
    x = draw.normal(shape, dtype, scale=2)
    some = [0.0, -0.0, np.nan, np.inf, -np.inf, LARGEST[dtype], -LARGEST[dtype], 2.0**-24, -(2.0**-24), 255.875, 1.0]
    x[0, : len(some)] = rounded(some, dtype)
    return x


def relu2(draw):
    for dtype, r, n in RELU2:
        x = ends(draw, (r, n), dtype)
        yield case(dtype, f"T={dtype} r={r} n={n}", {"x": x}, {"y": F.relu(tensor(x)).square().numpy()})


def relu2_backward(draw):
    for dtype, r, n in RELU2:
        dy, x = draw.normal((r, n), dtype), ends(draw, (r, n), dtype)
        dy[0, 11:15] = [np.nan, np.inf, -np.inf, 0]
        leaf = tensor(x, True)
        F.relu(leaf).square().backward(tensor(dy))
        dx, theirs = (2 * F.relu(tensor(x)) * tensor(dy)).numpy(), leaf.grad.numpy()
        # PyTorch's own derivative is 0 for x <= 0, also where dy is NaN or Inf: by the formula that is NaN.
        assert np.array_equal(np.where(np.isfinite(dy) | (x > 0), dx, 0), theirs, equal_nan=True)
        yield case(dtype, f"T={dtype} r={r} n={n}", {"dy": dy, "x": x}, {"dx": dx})


# ------------------------------------------------------------------------------------------------------ add, mul, scale


def add(draw):
    for name, (ta, tb, ty), words, a_shape, b_shape, alpha, beta in (
        ("plain", ("f32", "f32", "f32"), "r=3 n=20", (3, 20), (3, 20), 1, 1),
        ("weighted, mixed types", ("bf16", "f32", "f16"), "r=3 n=20 alpha=-0.3 beta=2.5", (3, 20), (3, 20), -0.3, 2.5),
        ("a row on all", ("f32", "f32", "bf16"), "r=4 n=9", (4, 9), (9,), 1, 1),
        ("a column on all, alpha 0", ("f32", "bf16", "f32"), "q=2 r=4 n=9 alpha=0 beta=-2", (2, 4, 9), (4, 1), 0, -2),
        ("a row and a column", ("f32", "f32", "f32"), "r=4 n=9 alpha=2", (4, 1), (1, 9), 2, 1),
    ):
        a, b = draw.normal(a_shape, ta), draw.normal(b_shape, tb)
        yield case(name, f"A={ta} B={tb} T={ty} {words}", {"a": a, "b": b}, {"y": f32(alpha) * a + f32(beta) * b})


def mul(draw):
    for name, (ta, tb, ty), words, a_shape, b_shape, alpha in (
        ("plain", ("f32", "f32", "f32"), "r=3 n=20", (3, 20), (3, 20), 1),
        ("mixed types", ("bf16", "f32", "f16"), "r=3 n=20 alpha=-0.3", (3, 20), (3, 20), -0.3),
        ("a row on all", ("f32", "f32", "bf16"), "r=4 n=9", (4, 9), (9,), 1),
        ("a column on all", ("f32", "bf16", "f32"), "q=2 r=4 n=9 alpha=3", (2, 4, 9), (4, 1), 3),
    ):
        a, b = draw.normal(a_shape, ta), draw.normal(b_shape, tb)
        yield case(name, f"A={ta} B={tb} T={ty} {words}", {"a": a, "b": b}, {"y": f32(alpha) * (a * b)})


def scale(draw):
    for name, tx, ty, words, shape, full, alpha, shift in (
        ("plain", "f32", "f32", "r=3 n=20", (3, 20), (3, 20), 1, 0),
        ("shifted after it is scaled", "bf16", "f32", "r=3 n=20 alpha=-0.3 shift=-0.7", (3, 20), (3, 20), -0.3, -0.7),
        ("alpha 0", "f32", "f16", "r=3 n=20 alpha=0 shift=1", (3, 20), (3, 20), 0, 1),
        ("a row for all", "f16", "bf16", "r=4 n=9 alpha=2 shift=0.5", (9,), (4, 9), 2, 0.5),
    ):
        x = draw.normal(shape, tx)
        yield case(name, f"X={tx} T={ty} {words}", {"x": x}, {"y": np.broadcast_to(f32(alpha) * x + f32(shift), full)})


# -------------------------------------------------------------------------------------------------------- dropout, cast


def dropout(draw):
    for dtype, words, shape, p, seed, offset in (
        ("f32", "r=5 n=29", (5, 29), 0.25, 0, 0),
        ("bf16", "r=4 n=40", (4, 40), 0.5, 42, 7),
        ("f16", "q=2 r=3 n=19", (2, 3, 19), 0.9, 1234567890123456789, 4294967296),
        ("f32", "r=3 n=21", (3, 21), 0.1, 2**64 - 1, 2**64 - 2),
        ("f32", "r=2 n=20", (2, 20), 0, 3, 4),
    ):
        x = draw.normal(shape, dtype)
        factors = dropout_factors(shape, p, seed, offset)
        y = np.where(factors == 0, 0, x * factors)
        mask = (factors != 0).astype(np.float64)
        x = np.where((factors == 0) & (draw.integers(shape, 0, 4) == 0), np.nan, x)  # dropped, thus 0 all the same
        words = f"T={dtype} {words} p={p} seed={seed} offset={offset} +mask"
        yield case(f"{dtype}, p = {p}", words, {"x": x}, {"y": y, "mask": mask})
    for key, stream, offset in ((-3, -5, 9), (2**52 + 1, 2**33, 2**64 - 2**32)):
        x, p = draw.normal((3, 18)), 0.4
        factors = dropout_factors(x.shape, p, key % 2**64, (offset + stream) % 2**64)
        words = f"T=f32 r=3 n=18 p={p} offset={offset} +philox +mask"
        yield case(f"the key {key} in a tensor", words, {"x": x, "philox": np.array([key, stream])},
                   {"y": x * factors, "mask": (factors != 0).astype(np.float64)})
    x = np.array([[1, -2, np.nan, np.inf, 0]])
    nothing = np.zeros((1, 5))
    yield case("all dropped", "T=f32 r=1 n=5 p=1 seed=3 +mask", {"x": x}, {"y": nothing, "mask": nothing})


def hard(draw, source, target):
    """Values about each of some neighbours of the target type: both, the middle, and beside the middle as near as the
    source type has any."""
    if target in ("f32", "f64"):
        if source != "f64":
            return rounded(draw.normal(24, "f32", scale=4), source)
        table = np.float32([1, 1 + 2**-23, 3, 2**-126, 2**-149, 2**-149 * 3, 3.4028235e38,
                            3.4028233e38]).astype(np.float64)
        low, high = table, np.nextafter(np.float32(table), np.float32(0)).astype(np.float64)
    else:
        table = codes(target)[: len(codes(target)) // 2]
        table = table[np.isfinite(table)]
        count = len(table)
        chosen = {0, 1, 2, 3, count - 3,
                  count - 2} | set(draw.integers(9 if count > 200 else 14, 0, count - 1).astype(int))
        low, high = table[sorted(chosen)], table[[k + 1 for k in sorted(chosen)]]
    middle = (low + high) / 2
    step = FLOATS[source]
    with np.errstate(all="ignore"):
        at = middle.astype(step)
        if source in ("f16", "f32", "f64"):
            beside = [np.nextafter(at, step(0)).astype(np.float64), np.nextafter(at, step(np.inf)).astype(np.float64)]
        else:
            beside = []
    held = rounded(np.concatenate([low, high, middle, *beside]), source)
    return np.unique(held[np.isfinite(held)])


def edges(source, target):
    """Zeros, the ends of the range of the target, half a step beyond, far beyond, Inf and NaN, as far as the source has
    them."""
    if target == "f64":
        ends = []
    elif target == "f32":
        ends = [3.4028234663852886e38, 3.4028235677973366e38, 3.402823567797337e38, 1e39, 7.006492321624085e-46,
                7.1e-46, 1e-300]
    else:
        table = codes(target)[: len(codes(target)) // 2]
        table = table[np.isfinite(table)]
        largest, step = table[-1], table[-1] - table[-2]
        ends = [largest, largest + step / 4, largest + step / 2, largest + 0.75 * step, largest + step, 2 * largest,
                1e30, table[1] / 2, table[1] * 0.75, table[1] / 4]
    ends = np.array(ends)
    held = rounded(ends, source)
    ends = np.concatenate([ends[np.isclose(held, ends, rtol=1e-7, atol=0)], [0.0, 1.0]])
    ends = rounded(np.concatenate([ends, -ends]), source)
    special = [np.nan] + ([np.inf, -np.inf] if np.isinf(codes_of(source)).any() else [])
    return np.concatenate([ends, special])


def codes_of(dtype):
    return np.array([np.inf]) if dtype in ("f32", "f64") else codes(dtype)


def saturated(x, y, target):
    largest = {"f32": 3.4028234663852886e38, "f64": np.inf}.get(target)
    if largest is None:
        table = codes(target)
        largest = table[np.isfinite(table)].max()
    return np.where(np.isnan(x), np.nan, np.where(np.isfinite(y), y, np.copysign(largest, x)))


def cast(draw):
    pairs = [(s, t) for s in ("f64", "f32") for t in ("f32", "f16", "bf16", "e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz")]
    pairs += [("f16", "e4m3"), ("f16", "e5m2"), ("f16", "bf16"), ("bf16", "f16"), ("bf16", "e4m3"),
              ("bf16", "e5m2fnuz")]
    pairs += [("e5m2", "e4m3"), ("e4m3fnuz", "e5m2"), ("e5m2", "e4m3fnuz")]
    # By way of f32 these would be a tie: f64 is rounded once.
    twice = {"bf16": [1 + 2**-8 + 2**-40, 1 + 3 * 2**-8 - 2**-40], "f16": [1 + 2**-11 + 2**-40],
             "e4m3": [1 + 2**-4 + 2**-40, 1 + 3 * 2**-4 - 2**-40], "e5m2": [1 + 2**-3 + 2**-40]}
    for source, target in pairs:
        signs = draw.integers(400, 0, 2) * 2 - 1
        x = hard(draw, source, target)
        x = np.concatenate([rounded(x * signs[: len(x)], source), edges(source, target),
                            twice.get(target, []) if source == "f64" else []])
        y = rounded(x, target)
        if source != "f64":
            with np.errstate(all="ignore"):
                theirs = x.astype(FLOATS[source]).astype(FLOATS[target]).astype(np.float64)
            assert np.array_equal(y, theirs, equal_nan=True), (source, target)
        yield case(f"{source} to {target}", f"X={source} T={target} n={len(x)}", {"x": x}, {"y": y})
        if target in ("f16", "e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz") and source in ("f64", "f32", "bf16"):
            x = np.concatenate([edges(source, target), draw.normal(8, "bf16")])
            yield case(f"{source} to {target}, saturating", f"X={source} T={target} n={len(x)} saturate=1", {"x": x},
                       {"y": saturated(x, rounded(x, target), target)})
    # Each code of the small types, widened.
    for source in ("e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz"):
        x = codes(source)
        yield case(f"all of {source}", f"X={source} T=f32 n=256", {"x": x}, {"y": x})
    for source in ("bf16", "f16"):
        x = codes(source)[::331]
        yield case(f"some of {source}", f"X={source} T=f64 n={len(x)}", {"x": x}, {"y": x})


# ---------------------------------------------------------------------------------------------------------------- noise

LOGS = [np.float32(c) for c in (6.74926788e-2, -1.16700977e-1, 1.18835486e-1, -1.24062337e-1, 1.42203584e-1,
                                -1.66679889e-1, 2.00020716e-1, -2.50000089e-1, 3.33333135e-1)]
COSINE = [np.float32(c) for c in (8.93573218e-4, -2.08552536e-2, 2.53668517e-1, -1.23370051)]
SINE = [np.float32(c) for c in (-4.68931627e-3, 7.97135457e-2, -6.45966709e-1, 1.57079637)]


def horner(coefficients, x):
    p = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        p = p * x + c
    return p


def box_muller(a, b):
    """Of words a and b, all in f32: NumPy fuses nothing."""
    one = np.float32
    m, e = np.frexp((a >> 1 | 1).astype(np.int32).astype(np.float32))
    low = m < one(float.fromhex("0x1.6a09e6p-1"))
    f, k = np.where(low, m * 2, m).astype(np.float32) - one(1), (e - low - 31).astype(np.float32)
    f2 = f * f
    rest = f2 * one(-0.5) + (f2 * f * horner(LOGS, f) + k * one(-2.12194440e-4))
    q = one(-2) * (k * one(float.fromhex("0x1.63p-1")) + (f + rest))
    half, r = one(0.5) * q, (np.uint32(0x5F3759DF) - (q.view(np.uint32) >> 1)).astype(np.uint32).view(np.float32)
    for _ in range(3):
        r = r * (one(1.5) - half * r * r)
    r = q * r
    quarter = ((b.astype(np.uint64) + 2**29) % 2**32 >> 30).astype(np.int64)
    turn = (b.astype(np.int64) - (quarter << 30) + 2**31) % 2**32 - 2**31
    x = turn.astype(np.float32) * one(2.0**-30)
    x2 = x * x
    cosine, sine = x2 * horner(COSINE, x2) + one(1), x * horner(SINE, x2)
    first = np.choose(quarter, [cosine, -sine, -cosine, sine])
    second = np.choose(quarter, [sine, cosine, -sine, -cosine])
    assert all(v.dtype == np.float32 for v in (f, q, r, x, first))
    return r * first, r * second


def gaussians(count, seed, offset):
    """The bits that every device must have, near what the formula says of the same words."""
    words = np.array([philox(seed, offset, b) for b in range(-(-count // 4))], dtype=np.uint32).reshape(-1, 2)
    z = np.stack(box_muller(words[:, 0], words[:, 1]), -1).reshape(-1)
    for k, (a, b) in enumerate(words.tolist()):
        u = mpmath.mpf(float(np.float32(a // 2 | 1))) / 2**31
        size, angle = mpmath.sqrt(-2 * mpmath.log(u)), 2 * mpmath.pi * b / 2**32
        for mine, exact in ((z[2 * k], size * mpmath.cos(angle)), (z[2 * k + 1], size * mpmath.sin(angle))):
            assert abs(float(mine) - exact) <= 10 * mpmath.mpf(2)**-24 * abs(exact)
    return z[:count]


def gaussian_axpy(draw):
    for name, dtype, shape, alpha, seed, offset, key in (
        ("bits of z", "f32", (8, 128), 1.0, 1234567890123456789, 2**32 + 7, None),
        ("perturbed", "f32", (3, 37), 1e-3, 42, 0, None),
        ("taken away", "f32", (3, 37), -2e-3, 42, 0, None),
        ("bf16", "bf16", (2, 5, 23), 0.1, 2**63 + 5, 3, None),
        ("f16", "f16", (2, 2, 2, 17), -0.3, 7, 2**40, None),
        ("key in a tensor", "f32", (2, 33), 0.5, 0, 11, (99, 2**33)),
    ):
        x = draw.normal(shape, dtype) * (name != "bits of z")
        told = key or (seed, 0)
        z = gaussians(x.size, told[0], told[1] + offset).reshape(shape)
        y = rounded((x.astype(np.float32) + np.float32(alpha) * z).astype(np.float64), dtype)
        sizes = " ".join(f"{d}={n}" for d, n in zip("sqrn"[4 - len(shape):], shape))
        words, ins = f"T={dtype} {sizes} offset={offset}", {"x": x}
        if key:
            ins["philox"], words = np.array(key, dtype=np.float64), words + " +philox"
            ins["alpha_tensor"], words = np.array([f32(alpha)]), words + " +alpha_tensor"
        else:
            words += f" seed={seed} alpha={alpha}"
        yield case(name, words, ins, {"y": y})
