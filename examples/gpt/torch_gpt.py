#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of trine-gpt in PyTorch (1.13 or later), on the same text and schedule: what its speed and loss are held
against.

    torch_gpt.py [--text PATH] [--steps N] [--threads N] [--batch N] [--context N] [--layers N] [--width N] [--heads N]
                 [--kv-heads N] [--hidden N] [--vocabulary N] [--rate X] [--seed N] [--device cuda] [--mixed]
                 [--compile] [--resume FILE] [--losses FILE]

--mixed is autocast to bf16 of f32 weights; on a device scaled_dot_product_attention takes its flash kernel then.
--resume continues a checkpoint of trine-gpt: its sizes, schedule, weights and optimizer, on the batches that trine-gpt
would draw, so that the --losses of both can be compared step by step."""
import argparse
import math
import os
import struct
import time

import torch
import torch.nn.functional as F

EXTENSIONS = {".c", ".h", ".cu", ".hip", ".inl", ".cc", ".cpp", ".py", ".sh", ".md", ".rst", ".txt", ".build", ".scd",
              ".def", ".cmake", ".map", ".in"}
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
        qkv = self.qkv(self.norm(x)).view(b, s, -1, self.head).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.heads != self.kv_heads:
            group = self.heads // self.kv_heads
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
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


class Checkpoint:
    """A file of trine-gpt --save, as checkpoint.c lays it out."""

    HEADER = struct.Struct("<11Q" + 5 * "f4x" + "11Q")
    SIZES = ("context", "batch", "layers", "width", "heads", "kv_heads", "hidden", "steps", "warmup", "rate")

    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        word = self.HEADER.unpack_from(content)
        if word[:2] != (0x0A0D1A7470677274, 2):
            raise SystemExit(f"{path}: not a checkpoint of this version")
        self.sizes, self.random = dict(zip(self.SIZES, word[2:])), Random(word[16:20])
        self.step, history, held_out, count, self.sizes["vocabulary"], mixed = word[21:]
        self.sizes["mixed"] = bool(mixed)
        values = torch.frombuffer(bytearray(content[:-8]), dtype=torch.float32,
                                  offset=self.HEADER.size + 4 * history + 12 * held_out)
        self.param, self.m, self.v = values.split(count)

    @staticmethod
    def split(values, model):
        """The values of each parameter of `model`: the embedding, the layers' matrices, stored [in, out], the norms."""
        matrices = [p for layer in model.layers
                    for p in (layer.qkv.weight, layer.mixed.weight, layer.gate_up.weight, layer.down.weight)]
        norms = [p for layer in model.layers
                 for p in (layer.norm.weight, layer.middle_norm.weight)] + [model.norm.weight]
        at = 0
        for p in [model.embedding.weight] + matrices + norms:
            part = values[at:at + p.numel()]
            at += p.numel()
            yield p, part.view(p.shape[::-1]).t() if any(p is m for m in matrices) else part.view(p.shape)

    def load(self, model, optimizer):
        for (p, value), (_, m), (_, v) in zip(*(self.split(values, model) for values in (self.param, self.m, self.v))):
            p.data.copy_(value)
            state = {"step": torch.tensor(float(self.step), device=p.device), "exp_avg": torch.empty_like(p.data),
                     "exp_avg_sq": torch.empty_like(p.data)}
            state["exp_avg"].copy_(m)
            state["exp_avg_sq"].copy_(v)
            optimizer.state[p] = state


class Random:
    """xoshiro256**, which draws trine-gpt's batches. Blackman and Vigna 2021."""

    def __init__(self, state):
        self.state = list(state)

    @staticmethod
    def rotate(x, by):
        return (x << by | x >> (64 - by)) & (1 << 64) - 1

    def next(self):
        s = self.state
        result = self.rotate(s[1] * 5 & (1 << 64) - 1, 7) * 9 & (1 << 64) - 1
        t = s[1] << 17 & (1 << 64) - 1
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self.rotate(s[3], 45)
        return result


def windows(text, starts, context):
    rows = text[starts[:, None] + torch.arange(context + 1, device=text.device)]
    return rows[:, :-1], rows[:, 1:]


def train(model, text, options, checkpoint):
    """Seconds of the steps but the first WARM, and the loss of each."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    extra = {"fused": True} if options.device != "cpu" else {}
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}],
                                  lr=options.rate, betas=(0.9, 0.95),
                                  **extra)
    step_model = torch.compile(model) if options.compile else model
    first, losses = checkpoint.step if checkpoint else 0, []
    if checkpoint:
        checkpoint.load(model, optimizer)
    warmup, start = options.steps // 14, time.perf_counter()
    for step in range(first, options.steps):
        if step == first + WARM:
            wait(options)
            start = time.perf_counter()
        part = (step - warmup) / max(1, options.steps - warmup)
        rate = options.rate * ((step + 1) / warmup if step < warmup else 0.55 + 0.45 * math.cos(math.pi * part))
        for group in optimizer.param_groups:
            group["lr"] = rate
        places = len(text) - options.context
        if checkpoint:
            starts = torch.tensor([checkpoint.random.next() % places for _ in range(options.batch)], device=text.device)
        else:
            starts = torch.randint(places, (options.batch,), device=text.device)
        tokens, labels = windows(text, starts, options.context)
        with torch.autocast(text.device.type, torch.bfloat16, enabled=options.mixed):
            loss = step_model(tokens, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    wait(options)
    return time.perf_counter() - start, losses


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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume")
    parser.add_argument("--losses")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--compile", action="store_true")
    for name, value in SIZES.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    options = parser.parse_args()
    checkpoint = Checkpoint(options.resume) if options.resume else None
    if checkpoint:
        vars(options).update(checkpoint.sizes)
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    text, held_out = (part.to(options.device) for part in split(read_text(options.text)))
    model = Model(options).to(options.device)
    seconds, losses = train(model, text, options, checkpoint)
    if options.losses:
        with open(options.losses, "w", encoding="ascii") as file:
            file.writelines(f"{loss.item():.9g}\n" for loss in losses)
    most = (len(held_out) - 1) // options.context
    count = min(512, most)
    starts = torch.tensor([i * most // count * options.context for i in range(count)], device=options.device)
    total = 0
    with torch.no_grad(), torch.autocast(held_out.device.type, torch.bfloat16, enabled=options.mixed):
        for i in range(0, count, options.batch):
            part = starts[i:i + options.batch]
            total += model(*windows(held_out, part, options.context)).item() * len(part)
    tokens = max(0, len(losses) - WARM) * options.batch * options.context
    print(f"torch {torch.__version__}: {sum(p.numel() for p in model.parameters())} parameters, held-out "
          f"{total / count:.4f} nats, {seconds:.1f} s, "
          f"{tokens / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
