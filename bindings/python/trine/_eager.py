# SPDX-License-Identifier: Apache-2.0
"""The functions of trine.torch, as PyTorch runs them eagerly, and what autograd records of a call.

What a call costs beside its kernel counts here. So functions are written out: one for each op, and what is recorded for
each set of inputs and options, and of gradients needed, when it first comes. A call then looks nothing up that the
table tells."""
import inspect

import torch
from torch.autograd.function import once_differentiable

from ._composed import Composed
from ._ops import missing_of


def ready(tensor, table):
    """As the op can read it. What it updates is never a copy: the library says if it cannot be."""
    if tensor.is_contiguous() or table.is_out:
        return tensor
    if tensor.dim() <= table.rank and (
            table.strides == "any" or tensor.dim() == 0 or tensor.stride(-1) == 1 or
            (table.strides == "transposable" and tensor.dim() > 1 and tensor.stride(-2) == 1)):
        return tensor
    return tensor.contiguous()


def run_by_name(op, arguments, params, wanted):
    """Outputs by name."""
    results = op.run(**arguments, **params, **dict.fromkeys(wanted, True))
    names = [t.name for t in op.outputs if not t.optional or t.name in wanted]
    return dict(zip(names, results if len(names) > 1 else (results,)))


def refuse_missing(op, needed):
    missing = missing_of(op.gradient, needed)
    if missing:
        raise RuntimeError(f"trine.torch.{op.name} has no gradient of {', '.join(missing)}: pass it detached")


# -------------------------------------------------------------------------------------------------------- written code

def _written(name, arguments, body, **known):
    """A function, of lines of code in which the names of `known` are known."""
    lines = [f"def make({', '.join(known)}):", f"    def {name}({arguments}):", *(f"        {line}" for line in body),
             f"    return {name}"]
    made = {}
    exec(compile("\n".join(lines), f"<trine.torch.{name}>", "exec"), globals(), made)
    return made["make"](**known)


def _call(op, given, asked=(), options=""):
    """A call of an op: `given` has its arguments, which are by place as far as none is missing."""
    first = next((i for i, n in enumerate(op.positional) if n not in given), len(op.positional))
    arguments = [given[n] for n in op.positional[:first]]
    arguments += [f"{n}={given[n]}" for n in op.positional[first:] if n in given] + [f"{n}=True" for n in asked]
    return f"_run({', '.join(arguments + [f'**{options}'] * bool(options))})"


def _results(op, wanted):
    return [t.name for t in op.outputs if not t.optional or t.name in wanted]


# ----------------------------------------------------------------------------------------------------- what is recorded

