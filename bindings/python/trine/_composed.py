# SPDX-License-Identifier: Apache-2.0
"""Gradients of the ops that have no op for them, as compositions of others and of PyTorch's functions."""
import torch

from ._ops import OPS, rows_of


class Composed:
    """`compute`: gradients by name, from values of the op's tensors, gradients of its outputs, parameters, the names of
    the inputs that need one, and what runs an op. `asks`: optional outputs among those values, which have none."""

    def __init__(self, op, compute, saved, asks=()):
        self.compute, self.saved, self.asks = compute, [*saved, *asks], asks
        self.differentiable = {t.name for t in op.outputs} - {"mask", *asks}
        self.made = [(None, t.name) for t in op.inputs]

    def sources(self, arguments, params):
        return [n for n in self.saved if arguments.get(n) is not None or n in self.asks]

    def extra(self, op, arguments, params):
        return list(self.asks)


def _like(gradient, tensor):
    """Summed over what was broadcast, in the type of the tensor."""
    return gradient.sum_to_size(tensor.shape).to(tensor.dtype)


def _before_activation(values, gradient, params, run, op="matmul"):
    """The gradient of what the activation of a product is applied to, which is computed once more."""
    activation = params.get("activation", "none")
    if activation == "none":
        return gradient
    plain = {n: v for n, v in params.items() if n != "activation"}
    arguments = {n: v for n, v in values.items() if isinstance(v, torch.Tensor)}
    z = run(OPS[op], arguments, {**plain, "dtype": gradient.dtype}, [])[OPS[op].outputs[0].name]
    if activation == "relu":
        return torch.where(z > 0, gradient, torch.zeros_like(gradient))
    if activation == "silu":
        return torch.ops.aten.silu_backward(gradient, z)
    form = activation.removeprefix("gelu_")
    if z.dtype == torch.float64:
        return torch.ops.aten.gelu_backward(gradient, z, approximate="none" if form == "erf" else form)
    return run(OPS["gelu_backward"], {"dy": gradient, "x": z}, {"form": form}, [])["dx"]


def _column_sums(x, run):
    if x.dtype == torch.float64:  # which the op does not have
        return rows_of(x).sum(0)
    return run(OPS["reduce_sum"], {"x": rows_of(x)}, {}, ["column_sums"])["column_sums"]


def _matmul(values, incoming, params, needed, run):
    a, b = values["a"], values["b"]
    if not a.is_floating_point() or a.element_size() == 1:
        raise RuntimeError(f"trine.torch.matmul has no gradient of products of {a.dtype}")
    if {"a_scale", "b_scale"} & needed:
        raise RuntimeError("trine.torch.matmul has no gradient of scales: pass them detached")
    dz = _before_activation(values, incoming["d"].contiguous(), params, run)
    made = {}
    if "c" in needed:
        made["c"] = _like(dz * params.get("beta", 1.0), values["c"])
    if "bias" in needed:
        made["bias"] = _column_sums(dz, run).to(values["bias"].dtype)
    if "a_scale" in values:
        dz = dz * values["a_scale"].unsqueeze(-1)
    if "b_scale" in values:
        dz = dz * values["b_scale"].unsqueeze(-2) if values["b_scale"].dim() > 1 else dz * values["b_scale"]
    dz = dz.to(a.dtype)
    kept = {n: params[n] for n in ("alpha", "precision") if n in params}
    if b.dim() == 2:  # all rows of a are of one product
        a, dz = rows_of(a), rows_of(dz)
    if "a" in needed:
        da = run(OPS["matmul"], {"a": dz, "b": b.mT}, kept, [])["d"]
        made["a"] = da.reshape(values["a"].shape) if b.dim() == 2 else _like(da, a)
    if "b" in needed:
        made["b"] = _like(run(OPS["matmul"], {"a": a.mT, "b": dz}, kept, [])["d"], b)
    return made


