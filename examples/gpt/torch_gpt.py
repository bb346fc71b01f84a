#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of trine-gpt in PyTorch (1.13 or later), on the same text and schedule: what its speed and loss are held against.

    torch_gpt.py [--text PATH] [--steps N] [--threads N] [--batch N] [--context N] [--layers N] [--width N] [--heads N] [--kv-heads N] [--hidden N]
                 [--vocabulary N] [--device cuda] [--mixed] [--compile]

--mixed is autocast to bf16 of f32 weights; on a device scaled_dot_product_attention takes its flash kernel then.
"""
import argparse
import math
import os
import time

import torch
import torch.nn.functional as F

EXTENSIONS = {".c", ".h", ".cu", ".hip", ".inl", ".cc", ".cpp", ".py", ".sh", ".md", ".rst", ".txt", ".build", ".scd", ".def", ".cmake", ".map", ".in"}
NAMES = {"README", "NEWS", "LICENSE", "dev"}
SIZES = {"vocabulary": 256, "context": 128, "layers": 5, "width": 128, "heads": 4, "kv_heads": 2, "hidden": 384}
WARM = 10  # steps that are not timed: the first ones compile


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
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size.width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).type_as(x)


class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.heads, self.kv_heads, self.head = size.heads, size.kv_heads, size.width // size.heads
        self.norm, self.middle_norm = Norm(size), Norm(size)
        self.qkv = torch.nn.Linear(size.width, (size.heads + 2 * size.kv_heads) * self.head, bias=False)
        self.mixed = torch.nn.Linear(size.width, size.width, bias=False)
        self.gate_up = torch.nn.Linear(size.width, 2 * size.hidden, bias=False)
        self.down = torch.nn.Linear(size.hidden, size.width, bias=False)

    def forward(self, x, cos, sin, mask):
        b, s, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, -1, self.head).transpose(1, 2).split((self.heads, self.kv_heads, self.kv_heads), 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.heads != self.kv_heads:
            k, v = k.repeat_interleave(self.heads // self.kv_heads, 1), v.repeat_interleave(self.heads // self.kv_heads, 1)
        if hasattr(F, "scaled_dot_product_attention"):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            o = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.head) + mask, -1) @ v
        x = x + self.mixed(o.transpose(1, 2).reshape(b, s, width))
        gate, up = self.gate_up(self.middle_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = torch.nn.Embedding(size.vocabulary, size.width)
        self.layers = torch.nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.norm = Norm(size)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                small = name.endswith(("mixed.weight", "down.weight"))
                torch.nn.init.normal_(p, std=0.02 / (math.sqrt(2 * size.layers) if small else 1))
        half = size.width // size.heads // 2
        angle = torch.arange(size.context)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.full((size.context, size.context), -math.inf).triu(1))

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return F.cross_entropy(F.linear(self.norm(x), self.embedding.weight).flatten(0, 1), labels.flatten())


def windows(text, starts, context):
    rows = text[starts[:, None] + torch.arange(context + 1, device=text.device)]
    return rows[:, :-1], rows[:, 1:]


def train(model, text, options):
    """Seconds of the steps but the first WARM."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    extra = {"fused": True} if options.device != "cpu" else {}
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}], lr=options.rate, betas=(0.9, 0.95),
                                  **extra)
    step_model = torch.compile(model) if options.compile else model
    warmup, start = max(1, options.steps // 14), time.perf_counter()
    for step in range(options.steps):
        if step == WARM:
            wait(options)
            start = time.perf_counter()
        part = (step - warmup) / max(1, options.steps - warmup)
        rate = options.rate * ((step + 1) / warmup if step < warmup else 0.55 + 0.45 * math.cos(math.pi * part))
        for group in optimizer.param_groups:
            group["lr"] = rate
        tokens, labels = windows(text, torch.randint(len(text) - options.context, (options.batch,), device=text.device), options.context)
        with torch.autocast(text.device.type, torch.bfloat16, enabled=options.mixed):
            loss = step_model(tokens, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    wait(options)
    return time.perf_counter() - start


def wait(options):
    if options.device != "cpu":
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--compile", action="store_true")
    for name, value in SIZES.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    text, held_out = (part.to(options.device) for part in split(read_text(options.text)))
    model = Model(options).to(options.device)
    seconds = train(model, text, options)
    most = (len(held_out) - 1) // options.context
    count = min(512, most)
    starts = torch.tensor([i * most // count * options.context for i in range(count)], device=options.device)
    total = 0
    with torch.no_grad(), torch.autocast(held_out.device.type, torch.bfloat16, enabled=options.mixed):
        for i in range(0, count, options.batch):
            part = starts[i:i + options.batch]
            total += model(*windows(held_out, part, options.context)).item() * len(part)
    tokens = max(0, options.steps - WARM) * options.batch * options.context
    print(f"torch {torch.__version__}: {sum(p.numel() for p in model.parameters())} parameters, held-out {total / count:.4f} nats, {seconds:.1f} s, "
          f"{tokens / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
