# SPDX-License-Identifier: Apache-2.0
"""The handlers that XLA calls, called as XLA does: what needs a GPU, or another XLA than that of the JAX here."""
import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, \
    c_uint32, c_void_p, cast, pointer, sizeof

import pytest

import trine
from trine import _trine

INVALID, UNIMPLEMENTED, INTERNAL = 3, 12, 13


class Version(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int)]


class Metadata(Structure):
    _fields_ = [("size", c_size_t), ("version", Version), ("traits", c_uint32), ("state_type", c_int64)]


class MetadataExtension(Structure):
    _fields_ = [("size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata))]


class Buffer(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("type", c_int), ("data", c_void_p), ("rank", c_int64),
                ("shape", POINTER(c_int64))]


class Span(Structure):
    _fields_ = [("text", c_char_p), ("length", c_size_t)]


class Buffers(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("kinds", POINTER(c_int)),
                ("values", POINTER(c_void_p))]


class Attributes(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("kinds", POINTER(c_int)),
                ("names", POINTER(c_void_p)), ("values", POINTER(c_void_p))]


class ErrorArgs(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int)]


class StreamArgs(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("context", c_void_p), ("stream", c_void_p)]


class OrdinalArgs(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("context", c_void_p), ("ordinal", c_int32)]


class DestroyArgs(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("error", c_void_p)]


Create = CFUNCTYPE(c_void_p, POINTER(ErrorArgs))
Destroy = CFUNCTYPE(None, POINTER(DestroyArgs))
Stream = CFUNCTYPE(c_void_p, POINTER(StreamArgs))
Ordinal = CFUNCTYPE(c_void_p, POINTER(OrdinalArgs))


class Api(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("version", Version), ("internal", c_void_p),
                ("create", Create), ("message", c_void_p), ("destroy", Destroy), ("register", c_void_p),
                ("stream", Stream), ("others", c_void_p * 4), ("allocate", c_void_p), ("free", c_void_p),
                ("more", c_void_p * 6), ("ordinal", Ordinal)]


class Frame(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("api", POINTER(Api)), ("context", c_void_p),
                ("stage", c_int), ("arguments", Buffers), ("results", Buffers), ("attributes", Attributes),
                ("future", c_void_p)]


def handler(platform):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return CFUNCTYPE(c_void_p, POINTER(Frame))(get(_trine._xla_handlers()[platform], None))


class Xla:
    """What a handler sees of it. `errors`: (code, message) of those that were made."""

    def __init__(self, minor=3, ordinal=0, broken=False):
        self.errors, self.destroyed = [], 0

        def create(args):
            self.errors.append((args[0].code, args[0].message.decode()))
            return 1

        def destroy(args):
            self.destroyed += 1

        def stream(args):
            args[0].stream = 1
            return 5 if broken else None

        def find(args):
            args[0].ordinal = ordinal

        self.api = Api(size=sizeof(Api), version=Version(sizeof(Version), None, 0, minor), create=Create(create),
                       destroy=Destroy(destroy), stream=Stream(stream), ordinal=Ordinal(find))

    def call(self, platform, packed, operands, results, stage=3):
        """Buffers are (type, memory, shape)."""
        kept = []

        def buffers(of):
            made = [Buffer(sizeof(Buffer), None, kind, cast(memory, c_void_p), len(shape),
                           (c_int64 * len(shape))(*shape)) for kind, memory, shape in of]
            kept.extend(made)
            return Buffers(sizeof(Buffers), None, len(of), (c_int * len(of))(*[1] * len(of)),
                           (c_void_p * len(of))(*map(addressof, made)))

        name, value = Span(b"call", 4), Span(packed, len(packed))
        attributes = Attributes(sizeof(Attributes), None, 1, (c_int * 1)(4), (c_void_p * 1)(addressof(name)),
                                (c_void_p * 1)(addressof(value)))
        frame = Frame(sizeof(Frame), None, pointer(self.api), None, stage, buffers(operands), buffers(results),
                      attributes)
        failed = handler(platform)(byref(frame))
        assert (failed is not None) == bool(self.errors)
        return failed is None


PACKED = _trine._xla_pack("scale", (("x", "f32", (2, 2)),), (("y", "f32", (2, 2)),), alpha=2.0)


def call(xla, platform, **more):
    x, y = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    return xla.call(platform, PACKED, [(11, x, (2, 2))], [(11, y, (2, 2))], **more), list(y)


def test_cpu():
    assert call(Xla(), "cpu") == (True, [2, 4, 6, 8])
    assert call(Xla(), "cpu", stage=0) == (True, [0] * 4)  # other stages have nothing to do


@pytest.mark.parametrize("platform", ["cpu", "CUDA", "ROCM"])
def test_metadata(platform):
    """For which version a handler is. One that is older has no type of a state."""
    metadata = Metadata(sizeof(Metadata) - 8, traits=7, state_type=9)
    extension = MetadataExtension(sizeof(MetadataExtension), 1, None, pointer(metadata))
    frame = Frame(sizeof(Frame), addressof(extension))
    assert handler(platform)(byref(frame)) is None
    assert (metadata.version.major, metadata.version.minor, metadata.traits, metadata.state_type) == (0, 3, 0, 9)


def test_another_xla():
    xla = Xla(minor=2)
    xla.api.size = Api.ordinal.offset
    assert call(xla, "cpu") == (False, [0] * 4)
    assert xla.errors == [(UNIMPLEMENTED, "trine: XLA's interface is 0.2, but trine needs 0.3")]


@pytest.mark.parametrize("platform,device", [("CUDA", "cuda"), ("ROCM", "hip")])
def test_devices(platform, device):
    xla = Xla(ordinal=77)
    assert call(xla, platform) == (False, [0] * 4)
    (code, message), = xla.errors
    assert code == UNIMPLEMENTED
    assert message.startswith(f"scale: the computation is on {device}:77, but trine's {device} backend is not in use: ")
    xla = Xla(broken=True)
    assert call(xla, platform) == (False, [0] * 4)
    assert xla.errors == [(INTERNAL, "scale: XLA tells neither its stream nor its device")] and xla.destroyed == 1


def test_errors():
    x = (ctypes.c_float * 4)()
    for kind, shape, message in [(15, (2, 2), "scale: x has elements of XLA's type 15, which trine does not have"),
                                 (99, (2, 2), "scale: x has elements of XLA's type 99, which trine does not have"),
                                 (11, (1,) * 17, "scale: x has 17 dimensions, but 16 are possible")]:
        xla = Xla()
        assert not xla.call("cpu", PACKED, [(kind, x, shape)], [(11, x, (2, 2))])
        assert xla.errors == [(INVALID, message)]
    xla = Xla()
    assert not xla.call("cpu", PACKED, [(11, x, (2, 2))], [])
    assert xla.errors == [(INVALID, "scale: XLA did not bring y")]


@pytest.mark.parametrize("arguments,error,match", [
    (("scale",), TypeError, "two tuples"), (("none", (), ()), TypeError, "name of an op"),
    (("scale", (), ()), TypeError, "needs x"), (("scale", (("z", "f32", ()),), ()), TypeError, "no tensor 'z'"),
    (("scale", (("x", "f32", (2, "n")),), ()), TypeError, "int"),
    (("scale", (("x", "bool", (2,)),), ()), trine.ArgumentError, "type bool"),
])
def test_pack(arguments, error, match):
    with pytest.raises(error, match=match):
        _trine._xla_pack(*arguments)
