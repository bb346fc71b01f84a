#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of trine-gpt in PyTorch (1.13 or later), on the same text and schedule: what its speed and loss are held against.

    torch_gpt.py [--text PATH] [--steps N] [--threads N] [--batch N]
"""
import argparse
import math
import os
import time

import torch
import torch.nn.functional as F

EXTENSIONS = {".c", ".h", ".cu", ".hip", ".inl", ".cc", ".cpp", ".py", ".sh", ".md", ".rst", ".txt", ".build", ".scd", ".def", ".cmake", ".map", ".in"}
NAMES = {"README", "NEWS", "LICENSE", "dev"}
VOCABULARY, CONTEXT, LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN = 256, 128, 5, 128, 4, 2, 384
HEAD = WIDTH // HEADS


def read_text(path):
    """As data.c does: files by extension in the order of their names, without hidden ones and build directories."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return file.read()
    text = b""
    for name in sorted(os.listdir(path), key=os.fsencode):
        full = os.path.join(path, name)
        if name.startswith(".") or os.path.islink(full):
            continue
        if os.path.isdir(full):
            if not os.path.exists(os.path.join(full, "build.ninja")):
                text += read_text(full)
        elif (os.path.splitext(name)[1] in EXTENSIONS or name in NAMES) and os.path.getsize(full) <= 1 << 20:
            with open(full, "rb") as file:
                content = file.read()
            text += content if b"\0" not in content else b""
    return text


def split(text):
    """Every tenth block of 1024 bytes is held out."""
    blocks = [text[i:i + 1024] for i in range(0, len(text), 1024)]
    train = b"".join(b for i, b in enumerate(blocks) if i % 10 != 9)
    held_out = b"".join(b for i, b in enumerate(blocks) if i % 10 == 9)
    return [torch.tensor(bytearray(part), dtype=torch.long) for part in (train, held_out)]


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.middle_norm = Norm(), Norm()
        self.qkv = torch.nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.mixed = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up = torch.nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cos, sin, mask):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, -1, HEAD).transpose(1, 2).split((HEADS, KV_HEADS, KV_HEADS), 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = k.repeat_interleave(HEADS // KV_HEADS, 1), v.repeat_interleave(HEADS // KV_HEADS, 1)
        if hasattr(F, "scaled_dot_product_attention"):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            o = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(HEAD) + mask, -1) @ v
        x = x + self.mixed(o.transpose(1, 2).reshape(b, s, WIDTH))
        gate, up = self.gate_up(self.middle_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        for name, p in self.named_parameters():
            if p.dim() == 2:
                small = name.endswith(("mixed.weight", "down.weight"))
                torch.nn.init.normal_(p, std=0.02 / (math.sqrt(2 * LAYERS) if small else 1))
        angle = torch.arange(CONTEXT)[:, None] * 10000.0 ** (-torch.arange(HEAD // 2) / (HEAD // 2))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), -math.inf).triu(1))

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return F.cross_entropy(F.linear(self.norm(x), self.embedding.weight).flatten(0, 1), labels.flatten())


def windows(text, starts):
    rows = torch.stack([text[i:i + CONTEXT + 1] for i in starts])
    return rows[:, :-1], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    train, held_out = split(read_text(options.text))
    model = Model()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}], lr=3e-3, betas=(0.9, 0.95))
    warmup, start = max(1, options.steps // 14), time.perf_counter()
    for step in range(options.steps):
        part = (step - warmup) / max(1, options.steps - warmup)
        rate = 3e-3 * ((step + 1) / warmup if step < warmup else 0.55 + 0.45 * math.cos(math.pi * part))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = model(*windows(train, torch.randint(len(train) - CONTEXT, (options.batch,))))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    seconds = time.perf_counter() - start
    most = (len(held_out) - 1) // CONTEXT
    count = min(512, most)
    starts = [i * most // count * CONTEXT for i in range(count)]
    with torch.no_grad():
        losses = [model(*windows(held_out, starts[i:i + 64])) * len(starts[i:i + 64]) for i in range(0, count, 64)]
    tokens = options.steps * options.batch * CONTEXT
    print(f"torch {torch.__version__}: held-out {sum(losses) / count:.4f} nats, {seconds:.1f} s, {tokens / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
