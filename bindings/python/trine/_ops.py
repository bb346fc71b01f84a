# SPDX-License-Identifier: Apache-2.0
"""The ops as the layers for PyTorch and JAX see them: shapes and types of outputs from those of inputs, and what the
op of a gradient needs. All of it follows from the specification's table."""
import math
import re

from . import _trine
from ._table import ROWS


def rows_of(x):
    """All rows of an array behind one another, where there may be none, or none in them."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


class Tensor:
    def __init__(self, row):
        self.name, self.type, self.dims = row["name"], row["type"], row["dims"]
        self.is_in, self.is_out, self.optional = row["in"], row["out"], row["optional"]
        self.broadcast, self.strides = row["broadcast"], row["strides"]
        self.rank = len(self.dims)
        self.least = sum(not optional for _, _, optional in self.dims)


class Gradient:
    """The op of an op's gradients. Its tensors are values of the op's, gradients that come in, and gradients made."""

    def __init__(self, op, backward, roles):
        self.op = backward
        self.values = []    # (its tensor, the op's tensor, given, otherwise)
        self.incoming = []  # (its tensor, the op's output)
        self.made = []      # (its tensor, the op's input)
        for tensor in backward.tensors:
            kind, of, given, otherwise = roles[tensor.name]
            if kind == "value":
                self.values.append((tensor.name, of, given, otherwise))
            elif tensor.is_out:
                self.made.append((tensor, of))
            else:
                self.incoming.append((tensor.name, of))
        told = {t.type for t in backward.tensors if t.is_in or t.type not in backward.variables}
        # inputs that say how their gradients are summed and rounded, which the gradient's op need not see
        self.alike = {t.name for t in op.inputs for tensor, of in self.made
                      if t.name == of and (t.broadcast or tensor.type not in told)}
        self.params = [p for p in backward.params if p in op.params]
        self.differentiable = {of for _, of in self.incoming}

    def source(self, of, given, otherwise, arguments, params):
        """The op's tensor that a value is, for a call with these arguments and parameters."""
        if given and not any(arguments.get(g) is not None or params.get(g) for g in given):
            return otherwise
        return of

    def sources(self, arguments, params):
        """The op's tensors that making the gradients needs."""
        names = {self.source(of, given, otherwise, arguments, params) for _, of, given, otherwise in self.values}
        return sorted((names | {of for tensor, of in self.made if tensor.is_in} | self.alike) - {None})

    def request(self, values, given, incoming, params, needed, zeros_like):
        """The call of the gradient's op: arguments, optional outputs wanted, and parameters. `given`: the op's tensors
        that were given, with or without a value."""
        arguments = {}
        for name, of, present, otherwise in self.values:
            value = values.get(self.source(of, present, otherwise, given, params))
            if value is not None:
                arguments[name] = value
        arguments.update({name: incoming[of] for name, of in self.incoming if incoming.get(of) is not None})
        # one that is updated in place is filled whole: nothing is added to it
        arguments.update({t.name: zeros_like(values[of]) for t, of in self.made if t.is_in})
        wanted = [t.name for t, of in self.made if t.optional and not t.is_in and of in needed]
        return arguments, wanted, {n: v for n, v in params.items() if n in self.params}

    def extra(self, op, arguments, params):
        """The optional outputs that the op must be asked for."""
        sources = (self.source(of, given, otherwise, arguments, params) for _, of, given, otherwise in self.values)
        return [s for s in sources if s in op.optional_outputs]


def missing_of(gradient, needed):
    """Inputs of which there is no gradient."""
    return sorted(set(needed) - {of for _, of in gradient.made})


_CHANCES = ("dropout", "p")  # parameters that are a probability of dropping


