# SPDX-License-Identifier: Apache-2.0
"""The ops for PyTorch: as the functions of trine, with gradients where the op has them, and as registered ops,
torch.ops.trine, for torch.compile and torch.export.

    y = trine.torch.rms_norm(x, weight)     # records for autograd where x or weight requires it
    y.sum().backward()

A tensor whose last dimension is not contiguous, where the op asks for that, is copied first, as PyTorch's own functions
do. dropout without seed and offset draws from torch's generator of the device, in a CUDA graph anew at each replay.

AdamW, clip_grad_norm_ and clip_coefficient are for the many parameters of a model at once."""
import torch

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
    raise ImportError(f"trine.torch needs PyTorch 2.10 or later, this is {torch.__version__}; the functions of trine "
                      "take tensors of any version, without gradients")

from ._arrays import _DTYPES, dtype_name
from ._composed import COMPOSED, Composed
from ._eager import function, ready, refuse_missing, run_by_name
from ._ops import OPS
from ._optim import AdamW, clip_coefficient, clip_grad_norm_

_TORCH_DTYPES = {name: getattr(torch, long) for name, long in _DTYPES.items() if hasattr(torch, long)}


# ------------------------------------------------------------------------------------------------------- registered ops

_TYPES = {"F32": "float", "BOOL": "bool", "ENUM": "str", "TEXT": "str"}


def _schema(op):
    """The op as PyTorch's dispatcher has it. An optional output that is not asked for is an empty tensor."""
    needed, optional = [], []
    for tensor in op.inputs:
        alias = f"({chr(ord('a') + op.in_place.index(tensor))}!)" if tensor in op.in_place else ""
        (optional if tensor.optional else needed).append(
            f"Tensor{alias}{'? ' if tensor.optional else ' '}{tensor.name}{'=None' if tensor.optional else ''}")
    keywords = [f"bool {t.name}=False" for t in op.outputs if t.optional]
    for name, param in op.params.items():
        default = param["default"]
        kind = _TYPES.get(param["kind"], "int")
        if param["required"]:
            keywords.append(f"{kind} {name}")
        elif default is None:
            keywords.append(f"{kind}? {name}=None")
        else:
            keywords.append(f"{kind} {name}={repr(default) if kind != 'str' else chr(34) + default + chr(34)}")
    keywords.append("ScalarType? dtype=None")
    outputs = ", ".join(["Tensor"] * len(op.outputs))
    returns = outputs if len(op.outputs) == 1 else f"({outputs})"
    return f"{op.name}({', '.join(needed + optional + ['*'] + keywords)}) -> {returns}"


def _split(op, args, kwargs):
    """Inputs, outputs wanted, parameters and dtype of a call of a registered op."""
    arguments = dict(zip(op.positional, args))
    arguments.update({n: kwargs[n] for n in op.input_names if n in kwargs})
    arguments = {n: t for n, t in arguments.items() if t is not None}
    wanted = [n for n in op.optional_outputs if kwargs.get(n)]
    params = {n: kwargs[n] for n in op.params if kwargs.get(n) is not None}
    return arguments, wanted, params, kwargs.get("dtype")


def _pack(op, results, like):
    packed = tuple(results[t.name] if t.name in results else like.new_empty(0) for t in op.outputs)
    return packed if len(packed) != 1 else packed[0]


def _masked(params, op):
    """PyTorch's integers are signed."""
    return {n: v & (2**64 - 1) if op.params[n]["kind"] == "U64" else v for n, v in params.items()}


