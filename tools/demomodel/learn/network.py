"""The llama architecture at demo size.  Parameters bear the names that GGUF gives them, so export is a plain walk over them."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional

from .tokenizer import BOS

QUERY_BLOCK = 128  # queries that are scored at a time: keys after the block's end need no product at all


@dataclass(frozen=True)
class Shape:
    """Sizes of the network; the defaults are the demo model's.  context is the longest text, in tokens."""

    vocabulary: int = 2048
    context: int = 512
    layers: int = 12
    width: int = 128
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 384
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5

    @property
    def head_width(self):
        return self.width // self.heads

    def as_dict(self):
        return asdict(self)


class Norm(nn.Module):
    """Root-mean-square norm, computed in fp32."""

    def __init__(self, shape):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(shape.width)), shape.norm_epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


class Block(nn.Module):
    """One layer: attention with grouped keys and values, then SwiGLU."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        self.attn_norm, self.ffn_norm = Norm(shape), Norm(shape)
        self.attn_q, self.attn_k = _linear(shape.width, queries), _linear(shape.width, keys)
        self.attn_v, self.attn_output = _linear(shape.width, keys), _linear(queries, shape.width)
        self.ffn_gate, self.ffn_up = _linear(shape.width, shape.feed_forward), _linear(shape.width, shape.feed_forward)
        self.ffn_down = _linear(shape.feed_forward, shape.width)

    def forward(self, x, rotation, masks):
        x = x + self._attend(self.attn_norm(x), rotation, masks)
        gate, up = _joined(self.ffn_norm(x), self.ffn_gate, self.ffn_up).chunk(2, -1)
        return x + self.ffn_down(functional.silu(gate) * up)

    def _attend(self, x, rotation, masks):
        s, (batch, length, _) = self.shape, x.shape
        mixed = _joined(x, self.attn_q, self.attn_k, self.attn_v).view(batch, length, -1, s.head_width).transpose(1, 2)
        q, k, v = mixed.split((s.heads, s.kv_heads, s.kv_heads), 1)
        q, k = _rotate(q, rotation) / math.sqrt(s.head_width), _rotate(k, rotation)
        # Query heads that share a kv head are stacked along the length, so that one product serves them all.
        group = s.heads // s.kv_heads
        q = q.reshape(batch, s.kv_heads, group, length, s.head_width)
        parts = []
        for start, mask in masks:
            block = q[:, :, :, start : start + QUERY_BLOCK]
            size, seen = block.shape[3], mask.shape[-1]
            scores = block.reshape(batch, s.kv_heads, group * size, -1) @ k[:, :, :seen].transpose(2, 3)
            scores = scores.view(batch, s.heads, size, seen) + mask
            weights = scores.softmax(-1).view(batch, s.kv_heads, group * size, seen)
            parts.append((weights @ v[:, :, :seen]).view(batch, s.heads, size, -1))
        return self.attn_output(torch.cat(parts, 2).transpose(1, 2).reshape(batch, length, -1))


class Network(nn.Module):
    """The whole model; the head is the embedding (tied)."""

    def __init__(self, shape, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape)
        self._initialise()

    def _initialise(self):
        """Small random weights; what adds to the residual stream starts smaller the deeper the network is."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = 0.02 if name.startswith("token_embd") else 0.6 * self.shape.width**-0.5
                if "attn_output" in name or "ffn_down" in name:
                    scale /= math.sqrt(2 * self.shape.layers)
                nn.init.normal_(parameter, 0, scale)

    def forward(self, ids, weight):
        """Mean loss in nats over the tokens of ids[:, 1:], each weighted by weight[:, 1:]; and the sum of the weights."""
        hidden = self.token_embd(ids[:, :-1])
        rotation, masks = _rotation(self.shape, hidden.shape[1]), _masks(ids[:, :-1], torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else hidden.dtype)
        for block in self.blk:
            hidden = block(hidden, rotation, masks)
        counted = weight[:, 1:] > 0
        logits = functional.linear(self.output_norm(hidden[counted]), self.token_embd.weight)
        loss = functional.cross_entropy(logits.float(), ids[:, 1:][counted], reduction="none")
        weights = weight[:, 1:][counted]
        return (loss * weights).sum() / weights.sum(), weights.sum()


def _linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def _joined(x, *linears):
    """Several layers on one input as one product."""
    return functional.linear(x, torch.cat([linear.weight for linear in linears]))


def _rotation(shape, length):
    """Cosine and sine of the rotary embedding for interleaved pairs: (length, head_width / 2) each."""
    frequencies = shape.rope_base ** -(torch.arange(0, shape.head_width, 2) / shape.head_width)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return angles.cos(), angles.sin()


def _rotate(x, rotation):
    """Rotates the pairs (0, 1), (2, 3) ... as GGUF's llama architecture expects."""
    cos, sin = (part.to(x.dtype) for part in rotation)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def _masks(ids, dtype):
    """For each block of queries its start and what is added to its scores: 0 for an earlier token of the same document, else a lot less."""
    document = (ids == BOS).cumsum(1)
    position = torch.arange(ids.shape[1])
    out = []
    for start in range(0, ids.shape[1], QUERY_BLOCK):
        end = min(start + QUERY_BLOCK, ids.shape[1])
        visible = (document[:, start:end, None] == document[:, None, :end]) & (position[start:end, None] >= position[None, :end])
        out.append((start, torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, -1e9)[:, None]))
    return out
