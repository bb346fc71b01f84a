#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what examples/generate/check.c tests the example by: two small models with random weights, written by others'
libraries, and what others say of them.

Usage: make.py, in a virtual environment with the packages of requirements.txt

tiny.gguf has each type of tensors that the example reads. It is written by gguf, its blocks are decoded by gguf, and
its logits are those of transformers. hugging_face/ is a model as transformers saves it, with a head of its own and
positions scaled as Llama 3.1 has them. tokens.txt has texts and their tokens by the library tokenizers, for each way of
cutting texts. Logits and elements are f32, as the hexadecimal digits of their bits."""
import json
import pathlib
import random
import shutil
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

ROOT = pathlib.Path(__file__).resolve().parent
SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER = ["<|tool|>", "<|tool|>s"]
ROWS = 448
LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                  r"|\s*[\r\n]+|\s+(?!\S)|\s+")
KINDS = ("smollm", "gpt-2", "llama-bpe")
TEMPLATE = ("{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '<|im_start|>system\nYou are tiny."
            "<|im_end|>\n' }}{% endif %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def cutting(kind):
    bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind != "llama-bpe")
    before = {"smollm": [pre_tokenizers.Digits(individual_digits=True)], "gpt-2": [],
              "llama-bpe": [pre_tokenizers.Split(Regex(LLAMA3_PATTERN), "isolated")]}[kind]
    return pre_tokenizers.Sequence(before + [bytes_alone])


def vocabulary():
    """Tokens and merges, learnt from the words of the licence. The bytes 4 and 0xf2, which texts hardly have, are left
    out, as SmolLM2 does."""
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - {"\u0104", "\u00f2"})
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = cutting("smollm")
    learner.train([str(ROOT.parents[2] / "LICENSE")],
                  trainers.BpeTrainer(vocab_size=440, initial_alphabet=alphabet, show_progress=False))
    state = json.loads(learner.to_str())["model"]
    learnt = [t for t, _ in sorted(state["vocab"].items(), key=lambda item: item[1])]
    return CONTROL + learnt + USER, [tuple(m) for m in state["merges"]]


def tokenizer(kind, tokens, merges):
    t = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(tokens)}, merges=merges,
                             ignore_merges=kind == "llama-bpe"))
    t.pre_tokenizer = cutting(kind)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in CONTROL])
    t.add_tokens([AddedToken(s, normalized=False) for s in USER])
    return t


def bits(values):
    return [f"{x:08x}" for x in np.asarray(values, np.float32).ravel().view(np.uint32)]


def lines(words, per_line=12):
    return "".join(" " + " ".join(words[i : i + per_line]) + "\n" for i in range(0, len(words), per_line))


# ------------------------------------------------------------------------------------------------------------- tokens

def texts():
    draw = random.Random(7)
    spaces, letters = " \t\n\r\u00a0\u3000", "aAsStTdDmMlLvVrReEéß漢字ǅаб"
    yield from ("It's 1234 o'clock: I'LL go, they've said.", "a  1\n\n 2\t\tb   ", "x" * 300,
                "<|im_start|>user\nhi<|im_end|>", "<|tool|>s and <|tool|><|too",
                "\u2168\u00bd\u0968\u0969 12345678", "nul\0l \x04 gone \U000b0000",
                "\U0001f600\U0001f468\u200d\U0001f469", "'s'T'Re''ll 'x", "  \r\n \r\n x\n",
                "e\u0301 \u0301", "Unless required by applicable law")
    for _ in range(60):
        pick = draw.choice((spaces + letters + "0123456789.,!-'<|>", letters + spaces, "0123456789 ab",
                            ".,;!? \n'ab"))
        yield "".join(draw.choice(pick) for _ in range(draw.choice((1, 3, 10, 30))))


def write_tokens(tokens, merges):
    out = SPDX + "# A text's UTF-8, in hexadecimal digits, then its tokens.\n"
    for kind in KINDS:
        t = tokenizer(kind, tokens, merges)
        out += f"cut {kind}\n"
        for text in texts():
            ids = t.encode(text, add_special_tokens=False).ids
            out += f"text {text.encode().hex()}\n" + lines([str(i) for i in ids], 30)
    (ROOT / "tokens.txt").write_text(out)


# ------------------------------------------------------------------------------------------------------------- blocks

def random_blocks(draw, kind, count):
    """Any bits, with scales that are ordinary numbers."""
    size, width = gguf.GGML_QUANT_SIZES[kind]
    raw = draw.integers(0, 256, (count, width), dtype=np.uint8)
    halves = {Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q8_0: (0,), Type.Q4_K: (0, 2), Type.Q6_K: (208,)}
    for at in halves.get(kind, ()):
        raw[:, at : at + 2] = draw.normal(0, 0.01, count).astype(np.float16).view(np.uint8).reshape(count, 2)
    return raw


def write_blocks():
    draw = np.random.default_rng(11)
    out = SPDX + "# Blocks of each type: their bytes, then their elements.\n"
    for kind in (Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q8_0, Type.Q4_K, Type.Q6_K):
        plain = kind in (Type.F32, Type.F16, Type.BF16)
        raw = random_blocks(draw, kind, 32 if plain else 2)
        values = gguf.dequantize(raw.reshape(1, -1).view(np.float32 if kind == Type.F32 else np.float16)
                                 if kind in (Type.F32, Type.F16) else raw.reshape(1, -1), kind)
        out += f"type {kind.name}\nbytes {raw.tobytes().hex()}\n" + lines(bits(values))
    (ROOT / "blocks.txt").write_text(out)


# ------------------------------------------------------------------------------------------------------------- models

LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


def sizes(**others):
    return dict({"vocab_size": ROWS, "hidden_size": 32, "intermediate_size": 256, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
                 "rms_norm_eps": 1e-5, "rope_parameters": dict(LLAMA3), "bos_token_id": 1, "eos_token_id": 2,
                 "tie_word_embeddings": True}, **others)


def quantized(draw, kind, rows, columns):
    """Data of a tensor in a type. gguf has no encoder for the types of super-blocks, whose bits are drawn."""
    values = draw.normal(0, 1.5 / np.sqrt(columns), (rows, columns)).astype(np.float32)
    if kind not in (Type.Q4_K, Type.Q6_K):
        return gguf.quantize(values, kind)
    raw = random_blocks(draw, kind, rows * columns // 256)
    at = 208 if kind == Type.Q6_K else 0
    raw[:, at : at + 2] = np.array([0.0002 if kind == Type.Q6_K else 0.0004], np.float16).view(np.uint8)
    if kind == Type.Q4_K:
        raw[:, 2:4] = np.array([0.003], np.float16).view(np.uint8)
    return raw.reshape(rows, -1)


def write_gguf(path, tokens, merges, factors):
    draw = np.random.default_rng(5)
    w = gguf.GGUFWriter(path, "llama")
    w.add_name("tiny, with random weights")
    w.add_license("Apache-2.0")
    w.add_block_count(2)
    w.add_context_length(512)
    w.add_embedding_length(32)
    w.add_feed_forward_length(256)
    w.add_head_count(4)
    w.add_head_count_kv(2)
    w.add_rope_dimension_count(8)
    w.add_vocab_size(ROWS)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(tokens)
    w.add_token_types([3] * len(CONTROL) + [1] * (len(tokens) - len(CONTROL) - len(USER)) + [4] * len(USER))
    w.add_token_merges([" ".join(m) for m in merges])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)
    w.add_tensor("rope_freqs.weight", factors)
    shapes = {"token_embd": (Type.Q8_0, ROWS, 32)}
    for i in range(2):
        shapes |= {f"blk.{i}.attn_q": (Type.F16 if i else Type.Q4_0, 32, 32), f"blk.{i}.attn_k": (Type.BF16, 16, 32),
                   f"blk.{i}.attn_v": (Type.Q8_0, 16, 32),
                   f"blk.{i}.attn_output": (Type.F32 if i else Type.Q4_1, 32, 32),
                   f"blk.{i}.ffn_gate": (Type.Q4_0, 256, 32), f"blk.{i}.ffn_up": (Type.Q4_1, 256, 32),
                   f"blk.{i}.ffn_down": (Type.Q6_K if i else Type.Q4_K, 32, 256)}
    for name, (kind, rows, columns) in shapes.items():
        w.add_tensor(name + ".weight", quantized(draw, kind, rows, columns), raw_dtype=kind)
    for name in ("output_norm", *(f"blk.{i}.{n}" for i in range(2) for n in ("attn_norm", "ffn_norm"))):
        w.add_tensor(name + ".weight", draw.uniform(0.5, 1.5, 32).astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_hugging_face(folder, tokens, merges):
    """With a head of its own, heads that are wider than their share, and positions scaled. Weights are bf16, so that
    they are the same in f32."""
    shutil.rmtree(folder, ignore_errors=True)
    config = LlamaConfig(**sizes(intermediate_size=48, head_dim=16, num_attention_heads=4, num_key_value_heads=1,
                                 tie_word_embeddings=False))
    model = LlamaForCausalLM(config)
    draw = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.uniform_(0.5, 1.5, generator=draw)
            else:
                p.normal_(0, 1 if "embed" in name else 1.5 / p.shape[1] ** 0.5, generator=draw)
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    whole = tokenizer("llama-bpe", tokens, merges)
    whole.post_processor = processors.TemplateProcessing(single="<|endoftext|> $A",
                                                         special_tokens=[("<|endoftext|>", 0)])
    whole.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)


def scaled_frequencies(config):
    """The frequencies of the angles, and those of the same base without a scale."""
    plain = config.rope_parameters["rope_theta"] ** (-torch.arange(0, config.head_dim, 2).double() / config.head_dim)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    return scaled.double(), plain


def expected(name, model, file):
    """A prompt, the logits after some of its tokens, and what follows by the largest ones."""
    model = model.double().eval()
    prompt = [1, 77, 300, 12, 439, 439, 8, 250, 99, 2, 361, 45, 46, 47, 48, 49, 50, 171, 5]
    tokens = list(prompt)
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0]
        for _ in range(40):
            last = model(torch.tensor([tokens])).logits[0, -1, :file]
            best = torch.topk(last, 2)
            assert best.values[0] - best.values[1] > 2e-4 * last.abs().max(), "two tokens are too near each other"
            tokens.append(int(best.indices[0]))
        losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(prompt[1:]), reduction="none")
    out = f"model {name}\nprompt\n" + lines([str(i) for i in prompt], 30)
    for i in (0, 9, len(prompt) - 1):
        out += f"logits {i}\n" + lines(bits(logits[i]))
    return out + "losses\n" + lines(bits(losses)) + "follows\n" + lines([str(i) for i in tokens[len(prompt):]], 30)


def perplexity(model, ids, first):
    """Of a text in windows of a context of 64 tokens, each of which begins with the token `first`, if there is one."""
    lead = [] if first is None else [first]
    step = 65 - len(lead)
    losses = []
    with torch.no_grad():
        for at in range(0, len(ids), step):
            window = torch.tensor(lead + ids[at : at + step])
            if len(window) > 1:
                logits = model(window[None, :-1]).logits[0]
                losses.append(torch.nn.functional.cross_entropy(logits, window[1:], reduction="none"))
    return float(torch.cat(losses).mean().exp())


def main():
    torch.manual_seed(3)
    tokens, merges = vocabulary()
    assert len(tokens) <= ROWS
    write_tokens(tokens, merges)
    write_blocks()
    frequencies, plain = scaled_frequencies(LlamaConfig(**sizes()))
    write_gguf(ROOT / "tiny.gguf", tokens, merges, (plain / frequencies).float().numpy())
    small = AutoModelForCausalLM.from_pretrained(ROOT, gguf_file="tiny.gguf", dtype=torch.float32)
    small.model.rotary_emb.inv_freq = frequencies.float()
    out = SPDX + "# Prompts, logits after their tokens, losses, and the tokens that follow.\n"
    out += expected("tiny.gguf", small, len(tokens))
    folder = write_hugging_face(ROOT / "hugging_face", tokens, merges)
    out += expected("hugging_face", folder, len(tokens))
    (ROOT / "model.txt").write_text(out)
    text = (ROOT.parents[2] / "LICENSE").read_text()
    out = SPDX + "# Perplexities of the file LICENSE.\n"
    for name, model, kind, first in (("tiny.gguf", small, "smollm", None), ("hugging_face", folder, "llama-bpe", 0)):
        ids = tokenizer(kind, tokens, merges).encode(text, add_special_tokens=False).ids
        out += f"{name} {perplexity(model, ids, first):.6f} {len(ids)}\n"
    (ROOT / "perplexity.txt").write_text(out)


if __name__ == "__main__":
    sys.exit(main())
