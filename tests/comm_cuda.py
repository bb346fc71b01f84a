# SPDX-License-Identifier: Apache-2.0
"""trine.Comm on a CUDA device of the stand-in, whose memory is the host's: ranks are threads, arrays NumPy's that say
they are a device's. Speaks TAP. Run with libcuda-stub.so preloaded and PYTHONPATH where the package is."""
import ctypes
import threading

import numpy as np
import trine

RANKS = 3


class Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor, without who deletes it: the array outlives it here."""
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class OnDevice:
    """An array of f32 as one of cuda:0."""
    CUDA, FLOAT = 2, 2

    def __init__(self, array):
        self.array, self.sizes = array, (ctypes.c_int64 * array.ndim)(*array.shape)
        self.tensor = Tensor(array.ctypes.data, self.CUDA, 0, array.ndim, self.FLOAT, 32, 1, self.sizes, None, 0, None,
                             None)

    def __dlpack_device__(self):
        return self.CUDA, 0

    def __dlpack__(self, **unused):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def in_threads(life):
    """What each rank's life returns, or what it raised."""
    barrier, gathered, results = threading.Barrier(RANKS), [None] * RANKS, [None] * RANKS

    def live(rank):
        def all_gather(mine):
            gathered[rank] = mine
            barrier.wait()
            everyone = list(gathered)
            barrier.wait()
            return everyone

        try:
            with trine.Comm(rank, RANKS, all_gather, device="cuda:0", timeout=60) as comm:
                results[rank] = life(rank, comm)
        except Exception as error:  # pylint: disable=broad-exception-caught
            results[rank] = error

    threads = [threading.Thread(target=live, args=(r,)) for r in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def calls(rank, comm):
    def run(op, x, shape, **arguments):
        y = np.full(shape, np.nan, np.float32)
        getattr(trine, op)(OnDevice(x), comm=comm, out=OnDevice(y), **arguments)
        waited = np.zeros(1, np.float32)  # a queue does one thing after another
        trine.all_reduce(OnDevice(waited), comm=comm, out=OnDevice(np.zeros(1, np.float32)))
        return y

    x = np.arange(1000, dtype=np.float32) + 1000 * rank
    rows = np.arange(RANKS * 50, dtype=np.float32).reshape(RANKS, 50) + 1000 * rank
    every = np.arange(1000) + 1000 * np.arange(RANKS)[:, None]
    wanted = {
        "all_reduce": (run("all_reduce", x, 1000), every.sum(axis=0)),
        "the largest": (run("all_reduce", x, 1000, kind="max"), every.max(axis=0)),
        "all_gather": (run("all_gather", x, (RANKS, 1000)), every),
        "broadcast": (run("broadcast", x, 1000, root=1), every[1]),
        "reduce_scatter": (run("reduce_scatter", rows, 50),
                           RANKS * (np.arange(50) + 50 * rank) + 1000 * sum(range(RANKS))),
        "all_to_all": (run("all_to_all", rows, (RANKS, 50)),
                       np.arange(50) + 50 * rank + 1000 * np.arange(RANKS)[:, None]),
    }
    wrong = [name for name, (y, expected) in wanted.items() if not (y == expected).all()]
    return f"wrong on rank {rank}: {', '.join(wrong)}" if wrong else "good"


def on_the_host(unused, comm):
    return trine.all_reduce(np.zeros(4, np.float32), comm=comm)


count = 0  # pylint: disable=invalid-name


def ok(good, what, results):
    global count  # pylint: disable=global-statement
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {what}" + ("" if good else f"\n# {results}"))


found = in_threads(calls)
ok(found == ["good"] * RANKS, "collective ops between ranks on cuda:0", found)
found = in_threads(on_the_host)
ok(all(isinstance(e, (trine.ArgumentError, trine.CommError)) for e in found) and
   any("device" in str(e) for e in found), "arrays of the host are refused on all ranks", found)
print(f"1..{count}")
