"""Packs whole documents into windows, and says which tokens count in the loss and how much.

A window holds several documents; the network's mask keeps them apart.  Short documents fill windows of 256 tokens, since attention
costs the square of a window's length; documents of up to 512 tokens get windows of 512.  Longer ones are left out: the model could
not hold them.
"""

from dataclasses import dataclass

import numpy

from .tokenizer import EOS, IM_END, IM_START, NEWLINE

LENGTHS = (256, 512)
RARE = 0.002  # a token is rare when it is less than this share of all


@dataclass(frozen=True)
class Windows:
    """ids: [windows, length + 1].  weight: the same shape, the loss weight of predicting each token (0: does not count)."""

    ids: numpy.ndarray
    weight: numpy.ndarray


def pack(documents, assistant, repeats=1.0, seed=1):
    """Returns {length: Windows}.  assistant is the first token id of the role "assistant".

    repeats is the weight of a rare token that already occurred in its document (a name told before, an asked word); above 1 it makes
    the model practise looking things up."""
    common = _common(documents)
    order = numpy.random.default_rng(seed).permutation(len(documents))
    waiting = [[] for _ in range(LENGTHS[-1] + 2)]
    shuffled = [documents[i] for i in order if 1 < len(documents[i]) <= LENGTHS[-1] + 1]
    for document in shuffled:
        waiting[len(document)].append(document)
    out = {}
    for low, high in reversed(tuple(zip((0,) + LENGTHS[:-1], LENGTHS))):  # long windows first: short documents fill them up
        rows = _rows(shuffled, waiting, low, high)
        if rows:
            out[high] = _windows(rows, high, lambda ids: _weights(ids, assistant, common, repeats))
    return out


def batches(windows, tokens, rng):
    """Yields (ids, weight) arrays of about that many tokens: one pass over all windows in random order."""
    plan = []
    for length, packed in windows.items():
        rows = max(1, tokens // length)
        order = rng.permutation(len(packed.ids))
        plan += [(length, order[i : i + rows]) for i in range(0, len(order), rows)]
    for i in rng.permutation(len(plan)):
        length, rows = plan[i]
        yield windows[length].ids[rows].astype(numpy.int64), windows[length].weight[rows].astype(numpy.float32)


def _common(documents):
    counts = numpy.bincount(numpy.concatenate(documents), minlength=65536)
    return counts >= RARE * counts.sum()


def _weights(ids, assistant, common, repeats):
    """The loss weight of each token of a document; the first token is never predicted."""
    counts = _counted(ids, assistant)
    weight = counts.astype(numpy.float16)
    if repeats > 1:
        _, first = numpy.unique(ids, return_index=True)
        again = numpy.ones(len(ids), bool)
        again[first] = False
        weight[counts & again & ~common[ids]] = repeats
    return weight


def _counted(ids, assistant):
    """What the assistant says, with its <|im_end|>; of a raw text everything after <s>."""
    counts = numpy.zeros(len(ids), bool)
    if len(ids) < 2 or ids[1] != IM_START:
        counts[1:] = True
        return counts
    for start, end in zip(numpy.flatnonzero(ids == IM_START), numpy.flatnonzero(ids == IM_END)):
        if ids[start + 1] == assistant:
            said = start + 1 + int(numpy.argmax(ids[start:end] == NEWLINE))
            counts[said : end + 1] = True
    return counts


def _rows(documents, waiting, low, high):
    """The documents of each window of high + 1 tokens.  A random document's length opens it, so that windows are mixed alike."""
    return [_fill(waiting, high + 1, len(document)) for document in documents if low + 1 < len(document) <= high + 1 and waiting[len(document)]]


def _windows(rows, length, weights):
    """Lays the documents of each window side by side."""
    ids = numpy.full((len(rows), length + 1), EOS, numpy.uint16)
    weight = numpy.zeros((len(rows), length + 1), numpy.float16)
    for row, chosen in enumerate(rows):
        at = 0
        for document in chosen:
            ids[row, at : at + len(document)] = document
            weight[row, at : at + len(document)] = weights(document)
            at += len(document)
    return Windows(ids, weight)


def _fill(waiting, room, first):
    """Takes documents out of waiting (lists by length): one of length first, then the longest that fits, until none does."""
    chosen, size = [], first
    while size > 0:
        if size <= room and waiting[size]:
            chosen.append(waiting[size].pop())
            room -= size
            size = min(size, room)
        else:
            size -= 1
    return chosen