def _grouped_matmul(values, incoming, params, needed, run):
    x, w, offsets, dy = values["x"], values["w"], values["offsets"], incoming["y"].contiguous()
    gather, counts, divide = values.get("gather"), values.get("counts"), params.get("divide", 1)
    unscaled = {n: v for n, v in values.items() if n != "row_scale"}
    made = {}
    dz = dy
    if "row_scale" in values:
        if "row_scale" in needed:
            plain = run(OPS["grouped_matmul"], unscaled, {**params, "dtype": dy.dtype}, [])["y"]
            made["row_scale"] = (dy.float() * plain.float()).sum(-1)
        dz = (dz * values["row_scale"].unsqueeze(-1)).to(dy.dtype)
    dz = _before_activation(unscaled, dz, params, run, "grouped_matmul").to(x.dtype)
    if counts is not None:  # rows that are not computed are gathered from nowhere
        place = torch.arange(dy.shape[0], dtype=torch.int32, device=x.device)
        group = (torch.searchsorted(offsets, place, right=True) - 1).clamp(0, max(w.shape[0] - 1, 0))
        computed = place - offsets[group] < counts[group] if w.shape[0] else place < 0
        gather = torch.where(computed, place * divide if gather is None else gather, torch.full_like(place, -1))
    if {"w", "bias"} & needed:
        rows = {"dy": dz, "x": x, "offsets": offsets, **({} if gather is None else {"gather": gather})}
        wanted = ["dbias"] if "bias" in needed else []
        results = run(OPS["grouped_matmul_weights"], rows, {"divide": divide}, wanted)
        made.update({n: results["d" + n].to(values[n].dtype) for n in ("w", "bias") if n in needed})
    if "x" in needed:
        rows = run(OPS["grouped_matmul"], {"x": dz, "w": w.mT, "offsets": offsets}, {}, [])["y"]
        made["x"] = rows
        if gather is not None:
            made["x"] = torch.zeros_like(x, memory_format=torch.contiguous_format)
            run(OPS["scatter_add_rows"], {"x": rows, "index": gather // divide, "y": made["x"]}, {}, [])
    return made


def _add(values, incoming, params, needed, run):
    factor = {"a": params.get("alpha", 1.0), "b": params.get("beta", 1.0)}
    return {n: _like(incoming["y"] * factor[n], values[n]) for n in needed}


def _mul(values, incoming, params, needed, run):
    dy = incoming["y"] * params.get("alpha", 1.0)
    return {n: _like(dy * values["b" if n == "a" else "a"], values[n]) for n in needed}


def _scale(values, incoming, params, needed, run):
    return {"x": _like(incoming["y"] * params.get("alpha", 1.0), values["x"])}


def _cast(values, incoming, params, needed, run):
    return {"x": incoming["y"].to(values["x"].dtype)}


def _dropout(values, incoming, params, needed, run):
    state = {n: v for n, v in values.items() if n != "x" and isinstance(v, torch.Tensor)}
    return {"x": run(OPS["dropout"], {"x": incoming["y"].contiguous(), **state}, params, [])["y"]}


def _reduce_sum(values, incoming, params, needed, run):
    x, dx = values["x"], 0
    if incoming.get("row_sums") is not None:
        dx = incoming["row_sums"].unsqueeze(-1)
    if incoming.get("column_sums") is not None:
        dx = dx + incoming["column_sums"]
    return {"x": dx.expand(x.shape).to(x.dtype)}


def _topk(values, incoming, params, needed, run):
    x = values["x"]
    if incoming.get("values") is None:
        return {"x": torch.zeros_like(x)}
    return {"x": torch.zeros_like(x).scatter(-1, values["indices"].long(), incoming["values"])}


def _hadamard(values, incoming, params, needed, run):
    turned = {**params, "transposed": not params.get("transposed", False)}
    return {"x": run(OPS["hadamard"], {"x": incoming["y"].contiguous()}, turned, [])["y"]}


def _gather_rows(values, incoming, params, needed, run):
    x, dy, index = values["x"], incoming["y"].contiguous(), values["index"]
    if x.dtype == torch.float64:  # which the op that adds does not have
        inside = (index >= 0) & (index < x.shape[0])
        return {"x": torch.zeros_like(x).index_add(0, index[inside], dy[inside])}
    dx = torch.zeros_like(x)
    run(OPS["scatter_add_rows"], {"x": dy, "index": index, "y": dx}, {}, [])
    return {"x": dx}


def _block_mean(values, incoming, params, needed, run):
    x, dy, size = values["x"], incoming["y"], params["size"]
    rows, blocks = x.shape[-2], dy.shape[-2]
    place = torch.arange(rows, device=x.device) // size
    count = torch.clamp(rows - place * size, max=size).to(dy.dtype).unsqueeze(-1)
    dx = dy.index_select(-2, torch.clamp(place, max=blocks - 1)) / count if blocks else dy.new_zeros(x.shape)
    return {"x": torch.where((place < blocks).unsqueeze(-1), dx, torch.zeros_like(dx)).to(x.dtype)}


_COMPUTE = {"matmul": _matmul, "add": _add, "mul": _mul, "scale": _scale, "cast": _cast, "dropout": _dropout,
            "reduce_sum": _reduce_sum, "topk": _topk, "gather_rows": _gather_rows, "block_mean": _block_mean,
            "hadamard": _hadamard, "grouped_matmul": _grouped_matmul}
_ASKS = {"topk": ("indices",)}
COMPOSED = {name: Composed(OPS[name], compute, OPS[name].input_names, _ASKS.get(name, ()))
            for name, compute in _COMPUTE.items()}