def _register(library, op):
    library.define(_schema(op), tags=(torch.Tag.needs_fixed_stride_order,))

    def compute(*args, **kwargs):
        arguments, wanted, params, dtype = _split(op, args, kwargs)
        arguments = {n: ready(t, table) for table in op.inputs for n, t in arguments.items() if n == table.name}
        params = _masked(params, op)
        if dtype is not None:
            params["dtype"] = dtype
        with torch.no_grad():
            results = run_by_name(op, arguments, params, wanted)
        if op.outputs:
            return _pack(op, results, next(iter(arguments.values())))
        return None

    def fake(*args, **kwargs):
        arguments, wanted, params, dtype = _split(op, args, kwargs)
        made = op.infer({n: t.shape for n, t in arguments.items()},
                        {n: dtype_name(t.dtype) for n, t in arguments.items()}, wanted,
                        dtype_name(dtype) if dtype is not None else None, params)
        like = next(iter(arguments.values()))
        results = {n: like.new_empty(shape, dtype=_TORCH_DTYPES[of]) for n, (shape, of) in made.items()}
        if op.outputs:
            return _pack(op, results, like)
        return None

    name = f"trine::{op.name}"
    library.impl(op.name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(name, fake, lib=library)
    if op.gradient:
        backward, setup_context = _registered_gradient(op)
        torch.library.register_autograd(name, backward, setup_context=setup_context, lib=library)


def _gradients(op, values, incoming, params, needed):
    """Gradients of the inputs in `needed`, from values of the op's tensors and gradients of its outputs."""
    gradient = op.gradient
    if isinstance(gradient, Composed):
        return gradient.compute(values, incoming, params, needed, _run_registered)
    refuse_missing(op, needed)
    incoming = {n: g.contiguous() for n, g in incoming.items() if g is not None}
    arguments, wanted, kept = gradient.request(values, values, incoming, params, needed, torch.zeros_like)
    results = _run_registered(gradient.op, arguments, kept, wanted)
    results.update({t.name: arguments[t.name] for t, _ in gradient.made if t.is_in})
    made = {of: results[tensor.name] for tensor, of in gradient.made if of in needed}
    return {**made, **{t.name: made[t.name].sum_to_size(values[t.name].shape) for t in op.inputs
                       if t.broadcast and t.name in made}}


def _registered_gradient(op):
    def setup_context(ctx, inputs, keyword_only_inputs, output):
        arguments, wanted, params, _ = _split(op, inputs, keyword_only_inputs)
        outputs = output if len(op.outputs) > 1 else (output,)
        ctx.returned = {t.name for t in op.outputs if not t.optional or t.name in wanted}
        results = dict(zip((t.name for t in op.outputs), outputs))
        ctx.params, ctx.names = params, op.gradient.sources(arguments, params)
        ctx.given = dict.fromkeys(arguments, True)
        ctx.save_for_backward(*(results.get(n, arguments.get(n)) for n in ctx.names))
        ctx.mark_non_differentiable(*(o for t, o in zip(op.outputs, outputs)
                                      if t.name not in op.gradient.differentiable))

    def backward(ctx, *gradients):
        incoming = {t.name: g for t, g in zip(op.outputs, gradients) if t.name in ctx.returned}
        needed = {n for n, need in zip(op.positional, ctx.needs_input_grad) if need}
        values = {**ctx.given, **dict(zip(ctx.names, ctx.saved_tensors))}
        made = _gradients(op, values, incoming, ctx.params, needed)
        return tuple(made.get(n) for n in op.positional)

    return backward, setup_context


def _run_registered(op, arguments, params, wanted):
    registered = getattr(torch.ops.trine, op.name)
    results = registered(*(arguments.get(n) for n in op.positional), **params, **dict.fromkeys(wanted, True))
    results = results if len(op.outputs) > 1 else (results,)
    return {t.name: r for t, r in zip(op.outputs, results) if not t.optional or t.name in wanted}


# ------------------------------------------------------------------------------------------------------------ functions

def _compiled(op, tensors, options):
    """By the registered op, which a graph holds. What the gradient needs is asked for as well."""
    arguments = {n: t for n, t in zip(op.positional, tensors) if t is not None}
    outputs = {t.name for t in op.outputs}
    wanted = [n for n, v in options.items() if n in outputs and v]
    params = {n: v for n, v in options.items() if n not in outputs and v is not None}
    asked = list(wanted)
    if op.gradient and torch.is_grad_enabled() and any(t.requires_grad for t in arguments.values()):
        asked += [n for n in op.gradient.extra(op, arguments, params) if n not in asked]
    results = _run_registered(op, arguments, params, asked)
    results = [r for n, r in results.items() if n not in op.optional_outputs or n in wanted]
    return results[0] if len(results) == 1 else tuple(results) if results else None


for _name, _gradient in COMPOSED.items():
    OPS[_name].gradient = _gradient
_library = torch.library.Library("trine", "DEF")
for _op in OPS.values():
    _register(_library, _op)
    globals()[_op.name] = function(_op, _compiled)
__all__ = [*OPS, "AdamW", "clip_coefficient", "clip_grad_norm_"]
