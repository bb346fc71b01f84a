# SPDX-License-Identifier: Apache-2.0
"""Models of transformers with trine in them, against the same models without: small ones of each family, with random
weights, in training and in generation."""
import importlib
import inspect
import sys
import types

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import trine.transformers  # noqa: E402

SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=211, max_position_embeddings=128, head_dim=16, attention_dropout=0.0, pad_token_id=0,
             bos_token_id=1, eos_token_id=2)
FAMILIES = {
    "llama": ("LlamaConfig", {}), "mistral": ("MistralConfig", {"sliding_window": 7}), "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", {}), "phi3": ("Phi3Config", {}), "smollm3": ("SmolLM3Config", {}),
    "gemma2": ("Gemma2Config", {"sliding_window": 7, "query_pre_attn_scalar": 16}),
    "gemma3": ("Gemma3TextConfig", {"sliding_window": 7, "query_pre_attn_scalar": 16}),
}
APPLIED = {"rms_norm": 1, "rope": 1, "mlp": 3, "attention": 1, "loss": 1}  # at least


def build(family, attention="eager"):
    name, own = FAMILIES[family]
    config, other = (getattr(transformers, name)(**{**SIZES, **own}) for _ in range(2))
    torch.manual_seed(3)
    theirs = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for parameter in theirs.parameters():  # norms' weights too
        torch.nn.init.normal_(parameter, std=0.2)
    mine = transformers.AutoModelForCausalLM.from_config(other, attn_implementation=attention)
    mine.load_state_dict(theirs.state_dict())
    return theirs.eval(), mine.eval()


def tokens(*shape):
    return torch.randint(3, 211, shape, generator=torch.Generator().manual_seed(5))


@pytest.fixture(params=FAMILIES)
def models(request):
    """What their model gives must be asked for first: rotary embeddings are replaced for both, until the test ends."""
    theirs, mine = build(request.param)
    file = sys.modules[type(theirs).__module__]
    function = file.apply_rotary_pos_emb
    yield theirs, mine
    file.apply_rotary_pos_emb = function


def loss_and_gradients(model, **inputs):
    model.zero_grad()
    out = model(**inputs)
    out.loss.backward()
    return out.loss.detach(), out.logits.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}


def compare(theirs, mine, keep=None):
    torch.testing.assert_close(mine[0], theirs[0], rtol=1e-5, atol=1e-5)
    keep = slice(None) if keep is None else keep
    torch.testing.assert_close(mine[1][keep], theirs[1][keep], rtol=1e-3, atol=1e-3)
    for name, gradient in theirs[2].items():
        scale = gradient.abs().max().item() + 1e-6
        torch.testing.assert_close(mine[2][name], gradient, rtol=1e-3, atol=1e-3 * scale, msg=name)


def test_training(models):
    theirs, mine = models
    ids = tokens(3, 29)
    labels = ids.clone()
    labels[0, :5] = -100
    mask = torch.ones(3, 29, dtype=torch.long)
    mask[1, 20:] = 0  # padding on the right
    padded = labels.masked_fill(mask == 0, -100)
    plain = loss_and_gradients(theirs, input_ids=ids, labels=labels)
    with_padding = loss_and_gradients(theirs, input_ids=ids, labels=padded, attention_mask=mask)
    trine.transformers.apply(mine)
    for kind, least in APPLIED.items():
        assert mine.trine_applied[kind] >= least, mine.trine_applied
    assert mine.trine_applied["rms_norm"] >= 2 * 3 + 1
    compare(plain, loss_and_gradients(mine, input_ids=ids, labels=labels))
    compare(with_padding, loss_and_gradients(mine, input_ids=ids, labels=padded, attention_mask=mask), mask.bool())


def test_generation(models):
    """The same tokens, greedily, with a cache, of prompts of several lengths."""
    theirs, mine = models
    ids, mask = tokens(3, 11), torch.ones(3, 11, dtype=torch.long)
    mask[0, :4] = 0  # padding on the left
    ids[0, :4] = 0
    options = dict(max_new_tokens=12, do_sample=False, min_new_tokens=12)
    alone = theirs.generate(ids[1:], attention_mask=mask[1:], **options)
    padded = theirs.generate(ids, attention_mask=mask, **options)
    trine.transformers.apply(mine)
    assert torch.equal(mine.generate(ids[1:], attention_mask=mask[1:], **options), alone)
    assert torch.equal(mine.generate(ids, attention_mask=mask, **options), padded)


