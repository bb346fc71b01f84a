# SPDX-License-Identifier: Apache-2.0
"""trine in models of Hugging Face's transformers.

    model = AutoModelForCausalLM.from_pretrained(...)
    trine.transformers.apply(model)       # norms, rotary embeddings, gated MLPs, attention and loss

What is replaced is found by what a module does, not by its name: a norm or an activation is tried on a few numbers, and
replaced only where trine's op gives the same. So models of families that are built alike are covered too. Training,
generation with a cache, padding, packed batches, sliding windows and soft caps go through the same functions."""
import inspect
import sys
import types

import torch

import trine as raw

from . import devices, torch as ops

NAME = "trine"
_F32 = {"dtype": torch.float32, "device": "cpu"}  # whatever PyTorch's defaults are now, as where a model is loaded


def _probe(function, *shapes):
    """What a module makes of a few numbers, in f32 on the CPU; None if it does not take them."""
    generator = torch.Generator().manual_seed(1)
    arguments = [torch.randn(shape, generator=generator, **_F32) * 3 for shape in shapes]
    try:
        with torch.no_grad():
            return arguments, function(*arguments)
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return arguments, None


def _same(got, want):
    return isinstance(want, torch.Tensor) and got.shape == want.shape and torch.allclose(got, want, 1e-5, 1e-6)


# --------------------------------------------------------------------------------------------------------------- norms

def _norm_options(module):
    """The options of trine's rms_norm that make it this module, or None."""
    weight = getattr(module, "weight", None)
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if not isinstance(weight, torch.nn.Parameter) or weight.dim() != 1 or not isinstance(eps, float):
        return None
    if "RMSNorm" not in type(module).__name__ or getattr(module, "bias", None) is not None:
        return None
    own = torch.linspace(-0.5, 1.5, weight.numel(), **_F32)
    twin = type(module).__new__(type(module))
    torch.nn.Module.__init__(twin)
    twin.__dict__.update({n: v for n, v in module.__dict__.items() if not n.startswith("_") and n != "forward"})
    twin.weight = torch.nn.Parameter(own, requires_grad=False)
    (x,), want = _probe(twin, (3, weight.numel()))
    for options in ({"rounding": "before_weight"}, {"weight_offset": 1.0}):
        if _same(ops.rms_norm(x, weight=own, eps=eps, **options), want):
            return {"eps": eps, **options}
    return None


def _norm_forward(options):
    def forward(self, hidden_states):
        return ops.rms_norm(hidden_states, weight=self.weight, **options)
    return forward


# ---------------------------------------------------------------------------------------------------------- gated MLPs

def _gate(activation):
    """trine's op for activation(gate) * up, or None."""
    (x,), want = _probe(activation, (4, 33))
    one = torch.ones_like(x)
    for op, options in ((ops.swiglu, {}), (ops.geglu, {"form": "tanh"}), (ops.geglu, {"form": "erf"})):
        if _same(op(x, one, **options), want):
            return lambda gate, up: op(gate, up, **options)
    return None


def _has(module, *names):
    return all(isinstance(getattr(module, n, None), torch.nn.Module) for n in names)


def _mlp_forward(module):
    """A forward for a gated MLP, of two products or of one for both halves; None where the module is another thing."""
    parameters = list(inspect.signature(type(module).forward).parameters)
    children = {n for n, _ in module.named_children()}
    if len(parameters) != 2:
        return None
    if children == {"gate_proj", "up_proj", "down_proj", "act_fn"} and _has(module, *children):
        gated = _gate(module.act_fn)

        def forward(self, x):
            return self.down_proj(gated(self.gate_proj(x), self.up_proj(x)))
    elif children == {"gate_up_proj", "down_proj", "activation_fn"} and _has(module, *children):
        gated = _gate(module.activation_fn)

        def forward(self, x):
            return self.down_proj(gated(*self.gate_up_proj(x).chunk(2, -1)))
    else:
        return None
    return forward if gated else None


# ---------------------------------------------------------------------------------------------------- rotary embedding

def _rotate(x, cos, sin, unsqueeze_dim):
    """x is b h s d where the heads come before the tokens (unsqueeze_dim 1), else b s h d; cos and sin are b s 2c, or
    1 s 2c for all, of which the halves are equal."""
    half = cos.shape[-1] // 2
    tables = cos[..., :half], sin[..., :half]
    tokens = x.transpose(1, 2) if unsqueeze_dim == 1 else x
    if cos.shape[0] == 1:
        rotated = ops.rope(tokens, *(t[0] for t in tables))
    else:
        places = torch.arange(cos.shape[0] * cos.shape[1], device=x.device).reshape(cos.shape[:2])
        rotated = ops.rope(tokens, *(t.reshape(-1, half) for t in tables), positions=places)
    return rotated.transpose(1, 2) if unsqueeze_dim == 1 else rotated


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    """As the function of this name in transformers' models."""
    return _rotate(q, cos, sin, unsqueeze_dim), _rotate(k, cos, sin, unsqueeze_dim)


