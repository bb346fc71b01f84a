# SPDX-License-Identifier: Apache-2.0
"""The ops for JAX: as the functions of trine, eager and in jit, with gradients where the op has them, and under vmap.

    y = trine.jax.rms_norm(x, weight)
    grads = jax.grad(lambda x: trine.jax.gelu(trine.jax.rms_norm(x)).sum())(x)

Arrays of JAX cannot be written. What an op updates in place is returned first, as new arrays: param, m, v =
trine.jax.adamw(param, grad, m, v, step=1). Parameters are known when a computation is traced."""
import collections
import functools

import jax

if jax.__version_info__ < (0, 10):  # whose XLA refuses the handlers, and then all of its devices
    raise ImportError(f"trine.jax needs JAX 0.10 or later, this is {jax.__version__}; the functions of trine take "
                      "arrays of any version, without gradients")
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

from . import _trine
from ._arrays import _DTYPES, dtype_name
from ._composed_jax import COMPOSED, like
from ._ops import OPS, missing_of

_TARGET = "trine"

# A call but for its arrays: hashable. `wanted`: optional outputs; `params`: pairs; `dtype`: trine's name, or None.
_Call = collections.namedtuple("_Call", "op wanted params dtype")


def _gradient(op):
    return COMPOSED.get(op.name) or op.gradient


# ------------------------------------------------------------------------------------------------------ the custom call

def _types(op, arguments):
    """By trine's names. Where the op has nothing but i64, other integers are taken, and widened."""
    only = {t.name for t in op.inputs if t.type == "i64"}
    return {n: "i64" if n in only and jnp.issubdtype(a.dtype, jnp.integer) else dtype_name(a.dtype)
            for n, a in arguments.items()}


def _widened(array):
    """An i64, as two words of 32 bits where JAX has no such type."""
    if jax.dtypes.canonicalize_dtype("int64").itemsize == 8:
        return array.astype(jnp.int64)
    array = array if array.dtype.itemsize == 4 else array.astype(jnp.int32)
    return jnp.stack([array, array >> 31 if array.dtype == jnp.int32 else jnp.zeros_like(array)], -1)


def _outputs(call, arguments):
    """Names of what a call returns, with shapes and types: what is updated in place, and outputs."""
    op, types = call.op, _types(call.op, arguments)
    made = op.infer({n: a.shape for n, a in arguments.items()}, types, call.wanted, call.dtype, dict(call.params))
    if call.dtype and not any(t.type in op.variables and made[t.name][1] == call.dtype
                              for t in op.outputs if t.name in made):
        raise TypeError(f"{op.name}(): dtype is {call.dtype}, but the inputs decide the types of its outputs")
    for name, (_, dtype) in made.items():
        if jax.dtypes.canonicalize_dtype(_DTYPES.get(dtype, "float32")).name != _DTYPES.get(dtype, "float32"):
            raise TypeError(f"{op.name}(): {name} is of {_DTYPES[dtype]}, which JAX has only with jax_enable_x64")
    updated = {t.name: (arguments[t.name].shape, types[t.name]) for t in op.in_place if t.name in arguments}
    return {t.name: {**updated, **made}[t.name] for t in op.tensors if t.name in updated or t.name in made}


def _operands(op, arguments):
    return [t.name for t in op.inputs if t.name in arguments]


def _pack(call, arguments, outputs):
    """The call as the handler takes it; the library's sentence where it contradicts the op."""
    types = _types(call.op, arguments)
    operands = tuple((n, types[n], arguments[n].shape) for n in _operands(call.op, arguments))
    results = tuple((n, dtype, shape) for n, (shape, dtype) in outputs.items())
    return _trine._xla_pack(call.op.name, operands, results, **dict(call.params))


def _axes(array):
    """In a shard_map: the axes of the mesh along which it is not the same everywhere."""
    kind = getattr(jax.typeof(array), "manual_axis_type", None)
    return frozenset(kind.varying if kind else ())


def _alike(arguments):
    """All different along the same axes, as a custom call wants them."""
    axes = frozenset().union(*map(_axes, arguments.values()))
    return {n: jax.lax.pcast(a, tuple(sorted(axes - _axes(a))), to="varying") if axes - _axes(a) else a
            for n, a in arguments.items()}


def _custom_call(call, arguments):
    if not arguments:
        raise TypeError(f"{call.op.name}() needs {call.op.positional[0]}")
    operands = _operands(call.op, arguments)
    missing = [t.name for t in call.op.inputs if not t.optional and t.name not in arguments]
    if missing:
        raise TypeError(f"{call.op.name}() needs {missing[0]}")
    outputs = _outputs(call, arguments)
    packed = _pack(call, arguments, outputs)
    first = arguments[operands[0]]
    of = {}
    if _axes(first):
        mesh = jax.sharding.NamedSharding(jax.typeof(first).sharding.mesh, jax.sharding.PartitionSpec())
        of = {"manual_axis_type": jax.typeof(first).manual_axis_type, "sharding": mesh}
    results = [jax.ShapeDtypeStruct(shape, _DTYPES[dtype], **of) for shape, dtype in outputs.values()]
    names = list(outputs)
    aliases = {operands.index(n): names.index(n) for n in names if n in operands}
    types = _types(call.op, arguments)
    ready = [_widened(arguments[n]) if types[n] == "i64" != dtype_name(arguments[n].dtype) else arguments[n]
             for n in operands]
    made = jax.ffi.ffi_call(_TARGET, results, input_output_aliases=aliases)(*ready, call=packed)
    return dict(zip(names, made))