def test_packed():
    """Several sequences in one row, told by their positions, are as if each stood alone."""
    _, mine = build("llama")
    trine.transformers.apply(mine)
    first, second = tokens(1, 9), tokens(1, 14)
    ids = torch.cat([first, second], 1)
    positions = torch.cat([torch.arange(9), torch.arange(14)])[None]
    with torch.no_grad():
        packed = mine(ids, position_ids=positions).logits
        torch.testing.assert_close(packed[:, :9], mine(first).logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(packed[:, 9:], mine(second).logits, rtol=1e-4, atol=1e-4)


def test_bf16():
    """In bf16 trine is as near to f32 as transformers is."""
    theirs, mine = build("llama")
    ids = tokens(2, 33)
    with torch.no_grad():
        exact = theirs(ids).logits
        coarse = theirs.bfloat16()(ids).logits.float()
        got = trine.transformers.apply(mine.bfloat16())(ids).logits.float()
    assert (got - exact).pow(2).mean() < 1.3 * (coarse - exact).pow(2).mean()


def test_autocast():
    """Under autocast a model of f32 trains, and is as near to f32 as transformers is."""
    theirs, mine = build("llama")
    ids = tokens(2, 33)
    exact = loss_and_gradients(theirs, input_ids=ids, labels=ids)
    with torch.autocast("cpu", torch.bfloat16):
        coarse = loss_and_gradients(theirs, input_ids=ids, labels=ids)
        got = loss_and_gradients(trine.transformers.apply(mine), input_ids=ids, labels=ids)
    assert (got[1] - exact[1]).pow(2).mean() < 1.3 * (coarse[1] - exact[1]).pow(2).mean()

    def wrong(gradients):
        return sum((g - exact[2][n]).pow(2).sum() for n, g in gradients.items())
    assert wrong(got[2]) < 1.3 * wrong(coarse[2])


def test_registered():
    """By the name of an implementation of attention, for models that know nothing else of trine."""
    assert trine.transformers.register()[0] == "attention"
    theirs, mine = build("llama", "trine")
    ids = tokens(2, 17)
    mask = torch.ones(2, 17, dtype=torch.long)
    mask[0, :5] = 0
    keep = mask.bool()
    seen = []
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        attention = trine.transformers.ops.attention
        patch.setattr(trine.transformers.ops, "attention", lambda *a, **k: seen.append(1) or attention(*a, **k))
        torch.testing.assert_close(mine(ids).logits, theirs(ids).logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(mine(ids, attention_mask=mask).logits[keep],
                                   theirs(ids, attention_mask=mask).logits[keep], rtol=1e-4, atol=1e-4)
    assert len(seen) == 2 * 3


def laid_over(module, layer):
    """As the package kernels does it."""
    members = {n for n, _ in inspect.getmembers(layer)} - {n for n, _ in inspect.getmembers(torch.nn.Module)}
    assert members <= {"can_torch_compile", "has_backward"} and layer.__init__ is torch.nn.Module.__init__
    kinds = [[p.kind for p in inspect.signature(c.forward).parameters.values()] for c in (layer, type(module))]
    assert kinds[0] == kinds[1]
    module.forward = types.MethodType(layer.forward, module)
    return module


class ScaledRMSNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(8)), 1e-6

    def forward(self, x):
        return 2 * self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("family", [*FAMILIES, "none"])
def test_layer_of_norms(family, compiled):
    """For the package kernels: trine's where it is the same, else the module's own."""
    module = ScaledRMSNorm() if family == "none" else build(family)[1].model.norm
    x = torch.randn(3, module.weight.numel())
    want = module(x)
    laid_over(module, trine.transformers.LAYERS["RMSNorm"].load())
    torch._dynamo.reset()
    got = (torch.compile(module, fullgraph=True, backend="aot_eager") if compiled else module)(x)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert (module._trine_known is None) == (family == "none")


class Func(torch.nn.Module):
    """A function as the package kernels keeps it."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, q, k, cos, sin, unsqueeze_dim=1):
        return self.function(q, k, cos, sin, unsqueeze_dim)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("family,standard", [("llama", True), ("gemma2", True), ("cohere", False)])
def test_layer_of_rotary(family, standard, compiled):
    function = importlib.import_module(f"transformers.models.{family}.modeling_{family}").apply_rotary_pos_emb
    q, k, angle = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 5, 4)
    emb = torch.cat((angle, angle), -1)
    want = function(q, k, emb.cos(), emb.sin())
    assert trine.transformers._rotary_is_standard(Func(function)) == standard
    module = laid_over(Func(function), trine.transformers.LAYERS["rotary_pos_emb"].load())
    torch._dynamo.reset()
    module = torch.compile(module, fullgraph=True, backend="aot_eager") if compiled else module
    got = module(q, k, emb.cos(), emb.sin())
    for mine, theirs in zip(got, want):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
    assert module._trine_known == standard


@pytest.mark.skipif(not transformers.utils.import_utils.is_kernels_available(), reason="kernels is not installed")
def test_kernels():
    """use_kernels=True, by the package kernels itself, which asks no hub."""
    assert trine.transformers.register() == ["attention", *trine.transformers.LAYERS]
    theirs, mine = build("llama", "trine")
    ids = tokens(2, 17)
    want = theirs(ids).logits
    mine.set_use_kernels(True)
    assert mine.model.norm.forward.__func__.__module__ == "trine.transformers"
    torch.testing.assert_close(mine(ids).logits, want, rtol=1e-4, atol=1e-4)
    assert mine.model.norm._trine_known


def test_choices():
    _, mine = build("llama")
    trine.transformers.apply(mine, rms_norm=False, mlp=False, attention=False, loss=False, rope=False)
    assert not any(mine.trine_applied.values()) and mine.config._attn_implementation == "eager"


def test_others_are_left():
    """A module that only looks like a norm is not replaced."""
    assert trine.transformers._norm_options(ScaledRMSNorm()) is None
    assert trine.transformers._gate(torch.nn.Tanh()) is None


@pytest.mark.parametrize("kind", ["truth", "added", "added in f32"])
def test_whole_masks(kind):
    """Of four dimensions, as other implementations have them: causal is not asked for besides."""
    _, mine = build("llama")
    dtype = torch.bfloat16 if kind == "added in f32" else torch.float32
    q, k, v = (torch.randn(2, heads, 9, 16, dtype=dtype) for heads in (4, 2, 2))
    mask = torch.rand(2, 1, 9, 9) < 0.7
    mask[..., 0] = True
    if kind != "truth":
        mask = torch.randn(1, 4, 9, 9).masked_fill(~mask[:1], -torch.inf)
    got, _ = trine.transformers.attention(mine, q, k, v, mask, scaling=0.3)
    want = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), mask if kind == "truth" else mask.double(), scale=0.3, enable_gqa=True)
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(got.double(), want.transpose(1, 2), rtol=tolerance, atol=tolerance)


def test_bias_of_positions_and_padding():
    _, mine = build("llama")
    q, bias = torch.randn(2, 4, 6, 16), torch.randn(1, 4, 6, 6).requires_grad_()
    padding = torch.ones(2, 6, dtype=torch.int64)
    padding[0, :2] = 0
    got, _ = trine.transformers.attention(mine, q, q, q, padding, position_bias=bias, is_causal=False)
    seen = padding.bool()[:, None, None].expand(2, 4, 6, 6)
    want = torch.nn.functional.scaled_dot_product_attention(q, q, q, bias.masked_fill(~seen, -torch.inf))
    torch.testing.assert_close(got, want.transpose(1, 2), rtol=1e-4, atol=1e-5)
    mine, theirs = (torch.autograd.grad(x.sin().sum(), bias)[0] for x in (got, want))
    torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


def test_sinks():
    """As transformers' gpt-oss has them."""
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward
    module = torch.nn.Module()
    module.num_key_value_groups, module.sinks = 2, torch.nn.Parameter(torch.randn(4))
    module.eval()
    q, k, v = (torch.randn(2, heads, 7, 16).requires_grad_() for heads in (4, 2, 2))
    hidden = torch.full((7, 7), -torch.inf).triu(1)[None, None]
    want, _ = eager_attention_forward(module, q, k, v, hidden, scaling=0.25)
    got, _ = trine.transformers.attention(module, q, k, v, None, scaling=0.25, s_aux=module.sinks)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    inputs = (q, k, v, module.sinks)
    for mine, theirs in zip(*(torch.autograd.grad(x.sin().sum(), inputs) for x in (got, want))):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


def test_refusals():
    _, mine = build("llama")
    trine.transformers.apply(mine)
    q = torch.randn(1, 4, 5, 16)
    with pytest.raises(NotImplementedError, match=r"not \[1, 5, 5\]"):
        trine.transformers.attention(mine, q, q, q, torch.ones(1, 5, 5))