class _Plan:
    """What a recorded call does, of which inputs, optional outputs and switches are given, and whether options are.
    Switches are the parameters that decide what the gradient reads."""

    def __init__(self, op, inputs, wanted, switches, options):
        self.op, self.inputs, self.options, self.steps = op, inputs, "_options" if options else "", {}
        self.given, self.switches = dict.fromkeys(inputs, True), dict.fromkeys(switches, True)
        extra = [n for n in op.gradient.extra(op, self.given, self.switches) if n not in wanted]
        results = _results(op, [*wanted, *extra])
        self.returned = [n for n in results if n not in extra]
        self.saved = [n for n in op.gradient.sources(self.given, self.switches) if n in self.given or n in results]
        fixed = [n for n in self.returned if n not in op.gradient.differentiable]
        merged = "{**_options, **_extra}" if extra else "_options"  # an option may be False there
        call = _call(op, {n: n for n in inputs}, () if options else extra, merged if options else "")
        body = [f"{', '.join(results)} = {call}",
                f"_ctx.save_for_backward({', '.join(self.saved)})"]
        body += ["_ctx.options = _options"] * bool(options)
        body += [f"_ctx.mark_non_differentiable({', '.join(fixed)})"] * bool(fixed)
        passed = ", ".join([self.options] * bool(options) + inputs)
        forward = _written("forward", f"_ctx, {passed}", [*body, f"return {', '.join(self.returned)}"], _run=op.run,
                           _extra=dict.fromkeys(extra, True))
        once = once_differentiable(self.backward)

        def backward(ctx, *gradients):  # which mostly is not recorded itself, and then needs no guard
            return (once if torch.is_grad_enabled() else self.backward)(ctx, *gradients)
        recorded = type(op.name, (torch.autograd.Function,),
                        {"forward": staticmethod(forward), "backward": staticmethod(backward)})
        self.record = _written("record", ", ".join([*op.positional, "_options"]), [f"return _apply({passed})"],
                               _apply=recorded.apply)

    def backward(self, ctx, *gradients):
        needs = ctx.needs_input_grad
        step = self.steps.get(needs)
        if step is None:
            needed = {n for n, need in zip(self.inputs, needs[len(needs) - len(self.inputs):]) if need}
            composed = isinstance(self.op.gradient, Composed)
            step = self.steps[needs] = self.composed_step(needed) if composed else self.step(needed)
        return step(ctx.saved_tensors, gradients, ctx.options if self.options else {})

    def step(self, needed):
        """What gives the gradients of the inputs in `needed`, by the op's gradient."""
        gradient = self.op.gradient
        refuse_missing(self.op, needed)
        op, of = gradient.op, {n: f"_d_{n}" for n in self.returned}
        incoming = {n: of[n] for n in self.returned if n in gradient.differentiable}
        arguments, wanted, _ = gradient.request({n: n for n in self.saved}, self.given, incoming, self.switches, needed,
                                                lambda name: f"_zeros_like({name})")
        body = [f"{', '.join(self.saved)}, = _saved"] * bool(self.saved) + [f"{', '.join(of.values())}, = _gradients"]
        body += [f"{n} = {n} if {n}.is_contiguous() else {n}.contiguous()" for n in incoming.values()]
        for tensor, _ in gradient.made:
            if tensor.is_in:  # it is filled whole: nothing is added to it
                body.append(f"_made_{tensor.name} = {arguments[tensor.name]}")
                arguments[tensor.name] = f"_made_{tensor.name}"
        results = ", ".join(f"_made_{n}" for n in _results(op, wanted))
        kept = "{n: v for n, v in _options.items() if n in _kept}" if self.options else ""
        body.append(results + " = " * bool(results) + _call(op, arguments, wanted, kept))
        made = {n: f"_made_{t.name}" for t, n in gradient.made if n in needed}
        broadcast = {t.name for t in self.op.inputs if t.broadcast}
        made.update({n: f"{m}.sum_to_size({n}.shape)" for n, m in made.items() if n in broadcast})
        body.append(f"return {', '.join(['None'] * bool(self.options) + [made.get(n, 'None') for n in self.inputs])}")
        return _written("step", "_saved, _gradients, _options", body, _run=op.run, _kept=set(gradient.params),
                        _zeros_like=torch.zeros_like)

    def composed_step(self, needed):
        outputs = {t.name for t in self.op.outputs}

        def step(saved, gradients, options):
            values, incoming = dict(zip(self.saved, saved)), dict(zip(self.returned, gradients))
            params = {n: v for n, v in options.items() if n not in outputs and v is not None}
            made = self.op.gradient.compute(values, incoming, params, needed, run_by_name)
            return *([None] * bool(self.options)), *(made.get(n) for n in self.inputs)
        return step


def _finder(op, plans):
    """What finds the plan of a call, from which inputs are missing and the options."""
    outputs = {t.name for t in op.outputs} | {"out"}
    switches = {g for _, _, given, _ in getattr(op.gradient, "values", ()) for g in given} & op.params.keys()

    def find(missing, options):
        if op.gradient is None:
            raise RuntimeError(f"trine.torch.{op.name} has no gradient: call it under torch.no_grad(), or detach() "
                               "its inputs")
        told = []
        for name, value in options.items():
            if value is None or value is False or not (name in outputs or name in switches):
                continue
            if name in outputs and value is not True:
                raise RuntimeError(f"trine.torch.{op.name}: {name} cannot be given where gradients are recorded")
            if value:
                told.append(name)
        key = (missing, *told) if options else missing
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _Plan(op, [n for n, m in zip(op.positional, missing) if not m],
                                      [n for n in told if n in outputs], [n for n in told if n in switches], options)
        return plan
    return find


