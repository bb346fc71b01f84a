# SPDX-License-Identifier: Apache-2.0
"""Gradients of the ops that have no op for them, as compositions of others and of JAX's functions."""
import jax
import jax.numpy as jnp

from ._ops import OPS, rows_of


class Composed:
    """`compute`: gradients by name, from values of the op's tensors, gradients of its outputs (those that are there),
    parameters, the names of the inputs that need one, and what runs an op. `asks`: optional outputs among those
    values, which have none."""

    def __init__(self, op, compute, asks=()):
        self.compute, self.saved, self.asks = compute, op.input_names, asks
        self.made = [(None, t.name) for t in op.inputs]

    def sources(self, arguments, params):
        return [*(n for n in self.saved if n in arguments), *self.asks]

    def extra(self, op, arguments, params):
        return list(self.asks)


def _elementwise(formula):
    """By JAX's own gradient of the op's formula."""
    def compute(values, incoming, params, needed, run):
        def outputs(wanted):
            made = formula({**values, **wanted}, params)
            return {n: made[n].astype(dy.dtype) for n, dy in incoming.items()}
        return jax.vjp(outputs, {n: values[n] for n in needed})[1](incoming)[0]
    return compute


def _wide(x, y):
    """In the wider type, which is that of the gradient's arithmetic."""
    return x.astype(jnp.promote_types(x.dtype, y.dtype)), y.astype(jnp.promote_types(x.dtype, y.dtype))


def _add(values, params):
    a, b = _wide(values["a"], values["b"])
    return {"y": a * params.get("alpha", 1.0) + b * params.get("beta", 1.0)}


def _mul(values, params):
    a, b = _wide(values["a"], values["b"])
    return {"y": a * b * params.get("alpha", 1.0)}


def _scale(values, params):
    return {"y": values["x"] * params.get("alpha", 1.0)}


def _cast(values, params):
    return {"y": values["x"]}


def _reduce_sum(values, params):
    x = values["x"]
    return {"row_sums": x.sum(-1), "column_sums": rows_of(x).sum(0)}


def _dropout(values, incoming, params, needed, run):
    state = {n: v for n, v in values.items() if n != "x"}
    return {"x": run(OPS["dropout"], {"x": incoming["y"], **state}, params, [])["y"]}


def like(gradient, array):
    """Summed over what was broadcast, in the type of the array."""
    extra = gradient.ndim - array.ndim
    axes = [i for i in range(gradient.ndim) if i < extra or array.shape[i - extra] != gradient.shape[i]]
    return gradient.sum(axes).reshape(array.shape).astype(array.dtype)


def _before_activation(values, gradient, params, run, op="matmul"):
    """The gradient of what the activation of a product is applied to, which is computed once more."""
    activation = params.get("activation", "none")
    if activation == "none":
        return gradient
    plain = {n: v for n, v in params.items() if n != "activation"}
    z = run(OPS[op], values, {**plain, "dtype": gradient.dtype}, [])[OPS[op].outputs[0].name]
    if activation == "relu":
        return jnp.where(z > 0, gradient, 0)
    if activation == "silu":
        return jax.vjp(jax.nn.silu, z)[1](gradient)[0]
    form = activation.removeprefix("gelu_")
    if z.dtype == jnp.float64:
        return jax.vjp(lambda z: jax.nn.gelu(z, approximate=form == "tanh"), z)[1](gradient)[0]
    return run(OPS["gelu_backward"], {"dy": gradient, "x": z}, {"form": form}, [])["dx"]


def _column_sums(x, run):
    if x.dtype == jnp.float64:  # which the op does not have
        return rows_of(x).sum(0)
    return run(OPS["reduce_sum"], {"x": rows_of(x)}, {}, ["column_sums"])["column_sums"]


def _matmul(values, incoming, params, needed, run):
    a, b = values["a"], values["b"]
    if not jnp.issubdtype(a.dtype, jnp.floating) or a.dtype.itemsize == 1:
        raise TypeError(f"trine.jax.matmul has no gradient of products of {a.dtype}")
    if {"a_scale", "b_scale"} & needed:
        raise TypeError("trine.jax.matmul has no gradient of scales: pass them through jax.lax.stop_gradient")
    dz = _before_activation(values, incoming["d"], params, run)
    made = {}
    if "c" in needed:
        made["c"] = like(dz * params.get("beta", 1.0), values["c"])
    if "bias" in needed:
        made["bias"] = _column_sums(dz, run).astype(values["bias"].dtype)
    if "a_scale" in values:
        dz = dz * values["a_scale"][..., None]
    if "b_scale" in values:
        dz = dz * (values["b_scale"][..., None, :] if values["b_scale"].ndim > 1 else values["b_scale"])
    dz = dz.astype(a.dtype)
    kept = {n: params[n] for n in ("alpha", "precision") if n in params}
    if b.ndim == 2:  # all rows of a are of one product
        a, dz = rows_of(a), rows_of(dz)
    if "a" in needed:
        da = run(OPS["matmul"], {"a": dz, "b": b.mT}, kept, [])["d"]
        made["a"] = da.reshape(values["a"].shape) if b.ndim == 2 else like(da, a)
    if "b" in needed:
        made["b"] = like(run(OPS["matmul"], {"a": a.mT, "b": dz}, kept, [])["d"], b)
    return made


