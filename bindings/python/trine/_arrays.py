# SPDX-License-Identifier: Apache-2.0
"""What the module asks of array libraries that have no C functions for it. A library is looked up where an array of its
own was given, never imported for itself."""
import sys

_DTYPES = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u32": "uint32",
           "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "e4m3": "float8_e4m3fn",
           "e4m3fnuz": "float8_e4m3fnuz", "e5m2": "float8_e5m2", "e5m2fnuz": "float8_e5m2fnuz",
           "e8m0": "float8_e8m0fnu"}
_NAMES = {long: short for short, long in _DTYPES.items()}
_CPU = 1


def _library(array):
    return type(array).__module__.partition(".")[0]


def dtype_name(dtype):
    """trine's name of an element type, given as such or by torch, NumPy, JAX or their names."""
    for name in (dtype, getattr(dtype, "name", None), getattr(dtype, "__name__", None), str(dtype).rpartition(".")[2]):
        if isinstance(name, str):
            name = _NAMES.get(name, name)
            if name in _DTYPES:
                return name
    return str(dtype)


def stream(array):
    """The stream that the array's library works on now; 0 is the vendor's default stream."""
    if _library(array) == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    if _library(array) == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
    return 0


def export(array):
    """The array's capsule of DLPack, its work ordered before that of stream()."""
    if _library(array) == "jax" and isinstance(array, sys.modules["jax"].core.Tracer):
        raise NotImplementedError("JAX is tracing it: call the function in trine.jax")
    kind, _ = array.__dlpack_device__()
    arguments = {}
    if kind != _CPU:
        if hasattr(array, "block_until_ready"):
            raise NotImplementedError("arrays of JAX on a GPU have their own streams: call the function in trine.jax")
        legacy = 1 if kind == 2 else 0
        arguments["stream"] = stream(array) or legacy
    try:
        return array.__dlpack__(max_version=(1, 3), **arguments)
    except TypeError:  # before DLPack 1.0
        return array.__dlpack__(**arguments)


def describe(array):
    """Address, whether it is read-only, type, shape and strides in bytes, of an array that NumPy's interface describes:
    one whose type buffers do not have."""
    interface = array.__array_interface__
    data, read_only = interface["data"]
    strides = interface.get("strides")
    dtype = array.dtype
    if strides is None:
        strides, size = [], dtype.itemsize
        for length in reversed(interface["shape"]):
            strides.insert(0, size)
            size *= length
    return data, bool(read_only), dtype_name(dtype), tuple(interface["shape"]), tuple(strides)


def _numpy_dtype(name):
    import numpy
    if hasattr(numpy, _DTYPES[name]):
        return numpy.dtype(_DTYPES[name])
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"NumPy alone has no {_DTYPES[name]}: install ml_dtypes") from None
    return numpy.dtype(getattr(ml_dtypes, _DTYPES[name]))


def empty(like, shape, name):
    """A new array of the library that made `like`, on its device; of NumPy where that library's cannot be written."""
    library = _library(like)
    if library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, _DTYPES[name]), device=like.device)
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.empty(shape, dtype=_numpy_dtype(name))
    if library != "numpy" and hasattr(like, "__array_namespace__") and not hasattr(like, "block_until_ready"):
        namespace = like.__array_namespace__()
        return namespace.empty(shape, dtype=getattr(namespace, _DTYPES[name]), device=like.device)
    import numpy
    return numpy.empty(shape, dtype=_numpy_dtype(name))


def wrap(like, made):
    """The result as an array of the library of `like`, whose own cannot be written."""
    if _library(like) in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy.asarray(made)
    return made


def recorder():
    """What tells whether PyTorch is recording operations for gradients."""
    return sys.modules["torch"].is_grad_enabled
