# SPDX-License-Identifier: Apache-2.0
"""What trine.torch has for the many parameters of a model: an optimizer, and clipping, by lists of calls."""
import math

import torch

from ._trine import global_norm_clip, run_list

_PARAMS = {torch.float32, torch.bfloat16, torch.float16}
_STATES = {torch.float32, torch.bfloat16}


def _flat(tensor):
    """The elements as they lie in memory, one behind the other; None if there are gaps, or some are one."""
    if tensor.is_contiguous():
        return tensor if tensor.dim() else tensor.view(1)
    covered = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape) if n != 1):
        if stride != covered:
            return None
        covered *= size
    return tensor.as_strided((covered,), (1,))


def _by_device(tensors):
    groups = {}
    for tensor in tensors:
        groups.setdefault(tensor.device, []).append(tensor)
    return groups


# ------------------------------------------------------------------------------------------------------------- clipping

def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
    gradients = [p.grad for p in parameters if p.grad is not None]
    if any(g.is_sparse for g in gradients):
        raise RuntimeError("trine.torch: gradients must be dense")
    return gradients


def _squares(groups):
    """The sum of squares of each gradient, of all devices, on each device."""
    found = []
    for device, gradients in groups.items():
        sums = torch.empty(len(gradients), dtype=torch.float64, device=device)
        flat = [g.contiguous() if f is None else f for g, f in ((g, _flat(g)) for g in gradients)]
        run_list("global_norm_clip", [{"x": x, "sum_squares": s} for x, s in zip(flat, sums.split(1))])
        found.append(sums)
    return {device: torch.cat([sums.to(device) for sums in found]) if len(found) > 1 else found[0]
            for device in groups}


def _norm(parameters, max_norm):
    """The gradients by device, their sums of squares, and their norm and coefficient, on the device of the first."""
    groups = _by_device(_gradients(parameters))
    if not groups:
        return groups, {}, torch.zeros(()), torch.ones(1)
    squares = _squares(groups)
    sums = next(iter(squares.values()))
    norm, coefficient = global_norm_clip(sums.new_empty(0, dtype=torch.float32), other_squares=sums, norm=True,
                                         coefficient=True, max_norm=None if max_norm == math.inf else max_norm)
    return groups, squares, norm.view(()), coefficient


@torch.no_grad()
def clip_coefficient(parameters, max_norm):
    """The norm of all gradients, and min(1, max_norm/norm) as a tensor of one element, by which
    AdamW.step(grad_scale=coefficient) multiplies them: clipping without a pass of its own."""
    return _norm(parameters, float(max_norm))[2:]


@torch.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """torch.nn.utils.clip_grad_norm_ by two lists of calls: scales the gradients by min(1, max_norm/norm) where they
    are, and returns their norm. It is summed in f64, and nothing is added to it. `foreach` means nothing here."""
    del foreach
    if norm_type != 2:
        raise ValueError(f"trine.torch.clip_grad_norm_: norm_type is {norm_type}, but only 2 is possible")
    max_norm = float(max_norm)
    groups, squares, norm, _ = _norm(parameters, max_norm)
    if error_if_nonfinite and not torch.isfinite(norm):
        raise RuntimeError(f"trine.torch.clip_grad_norm_: the norm of the gradients is {norm.item()}, so that they "
                           "cannot be clipped")
    for device, gradients in groups.items() if max_norm != math.inf else ():
        flat = [_flat(g) for g in gradients]
        copies = [g.contiguous() if f is None else f for g, f in zip(gradients, flat)]
        run_list("global_norm_clip", [{"x": x, "y": x, "other_squares": squares[device], "own_included": True,
                                       "max_norm": max_norm} for x in copies])
        for gradient, as_it_lies, clipped in zip(gradients, flat, copies):
            if as_it_lies is None:
                gradient.copy_(clipped)
    return norm


# ------------------------------------------------------------------------------------------------------------ optimizer

