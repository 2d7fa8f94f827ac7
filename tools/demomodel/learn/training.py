"""Trains the network on CPU cores: bf16 products by autocast, fp32 weights and residual stream, AdamW with a cosine schedule."""

import json
import math
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import torch

from . import encoding, packing
from . import tokenizer as vocabulary
from .network import Network, Shape


@dataclass(frozen=True)
class Options:
    """How to train.  The end is whichever comes first of tokens (in millions) and minutes (0: no limit); the schedule follows both."""

    tokens: float = 40.0
    minutes: float = 0.0
    rate: float = 3e-3
    warmup_steps: int = 150
    decay: float = 0.1
    step_tokens: int = 4096
    piece_tokens: int = 2048
    repeats: float = 2.0
    threads: int = 1
    seed: int = 1
    fp32: bool = False
    log_steps: int = 25
    save_minutes: float = 4.0


class Trainer:
    """One training run over a data folder; everything it leaves is in the folder run.  shape: None means the demo model's."""

    def __init__(self, data, run, options, resume=None, shape=None):
        torch.set_num_threads(options.threads)
        self.options, self.run = options, Path(run)
        self.run.mkdir(parents=True, exist_ok=True)
        assistant = vocabulary.load(data).encode("assistant")[0]
        self.train = packing.pack(encoding.load(data, "train"), assistant, options.repeats, options.seed)
        self.heldout = packing.pack(encoding.load(data, "heldout"), assistant)
        self.network = Network(shape or Shape(vocabulary=vocabulary.load(data).vocab_size()), options.seed)
        self.optimizer = torch.optim.AdamW(_groups(self.network, options.decay), lr=options.rate, betas=(0.9, 0.95), eps=1e-8)
        self.step = self.seen = self.before = 0
        if resume:
            self._resume(resume)

    def fit(self):
        """Trains to the end, logs to run/log.jsonl, saves run/checkpoint.pt; returns the held-out loss."""
        started = saved = time.monotonic()
        losses = []
        for ids, weight in self._endless():
            progress = self._progress(time.monotonic() - started)
            losses.append(self._step(ids, weight, progress))
            if self.step % self.options.log_steps == 0:
                self._log(loss=float(numpy.mean(losses)), seconds=time.monotonic() - started)
                losses = []
            if progress >= 1:
                break
            if time.monotonic() - saved > 60 * self.options.save_minutes:
                self._log(part_of_heldout=self.evaluate(12), seconds=time.monotonic() - started)
                self.save()
                saved = time.monotonic()
        final = self.evaluate()
        self._log(heldout=final, seconds=time.monotonic() - started)
        self.save(final)
        return final

    def evaluate(self, most=None):
        """Loss per counted held-out token, over all batches or the first few."""
        return heldout_loss(self.network, self.heldout, most, self._cast)

    def save(self, heldout=None):
        """Writes the checkpoint; a crash in the middle leaves the old one."""
        new = self.run / "checkpoint.new"
        torch.save(
            {
                "shape": self.network.shape.as_dict(), "options": asdict(self.options), "weights": self.network.state_dict(), "optimizer": self.optimizer.state_dict(),
                "step": self.step, "tokens": self.before + self.seen, "heldout": heldout,
            },
            new,
        )  # fmt: skip
        new.replace(self.run / "checkpoint.pt")

    def _resume(self, path):
        """Goes on from a checkpoint: weights, moments and step; the schedule starts anew."""
        found = torch.load(path, map_location="cpu")
        self.network.load_state_dict(found["weights"])
        self.optimizer.load_state_dict(found["optimizer"])
        self.step, self.before = found["step"], found["tokens"]

    def _endless(self):
        rng = numpy.random.default_rng(self.options.seed)
        while True:
            yield from packing.batches(self.train, self.options.step_tokens, rng)

    def _progress(self, seconds):
        """0 at the start, 1 at the end, by tokens or by the clock, whichever is further."""
        by_clock = seconds / (60 * self.options.minutes) if self.options.minutes else 0
        return min(1.0, max(self.seen / (1e6 * self.options.tokens), by_clock))

    def _step(self, ids, weight, progress):
        """One update from one batch, computed in pieces that stay in the processor's cache; returns the batch's loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * min(1, (self.step + 1) / self.options.warmup_steps) * _cosine(progress)
        self.optimizer.zero_grad(set_to_none=True)
        total, loss_sum = float(weight[:, 1:].sum()), 0.0
        rows = max(1, self.options.piece_tokens // (ids.shape[1] - 1))
        for i in range(0, len(ids), rows):
            with self._cast():
                loss, share = self.network(torch.from_numpy(ids[i : i + rows]), torch.from_numpy(weight[i : i + rows]))
            part = loss * (share / total)
            part.backward()
            loss_sum += float(part)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        self.seen += ids.shape[0] * (ids.shape[1] - 1)
        return loss_sum

    def _cast(self):
        return nullcontext() if self.options.fp32 else torch.autocast("cpu", dtype=torch.bfloat16)

    def _log(self, seconds, **values):
        line = {"step": self.step, "tokens": self.before + self.seen, "minutes": round(seconds / 60, 2), "tokens_per_second": round(self.seen / max(seconds, 1e-9))}
        line |= {name: round(value, 4) for name, value in values.items()}
        with (self.run / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print("  ".join(f"{name} {value}" for name, value in line.items()), flush=True)


@torch.no_grad()
def heldout_loss(network, windows, most=None, cast=nullcontext):
    """Mean loss in nats per counted token."""
    total = counted = 0.0
    for i, (ids, weight) in enumerate(packing.batches(windows, 2048, numpy.random.default_rng(0))):
        if most is not None and i >= most:
            break
        with cast():
            loss, share = network(torch.from_numpy(ids), torch.from_numpy(weight))
        total, counted = total + float(loss) * float(share), counted + float(share)
    return total / counted


def _cosine(progress):
    """From 1 down to 0.02."""
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))


def _groups(network, decay):
    """Weight decay on matrices only."""
    matrices = [p for p in network.parameters() if p.dim() > 1]
    vectors = [p for p in network.parameters() if p.dim() == 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
