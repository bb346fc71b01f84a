# SPDX-License-Identifier: Apache-2.0
"""Gradients by hand: an op's gradient from the gradient's op, for arguments that its golden vectors have."""
import numpy as np

import trine
from test_golden import inputs, tensors
from trine._arrays import dtype_name
from trine._ops import OPS as TABLE

GRADIENTS = [n for n, op in TABLE.items() if op.gradient and op.gradient.made[0][0]]


def forward_of(name, case, kind):
    """Arguments of the op, gradients of its outputs and parameters, from a golden case of its gradient's op. An input
    that the gradient does not depend on is of the shape of its gradient."""
    op, values, table = TABLE[name], inputs(case, kind), tensors(case.op)
    arguments, incoming = {}, {}
    for its, of, given, otherwise in op.gradient.values:
        of = otherwise if given and of not in op.input_names else of
        if its in values and of in op.input_names:
            arguments[of] = values[its]
    for its, of in op.gradient.incoming:
        if its in values:
            incoming[of] = values[its]
    for tensor, of in op.gradient.made:
        if of not in arguments and tensor.name in case.outputs and not tensor.optional:
            shape = case.outputs[tensor.name][0]
            arguments[of] = kind.make(np.linspace(-2, 2, int(np.prod(shape))).reshape(shape),
                                      case.dtype(table[tensor.name]))
    sizes = {symbol: int(n) for its, value in values.items()
             for symbol, n in zip(reversed(table[its]["shape"].split()), reversed(value.shape)) if symbol in op.sizes}
    return arguments, incoming, {**{n: v for n, v in case.params.items() if n in op.params}, **sizes}


def summed(gradient, shape):
    """Over what was broadcast."""
    extra = len(gradient.shape) - len(shape)
    axes = tuple(i for i, n in enumerate(gradient.shape) if i < extra or shape[i - extra] != n)
    return gradient.sum(axes).reshape(tuple(shape)) if axes else gradient


def by_hand(name, arguments, incoming, params, kind):
    """What the gradient's op says of the op's own outputs; None if the op does not take the types."""
    op = TABLE[name]
    try:
        results = getattr(trine, name)(**arguments, **params, **dict.fromkeys(op.optional_outputs - {"dlogits"}, True))
    except trine.ArgumentError as error:
        assert "no such combination of types" in str(error)
        return None
    results = results if isinstance(results, tuple) else (results,)
    values = {**arguments, **dict(zip([t.name for t in op.outputs if t.name != "dlogits"], results))}
    backward = {}
    for its, of, given, otherwise in op.gradient.values:
        of = otherwise if given and not any(arguments.get(g) is not None or params.get(g) for g in given) else of
        if of in values:
            backward[its] = values[of]
    for its, of in op.gradient.incoming:
        if of in incoming:
            gradient = incoming[of]  # of the output's type, as a framework passes it on
            backward[its] = gradient.to(values[of].dtype) if hasattr(gradient, "to") else gradient.astype(
                values[of].dtype)
    outputs = {}
    for tensor, of in op.gradient.made:
        if of in arguments and tensor.is_in:
            outputs[tensor.name] = kind.make(np.zeros(tuple(arguments[of].shape)), dtype_name(arguments[of].dtype))
        elif of in arguments and tensor.optional:
            outputs[tensor.name] = True
    kept = {n: v for n, v in params.items() if n in op.gradient.params}
    made = getattr(trine, op.gradient.op.name)(**backward, **outputs, **kept)
    made = made if isinstance(made, tuple) else () if made is None else (made,)
    made = iter(made)
    return {of: outputs[t.name] if t.is_in else summed(next(made), arguments[of].shape)
            for t, of in op.gradient.made if of in arguments}
