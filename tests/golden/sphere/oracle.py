# SPDX-License-Identifier: Apache-2.0
"""Steps over a sphere by NumPy in float64, as the papers write them: whole fields of fluxes, from which their
divergence is taken; sides of the grid by np.sin; columns that go round by np.roll."""
import numpy as np

from vectors import case, f32


def grid(theta, t):
    """Colatitudes, sines of rows and of sides between them, widths of cells."""
    th = np.linspace(0, np.pi, t) if theta is None else theta
    middle = (th[1:] + th[:-1]) / 2
    width = np.empty(t)
    width[1:-1] = middle[1:] - middle[:-1]
    width[0], width[-1] = th[1] - th[0], th[-1] - th[-2]
    return th, np.sin(th), np.sin(middle), width


def uneven(draw, t):
    steps = draw.random.uniform(0.6, 1.4, t - 1)
    th = np.concatenate(([0], np.cumsum(steps))) / steps.sum() * np.pi
    th[-1] = np.pi
    return th


def diffused(f, nu, theta):
    """div(nu grad f) of t by p."""
    t, p = f.shape
    th, sine, side, width = grid(theta, t)
    d = 2 * np.pi / p
    nu_rows = (nu + np.roll(nu, -1, axis=1)) / 2  # at the sides between rows
    south = side[:, None] * nu_rows * (f[1:] - f[:-1]) / (th[1:] - th[:-1])[:, None]
    nu_columns = (nu[1:] + nu[:-1]) / 2  # at the sides before columns, of inner rows
    east = nu_columns * (f[1:-1] - np.roll(f, 1, axis=1)[1:-1]) / d
    out = np.empty_like(f)
    out[1:-1] = (south[1:] - south[:-1]) / (sine * width)[1:-1, None] + \
        (np.roll(east, -1, axis=1) - east) / d / (sine[1:-1, None] ** 2)
    nu_pairs = nu + np.roll(nu, -1, axis=1)
    out[0] = (nu_pairs[0] * (f[1] - f[0])).sum() * d / (np.pi * (th[1] - th[0]) ** 2)
    out[-1] = (nu_pairs[-1] * (f[-2] - f[-1])).sum() * d / (np.pi * (th[-1] - th[-2]) ** 2)
    return out


def rkl2(f, rate, dt, s):
    """Meyer, Balsara and Aslam 2014, equations 16 and 17."""
    def b(j):
        return 1 / 3 if j < 2 else (j**2 + j - 2) / (2 * j * (j + 1))
    w = 4 / (s**2 + s - 2)
    first = rate(f)
    before, last = f, f + b(1) * w * dt * first
    for j in range(2, s + 1):
        mu, nu = (2 * j - 1) / j * b(j) / b(j - 1), -(j - 1) / j * b(j) / b(j - 2)
        tilde = mu * w
        gamma = -(1 - b(j - 1)) * tilde
        before, last = last, mu * last + nu * before + (1 - mu - nu) * f + tilde * dt * rate(last) + gamma * dt * first
    return last


def sphere_diffuse(draw):
    for name, dtype, r, t, p, dt, stages, shared, own_rows in (
        ("even rows", "f64", 1, 6, 8, 0.01, 3, False, False), ("uneven rows", "f64", 2, 7, 5, 0.02, 5, False, True),
        ("one diffusivity", "f32", 1, 5, 9, 0.005, 7, True, False), ("two stages", "f64", 1, 4, 6, 0.1, 2, False, True),
        ("few columns", "f64", 1, 5, 2, 0.05, 3, False, False), ("one column", "f64", 1, 4, 1, 0.05, 4, False, True),
        ("three rows", "f32", 2, 3, 7, 0.03, 3, False, True),
    ):
        f = draw.normal((r, t, p), dtype)
        nu = draw.uniform((1, 1) if shared else (t - 1, p), 0.5, 1.5, dtype)
        ins = {"f": f, "nu": nu}
        words = f"T={dtype} r={r} t={t} p={p} dt={dt} stages={stages}"
        if own_rows:
            ins["theta"], words = uneven(draw, t), words + " +theta"
        whole = np.broadcast_to(nu, (t - 1, p))
        y = np.stack([rkl2(one, lambda x: diffused(x, whole, ins.get("theta")), f32(dt), stages) for one in f])
        yield case(name, words, ins, {"y": y})