def _rotary_is_standard(function):
    """Function or module, as which it is kept where the package kernels is installed."""
    if list(inspect.signature(getattr(function, "forward", function)).parameters)[:4] != ["q", "k", "cos", "sin"]:
        return False

    def call(q, k, angle):
        emb = torch.cat((angle, angle), -1)
        return torch.stack(function(q, k, emb.cos(), emb.sin()))
    arguments, want = _probe(call, (2, 3, 5, 8), (2, 3, 5, 8), (2, 5, 4))
    if want is None:
        return False
    q, k, angle = arguments
    emb = torch.cat((angle, angle), -1)
    return _same(torch.stack(apply_rotary_pos_emb(q, k, emb.cos(), emb.sin())), want)


# ----------------------------------------------------------------------------------------------------------- attention

def _packed(query, key, value, mask):
    """The tokens that the mask keeps, behind one another, and where each sequence begins. The queries are the last
    tokens."""
    keys = mask.bool()
    queries = keys[:, -query.shape[1]:]
    starts = [torch.nn.functional.pad(m.sum(-1).cumsum(0), (1, 0)).to(torch.int32) for m in (queries, keys)]
    return queries, query[queries], key[keys], value[keys], starts


def _starts(position_ids, length):
    """Where sequences begin that were packed into one, as their positions tell; None for a single one."""
    if position_ids is None or position_ids.shape[0] != 1 or position_ids.shape[-1] != length:
        return None
    first = torch.nn.functional.pad(position_ids[0, 1:] != position_ids[0, :-1] + 1, (1, 0), value=True)
    places = first.nonzero()[:, 0]
    if len(places) == 1:
        return None
    return torch.nn.functional.pad(places, (0, 1), value=length).to(torch.int32)


def _bias(mask, dtype):
    """What a mask of [batch, heads, queries, keys] adds to scores: -Inf where one of truth values is false."""
    if mask.dtype != torch.bool:
        return mask if mask.dtype in (dtype, torch.float32) else mask.float()
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, sliding_window=None, softcap=None,
              is_causal=None, s_aux=None, position_ids=None, cu_seq_lens_q=None, cu_seq_lens_k=None, position_bias=None,
              **kwargs):
    """trine's attention as transformers' AttentionInterface has it: query is b h s d, what is returned b s h d. A mask
    is one of padding, [batch, keys], or of four dimensions, whole: truth values, or what is added to scores. s_aux are
    sinks, and position_bias is added to scores too."""
    if value.shape[-1] != query.shape[-1]:
        raise NotImplementedError(f"trine's attention has one head size, not {query.shape[-1]} and {value.shape[-1]}")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    options = {"scale": scaling, "softcap": softcap or None, "window": sliding_window or None, "sinks": s_aux,
               "causal": bool(causal) and query.shape[2] > 1, "dropout": dropout or None}
    whole = attention_mask is not None and attention_mask.dim() == 4
    if whole:  # which has all that is hidden
        options.update(causal=False, window=None)
    if attention_mask is not None and attention_mask.dim() not in (2, 4):
        raise NotImplementedError(f"trine's attention takes a mask of two dimensions or of four, not "
                                  f"{list(attention_mask.shape)}")
    if options["window"] and not options["causal"] and query.shape[2] > 1:
        raise NotImplementedError("trine's attention has no sliding window where later keys are seen")
    added = [] if position_bias is None else [_bias(position_bias, query.dtype)]
    if whole:
        added.append(_bias(attention_mask[..., :key.shape[2]], query.dtype))
    elif attention_mask is not None and added:
        added.append(_bias(attention_mask.bool()[:, None, None], query.dtype))
        attention_mask = None
    if added:
        options["bias"] = sum(added[1:], added[0])
    query, key, value = (t.transpose(1, 2) for t in (query, key, value))
    if attention_mask is not None and not whole:
        places, q, k, v, (starts_q, starts_k) = _packed(query, key, value, attention_mask)
        out = ops.attention(q, k, v, cu_seqlens_q=starts_q, cu_seqlens_k=starts_k, **options)
        return torch.zeros_like(query).index_put((places,), out), None
    if cu_seq_lens_q is None and not added and query.shape[1] == key.shape[1]:
        cu_seq_lens_q = cu_seq_lens_k = _starts(position_ids, query.shape[1])
    if cu_seq_lens_q is not None:
        options.update(cu_seqlens_q=cu_seq_lens_q.to(torch.int32), cu_seqlens_k=cu_seq_lens_k.to(torch.int32))
    return ops.attention(query, key, value, **options), None


