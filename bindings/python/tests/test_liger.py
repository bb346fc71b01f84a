# SPDX-License-Identifier: Apache-2.0
"""Liger Kernel's names: models that are made after a call, or given to it, are trine's, and compute the same."""
import importlib
import inspect

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import trine.liger  # noqa: E402
from test_transformers import build, compare, loss_and_gradients, tokens  # noqa: E402

NAMES = ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma2", "gemma3", "gemma3_text"]


def function_of(name):
    return getattr(trine.liger, f"apply_trine_kernel_to_{name}")


@pytest.fixture
def family(request):
    """What a call replaces for all models is put back."""
    family = request.param.removesuffix("_text")
    file = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    base = next(c for n, c in vars(file).items() if n.endswith("PreTrainedModel") and n != "PreTrainedModel")
    rotary = file.apply_rotary_pos_emb
    yield family
    file.apply_rotary_pos_emb = rotary
    if "post_init" in vars(base):
        del base.post_init


@pytest.mark.parametrize("family,name", [(n, n) for n in NAMES], indirect=["family"])
def test_models_made_from_now_on(family, name):
    theirs, _ = build(family)
    ids = tokens(2, 21)
    want = loss_and_gradients(theirs, input_ids=ids, labels=ids)
    assert function_of(name)() is None
    _, mine = build(family)
    assert mine.trine_applied["rms_norm"] >= 7 and mine.trine_applied["mlp"] == 3
    assert mine.trine_applied["rope"] == mine.trine_applied["loss"] == 1 and not mine.trine_applied["attention"]
    compare(want, loss_and_gradients(mine, input_ids=ids, labels=ids))


@pytest.mark.parametrize("family", ["llama", "gemma2"], indirect=True)
def test_choices(family):
    """As they are said last, for what is made and what is given."""
    gated = "geglu" if family == "gemma2" else "swiglu"
    function_of(family)()
    function_of(family)(rope=False, cross_entropy=False, **{gated: False})
    _, mine = build(family)
    assert mine.trine_applied["rms_norm"] and not any(v for k, v in mine.trine_applied.items() if k != "rms_norm")
    function_of(family)(rms_norm=False, rope=False, model=mine, **{gated: True})
    assert mine.trine_applied == {"rms_norm": 0, "rope": 0, "mlp": 3, "attention": 0, "loss": 1,
                                  "linear_loss": 0}


def same_gradients(model, want):
    for name, parameter in model.named_parameters():
        scale = want[name].abs().max().item() + 1e-6
        torch.testing.assert_close(parameter.grad, want[name], rtol=1e-3, atol=1e-3 * scale, msg=name)


@pytest.mark.parametrize("family", ["llama", "gemma2", "gemma3"], indirect=True)
def test_fused_linear_cross_entropy(family):
    """The head and its loss as one op, where nothing comes between them."""
    theirs, mine = build(family)
    ids = tokens(2, 21)
    want = loss_and_gradients(theirs.train(), input_ids=ids, labels=ids)
    if family == "gemma2":  # which caps its logits
        with pytest.raises(NotImplementedError, match="Gemma2ForCausalLM has no linear head"):
            function_of(family)(fused_linear_cross_entropy=True, model=mine)
        return
    function_of(family)(fused_linear_cross_entropy=True)
    _, mine = build(family)
    assert mine.trine_applied["linear_loss"] == 1
    assert mine(input_ids=ids, labels=ids).logits is not None  # for nothing is learned from it
    mine.train()
    assert mine(input_ids=ids, labels=ids, return_dict=False)[1] is None
    out = mine(input_ids=ids, labels=ids)
    out.loss.backward()
    assert out.logits is None
    torch.testing.assert_close(out.loss.detach(), want[0], rtol=1e-5, atol=1e-5)
    same_gradients(mine, want[2])
    mine.zero_grad()
    with torch.no_grad():
        assert mine(input_ids=ids, labels=ids).loss == out.loss
    (3 * torch.compile(mine, backend="aot_eager")(input_ids=ids, labels=ids, num_items_in_batch=80).loss).backward()
    same_gradients(mine, {n: 1.5 * g for n, g in want[2].items()})  # of 40 tokens
    assert mine(input_ids=ids).logits.shape == (2, 21, 211)


@pytest.mark.parametrize("family", ["llama"], indirect=True)
def test_loaded(family, tmp_path):
    """From a file, where modules are made without memory and in the file's type."""
    theirs, _ = build(family)
    theirs.bfloat16().save_pretrained(tmp_path)
    function_of(family)()
    mine = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert mine.trine_applied["rms_norm"] == 7 and mine.trine_applied["mlp"] == 3
    assert mine.dtype == torch.bfloat16 and mine.model.norm.forward.__module__ == "trine.transformers"
    assert torch.isfinite(mine(tokens(1, 9)).logits).all()


@pytest.mark.parametrize("name", NAMES)
def test_arguments(name):
    gated = "geglu" if name.startswith("gemma") else "swiglu"
    parameters = inspect.signature(function_of(name)).parameters
    assert list(parameters) == ["rope", "cross_entropy", "fused_linear_cross_entropy", "rms_norm", gated, "model"]
    assert function_of(name).__name__ == f"apply_trine_kernel_to_{name}"
