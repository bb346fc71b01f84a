#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors and streams through the C API, by ctypes, on a CUDA device: results and their order, two queues at
once, graphs that PyTorch captures, memory that runs out, and a fault on the device. Speaks TAP; skips everything
without PyTorch or a device. Usage: torch_streams.py LIBTRINE"""
import ctypes
import subprocess
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32
from ctypes import c_uint64, c_void_p

WORKSPACE, MEMORY, DEVICE = 3, 4, 5  # trine_status
CODES = {"float32": 0x0220, "bfloat16": 0x0410, "float16": 0x0210, "int32": 0x0020}
ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8}


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("rank", c_int32), ("shape", c_int64 * 8),
                ("stride", c_int64 * 8)]


def arguments(name, tensors, parameters=()):
    """The arguments structure of an op: its tensors, then its parameters, in the header's order."""
    fields = [("struct_size", c_size_t)] + [(t, POINTER(Tensor)) for t in tensors] + list(parameters)
    return type(name, (Structure,), {"_fields_": fields, "tensors": tensors})


OPS = {
    "matmul": arguments("matmul", ("a", "b", "c", "bias", "d"),
                        (("alpha", c_float), ("beta", c_float), ("activation", c_int32))),
    "rms_norm": arguments("rms_norm", ("x", "weight", "residual", "philox", "y", "residual_out", "rstd"), (
        ("eps", c_float), ("weight_offset", c_float), ("rounding", c_int32), ("dropout", c_float), ("seed", c_uint64),
        ("offset", c_uint64))),
    "softmax": arguments("softmax", ("x", "y"), (("scale", c_float), ("causal", c_int32))),
    "reduce_sum": arguments("reduce_sum", ("x", "row_sums", "column_sums")),
    "scale": arguments("scale", ("x", "y"), (("alpha", c_float), ("shift", c_float))),
}


class Options(Structure):
    _fields_ = [("struct_size", c_size_t), ("flags", c_uint32), ("threads", c_int32), ("stream", c_void_p),
                ("kernel", c_char_p)]


