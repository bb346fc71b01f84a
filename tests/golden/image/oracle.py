# SPDX-License-Identifier: Apache-2.0
"""Crops resized by torch's interpolate in float64: nearest-exact and nearest, bilinear and bicubic, with align_corners
and with antialias; its bicubic has -0.75, and with antialias -0.5. Others by a function of each pixel's middle, which
numpy.interp evaluates for bilinear; areas by differences of the image's integral, which is linear between pixels."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32


def by_torch(crop, p, q, **words):
    """A crop of h w c."""
    planes = torch.tensor(np.ascontiguousarray(crop.transpose(2, 0, 1)))[None]
    return F.interpolate(planes, size=(p, q), **words)[0].permute(1, 2, 0).numpy()


def along(line, count, filter, coordinates, cubic):
    """A line of pixels made one of `count`, by the definition."""
    n = len(line)
    out = []
    for b in range(count):
        if coordinates == "half_pixel":
            u = (b + 0.5) * n / count - 0.5
        elif coordinates == "align_corners":
            u = b * (n - 1) / (count - 1) if count > 1 else 0
        else:
            u = b * n / count
        if filter == "nearest":
            place = math.floor(u if coordinates == "asymmetric" else u + 0.5)
            out.append(line[min(max(place, 0), n - 1)])
        elif filter == "bilinear":
            out.append(np.interp(u, np.arange(n), line))
        else:
            sum = 0
            for s in range(math.floor(u) - 1, math.floor(u) + 3):
                t = abs(s - u)
                k = (cubic + 2) * t**3 - (cubic + 3) * t**2 + 1 if t <= 1 else cubic * (t**3 - 5 * t**2 + 8 * t - 4)
                sum += k * line[min(max(s, 0), n - 1)]
            out.append(sum)
    return np.array(out)


def by_lines(crop, p, q, filter, coordinates, cubic=-0.75):
    rows = np.apply_along_axis(along, 0, crop, p, filter, coordinates, cubic)
    return np.apply_along_axis(along, 1, rows, q, filter, coordinates, cubic)


def by_integral(crop, p, q):
    def means(line, count):
        whole = np.concatenate([[0], np.cumsum(line)])
        at = np.interp(np.arange(count + 1) * len(line) / count, np.arange(len(line) + 1), whole)
        return np.diff(at) * count / len(line)

    return np.apply_along_axis(means, 1, np.apply_along_axis(means, 0, crop, p), q)


BOXES = [[2, 1, 7, 6], [-3, 2, 20, 5], [4, 3, 5, 4], [3, 3, 3, 6], [1, 8, 4, 12], [0, 0, 9, 7]]
IMAGES = [1, 0, 1, 0, 1, 2]


def crop_resize_normalize(draw):
    ways = {
        "nearest": (lambda x, p, q: by_torch(x, p, q, mode="nearest-exact"), "filter=nearest"),
        "nearest, asymmetric": (lambda x, p, q: by_torch(x, p, q, mode="nearest"), "coordinates=asymmetric"),
        "nearest, corners": (lambda x, p, q: by_lines(x, p, q, "nearest", "align_corners"),
                             "coordinates=align_corners"),
        "bilinear": (lambda x, p, q: by_torch(x, p, q, mode="bilinear"), "filter=bilinear"),
        "bilinear, corners": (lambda x, p, q: by_torch(x, p, q, mode="bilinear", align_corners=True),
                              "filter=bilinear coordinates=align_corners"),
        "bilinear, asymmetric": (lambda x, p, q: by_lines(x, p, q, "bilinear", "asymmetric"),
                                 "filter=bilinear coordinates=asymmetric"),
        "bilinear, antialias": (lambda x, p, q: by_torch(x, p, q, mode="bilinear", antialias=True),
                                "filter=bilinear antialias=1 coordinates=align_corners"),
        "bicubic": (lambda x, p, q: by_torch(x, p, q, mode="bicubic"), "filter=bicubic"),
        "bicubic, corners": (lambda x, p, q: by_torch(x, p, q, mode="bicubic", align_corners=True),
                             "filter=bicubic coordinates=align_corners"),
        "bicubic, -1": (lambda x, p, q: by_lines(x, p, q, "bicubic", "half_pixel", -1), "filter=bicubic cubic=-1"),
        "bicubic, asymmetric, 0": (lambda x, p, q: by_lines(x, p, q, "bicubic", "asymmetric", 0),
                                   "filter=bicubic cubic=-0.0 coordinates=asymmetric"),
        "bicubic, antialias": (lambda x, p, q: by_torch(x, p, q, mode="bicubic", antialias=True),
                               "filter=bicubic antialias=1 cubic=-0.5"),
        "area": (by_integral, "filter=area"),
    }
    for number, (name, (way, words)) in enumerate(ways.items()):
        for p, q in ((3, 2), (4, 10)):
            images, boxes, u8 = number % 2 == 0, number % 3 > 0, (number + p) % 2 == 0
            normal, reverse = p == 3, number % 4 == 1
            kind, n, c = ("f32", "bf16", "f16")[number % 3], 2, 2 if p == 3 else 1
            x = draw.integers((n, 7, 9, c), 0, 256) if u8 else draw.integers((n, 7, 9, c), -40, 40) / 8
            ins, count = {"x": x}, n
            where = [[0, 0, 9, 7]] * n
            of = range(n)
            if images:
                of = IMAGES[:2 if p > 3 else 6]
                count = len(of)
                ins["images"] = np.array(of, dtype=float)
                where = [[0, 0, 9, 7]] * count
            if boxes:
                where = BOXES[:count]
                ins["boxes"] = np.array(where, dtype=float)
            if normal:
                ins["mean"], ins["deviation"] = draw.uniform(c, 0.2, 0.6), draw.uniform(c, 0.1, 0.4)
            scale = f32(1 / 255) if u8 else 1
            y = np.full((count, p, q, c), np.nan)
            for i in range(count):
                left, top, right, bottom = where[i]
                left, top, right, bottom = max(left, 0), max(top, 0), min(right, 9), min(bottom, 7)
                if left >= right or top >= bottom or not 0 <= of[i] < n:
                    continue
                out = scale * way(x[of[i], top:bottom, left:right], p, q)
                out = out[..., ::-1] if reverse else out
                y[i] = (out - ins["mean"]) / ins["deviation"] if normal else out
            yield case(f"{name} to {p} x {q}",
                       f"U={'u8' if u8 else 'f32'} T={kind} I={'i64' if boxes and images else 'i32'} n={n} h=7 w=9 "
                       f"c={c} b={count} p={p} q={q} {words}" + " reverse=1" * reverse +
                       (f" scale={scale!r}" if u8 else "") +
                       "".join(f" +{t}" for t in ("boxes", "images", "mean", "deviation") if t in ins), ins, {"y": y})