def _grouped_matmul(values, incoming, params, needed, run):
    x, w, offsets, dy = values["x"], values["w"], values["offsets"], incoming["y"]
    gather, counts, divide = values.get("gather"), values.get("counts"), params.get("divide", 1)
    unscaled = {n: v for n, v in values.items() if n != "row_scale"}
    made = {}
    dz = dy
    if "row_scale" in values:
        if "row_scale" in needed:
            plain = run(OPS["grouped_matmul"], unscaled, {**params, "dtype": dy.dtype}, [])["y"]
            made["row_scale"] = (dy.astype(jnp.float32) * plain.astype(jnp.float32)).sum(-1)
        dz = (dz * values["row_scale"][:, None]).astype(dy.dtype)
    dz = _before_activation(unscaled, dz, params, run, "grouped_matmul").astype(x.dtype)
    if counts is not None:  # rows that are not computed are gathered from nowhere
        place = jnp.arange(dy.shape[0], dtype=jnp.int32)
        group = jnp.clip(jnp.searchsorted(offsets, place, side="right") - 1, 0, max(w.shape[0] - 1, 0))
        computed = place - offsets[group] < counts[group] if w.shape[0] else place < 0
        gather = jnp.where(computed, place * divide if gather is None else gather, -1)
    if {"w", "bias"} & needed:
        rows = {"dy": dz, "x": x, "offsets": offsets, **({} if gather is None else {"gather": gather})}
        wanted = ["dbias"] if "bias" in needed else []
        results = run(OPS["grouped_matmul_weights"], rows, {"divide": divide}, wanted)
        made.update({n: results["d" + n].astype(values[n].dtype) for n in ("w", "bias") if n in needed})
    if "x" in needed:
        made["x"] = run(OPS["grouped_matmul"], {"x": dz, "w": w.mT, "offsets": offsets}, {}, [])["y"]
        if gather is not None:
            arguments = {"x": made["x"], "index": gather // divide, "y": jnp.zeros_like(x)}
            made["x"] = run(OPS["scatter_add_rows"], arguments, {}, [])["y"]
    return made


def _topk(values, incoming, params, needed, run):
    x = jnp.zeros_like(values["x"])
    if "values" not in incoming:
        return {"x": x}
    return {"x": jnp.put_along_axis(x, values["indices"], incoming["values"], axis=-1, inplace=False)}


def _hadamard(values, incoming, params, needed, run):
    turned = {**params, "transposed": not params.get("transposed", False)}
    return {"x": run(OPS["hadamard"], {"x": incoming["y"]}, turned, [])["y"]}


def _gather_rows(values, incoming, params, needed, run):
    x, dy, index = values["x"], incoming["y"], values["index"]
    if x.dtype == jnp.float64:  # which the op that adds does not have
        inside = (index >= 0) & (index < x.shape[0])
        place = jnp.where(inside, index, x.shape[0])
        return {"x": jnp.zeros_like(x).at[place].add(dy, mode="drop")}
    return {"x": run(OPS["scatter_add_rows"], {"x": dy, "index": index, "y": jnp.zeros_like(x)}, {}, [])["y"]}


def _block_mean(values, incoming, params, needed, run):
    x, dy, size = values["x"], incoming["y"], params["size"]
    rows, blocks = x.shape[-2], dy.shape[-2]
    if not blocks:
        return {"x": jnp.zeros_like(x)}
    place = jnp.arange(rows) // size
    count = jnp.minimum(rows - place * size, size).astype(dy.dtype)[:, None]
    dx = jnp.take(dy, jnp.minimum(place, blocks - 1), axis=-2) / count
    return {"x": jnp.where((place < blocks)[:, None], dx, 0).astype(x.dtype)}


_COMPUTE = {"matmul": _matmul, "add": _elementwise(_add), "mul": _elementwise(_mul), "scale": _elementwise(_scale),
            "cast": _elementwise(_cast), "dropout": _dropout, "reduce_sum": _elementwise(_reduce_sum), "topk": _topk,
            "gather_rows": _gather_rows, "block_mean": _block_mean, "hadamard": _hadamard,
            "grouped_matmul": _grouped_matmul}
_ASKS = {"topk": ("indices",)}
COMPOSED = {name: Composed(OPS[name], compute, _ASKS.get(name, ())) for name, compute in _COMPUTE.items()}
