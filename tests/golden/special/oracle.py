# SPDX-License-Identifier: Apache-2.0
"""Modified Bessel functions by mpmath at 40 digits, their derivatives by DLMF 10.29.1; von Mises and Fisher's
normalizer by its integral over the sphere where that is known in closed form, else by mpmath's Bessel functions."""
import mpmath as mp
import numpy as np

from vectors import case, rounded

ORDERS = (0, 1e-9, 0.25, 0.5, 1, 1.75, 2.5, 7, 11.3, 19.5, 23.9, 25, 64, 300.5)
ARGUMENTS = (1e-200, 3e-6, 0.1, 0.9, 1.1, 2, 4.9, 5.1, 9, 17.5, 24.5, 70, 650, 12345.678)
LARGE = ((1e6, 662743.4), (1e6, 1e-5), (1e6, 1e8), (0, 1e8), (1e5, 1e5), (3000, 1989), (0.5, 1e8), (12345.5, 1))
INF, NAN = np.inf, np.nan


def points(dtype):
    """All pairs of orders and arguments, and some large ones."""
    pairs = [(v, x) for v in ORDERS for x in ARGUMENTS if dtype == "f64" or x > 1e-30] + list(LARGE)
    v, x = np.array(pairs).T
    return rounded(v, dtype), rounded(x, dtype)


def debye(v, x, sign):
    """log I_v(x), or with sign -1 log K_v(x), by DLMF 10.41.3 and 4 with u_k by 10.41.9, where mpmath's series would
    take too long."""
    p = v / mp.hypot(v, x) if v else mp.mpf(0)
    w, u, total = mp.hypot(v, x), {0: mp.mpf(1)}, mp.mpf(1)  # u_k(p) / p^k by powers of p^2
    for k in range(12):
        after = {}
        for i, a in u.items():
            j = k + 2 * i
            after[i] = after.get(i, 0) + a * (mp.mpf(j) / 2 + mp.mpf(1) / (8 * (j + 1)))
            after[i + 1] = after.get(i + 1, 0) - a * (mp.mpf(j) / 2 + mp.mpf(5) / (8 * (j + 3)))
        u = after
        total += sum(a * p ** (2 * i) for i, a in u.items()) / (sign * w) ** (k + 1)
    eta = w - v * mp.log((v + w) / x)
    return sign * eta - mp.log(2 * mp.pi * w) / 2 + (0 if sign > 0 else mp.log(mp.pi)) + mp.log(total)


def log_bessel(v, x, sign):
    v, x = mp.mpf(v), mp.mpf(x)
    if mp.hypot(v, x) > 2000:
        return debye(v, x, sign)
    return mp.log(mp.besseli(v, x) if sign > 0 else mp.besselk(v, x))


def slope(v, x, sign):
    """Of the logarithm: I' = (I_(v-1) + I_(v+1))/2 by I_v + v/x alike, K' = -K_(v-1) - v/x K_v."""
    v, x = mp.mpf(v), mp.mpf(x)
    other = mp.exp(log_bessel(v + 1, x, sign) - log_bessel(v, x, sign))
    return v / x + other if sign > 0 else v / x - other


def each(f, *arrays):
    with mp.workdps(60):
        return np.array([float(f(*a)) for a in zip(*arrays)])


def forward(draw, sign):
    for dtype in ("f64", "f32"):
        v, x = points(dtype)
        y = each(lambda a, b: log_bessel(a, b, sign), v, x)
        yield case(f"points {dtype}", f"T={dtype} n={len(x)}", {"v": v, "x": x}, {"y": y})
    v, x = rounded(np.abs(draw.normal((3, 1), scale=4)), "f64"), rounded(np.abs(draw.normal((3, 5), scale=4)), "f64")
    y = each(lambda a, b: log_bessel(a, b, sign), np.broadcast_to(v, x.shape).ravel(), x.ravel()).reshape(x.shape)
    yield case("an order a row", "T=f64 r=3 n=5", {"v": v, "x": x}, {"y": y})


def backward(draw, sign, limits):
    for dtype in ("f64", "f32"):
        v, x = points(dtype)
        v, x = v[::2], x[::2]
        dy = draw.normal(len(x), dtype)
        with mp.workdps(60):
            dx = np.array([float(mp.mpf(d) * slope(a, b, sign)) for d, a, b in zip(dy, v, x)])
        if dtype == "f32":
            keep = np.abs(dx) < 1e38
            dy, v, x, dx = dy[keep], v[keep], x[keep], dx[keep]
        yield case(f"points {dtype}", f"T={dtype} n={len(x)}", {"dy": dy, "v": v, "x": x}, {"dx": dx})
    v, x, dx = (np.array(c, dtype=float) for c in zip(*limits))
    yield case("limits", f"T=f64 n={len(x)}", {"dy": np.full(len(x), 2.0), "v": v, "x": x}, {"dx": 2 * dx})


