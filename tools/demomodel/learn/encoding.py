"""Encodes the documents once: NAME.ids.npy holds all token ids, NAME.starts.npy where each document starts."""

from pathlib import Path

import numpy

from . import tokenizer as vocabulary

NAMES = ("train", "heldout")


def encode_all(data):
    """Encodes train.jsonl and heldout.jsonl of a data folder; returns {name: (documents, tokens, longest)}."""
    tokenizer = vocabulary.load(data)
    return {name: _encode(Path(data), name, tokenizer) for name in NAMES}


def _encode(data, name, tokenizer):
    documents = [numpy.array(vocabulary.encode(tokenizer, text), numpy.uint16) for text in vocabulary.texts(data / f"{name}.jsonl")]
    lengths = numpy.array([len(document) for document in documents])
    numpy.save(data / f"{name}.ids.npy", numpy.concatenate(documents))
    numpy.save(data / f"{name}.starts.npy", numpy.concatenate(([0], numpy.cumsum(lengths))))
    return len(documents), int(lengths.sum()), int(lengths.max())


def load(data, name):
    """All documents of one file, as a list of arrays."""
    ids, starts = numpy.load(Path(data) / f"{name}.ids.npy"), numpy.load(Path(data) / f"{name}.starts.npy")
    return [ids[a:b] for a, b in zip(starts[:-1], starts[1:])]