class Failed(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.trine_error_message.restype = c_char_p
        self.handle = c_void_p()
        self.call("trine_open", None, byref(self.handle))

    def call(self, name, *args):
        status = getattr(self.c, name)(*args)
        if status != 0:
            raise Failed(status, self.c.trine_error_message().decode())

    def device(self, name):
        return self.c.trine_device_find(self.handle, name.encode())


class Queue:
    """A queue on a stream of PyTorch; without one, the queue's own."""

    def __init__(self, library, device, stream=None):
        self.trine, self.handle = library, c_void_p()
        options = Options(struct_size=ctypes.sizeof(Options), stream=stream.cuda_stream if stream else None)
        library.call("trine_queue_open", library.handle, library.device(device), byref(options), byref(self.handle))

    def make(self, op, **given):
        args, kept = OPS[op](struct_size=ctypes.sizeof(OPS[op])), []
        for name, value in given.items():
            if name not in args.tensors:
                setattr(args, name, value)
                continue
            if not isinstance(value, Tensor):
                value = Tensor(value.data_ptr(), CODES[str(value.dtype).split(".")[1]], value.dim(), tuple(value.shape),
                               tuple(value.stride()))
            kept.append(value)
            setattr(args, name, ctypes.pointer(value))
        return args

    def run(self, op, **given):
        self.call("trine_" + op, byref(self.make(op, **given)))

    def bound(self, op, output, **given):
        """The error bound's coefficient."""
        coefficient = c_double()
        self.call("trine_error_bound", self.trine.c.trine_op_find(op.encode()), byref(self.make(op, **given)),
                  output.encode(), byref(coefficient))
        return coefficient.value

    def workspace(self, op, **given):
        size = c_size_t()
        self.call("trine_workspace", self.trine.c.trine_op_find(op.encode()), byref(self.make(op, **given)),
                  byref(size))
        return size.value

    def call(self, name, *args):
        self.trine.call(name, self.handle, *args)

    def close(self):
        self.trine.c.trine_queue_close(self.handle)


def refused(call, status, words):
    """Does the call fail with this status, and with these words among its own?"""
    try:
        call()
    except Failed as why:
        if why.status == status and words in str(why):
            return True
        print(f"# status {why.status}: {why}")
        return False
    print("# it did not fail")
    return False


def within(torch, queue, op, output, magnitude, expected, **given):
    """Runs an op and holds it against float64 under the specification's bound."""
    queue.run(op, **given)
    torch.cuda.synchronize()
    y = given[output]
    allowed = ROUNDOFF[str(y.dtype).split(".")[1]] * expected.abs() + queue.bound(op, output, **given) * magnitude
    worst = ((y.double() - expected).abs() / allowed).max().item()
    print(f"# {op}: {worst:.3f} of the bound")
    return worst <= 1


def check_results(torch, library):
    stream = torch.cuda.Stream()
    queue = Queue(library, "cuda:0", stream)
    good = True
    with torch.cuda.stream(stream):
        for dtype in (torch.float32, torch.bfloat16):
            a, b = torch.randn(300, 520, device="cuda").to(dtype), torch.randn(264, 520, device="cuda").to(dtype).t()
            x, w = torch.randn(77, 1000, device="cuda").to(dtype), torch.randn(1000, device="cuda").to(dtype)
            a64, b64, x64 = a.double(), b.double(), x.double()
            good &= within(torch, queue, "matmul", "d", a64.abs() @ b64.abs(), a64 @ b64, a=a, b=b,
                           d=torch.empty(300, 264, device="cuda", dtype=dtype))
            y = x64 * (x64.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * w.double()
            good &= within(torch, queue, "rms_norm", "y", y.abs(), y, x=x, weight=w, y=torch.empty_like(x))
            good &= within(torch, queue, "reduce_sum", "column_sums", x64.abs().sum(0), x64.sum(0), x=x,
                           column_sums=torch.empty_like(w))
    queue.close()
    return good


def check_order(torch, library):
    """What PyTorch queued before is seen, and what it queues behind sees the result, with nothing waiting between."""
    stream = torch.cuda.Stream()
    queue = Queue(library, "cuda:0", stream)
    x, y = torch.zeros(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    good = True
    with torch.cuda.stream(stream):
        for i in range(1, 6):
            torch.cuda._sleep(10_000_000)
            x.fill_(i)
            queue.run("scale", x=x, y=y, alpha=2.0)
            z = y + 1
            y.zero_()
            good &= bool((z == 2 * i + 1).all())
    queue.close()
    return good


def check_two_queues(torch, library):
    """Two queues take turns op by op; each ends in the bits that it ends in alone."""
    queues = [Queue(library, "cuda:0", torch.cuda.Stream()) for _ in range(2)]
    # Few rows and a long sum go through the workspace.
    inputs = [(torch.randn(16, 8192, device="cuda").bfloat16(), torch.randn(8192, 512, device="cuda").bfloat16())
              for _ in queues]
    results = []
    for together in (False, True):
        outputs = [(torch.zeros(512, device="cuda").bfloat16(), torch.zeros(16, 512, device="cuda").bfloat16())
                   for _ in queues]
        torch.cuda.synchronize()
        for step in range(50):
            for q, (a, b), (sums, y) in zip(queues, inputs, outputs):
                if step % 2 == 0:
                    q.run("matmul", a=a, b=b, d=y)
                else:
                    q.run("softmax", x=y, y=y)
                    q.run("reduce_sum", x=y, column_sums=sums)
                if not together:
                    q.call("trine_queue_wait")
        for q in queues:
            q.call("trine_queue_wait")
        results.append(outputs)
    for q in queues:
        q.close()
    return all(torch.equal(a, b) for alone, mixed in zip(*results) for a, b in zip(alone, mixed))


def check_graph(torch, library):
    """Ops on a stream that PyTorch captures; without enough workspace they say so, and the capture goes on."""
    stream = torch.cuda.Stream()
    queue = Queue(library, "cuda:0", stream)
    x, sums = torch.randn(4096, 64, device="cuda"), torch.zeros(64, device="cuda")
    y = torch.zeros(4096, 64, device="cuda")
    expected = torch.zeros(64, device="cuda")
    own = Queue(library, "cuda:0")
    torch.cuda.synchronize()
    own.run("softmax", x=x, y=y)
    own.run("reduce_sum", x=y, column_sums=expected)
    own.call("trine_queue_wait")
    own.close()
    need = queue.workspace("reduce_sum", x=y, column_sums=sums)
    lent = torch.empty(need, device="cuda", dtype=torch.uint8)
    y.zero_()
    torch.cuda.synchronize()
    graph, short = torch.cuda.CUDAGraph(), True
    with torch.cuda.graph(graph, stream=stream):
        queue.run("softmax", x=x, y=y)
        if need:
            short = refused(lambda: queue.run("reduce_sum", x=y, column_sums=sums), WORKSPACE,
                            f"needs {need} bytes of workspace, but 0 are reserved")
            queue.call("trine_queue_set_workspace", c_void_p(lent.data_ptr()), c_size_t(need))
        queue.run("reduce_sum", x=y, column_sums=sums)
    good = short and need > 0 and not sums.any().item()
    for _ in range(3):
        sums.zero_()
        graph.replay()
        torch.cuda.synchronize()
        good &= torch.equal(sums, expected)
    queue.close()
    return good


def check_memory(torch, library):
    queue, huge, memory = Queue(library, "cuda:0"), 1 << 42, c_void_p()
    good = refused(lambda: queue.call("trine_memory_alloc", c_size_t(huge), byref(memory)), MEMORY,
                   f"no {huge} bytes are left on cuda:0: cuMemAlloc")
    good &= refused(lambda: queue.call("trine_queue_reserve", c_size_t(huge)), MEMORY, "out of memory")
    x = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    queue.run("scale", x=x, y=x, alpha=3.0)
    queue.call("trine_queue_wait")
    good &= bool((x == 3).all())
    queue.close()
    return good


def fault(path):
    """In a process of its own: a pointer to nowhere. The device says so at once and from then on; the CPU goes on."""
    library = Library(path)
    queue, cpu = Queue(library, "cuda:0"), Queue(library, "cpu")
    nowhere = Tensor(0x10000, CODES["float32"], 1, (1 << 20,), (1,))

    def run_and_wait():
        queue.run("scale", x=nowhere, y=nowhere, alpha=2.0)
        queue.call("trine_queue_wait")

    good = refused(run_and_wait, DEVICE, "an illegal memory access was encountered")
    good &= refused(run_and_wait, DEVICE, "cu")
    host = (c_float * 4)(1, 2, 3, 4)
    there = Tensor(ctypes.addressof(host), CODES["float32"], 1, (4,), (1,))
    cpu.run("scale", x=there, y=there, alpha=2.0)
    good &= list(host) == [2, 4, 6, 8]
    queue.close()
    cpu.close()
    return good


def main():
    if sys.argv[2:] == ["fault"]:
        sys.exit(0 if fault(sys.argv[1]) else 1)
    try:
        ctypes.CDLL("libcuda.so.1")
        import torch
        there = torch.cuda.is_available()
    except (OSError, ImportError):
        there = False
    if not there:
        print("1..0 # SKIP no PyTorch that sees a CUDA device")
        return
    library = Library(sys.argv[1])
    failed = 0
    checks = {
        "ops on PyTorch's tensors and stream": check_results,
        "the order of a stream": check_order,
        "two queues on two streams": check_two_queues,
        "a graph that PyTorch captures": check_graph,
        "out of memory": check_memory,
        "a fault on the device": lambda *_: not subprocess.call([sys.executable, __file__, sys.argv[1], "fault"]),
    }
    for number, (name, check) in enumerate(checks.items(), 1):
        try:
            good = check(torch, library)
        except Failed as why:
            good = False
            print(f"# status {why.status}: {why}")
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    print(f"1..{len(checks)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