# ----------------------------------------------------------------------------------------------------------------- vmap

def _draws(call, arguments):
    """Does a call draw? What it draws follows from where they lie, so that its rows are not alike."""
    return call.op.drops(dict(call.params))


def _folded(call, size, batched, arguments):
    """Arguments with the batch as the first of the dimensions that are one of the op, and the shapes of outputs then;
    None where the table does not allow it.

    That symbol must be the same of all tensors, which are batched then, and must not be what the op works along: the
    last one. Nothing else may tie rows to one another, as offsets of sequences do, or a count of their blocks."""
    op = call.op
    if op.in_place or _draws(call, arguments):
        return None
    alike = {other: symbol for symbol, others in op.like.items() for other in others}
    tables = [t for t in op.inputs if t.name in arguments]
    rank = {t.name: arguments[t.name].ndim - batched[t.name] for t in tables}
    ready, present, symbols = {}, {}, set()
    for t in tables:
        array, ours = arguments[t.name], rank[t.name]
        if t.broadcast and batched[t.name]:  # aligned at the last dimension
            ours = max([ours] + [rank[o.name] for o in tables if o.broadcast and o.dims == t.dims])
        if ours == t.least - 1:  # a vector that stands alone
            ours += 1
        array = array.reshape(array.shape[:batched[t.name]] + (1,) * (ours - rank[t.name]) +
                              array.shape[batched[t.name]:])
        ready[t.name] = array
        present[t.name] = {alike.get(s, s) for s, _, _ in t.dims[max(0, t.rank - ours):]}
        if batched[t.name]:
            symbol, add, _ = t.dims[max(0, t.rank - ours - 1)] if t.dims else (None, 0, False)
            if symbol is None or add:
                return None
            symbols.add(alike.get(symbol, symbol))
    if len(symbols) != 1:
        return None
    symbol, = symbols
    if any(alike.get(s, s) == symbol for s in op.tied):
        return None
    shown = [t for t in op.tensors if t.name in arguments or not t.is_in]
    if not any(symbol == alike.get(s, s) for t in shown for s, _, _ in t.dims[:-1]):
        return None
    plain = {}
    for t in tables:
        array = ready[t.name]
        plain[t.name] = jax.ShapeDtypeStruct(array.shape[batched[t.name]:], array.dtype)
        if batched[t.name]:
            continue
        if symbol in present[t.name]:
            ready[t.name] = jnp.broadcast_to(array, (size, *array.shape))
        elif jnp.issubdtype(array.dtype, jnp.integer) and all(symbol != alike.get(s, s) for s, _, _ in t.dims):
            return None
    one, many = _outputs(call, plain), _outputs(call, ready)
    if any(many[n] != ((size, *shape), dtype) for n, (shape, dtype) in one.items()):
        return None
    try:
        _pack(call, ready, many)
    except _trine.ArgumentError:
        return None
    return ready


def _batch(call, size, batched, arguments):
    run = _batchable(call)
    ready = _folded(call, size, batched, arguments)
    if ready is None:
        fixed = {n: a for n, a in arguments.items() if not batched[n]}
        return jax.lax.map(lambda one: run({**fixed, **one}), {n: a for n, a in arguments.items() if batched[n]})
    shapes = _outputs(call, {n: jax.ShapeDtypeStruct(a.shape[batched[n]:], a.dtype) for n, a in arguments.items()})
    return {n: r.reshape(size, *shapes[n][0]) for n, r in run(ready).items()}


@functools.lru_cache(maxsize=4096)
def _batchable(call):
    run = custom_vmap(functools.partial(_custom_call, call))

    @run.def_vmap
    def rule(size, batched, arguments):
        results = _batch(call, size, batched[0] if isinstance(batched, list) else batched, arguments)
        return results, dict.fromkeys(results, True)

    return run


# ------------------------------------------------------------------------------------------------------------ gradients

@functools.lru_cache(maxsize=4096)
def _once(call):
    """As it is run where a gradient is made: JAX would differentiate it again."""
    run = jax.custom_jvp(_batchable(call))

    @run.defjvp
    def refuse(primals, tangents):
        raise TypeError(f"trine.jax.{call.op.name} has no second derivative")

    return run


@jax.tree_util.register_static
class _Static(tuple):
    """Names, among what a gradient is handed."""


def _run(op, arguments, params, wanted):
    """An op without gradient, by names."""
    params = dict(params)
    dtype = params.pop("dtype", None)
    return _differentiable(_call(op, wanted, params, dtype))(_alike(arguments))