class Op:
    def __init__(self, row):
        self.name, self.positional, self.leading = row["name"], row["positional"], row["leading"]
        self.like, self.variables, self.types = row["like"], row["variables"], row["types"]
        self.tied = row["tied"]  # symbols whose places depend on one another
        self.products = row["products"]  # is its work mostly products, as of matrices?
        self.tensors = [Tensor(t) for t in row["tensors"]]
        self.params = {p["name"]: p for p in row["params"]}
        self.sizes = {n for n, p in self.params.items() if p["kind"] == "SIZE"}  # that inputs may not have
        self.inputs = [t for t in self.tensors if t.is_in]
        self.input_names = [t.name for t in self.inputs]
        self.outputs = [t for t in self.tensors if not t.is_in]
        self.optional_outputs = {t.name for t in self.outputs if t.optional}
        self.in_place = [t for t in self.inputs if t.is_out]
        self.run = getattr(_trine, self.name)
        self.gradient = None

    def drops(self, params):
        """Does a call with these parameters draw, elements to drop or tokens?"""
        chances = [c for c in _CHANCES if c in self.params]
        return "seed" in self.params and (not chances or any(params.get(c) for c in chances))

    # ------------------------------------------------------------------------------------------------------ inference

    def _fold(self, tensor, shape, several):
        """The shape as the op has it; leading dimensions that are one of the op are noted in `several`."""
        extra = len(shape) - tensor.rank
        symbol = tensor.dims[0][0]
        if extra > 0 and symbol is not None:
            several.setdefault(symbol, shape[:extra + 1])
            size = 1
            for length in shape[:extra + 1]:
                size = size * length
            return (size, *shape[extra + 1:])
        if len(shape) == tensor.least - 1 and tensor.dims[tensor.rank - tensor.least][0] in (None, self.leading):
            first = tensor.dims[tensor.rank - tensor.least][0]
            if first is not None:
                several.setdefault(first, ())
            return (1, *shape)
        return shape

    def _sizes(self, shapes):
        sizes, several, ones = {}, {}, set()
        for tensor in self.tensors:
            if tensor.name not in shapes:
                continue
            shape = self._fold(tensor, tuple(shapes[tensor.name]), several)
            for (symbol, add, _), size in zip(reversed(tensor.dims), reversed(shape)):
                if tensor.broadcast and size == 1:
                    ones |= set() if tensor.optional else {symbol}
                elif symbol is not None and symbol not in sizes:
                    sizes[symbol] = size - add
        for symbol, others in self.like.items():
            for other in others:
                if other in sizes and (symbol not in sizes or (sizes[symbol] == 1 and sizes[other] != 1)):
                    sizes[symbol] = sizes[other]
                    several.pop(symbol, None)
                    if other in several:
                        several[symbol] = several[other]
        return sizes, several, ones

    def _types(self, types, dtype):
        bound = {t.type: types[t.name] for t in reversed(self.tensors) if t.name in types and t.type in self.variables}
        first = next(types[t.name] for t in self.inputs if t.name in types)
        rows = [dict(zip(self.variables, row)) for row in self.types]
        made = [v for v in self.variables if v not in bound and any(t.type == v for t in self.outputs)]
        takes = [v for v in made if any(row[v] == dtype for row in rows)]  # of several, those that dtype may be of
        for variable in made:
            fit = [row[variable] for row in rows if all(row[v] == t for v, t in bound.items())]
            asked = dtype if variable in takes or not takes else None
            bound[variable] = asked or (first if first in fit or not fit else fit[0])
        return bound

    def infer(self, shapes, types, wanted, dtype=None, params={}):
        """Shape and type of each required output and of those in `wanted`, of inputs of these shapes and types."""
        sizes, several, ones = self._sizes(shapes)
        for name in self.sizes & params.keys():
            sizes[name] = params[name]
        bound = self._types(types, dtype)
        made = {}
        for tensor in self.outputs:
            if tensor.optional and tensor.name not in wanted:
                continue
            shape = []
            for symbol, add, optional in tensor.dims:
                if isinstance(add, str):  # "(n+15)/16"
                    of, more, by = re.fullmatch(r"\((\w+)\+(\d+)\)/(\d+)", add).groups()
                    shape.append((sizes[of] + int(more)) // int(by))
                elif symbol is None:
                    shape.append(add)
                elif add == 0 and symbol in several:
                    shape += several[symbol]
                elif symbol in sizes or symbol in ones or shape or not optional:
                    shape.append(sizes.get(symbol, int(add <= 0)) + add)  # one, or none beside those always there
            made[tensor.name] = tuple(shape), bound.get(tensor.type, tensor.type)
        return made


OPS = {row["name"]: Op(row) for row in ROWS}
for _row in ROWS:
    if _row["gradient"]:
        OPS[_row["name"]].gradient = Gradient(OPS[_row["name"]], OPS[_row["gradient"]], _row["roles"])
