#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's operators on the specification's cases, beside trine in the same run.

Usage: torch_ops.py [--trine PATH] [--device NAME] [--compile] [--threads N] [--time SECONDS] [--op NAME,...]
                    [--dims "r=65536 ..."]

On the CPU PyTorch allocates its outputs, and glibc by default gives large blocks back to the kernel after every call,
so that a naive run measures page faults: the script runs itself once more with the allocator told to keep them."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

import torch_layers
from torch_case import Gradient, Unsupported, allow, parse

KEEP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "1000000000"}


def softmax(torch, s, given, dtype):
    allow(s, given, ("T", "g", "s", "n"))
    shape = (int(s.get("g", 1)), int(s["s"]), int(s["n"]))
    return (lambda: (torch.rand(shape).to(dtype), torch.empty(shape, dtype=dtype))), \
        lambda x, y: torch.softmax(x, -1, out=y)


def layer_norm(torch, s, given, dtype):
    allow(s, given, ("T", "R", "W", "r", "n"), ("weight", "bias", "residual", "residual_out"))
    r, n = int(s["r"]), int(s["n"])
    f = torch.nn.functional.layer_norm

    def make():
        return torch.rand(r, n).to(dtype), torch.rand(r, n).to(dtype), torch.rand(n).to(dtype), torch.rand(n).to(dtype)

    if "residual" in given:
        return make, lambda x, h, w, b: f(x + h, (n,), w, b)
    return make, lambda x, h, w, b: f(x, (n,), w, b)


def rms_norm(torch, s, given, dtype):
    allow(s, given, ("T", "R", "W", "r", "n"), ("weight", "residual", "residual_out"))
    r, n = int(s["r"]), int(s["n"])

    def run(x, h, w):
        if "residual" in given:
            x = x + h
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(dtype) * w

    return (lambda: (torch.rand(r, n).to(dtype), torch.rand(r, n).to(dtype), torch.rand(n).to(dtype))), run


def cross_entropy(torch, s, given, dtype):
    allow(s, given, ("T", "L", "r", "v", "label_smoothing"), ("lse", "dlogits"))
    r, v = int(s["r"]), int(s["v"])
    smoothing = float(s.get("label_smoothing", 0))
    f = torch.nn.functional.cross_entropy

    def make():
        return torch.rand(r, v).to(dtype), torch.randint(0, v, (r,))

    if "dlogits" in given:
        return make, Gradient(torch, lambda x, t: f(x, t, reduction="sum", label_smoothing=smoothing))
    return make, lambda x, t: f(x, t, reduction="none", label_smoothing=smoothing)