# ---------------------------------------------------------------------------------------------------------------- loss

def _shifted(labels, device, num_items_in_batch, ignore_index, shift_labels):
    """The labels of the tokens in front of them, and how many count."""
    if shift_labels is None:
        shift_labels = torch.nn.functional.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    shift_labels = shift_labels.reshape(-1).to(device)
    return shift_labels, (shift_labels != ignore_index).sum() if num_items_in_batch is None else num_items_in_batch


def causal_lm_loss(logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None, **kwargs):
    """As transformers' ForCausalLMLoss. The logits are read in their own type and never copied."""
    labels, count = _shifted(labels, logits.device, num_items_in_batch, ignore_index, shift_labels)
    return ops.cross_entropy(logits.reshape(-1, vocab_size), labels, ignore_index=ignore_index).sum() / count


class _LinearLoss(torch.autograd.Function):
    """The mean of linear_cross_entropy with its gradients in the same call: three products, where the loss by itself
    is one and its gradient three."""

    @staticmethod
    def forward(ctx, x, weight, bias, labels, count, ignore_index):
        share = torch.ones((), dtype=torch.float32, device=x.device) / count
        ctx.wanted = [n for n, need in zip(("dx", "dweight", "dbias"), ctx.needs_input_grad) if need]
        made = raw.linear_cross_entropy(x, weight, labels, bias=bias, dloss=share.expand(len(x)), loss=True,
                                        ignore_index=ignore_index, **dict.fromkeys(ctx.wanted, True))
        losses, *gradients = made if ctx.wanted else (made,)
        ctx.save_for_backward(*gradients)
        return losses.sum() * share

    @staticmethod
    def backward(ctx, incoming):
        made = {n: t * incoming.to(t.dtype) for n, t in zip(ctx.wanted, ctx.saved_tensors)}
        return made.get("dx"), made.get("dweight"), made.get("dbias"), None, None, None


def _linear_loss(x, weight, bias, labels, count, ignore_index):
    """The same by the recorded op where a graph is made, where autocast has a type, and of f16, whose gradients would
    vanish before a scaler multiplies them."""
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type) or x.dtype == torch.float16:
        return ops.linear_cross_entropy(x, weight, labels, bias=bias, ignore_index=ignore_index).sum() / count
    return _LinearLoss.apply(x.contiguous(), weight, bias, labels, count, ignore_index)


def _fuse_head(model):
    """In training, where labels come with a call, the head passes on what it is given, and the loss multiplies."""
    head, plain, loss_of_logits = model.get_output_embeddings(), model.forward, model.loss_function
    product, signature, fused = head.forward, inspect.signature(model.forward), False

    def head_forward(self, hidden):
        return hidden if fused else product(hidden)

    def loss_function(logits, labels, vocab_size, num_items_in_batch=None, ignore_index=-100, shift_labels=None,
                      **kwargs):
        if not fused:
            return loss_of_logits(logits, labels, vocab_size, num_items_in_batch=num_items_in_batch,
                                  ignore_index=ignore_index, shift_labels=shift_labels, **kwargs)
        labels, count = _shifted(labels, logits.device, num_items_in_batch, ignore_index, shift_labels)
        return _linear_loss(logits.reshape(-1, head.in_features), head.weight, head.bias, labels, count, ignore_index)

    def forward(self, *args, **kwargs):
        nonlocal fused
        given = {**signature.bind_partial(*args).arguments, **kwargs}
        fused = self.training and (given.get("labels") is not None or given.get("shift_labels") is not None)
        try:
            out = plain(*args, **kwargs)
            if fused and isinstance(out, tuple):
                out = (out[0], None, *out[2:])
            elif fused:
                out.logits = None
            return out
        finally:
            fused = False

    head.forward = types.MethodType(head_forward, head)
    model.loss_function = loss_function
    model.forward = types.MethodType(forward, model)


def _head_is_linear(model):
    """Is what the loss is of a linear layer's output, as it is? A cap, or a factor, comes between in some families."""
    head, text = model.get_output_embeddings(), model.config.get_text_config()
    between = ("final_logit_softcapping", "logits_scaling", "logit_scale", "lm_head_multiplier")
    return (getattr(model, "loss_type", None) == "ForCausalLM" and type(head) is torch.nn.Linear and
            all(getattr(text, name, None) in (None, 1.0) for name in between))


