# SPDX-License-Identifier: Apache-2.0
"""trine under the names of Liger Kernel's patching functions, with their arguments.

    from trine.liger import apply_trine_kernel_to_llama
    apply_trine_kernel_to_llama()              # models of the family that are made from now on
    apply_trine_kernel_to_llama(model=model)   # or one that is there

They are trine.transformers.apply() without attention, which Liger leaves alone too. fused_linear_cross_entropy is False
by default and cross_entropy True, other than there: what models are patched with then reads the logits in their own
type and never copies them, and outputs have logits in training too."""
import functools
import importlib

import torch

from .transformers import apply


def _from_now_on(family, kinds):
    """Applies to what is made of a family, as the last act of a model's constructor."""
    from transformers import PreTrainedModel
    file = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    base = next(c for c in vars(file).values() if isinstance(c, type) and issubclass(c, PreTrainedModel) and
                c.__module__ == file.__name__ and PreTrainedModel in c.__bases__)
    original = getattr(base.post_init, "trine_original", base.post_init)

    @functools.wraps(original)
    def post_init(self):
        original(self)
        with torch.device("cpu"):  # where modules are tried, though the model may be made elsewhere
            fused = kinds["linear_loss"] and getattr(self, "loss_type", None) == "ForCausalLM"
            apply(self, **{**kinds, "linear_loss": fused})
    post_init.trine_original = original
    base.post_init = post_init


def _apply(family, model, **kinds):
    if model is None:
        _from_now_on(family, {**kinds, "attention": False})
    else:
        apply(model, **kinds, attention=False)


def _named(family, function, name=None):
    name = f"apply_trine_kernel_to_{name or family}"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(): trine's ops in models of {family}; see trine.liger."
    return function


def _with_swiglu(family):
    def function(rope=True, cross_entropy=True, fused_linear_cross_entropy=False, rms_norm=True, swiglu=True,
                 model=None):
        _apply(family, model, rope=rope, rms_norm=rms_norm, mlp=swiglu, loss=cross_entropy,
               linear_loss=fused_linear_cross_entropy)
    return _named(family, function)


def _with_geglu(family, name=None):
    def function(rope=True, cross_entropy=True, fused_linear_cross_entropy=False, rms_norm=True, geglu=True,
                 model=None):
        _apply(family, model, rope=rope, rms_norm=rms_norm, mlp=geglu, loss=cross_entropy,
               linear_loss=fused_linear_cross_entropy)
    return _named(family, function, name)


apply_trine_kernel_to_llama = _with_swiglu("llama")
apply_trine_kernel_to_mistral = _with_swiglu("mistral")
apply_trine_kernel_to_qwen2 = _with_swiglu("qwen2")
apply_trine_kernel_to_qwen3 = _with_swiglu("qwen3")
apply_trine_kernel_to_phi3 = _with_swiglu("phi3")
apply_trine_kernel_to_gemma2 = _with_geglu("gemma2")
apply_trine_kernel_to_gemma3 = _with_geglu("gemma3")
apply_trine_kernel_to_gemma3_text = _with_geglu("gemma3", "gemma3_text")