def _gradients(op, values, given, incoming, params, needed):
    """Gradients of the inputs in `needed`, from values of the op's tensors and gradients of its outputs. `given`: the
    names of the op's arguments."""
    gradient = _gradient(op)
    if op.name in COMPOSED:
        return gradient.compute(values, incoming, params, needed, _run)
    there = {**dict.fromkeys(given, True), **values}
    arguments, wanted, kept = gradient.request(values, there, incoming, params, needed, jnp.zeros_like)
    results = _run(gradient.op, arguments, kept, wanted)
    made = {of: results[tensor.name] for tensor, of in gradient.made if of in needed}
    return {**made, **{n: like(made[n], values[n]) for n in gradient.alike & made.keys()}}


def _incoming(op, gradients):
    """Without those that are zero, but where the gradient's op must have one."""
    must = {of for name, of in getattr(_gradient(op), "incoming", [])
            for t in op.gradient.op.tensors if t.name == name and not t.optional}
    return {n: jnp.zeros(g.shape, g.dtype) if isinstance(g, SymbolicZero) else g for n, g in gradients.items()
            if g.dtype != jax.dtypes.float0 and (not isinstance(g, SymbolicZero) or n in must)}


@functools.lru_cache(maxsize=4096)
def _differentiable(call):
    op, params, gradient = call.op, dict(call.params), _gradient(call.op)
    run = jax.custom_vjp(_once(call))

    def forward(arguments):
        needed = {n for n, a in arguments.items() if a.perturbed and jnp.issubdtype(a.value.dtype, jnp.floating)}
        arguments = {n: a.value for n, a in arguments.items()}
        missing = missing_of(gradient, needed) if gradient else sorted(needed)
        if missing:
            raise TypeError(f"trine.jax.{op.name} has no gradient of {', '.join(missing)}: use jax.lax.stop_gradient")
        asked = {*call.wanted, *gradient.extra(op, arguments, params)}
        results = _once(call._replace(wanted=tuple(sorted(asked))))(arguments)
        saved = {n: results.get(n, arguments.get(n)) for n in gradient.sources(arguments, params)}
        returned = {n: r for n, r in results.items() if n in call.wanted or n not in op.optional_outputs}
        return returned, (saved, _Static(sorted(arguments)), _Static(sorted(needed)))

    def backward(saved, gradients):
        values, given, needed = saved
        values = {n: v for n, v in values.items() if v is not None}
        made = _gradients(op, values, given, _incoming(op, gradients), params, set(needed))
        return ({n: made.get(n) for n in given},)

    run.defvjp(forward, backward, symbolic_zeros=True)
    return run


# ------------------------------------------------------------------------------------------------------------ functions

def _known(op, name, value):
    """A parameter, which is a part of the computation, not one of its values."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"{op.name}: {name} must be known when the computation is traced: make it a static argument")
    return value.item() if hasattr(value, "item") else value


def _call(op, wanted, params, dtype):
    params = tuple(sorted((n, _known(op, n, v)) for n, v in params.items()))
    return _Call(op, tuple(sorted(wanted)), params, dtype if dtype is None else dtype_name(dtype))


@functools.lru_cache(maxsize=4096)
def _jitted(call):
    run = _differentiable(call)

    def function(arguments):
        return run(_alike(arguments))

    function.__name__ = function.__qualname__ = call.op.name
    return jax.jit(function)


def _function(op):
    outputs = {t.name for t in op.outputs} | {"out"}

    def function(*args, **kwargs):
        if len(args) > len(op.positional):
            raise TypeError(f"{op.name}() takes {len(op.positional)} arguments by place, but {len(args)} are given")
        arguments = dict(zip(op.positional, args))
        params, wanted = {}, []
        for name, value in kwargs.items():
            if name in arguments:
                raise TypeError(f"{op.name}() has two values for '{name}'")
            if name in outputs and not (value is None or isinstance(value, bool)):
                raise TypeError(f"{op.name}(): {name} cannot be given: arrays of JAX cannot be written")
            if name in op.input_names:
                arguments[name] = value
            elif name in outputs:
                wanted += [name] * bool(value and name in op.optional_outputs)
            elif value is not None:
                params[name] = value
        dtype = params.pop("dtype", None)
        arguments = {n: a if isinstance(a, jax.Array) else jnp.asarray(a) for n, a in arguments.items()
                     if a is not None}
        made = _jitted(_call(op, wanted, params, dtype))(arguments)
        results = tuple(made[t.name] for t in op.tensors if t.name in made)
        return results[0] if len(results) == 1 else results

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.run.__doc__
    function.__text_signature__ = op.run.__text_signature__
    return function


for _platform, _handler in _trine._xla_handlers().items():
    jax.ffi.register_ffi_target(_TARGET, _handler, platform=_platform)
for _op in OPS.values():
    globals()[_op.name] = _function(_op)
__all__ = list(OPS)