class AdamW(torch.optim.AdamW):
    """torch.optim.AdamW, whose step is one list of calls of the op adamw: its parameter groups, its state and its
    state_dict(), so that each loads the other's.

    Parameters are f32, bf16 or f16, dense. Moments are of their parameter's type, or f32 if that is f16. amsgrad,
    maximize, capturable and differentiable are not there: a CUDA graph would hold the number of the step. A step takes
    what torch.amp.GradScaler gives: it divides by the scale as it reads the gradient, and is left out where an Inf was
    found."""

    _step_supports_amp_scaling = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.dtype not in _PARAMS:
                raise ValueError(f"trine.torch.AdamW: a parameter is {p.dtype}, but must be f32, bf16 or f16")

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        for state in self.state.values():
            state["step"] = state["step"].cpu()
            for name in ("exp_avg", "exp_avg_sq"):  # which PyTorch has in their parameter's type
                state[name] = state[name] if state[name].dtype in _STATES else state[name].float()

    def _begin(self, p):
        dtype = p.dtype if p.dtype in _STATES else torch.float32
        state = self.state[p]
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(p, dtype=dtype, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(p, dtype=dtype, memory_format=torch.preserve_format)
        return state

    def _options(self, group):
        """A group's, as the op takes them, for each device: a rate that is a tensor must be on it."""
        for name in ("amsgrad", "maximize", "capturable", "differentiable"):
            if group[name]:
                raise ValueError(f"trine.torch.AdamW: {name} is not there")
        lr, (beta1, beta2) = group["lr"], group["betas"]
        options = {"beta1": beta1, "beta2": beta2, "eps": group["eps"], "weight_decay": group["weight_decay"]}
        if not isinstance(lr, torch.Tensor):
            return dict.fromkeys({p.device for p in group["params"]}, options | {"lr": lr})
        return {device: options | {"lr_tensor": lr.to(device, torch.float32).view(1)}
                for device in {p.device for p in group["params"]}}

    def _arrays(self, p, state):
        """What is updated and read, where one of these does not lie as the op wants it."""
        if p.grad.is_sparse:
            raise RuntimeError("trine.torch: gradients must be dense")
        arrays = [p, p.grad, state["exp_avg"], state["exp_avg_sq"]]
        arrays = [a if a.stride() == p.stride() else torch.empty_like(p, dtype=a.dtype).copy_(a) for a in arrays]
        state["exp_avg"], state["exp_avg_sq"] = arrays[2:]
        arrays = [_flat(a) for a in arrays]
        if arrays[0] is None:
            raise ValueError("trine.torch.AdamW: elements of a parameter do not lie one behind the other")
        return arrays

    def _call(self, p, options):
        grad, state = p.grad, self.state[p] or self._begin(p)
        m, v, step = state["exp_avg"], state["exp_avg_sq"], state["step"]
        arrays = p, grad, m, v
        if not (grad.layout is torch.strided and p.is_contiguous() and grad.is_contiguous() and m.is_contiguous() and
                v.is_contiguous() and p.dim()):
            arrays = self._arrays(p, state)
        return {"param": arrays[0], "grad": arrays[1], "m": arrays[2], "v": arrays[3], "step": int(step.item()) + 1,
                **options}, step

    def _multiplier(self, grad_scale):
        """By which gradients are multiplied; None: 1. GradScaler's scale is what they have been multiplied by."""
        scale = getattr(self, "grad_scale", None)
        if scale is not None:
            inverse = torch.as_tensor(scale).double().reciprocal().float()
            grad_scale = inverse if grad_scale is None else inverse * grad_scale.to(inverse.device)
        return None if grad_scale is None else grad_scale.view(1)

    @torch.no_grad()
    def step(self, closure=None, *, grad_scale=None):
        """A step. `grad_scale`: a tensor of one element, in f32, by which gradients are multiplied, as
        clip_coefficient() has it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found_inf = getattr(self, "found_inf", None)
        if found_inf is not None and found_inf.item() != 0:
            return loss
        multiplier, calls, steps = self._multiplier(grad_scale), {}, []
        for group in self.param_groups:
            options = self._options(group)
            for p in group["params"]:
                if p.grad is not None:
                    call, step = self._call(p, options[p.device])
                    calls.setdefault(p.device, []).append(call)
                    steps.append(step)
        for device, of_device in calls.items():
            if multiplier is not None:
                scale = multiplier.to(device)
                of_device = [call | {"grad_scale": scale} for call in of_device]
            run_list("adamw", of_device)
        if steps:
            torch._foreach_add_(steps, torch.ones(()), alpha=1)
        return loss