def weno(f, v, d, axis_round):
    """Fluxes through the sides of cells along the first axis: side i between cells i - 1 and i, v_i of it. Without
    `axis_round` there are those of sides 2 to n - 2, and sides 1 to n - 1 have velocities."""
    n = len(f)

    def cell(x, i):
        return x[i % n]

    def side(i):
        return v[i % n] if axis_round else v[min(max(i, 1), n - 1)]

    def alpha(i):
        return np.max([np.abs(side(j)) for j in range(i - 2, i + 4) if axis_round or 1 <= j <= n - 1], axis=0)

    flux = {}
    for i in range(n) if axis_round else range(2, n - 1):
        lp = {j: cell(f, j) * (side(j + 1) - alpha(j)) / 2 for j in (i - 1, i, i + 1)}
        ln = {j: cell(f, j) * (side(j) + alpha(j)) / 2 for j in (i - 2, i - 1, i)}
        m = {j: cell(d, j) / (cell(d, j - 1) + cell(d, j)) for j in (i - 1, i)}
        q = {j: cell(d, j) / (cell(d, j) + cell(d, j + 1)) for j in (i - 1, i)}
        total = {j: cell(d, j - 1) + cell(d, j) + cell(d, j + 1) for j in (i - 1, i)}
        p0m, p1m = (1 + m[i - 1]) * ln[i - 1] - m[i - 1] * ln[i - 2], m[i] * ln[i - 1] + q[i - 1] * ln[i]
        p0p, p1p = (1 + q[i]) * lp[i] - q[i] * lp[i + 1], q[i - 1] * lp[i] + m[i] * lp[i - 1]
        b0m, b1m = 4 * (m[i - 1] * (ln[i - 1] - ln[i - 2])) ** 2, 4 * (q[i - 1] * (ln[i] - ln[i - 1])) ** 2
        b0p, b1p = 4 * (q[i] * (lp[i + 1] - lp[i])) ** 2, 4 * (m[i] * (lp[i] - lp[i - 1])) ** 2
        w0m = cell(d, i) / total[i - 1] / (cell(d, i - 1) + b0m) ** 2
        w1m = (cell(d, i - 2) + cell(d, i - 1)) / total[i - 1] / (cell(d, i - 1) + b1m) ** 2
        w0p = cell(d, i - 1) / total[i] / (cell(d, i) + b0p) ** 2
        w1p = (cell(d, i) + cell(d, i + 1)) / total[i] / (cell(d, i) + b1p) ** 2
        flux[i] = (w0m * p0m + w1m * p1m) / (w0m + w1m) + (w0p * p0p + w1p * p1p) / (w0p + w1p)
    return flux


def upwind(v, before, after):
    return np.where(v >= 0, v * before, v * after)


def advected(f, v_theta, v_phi, theta, order3):
    """div(v f)."""
    t, p = f.shape
    th, sine, side, width = grid(theta, t)
    d = 2 * np.pi / p
    south = upwind(v_theta, f[:-1], f[1:])
    east = upwind(v_phi, np.roll(f, 1, axis=1), f)
    if order3:
        padded = np.concatenate((np.zeros((1, p)), v_theta))  # side i at place i
        for i, flux in weno(f, padded, width, False).items():
            south[i - 1] = flux
        for k, flux in weno(f.T, v_phi.T, np.full(p, d), True).items():
            east[:, k] = flux
    out = np.empty_like(f)
    out[1:-1] = (side[1:, None] * south[1:] - side[:-1, None] * south[:-1]) / (sine * width)[1:-1, None] + \
        ((np.roll(east, -1, axis=1) - east) / d)[1:-1] / sine[1:-1, None]
    out[0] = 2 / (np.pi * (th[1] - th[0])) * (south[0] * d).sum()
    out[-1] = -2 / (np.pi * (th[-1] - th[-2])) * (south[-1] * d).sum()
    return out


def ssprk(f, rate, h, four):
    if not four:
        one = f - h * rate(f)
        two = 3 / 4 * f + 1 / 4 * (one - h * rate(one))
        return 1 / 3 * f + 2 / 3 * (two - h * rate(two))
    one = f - h / 2 * rate(f)
    one = one - h / 2 * rate(one)
    one = 2 / 3 * f + 1 / 3 * one - h / 6 * rate(one)
    return one - h / 2 * rate(one)


def sphere_advect(draw):
    for name, dtype, r, t, p, dt, flux, steps, shared, own_rows in (
        ("upwind", "f64", 1, 6, 8, 0.01, "upwind", "ssprk33", False, False),
        ("upwind, uneven rows", "f64", 2, 5, 7, 0.02, "upwind", "ssprk43", False, True),
        ("weno3", "f64", 1, 7, 8, 0.01, "weno3", "ssprk33", False, False),
        ("weno3, uneven rows", "f64", 2, 8, 7, 0.02, "weno3", "ssprk43", False, True),
        ("weno3, one velocity", "f32", 1, 6, 9, 0.01, "weno3", "ssprk43", True, False),
        ("weno3, few columns", "f64", 1, 6, 2, 0.05, "weno3", "ssprk33", False, True),
        ("weno3, one column", "f64", 1, 5, 1, 0.05, "weno3", "ssprk33", False, True),
        ("weno3, three rows", "f64", 1, 3, 5, 0.05, "weno3", "ssprk43", False, False),
        ("weno3, four rows", "f64", 1, 4, 5, 0.05, "weno3", "ssprk33", False, True),
    ):
        f = draw.normal((r, t, p), dtype)
        v_theta = draw.normal((1, 1) if shared else (t - 1, p), dtype)
        v_phi = draw.normal((1, 1) if shared else (t, p), dtype)
        ins = {"f": f, "v_theta": v_theta, "v_phi": v_phi}
        words = f"T={dtype} r={r} t={t} p={p} dt={dt} flux={flux} steps={steps}"
        if own_rows:
            ins["theta"], words = uneven(draw, t), words + " +theta"
        down, along = np.broadcast_to(v_theta, (t - 1, p)), np.broadcast_to(v_phi, (t, p))
        y = np.stack([ssprk(one, lambda x: advected(x, down, along, ins.get("theta"), flux == "weno3"), f32(dt),
                            steps == "ssprk43") for one in f])
        yield case(name, words, ins, {"y": y})
