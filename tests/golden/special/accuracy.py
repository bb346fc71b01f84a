#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the errors of the special functions in float64 on the CPU, against Arb (python-flint), which bounds its own,
and some of the points against mpmath; prints the largest of each op by regions, beside the bound, and fails above it.
With --speed it times them beside SciPy's ive and kve instead, one thread each.

Usage: accuracy.py LIBTRINE [POINTS [SEED]] | accuracy.py LIBTRINE --speed"""
import ctypes
import sys
import time
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np

F64, UNIT = 0x0240, 2.0**-53


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("rank", c_int32), ("shape", c_int64 * 8),
                ("stride", c_int64 * 8)]


class Options(Structure):
    _fields_ = [("struct_size", c_size_t), ("flags", c_uint32), ("threads", c_int32), ("stream", c_void_p),
                ("kernel", c_char_p)]


class Library:
    def __init__(self, path):
        self.c, self.handle, self.queue = ctypes.CDLL(path), c_void_p(), c_void_p()
        self.c.trine_error_message.restype = c_char_p
        self.call("trine_open", None, byref(self.handle))
        self.call("trine_queue_open", self.handle, self.c.trine_device_find(self.handle, b"cpu"),
                  byref(Options(struct_size=ctypes.sizeof(Options), threads=1)), byref(self.queue))

    def call(self, name, *args):
        if getattr(self.c, name)(*args) != 0:
            raise SystemExit(f"{name}: {self.c.trine_error_message().decode()}")

    def run(self, op, **arrays):
        """The op's tensors in the header's order, the output last."""
        fields = [("struct_size", c_size_t)] + [(name, POINTER(Tensor)) for name in arrays]
        kind = type(op, (Structure,), {"_fields_": fields})
        args = kind(struct_size=ctypes.sizeof(kind))
        kept = [Tensor(a.ctypes.data, F64, 1, (a.size,), (1,)) for a in arrays.values()]
        for name, tensor in zip(arrays, kept):
            setattr(args, name, ctypes.pointer(tensor))
        self.call("trine_" + op, self.queue, byref(args))
        self.call("trine_queue_wait", self.queue)
        return list(arrays.values())[-1]

    def all_of(self, v, x):
        ones = np.ones_like(x)
        return {"log_iv": self.run("log_iv", v=v, x=x, y=np.empty_like(x)),
                "log_iv_backward": self.run("log_iv_backward", dy=ones, v=v, x=x, dx=np.empty_like(x)),
                "log_kv": self.run("log_kv", v=v, x=x, y=np.empty_like(x)),
                "log_kv_backward": self.run("log_kv_backward", dy=ones, v=v, x=x, dx=np.empty_like(x))}


def orders_and_arguments(random, count):
    """Of all sizes, in the box where regions meet, of half orders, and about where log I crosses zero."""
    def sizes(low, high):
        return 10 ** random.uniform(low, high, count // 4)

    v = [sizes(-8, 6), random.uniform(0, 30, count // 4), random.integers(0, 60, count // 4) / 2, sizes(-1, 6)]
    x = [sizes(-8, 8), random.uniform(0, 30, count // 4), sizes(-2, 2),
         v[3] * 0.6627434 * 10 ** random.uniform(-0.1, 0.1, count // 4)]
    return np.concatenate(v), np.concatenate(x)


class Arb:
    """The four values, and the largest error that they may have themselves."""

    TERMS = 22

    def __init__(self):
        import flint
        self.arb, flint.ctx.prec = flint.arb, 160
        self.context = flint.ctx
        self.u, self.v = [[self.arb(1)]], [[self.arb(1)]]
        for k in range(self.TERMS):  # DLMF 10.41.9 and 11, of u_k(p)/p^k
            row = [self.arb(0)] * (k + 2)
            for i, a in enumerate(self.u[k]):
                j = k + 2 * i
                row[i] += a * (self.arb(j) / 2 + self.arb(1) / (8 * (j + 1)))
                row[i + 1] -= a * (self.arb(j) / 2 + self.arb(5) / (8 * (j + 3)))
            slope = row[:]
            for i, a in enumerate(self.u[k]):
                part = a * (self.arb(1) / 2 + k + 2 * i)
                slope[i] -= part
                slope[i + 1] += part
            self.u.append(row)
            self.v.append(slope)

    def total(self, rows, s, r):
        total = self.arb(0)
        for row in rows[:0:-1]:
            part = self.arb(0)
            for a in row[::-1]:
                part = part * s + a
            total = (total + part) * r
        return 1 + total

    def __call__(self, order, argument):
        v, x = self.arb(order), self.arb(argument)
        w = (v * v + x * x).sqrt()
        if w > 60:
            eta, s, r, pi = w - v * ((v + w) / x).log(), (v / w) ** 2, 1 / w, self.arb.pi()
            i, k = self.total(self.u, s, r), self.total(self.u, s, -r)
            return (eta - (2 * pi * w).log() / 2 + i.log(), w / x * self.total(self.v, s, r) / i,
                    -eta + (pi / (2 * w)).log() / 2 + k.log(), -w / x * self.total(self.v, s, -r) / k)
        for digits in (160, 400, 1600, 6400):
            self.context.prec = digits
            i, above = x.bessel_i(v), x.bessel_i(v + 1)
            k, below = x.bessel_k(v), x.bessel_k(v - 1)
            four = (i.log(), above / i + v / x, k.log(), -below / k - v / x)
            self.context.prec = 160
            if all(y.is_finite() and y.rel_accuracy_bits() > 80 for y in four):
                return four
        raise SystemExit(f"no value at {order}, {argument}")


def by_mpmath(order, argument):
    import mpmath as mp
    with mp.workdps(300):  # of which K, a difference of two I, loses many
        v, x = mp.mpf(order), mp.mpf(argument)
        i, k = mp.besseli(v, x), mp.besselk(v, x)
        return (mp.log(i), mp.besseli(v + 1, x) / i + v / x, mp.log(k), -mp.besselk(v - 1, x) / k - v / x)


def scales(v, x, value):
    """What the bounds of the headers multiply."""
    return (abs(value[0]) + v + x * (x / (v + 0.5 + np.hypot(v + 1.5, x))), abs(value[1]),
            abs(value[2]) + np.hypot(v, x) + 1, abs(value[3]))


BOUNDS = {"log_iv": 8, "log_iv_backward": 24, "log_kv": 12, "log_kv_backward": 24}


def measure(library, count, seed):
    v, x = orders_and_arguments(np.random.default_rng(seed), count)
    got, arb, worst, failed = library.all_of(v, x), Arb(), {}, False
    for n in range(len(x)):
        w = np.hypot(v[n], x[n])
        region = "w >= 24" if w >= 24 else "x < 1" if x[n] < 1 else "x >= 1"
        exact = arb(float(v[n]), float(x[n]))
        values = [("Arb", exact)]
        if n % 50 == 0 and w < 200:
            values.append(("mpmath", by_mpmath(v[n], x[n])))
        for oracle, value in values:
            for op, y, scale in zip(BOUNDS, value, scales(v[n], x[n], [float(y) for y in value])):
                error = abs(float(y - float(got[op][n]))) / (scale * UNIT)
                if not error <= worst.get((op, oracle, region), (0,))[0]:
                    worst[op, oracle, region] = error, v[n], x[n]
    print(f"{len(x)} points, {4 * len(x)} values; errors in units of 2^-53 of what the header's bound multiplies")
    for (op, oracle, region), (error, order, at) in sorted(worst.items()):
        failed |= not error <= BOUNDS[op] + 1  # and the output's own rounding
        print(f"{op:16s} {region:8s} {oracle:7s} {error:6.2f} of {BOUNDS[op]:2d} at v = {order:.6g}, x = {at:.6g}")
    return failed


def seconds(f):
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        f()
        best = min(best, time.process_time() - start)
    return best


def speed(library):
    from scipy.special import ive, kve
    random, n = np.random.default_rng(1), 200000
    y = np.empty(n)
    print("ns an element            log_iv  SciPy  times  log_kv  SciPy  times")
    for name, v, x in (("v and x below 2", random.uniform(0, 2, n), random.uniform(0, 2, n)),
                       ("v and x below 20", random.uniform(0, 20, n), random.uniform(0, 20, n)),
                       ("v and x below 100", random.uniform(0, 100, n), random.uniform(0, 100, n)),
                       ("v below 1, x 30-700", random.uniform(0, 1, n), random.uniform(30, 700, n)),
                       ("v 100-1000, x 1-1000", random.uniform(100, 1000, n), random.uniform(1, 1000, n)),
                       ("v and x to 1e6", 10 ** random.uniform(3, 6, n), 10 ** random.uniform(2, 6, n))):
        with np.errstate(divide="ignore"):
            times = [seconds(f) / n * 1e9 for f in (
                lambda: library.run("log_iv", v=v, x=x, y=y), lambda: np.log(ive(v, x)) + x,
                lambda: library.run("log_kv", v=v, x=x, y=y), lambda: np.log(kve(v, x)) - x)]
        print(f"{name:24s} {times[0]:6.1f} {times[1]:6.0f} {times[1] / times[0]:6.1f} "
              f" {times[2]:6.1f} {times[3]:6.0f} {times[3] / times[2]:6.1f}")
    return False


def main():
    library = Library(sys.argv[1])
    if "--speed" in sys.argv:
        return speed(library)
    count, seed = (sys.argv[2:] + ["250000", "0"][len(sys.argv[2:]):])[:2]
    return measure(library, int(count), int(seed))


sys.exit(main())