def log_iv(draw):
    yield from forward(draw, 1)
    v, x, y = (np.array(c, dtype=float) for c in zip(
        (0, 0, 0), (0.5, 0, -INF), (3, 0, -INF), (2, INF, INF), (INF, 2, -INF), (INF, INF, NAN), (-1, 2, NAN),
        (1, -2, NAN), (NAN, 1, NAN), (1, NAN, NAN), (0, 1e-170, 0), (40, 0, -INF)))
    yield case("limits", f"T=f64 n={len(x)}", {"v": v, "x": x}, {"y": y})


def log_kv(draw):
    yield from forward(draw, -1)
    v, x, y = (np.array(c, dtype=float) for c in zip(
        (0, 0, INF), (0.5, 0, INF), (2, INF, -INF), (INF, 2, INF), (INF, INF, NAN), (1, -2, NAN), (NAN, 1, NAN),
        (1, NAN, NAN), (-0.5, 2, float(mp.log(mp.besselk(0.5, 2)))), (-30, 2, float(mp.log(mp.besselk(30, 2)))),
        (-INF, 1, INF)))
    yield case("limits", f"T=f64 n={len(x)}", {"v": v, "x": x}, {"y": y})


def log_iv_backward(draw):
    yield from backward(draw, 1, ((0, 0, 0), (0.5, 0, INF), (2, INF, 1), (INF, 2, INF), (INF, INF, NAN), (-1, 2, NAN),
                                  (1, -2, NAN), (NAN, 1, NAN), (1, NAN, NAN)))


def log_kv_backward(draw):
    yield from backward(draw, -1, ((0, 0, -INF), (0.5, 0, -INF), (2, INF, -1), (INF, 2, -INF), (-INF, 2, -INF),
                                   (INF, INF, NAN), (1, -2, NAN), (NAN, 1, NAN), (1, NAN, NAN)))


def log_norm(d, kappa):
    """Of the circle and of the sphere, on which the density's integral is 2 pi I_0 and 4 pi sinh(kappa)/kappa; of
    others by Banerjee et al. 2005."""
    kappa = mp.mpf(kappa)
    if kappa == 0:
        return mp.log(mp.gamma(mp.mpf(d) / 2) / (2 * mp.pi ** (mp.mpf(d) / 2)))
    if d == 3:
        return mp.log(kappa / (4 * mp.pi * mp.sinh(kappa)))
    v = mp.mpf(d) / 2 - 1
    return v * mp.log(kappa) - log_bessel(v, kappa, 1) - (v + 1) * mp.log(2 * mp.pi)


KAPPAS = (0, 1e-9, 0.01, 0.7, 3, 4.99, 11, 23, 40, 311.5, 1e4, 1e8)


def vmf_log_norm(draw):
    for dtype in ("f64", "f32"):
        for d in (2, 3, 4, 18, 49, 50, 768, 1000000):
            kappa = rounded(np.array(KAPPAS), dtype)
            y = each(lambda k: log_norm(d, k), kappa)
            yield case(f"dimension {d} {dtype}", f"T={dtype} n={len(kappa)} dimension={d}", {"kappa": kappa}, {"y": y})
    kappa, y = np.array([INF, -1, NAN]), np.array([-INF, NAN, NAN])
    yield case("limits", "T=f64 n=3 dimension=5", {"kappa": kappa}, {"y": y})


def vmf_log_norm_backward(draw):
    for dtype in ("f64", "f32"):
        for d in (2, 3, 4, 18, 49, 50, 768, 1000000):
            kappa = rounded(np.array(KAPPAS), dtype)
            dy, v = draw.normal(len(kappa), dtype), mp.mpf(d) / 2 - 1
            with mp.workdps(60):
                dkappa = [float(-g * mp.exp(log_bessel(v + 1, k, 1) - log_bessel(v, k, 1))) if k else 0.0
                          for g, k in zip(dy, kappa)]
            yield case(f"dimension {d} {dtype}", f"T={dtype} n={len(kappa)} dimension={d}", {"dy": dy, "kappa": kappa},
                       {"dkappa": np.array(dkappa)})
    yield case("limits", "T=f64 n=4 dimension=5", {"dy": np.full(4, 3.0), "kappa": np.array([INF, -1, NAN, 0])},
               {"dkappa": np.array([-3.0, NAN, NAN, 0])})
