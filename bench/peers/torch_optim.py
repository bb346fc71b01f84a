#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times AdamW and clipping by the norm over the parameters of a model, trine's by lists of calls and PyTorch's, in
turns in the same run. The package trine must be there: pip install ., or PYTHONPATH of a build.

Usage: torch_optim.py [--device NAME] [--dtype TYPE] [--model NAME] [--threads N] [--runs N] [--all]

On the CPU the script runs itself once more with the allocator told to keep memory, as torch_ops.py does."""
import argparse
import os
import sys
import time

from torch_ops import KEEP

# Shapes of parameters, and how many there are of each.
MODELS = {
    "smollm2-135m": [((49152, 576), 1), ((576, 576), 60), ((192, 576), 60), ((1536, 576), 60), ((576, 1536), 30),
                     ((576,), 61)],
    "vectors": [((576,), 183)],
}


def timed(torch, device, work):
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def rows(torch, trine, params, every):
    """What is timed: name, and what one run does."""
    def clip(function):
        limit = [1e6]

        def work():
            limit[0] *= 0.9  # below the norm, so that each run scales
            function(params, limit[0])
        return work

    theirs = [("fused", {"fused": True}), ("foreach", {"foreach": True})] + [("plain", {"foreach": False})] * every
    yield "AdamW, trine", trine.AdamW(params).step
    for name, options in theirs:
        yield f"AdamW, PyTorch {name}", torch.optim.AdamW(params, **options).step
    yield "clip_grad_norm_, trine", clip(trine.clip_grad_norm_)
    yield "clip_coefficient, trine", clip(trine.clip_coefficient)
    for name, options in theirs[1:]:
        yield f"clip_grad_norm_, PyTorch {name}", clip(
            lambda p, limit, options=options: torch.nn.utils.clip_grad_norm_(p, limit, **options))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--device", default="cpu")
    options.add_argument("--dtype", default="float32")
    options.add_argument("--model", choices=MODELS, default="smollm2-135m")
    options.add_argument("--threads", type=int, default=0)
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--all", action="store_true", help="PyTorch's loops over single tensors too")
    given = options.parse_args()
    if given.device == "cpu" and any(os.environ.get(n) != v for n, v in KEEP.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEEP})
    import torch
    import trine
    import trine.torch
    if given.threads:
        torch.set_num_threads(given.threads)
        trine.set_threads(given.threads)
    device = torch.device(given.device)
    params = [torch.nn.Parameter(torch.randn(shape, device=device).to(getattr(torch, given.dtype)))
              for shape, count in MODELS[given.model] for _ in range(count)]
    for p in params:
        p.grad = torch.randn_like(p)
    millions = sum(p.numel() for p in params) / 1e6
    print(f"{given.model}: {len(params)} parameters, {millions:.1f} million, {given.dtype}, {device}, "
          f"PyTorch {torch.__version__}")
    works = list(rows(torch, trine.torch, params, given.all))
    seconds = {name: [] for name, _ in works}
    for run in range(given.runs + 1):
        for name, work in works:
            if name.startswith("clip"):
                for p in params:
                    p.grad.normal_()
                    p.grad *= 1e3
            took = timed(torch, device, work)
            if run > 0:  # the first makes states and threads
                seconds[name].append(took)
    for name, took in seconds.items():
        took.sort()
        print(f"{name:36} {1e3 * took[len(took) // 2]:10.3f} ms, {1e3 * took[0]:.3f} at best")


if __name__ == "__main__":
    main()
