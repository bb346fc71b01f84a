# SPDX-License-Identifier: Apache-2.0
"""trine: fused compute kernels for the arrays of PyTorch, NumPy, CuPy, JAX and others.

    y = trine.rms_norm(x, weight, eps=1e-6)     # a new array, of x's kind, where x is
    trine.rms_norm(x, weight, out=y)            # or into one that there is
    y, rstd = trine.rms_norm(x, weight, rstd=True)  # optional outputs where asked for

Each op is a function; help(trine.rms_norm) has its formula, shapes, types and error bound. Nothing is copied: arrays
lend their memory by DLPack or as a buffer. An array on a GPU is computed on there, on the stream that its library uses
now. Errors are exceptions, derived from trine.Error.

trine.torch has the same functions with gradients, for autograd and torch.compile; trine.jax has them for jit, grad and
vmap."""
from . import _trine
from ._comm import Comm
from ._trine import *  # noqa: F401,F403: the functions of the ops, which the specification names
from ._trine import __version__, ops

__all__ = ["__version__", "ops", "devices", "backends", "set_threads", "run_list", "explain", "arena_plan",
           "Comm", "Error", "ArgumentError", "UnsupportedError", "OutOfMemoryError", "DeviceError", "CommError", *ops]
del _trine