# ------------------------------------------------------------------------------------------------------------ functions

def _draw(op, options, *tensors):
    """The key of a draw, from the generator of the device, where the caller gave none."""
    if not op.drops(options) or options.get("seed") is not None or options.get("offset") is not None:
        return None
    first = next(t for t in tensors if t is not None)
    whole = next(t for t in op.inputs if t.name == "philox").rank > 1 and options.get("comm") is None  # of all ranks
    shape = (first.shape[0], 2) if whole else (2,)
    return torch.randint(2**63 - 1, shape, dtype=torch.int64, device=first.device)


def _gives(op, options):
    """Are there arrays for outputs? A graph cannot hold such a call."""
    outputs = {t.name for t in op.outputs} | {"out"}
    return any(n in outputs and v is not None and not isinstance(v, bool) for n, v in options.items())


_CAST = {torch.float32, torch.float16, torch.bfloat16}


def _cast(op, options, *tensors):
    """The inputs of an op of products as autocast has them, in its type: none where one that must be given is a float
    but none of _CAST, and those that need not be given only if the type of what comes out is not told."""
    tables = {t.name: t for t in op.inputs}
    tables = [tables[n] for n in op.positional]
    if any(tensor.is_floating_point() and tensor.dtype not in _CAST for tensor, table in zip(tensors, tables)
           if not table.optional):
        return tensors
    dtype = torch.get_autocast_dtype(tensors[0].device.type)
    told = options.get("dtype") is not None or _gives(op, options)
    return [tensor.to(dtype) if tensor is not None and tensor.dtype in _CAST and table.type in op.variables and
            not (told and table.optional) else tensor for tensor, table in zip(tensors, tables)]


def function(op, compiled):
    """The op as a function. `compiled` is called instead under torch.compile, with the op, its inputs and options."""
    names, tables, plans = op.positional, {t.name: t for t in op.inputs}, {}
    there = {n: f"{n} is not None and " if tables[n].optional else "" for n in names}
    inputs = ", ".join(names)
    body = []
    if "seed" in op.params and "philox" in names:
        given = "" if op.drops({}) else "_options and "
        body.append(f"if {given}philox is None: philox = _draw(_op, _options, {inputs})")
    if op.products:
        body.append(f"if _is_autocast({names[0]}.device.type): {inputs} = _cast(_op, _options, {inputs})")
    body.append(f"if _is_compiling() and not _gives(_op, _options): return _compiled(_op, ({inputs},), _options)")
    body += [f"if {there[n]}not {n}.is_contiguous(): {n} = _ready({n}, _tables['{n}'])" for n in names
             if not tables[n].is_out]
    body += [f"if _is_grad_enabled() and ({' or '.join(f'{there[n]}{n}.requires_grad' for n in names)}):",
             f"    _missing = ({', '.join(f'{n} is None' if there[n] else 'False' for n in names)},)",
             "    _plan = None if _options else _plans.get(_missing)",
             f"    return (_plan or _find(_missing, _options)).record({inputs}, _options)",
             f"return _run({inputs}, **_options) if _options else _run({inputs})"]
    arguments = ", ".join(f"{n}=None" if there[n] else n for n in names)
    made = _written(op.name, f"{arguments}, **_options", body, _cast=_cast, _compiled=compiled, _draw=_draw,
                    _find=_finder(op, plans), _gives=_gives, _is_autocast=torch.is_autocast_enabled,
                    _is_compiling=torch.compiler.is_compiling, _is_grad_enabled=torch.is_grad_enabled, _op=op,
                    _plans=plans, _ready=ready, _run=op.run, _tables=tables)
    made.__qualname__, made.__module__, made.__doc__ = op.name, "trine.torch", op.run.__doc__
    made.__signature__ = inspect.signature(op.run)
    return made