# ------------------------------------------------------------------------------------------------------------ register

def _register_attention():
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import flash_attention_mask
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, flash_attention_mask)


@torch.compiler.assume_constant_result
def _known(module, find):
    """What `find` says of a module of transformers, which is asked once."""
    if "_trine_known" not in module.__dict__:
        known = find(module)
        module._trine_known = tuple(known.items()) if isinstance(known, dict) else known  # which a graph can hold
    return module._trine_known


class _Norm(torch.nn.Module):
    """As the package kernels wants a layer: its forward becomes that of a module, whose own is its type's."""
    can_torch_compile = True

    def forward(self, hidden_states):
        options = _known(self, _norm_options)
        if options is None:
            return type(self).forward(self, hidden_states)
        return ops.rms_norm(hidden_states, weight=self.weight, **dict(options))


def _own_is_standard(module):
    return _rotary_is_standard(types.MethodType(type(module).forward, module))


class _Rotary(torch.nn.Module):
    can_torch_compile = True

    def forward(self, q, k, cos, sin, unsqueeze_dim=1):
        if not _known(self, _own_is_standard):
            return type(self).forward(self, q, k, cos, sin, unsqueeze_dim)
        return apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim)


class _Repository:
    """Where the package kernels finds a layer: here, and not on a hub."""

    def __init__(self, layer):
        self.layer = layer

    def load(self):
        return self.layer

    def __str__(self):
        return f"trine, layer {self.layer.__name__}"


LAYERS = {"RMSNorm": _Repository(_Norm), "RMSNormZeroCentered": _Repository(_Norm),
          "rotary_pos_emb": _Repository(_Rotary)}
_DEVICES = {"cpu": "cpu", "cuda": "cuda", "hip": "rocm"}  # transformers' names of the backends' devices


def register():
    """Makes trine known to transformers, so that models have it for attn_implementation="trine", and norms and rotary
    embeddings for use_kernels=True, which needs the package kernels. What it is known for is returned."""
    from transformers.integrations import hub_kernels
    from transformers.utils.import_utils import is_kernels_available
    _register_attention()
    if not is_kernels_available():
        return ["attention"]
    mapping = hub_kernels.get_kernel_mapping_transformers()
    found = {_DEVICES[device["name"].partition(":")[0]] for device in devices()}
    for name, repository in LAYERS.items():
        mapping.setdefault(name, {}).update(dict.fromkeys(found, repository))
    return ["attention", *LAYERS]


# --------------------------------------------------------------------------------------------------------------- apply

def apply(model, *, rms_norm=True, rope=True, mlp=True, attention=True, loss=True, linear_loss=False):
    """Puts trine's ops into a model, each kind unless it is switched off, and returns it.

    With linear_loss, which asks for a model with a linear head whose outputs nothing changes, training never has all
    logits in memory: the head and the loss are one op where labels come with a call of a model in training, whose
    output has no logits then (None).

    Rotary embeddings are functions of the file that a family of models is made from, and are replaced there: for all
    models of the family in this process. All else concerns this model alone.

    model.trine_applied says what was replaced and how often."""
    if linear_loss and not _head_is_linear(model):
        raise NotImplementedError(f"linear_loss: {type(model).__name__} has no linear head that the loss is of as it "
                                  "is: leave linear_loss False")
    counts = {"rms_norm": 0, "rope": 0, "mlp": 0, "attention": 0, "loss": 0, "linear_loss": 0}
    files = set()
    for module in model.modules():
        files.add(sys.modules[type(module).__module__])
        if rms_norm and (options := _norm_options(module)):
            module.forward = types.MethodType(_norm_forward(options), module)
            counts["rms_norm"] += 1
        if mlp and (forward := _mlp_forward(module)):
            module.forward = types.MethodType(forward, module)
            counts["mlp"] += 1
    for file in files if rope else ():
        function = getattr(file, "apply_rotary_pos_emb", None)
        if function is apply_rotary_pos_emb:
            counts["rope"] += 1
        elif function is not None and _rotary_is_standard(function):
            file.apply_rotary_pos_emb = apply_rotary_pos_emb
            counts["rope"] += 1
    if attention:
        _register_attention()
        model.set_attn_implementation(NAME)
        counts["attention"] = 1
    if loss and getattr(model, "loss_type", None) == "ForCausalLM":
        model.loss_function = causal_lm_loss
        counts["loss"] = 1
    if linear_loss:
        _fuse_head(model)
        counts["linear_loss"] = 1
    model.trine_applied = counts
    return model