def attention(torch, s, given, dtype):
    allow(s, given, ("T", "b", "sq", "sk", "h", "hk", "d", "causal"))
    b, sq, sk, h, hk, d = (int(s.get(k, 1)) for k in ("b", "sq", "sk", "h", "hk", "d"))
    mask = None
    if int(s.get("causal", 0)):
        mask = torch.full((sq, sk), -math.inf, dtype=dtype).triu(1 + sk - sq)

    def make():
        return tuple(torch.rand(b, n, heads, d).to(dtype) for n, heads in ((sq, h), (sk, hk), (sk, hk)))

    def run(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if hk != h:
            k, v = k.repeat_interleave(h // hk, 1), v.repeat_interleave(h // hk, 1)
        scores = q @ k.transpose(2, 3) / math.sqrt(d)
        return torch.softmax(scores if mask is None else scores + mask, -1) @ v

    return make, run


def swiglu(torch, s, given, dtype):
    allow(s, given, ("T", "r", "n"))
    r, n = int(s["r"]), int(s["n"])
    return (lambda: (torch.rand(r, n).to(dtype), torch.rand(r, n).to(dtype))), \
        lambda g, u: torch.nn.functional.silu(g) * u


def adamw(torch, s, given, dtype):
    """PyTorch's fused optimizer, which is for devices."""
    allow(s, given, ("T", "G", "S", "C", "n", "lr", "step"))
    n = int(s["n"])
    if not s["T"] == s["G"] == s["S"]:
        raise Unsupported("types that differ")

    def make():
        p = torch.rand(n).to(dtype)
        return p, torch.rand(n).to(dtype)

    state = {}

    def run(p, g):
        if p not in state:
            state[p] = torch.optim.AdamW([p], lr=1e-3, fused=True)
        p.grad = g
        state[p].step()

    return make, run


def topk(torch, s, given, dtype):
    allow(s, given, ("T", "I", "r", "n", "k"), ("values", "indices"))
    r, n, k = int(s["r"]), int(s["n"]), int(s["k"])
    return (lambda: (torch.randn(r, n).to(dtype),)), lambda x: torch.topk(x, k)


def argsort(torch, s, given, dtype):
    allow(s, given, ("T", "I", "r", "n", "descending"), ("values",))
    r, n, descending = int(s["r"]), int(s["n"]), bool(int(s.get("descending", 0)))

    def make():
        x = torch.randn(r, n)
        return (x.to(dtype) if dtype.is_floating_point else (x * 2**20).to(dtype),)

    return make, lambda x: torch.sort(x, descending=descending, stable=True)


def argmax(torch, s, given, dtype):
    allow(s, given, ("T", "I", "r", "n"), ("values",))
    r, n = int(s["r"]), int(s["n"])
    return (lambda: (torch.randn(r, n).to(dtype),)), \
        lambda x: torch.max(x, -1) if "values" in given else torch.argmax(x, -1)


def gather_rows(torch, s, given, dtype):
    allow(s, given, ("T", "I", "p", "m", "n"))
    p, m, n = int(s["p"]), int(s["m"]), int(s["n"])
    return (lambda: (torch.rand(m, n).to(dtype), torch.randint(0, m, (p,)))), lambda x, at: torch.index_select(x, 0, at)


def matmul_quantized(torch, s, given, dtype):
    """The same product with the weights in the activations' type."""
    allow(s, given, ("T", "C", "S", "m", "n", "k", "groups", "bytes", "offset", "format"), ("zeros", "mins"))
    m, n, k = int(s["m"]), int(s["n"]), int(s["k"])
    return (lambda: (torch.rand(m, k).to(dtype), torch.rand(n, k).to(dtype))), torch.nn.functional.linear


def grouped_matmul(torch, s, given, dtype):
    """torch._grouped_mm, with the gather before and the activation after."""
    allow(s, given, ("T", "O", "r", "e", "p", "n", "k", "divide", "activation"), ("gather",))
    r, e, p, n, k = (int(s[name]) for name in ("r", "e", "p", "n", "k"))
    divide, activation = int(s.get("divide", 1)), torch.nn.functional.silu if "activation" in s else None

    def make():
        ends = torch.bincount(torch.randint(0, e, (p,)), minlength=e).cumsum(0).to(torch.int32)
        rows = (torch.randperm(p) // divide).clamp(max=r - 1)
        return torch.rand(r, k).to(dtype), torch.rand(e, n, k).to(dtype), ends, rows

    def run(x, w, ends, rows):
        y = torch._grouped_mm(x[rows] if "gather" in given else x, w.transpose(1, 2), offs=ends)
        return activation(y) if activation else y

    return make, run


def matmul_scaled(torch, s, given, dtype):
    """torch._scaled_mm, whose blocks are of 1 by 128 and of 128 by 128."""
    allow(s, given, ("A", "B", "O", "m", "n", "p", "q", "ma", "ka", "nb", "kb"), ("a_scale", "b_scale"))
    m, n, k, ka, nb = (int(s[name]) for name in ("m", "n", "p", "ka", "nb"))
    if s["A"] != "e4m3" or m == 1 or ka != k // 128 or nb != n // 128:
        raise Unsupported("such types or blocks")

    def make():
        return (torch.rand(m, k).to(torch.float8_e4m3fn), torch.rand(n, k).to(torch.float8_e4m3fn), torch.rand(ka, m),
                torch.rand(nb, ka))

    def run(a, b, a_scale, b_scale):
        return torch._scaled_mm(a, b.t(), scale_a=a_scale.t(), scale_b=b_scale.t(), out_dtype=torch.bfloat16)

    return make, run


def attention_decode(torch, s, given, dtype):
    """One sequence after the other in memory, without pages."""
    allow(s, given, ("T", "C", "B", "b", "sq", "h", "hk", "d", "dv", "pages", "page", "maxpages"), ("v_cache",))
    if int(s["sq"]) > 1 or "v_cache" not in given or s["C"] != s["T"]:
        raise Unsupported("several tokens, one cache or scales")
    b, h, hk, d, keys = int(s["b"]), int(s["h"]), int(s["hk"]), int(s["d"]), int(s["page"]) * int(s["maxpages"])

    def make():
        return (torch.rand(b, h, 1, d).to(dtype), *(torch.rand(b, hk, keys, d).to(dtype) for _ in range(2)))

    return make, lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def conv1d_causal(torch, s, given, dtype):
    """Channels first, as PyTorch wants them."""
    allow(s, given, ("T", "W", "b", "t", "n", "k", "silu"), ("bias",))
    b, t, n, k = (int(s[name]) for name in ("b", "t", "n", "k"))

    def make():
        return torch.rand(b, n, t).to(dtype), torch.rand(n, 1, k).to(dtype), torch.rand(n).to(dtype)

    def run(x, weight, bias):
        return torch.nn.functional.silu(torch.nn.functional.conv1d(x, weight, bias, padding=k - 1, groups=n)[..., :t])

    return make, run


OPS = {f.__name__: f for f in (softmax, layer_norm, rms_norm, cross_entropy, attention, swiglu, adamw, topk, argsort,
                               argmax, gather_rows, matmul_quantized, grouped_matmul, matmul_scaled,
                               attention_decode, conv1d_causal)} | torch_layers.OPS


def device_seconds(torch, run, sets, seconds):
    """Median seconds of a call on a device, from events round rounds of calls."""
    rounds, begin = [], time.perf_counter()
    while len(rounds) < 5 or time.perf_counter() - begin < seconds:
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for one in sets:
            run(*one)
        last.record()
        last.synchronize()
        rounds.append(first.elapsed_time(last) * 1e-3 / len(sets))
    return statistics.median(rounds)


def measure(torch, op, settings, given, options):
    """Median seconds of a call; inputs rotate past the caches."""
    seconds, on_device = options.time, options.device != "cpu"
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
             "f64": torch.float64, "i32": torch.int32, "i64": torch.int64, "e4m3": torch.float8_e4m3fn}[
                 settings.get("T", "f32")]
    make_here, run = OPS[op](torch, settings, given, dtype)
    if options.compile:
        run = run.compiled() if isinstance(run, Gradient) else torch.compile(run)

    def make():
        return tuple(t.to(options.device) for t in make_here())

    sets = [make()]
    size = sum(t.numel() * t.element_size() for t in sets[0])
    sets += [make() for _ in range(min(64, int((512 if on_device else 128) * 2**20 / size)))]
    for one in sets if on_device else sets[:1]:
        run(*one)
    if on_device:
        return device_seconds(torch, run, sets, seconds)
    samples, begin, turn = [], time.perf_counter(), 0
    while len(samples) < 200 and (len(samples) < 5 or time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        run(*sets[turn % len(sets)])
        samples.append(time.perf_counter() - start)
        turn += 1
    return statistics.median(samples)


def ours(op, case, options):
    """Median seconds of trine, from its own bench."""
    command = [options.trine, "bench", "--op", op, "--case", case, "--device", options.device, "--time",
               str(options.time), "--json"]
    command += ["--threads", str(options.threads)] if options.device == "cpu" else []
    command += ["--dims", options.dims] if options.dims else []
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    for entry in json.loads(output)["benchmarks"]:
        if entry.get("aggregate_name") == "median" and entry["name"].split("/")[1] == case:
            return entry["real_time"] * 1e-9
    return None


def main():
    if any(os.environ.get(k) != v for k, v in KEEP.items()):
        os.environ.update(KEEP)
        os.execv(sys.executable, [sys.executable] + sys.argv)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--trine", default="trine", help="the trine command")
    parser.add_argument("--device", default="cpu", help="as trine and PyTorch both call it: cpu, cuda:0")
    parser.add_argument("--compile", action="store_true", help="give PyTorch's side to torch.compile")
    parser.add_argument("--dims", default="", help="these dimensions instead of the cases' own")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--time", type=float, default=0.5, help="seconds for each library on a case")
    parser.add_argument("--op", default=",".join(OPS), help="of " + ", ".join(OPS))
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch  # after the number of threads is set

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    torch.backends.cudnn.allow_tf32 = False  # products of f32 are of f32 on both sides
    print(f"PyTorch {torch.__version__}, " + (f"{options.threads} threads" if options.device == "cpu"
                                              else torch.cuda.get_device_name()))
    print(f"{'op':14} {'case':24} {'trine, ms':>10} {'torch, ms':>10}  trine is faster by")
    for op in options.op.split(","):
        if op not in OPS:
            sys.exit(f"torch_ops.py: no op {op}; of {', '.join(OPS)}")
        spec = json.loads(subprocess.run([options.trine, "spec", op, "--json"], stdout=subprocess.PIPE,
                                         check=True).stdout)
        for case in spec["cases"]:
            name, settings, given = parse(case)
            settings.update(word.split("=") for word in options.dims.split())
            try:
                theirs = measure(torch, op, settings, given, options)
            except Unsupported as why:
                print(f"{op:14} {name:24} skipped: nothing in PyTorch does the same with {why}")
                continue
            except (RuntimeError, TypeError) as why:
                print(f"{op:14} {name:24} skipped: {str(why).splitlines()[0]}")
                continue
            mine = ours(op, name, options)
            if mine is None:
                print(f"{op:14} {name:24} {'-':>10} {theirs * 1e3:10.3f}")
            else:
                print(f"{op:14} {name:24} {mine * 1e3:10.3f} {theirs * 1e3:10.3f}  {theirs / mine:.2f}", flush=True)


if __name__ == "__main__":
    main()
