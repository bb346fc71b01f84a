# SPDX-License-Identifier: Apache-2.0
"""The array libraries that tests use, where they are installed: how their arrays are made of float64 and read."""
import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch
except ImportError:
    torch = None
try:
    import jax
    import jax.numpy
    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None

LONG = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u32": "uint32",
        "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "e4m3": "float8_e4m3fn",
        "e4m3fnuz": "float8_e4m3fnuz", "e5m2": "float8_e5m2", "e5m2fnuz": "float8_e5m2fnuz",
        "e8m0": "float8_e8m0fnu"}


def numpy_dtype(name):
    """None if NumPy has no such type here."""
    long = LONG[name]
    if hasattr(np, long):
        return np.dtype(getattr(np, long))
    return np.dtype(getattr(ml_dtypes, long)) if ml_dtypes else None


class NumPy:
    """All values of the tests are exact in their type, so that no conversion rounds."""
    name = "numpy"
    type = np.ndarray

    @staticmethod
    def make(values, dtype):
        dtype = numpy_dtype(dtype)
        with np.errstate(all="ignore"):
            return None if dtype is None else np.array(values).astype(dtype)

    @staticmethod
    def read(array):
        return np.asarray(array).astype(np.float64)


class Torch:
    name = "torch"
    type = torch and torch.Tensor

    @staticmethod
    def make(values, dtype):
        if not hasattr(torch, LONG[dtype]):
            return None
        return torch.from_numpy(np.array(values)).to(getattr(torch, LONG[dtype]))

    @staticmethod
    def read(array):
        return array.to(torch.float64).numpy()


class Jax:
    name = "jax"
    type = jax and jax.Array

    @staticmethod
    def make(values, dtype):
        array = NumPy.make(values, dtype)
        return None if array is None else jax.numpy.asarray(array)

    read = NumPy.read


KINDS = [NumPy] + [Torch] * (torch is not None) + [Jax] * (jax is not None)
