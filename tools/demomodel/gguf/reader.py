"""Reads back what Writer wrote (and any GGUF that uses the same kinds).  For checks, not for hostile files."""

import struct
from dataclasses import dataclass
from pathlib import Path

from . import kinds, pack


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple
    kind: kinds.TensorKind
    data: bytes

    def values(self):
        """The tensor's numbers, row by row, as an array of floats."""
        return pack.decode(self.kind, self.data)


@dataclass(frozen=True)
class File:
    metadata: dict
    tensors: dict


def read(path):
    """Reads a whole file; a ValueError says what is wrong with it."""
    data = Path(path).read_bytes()
    cursor = _Cursor(data)
    if cursor.take("4s") != kinds.MAGIC or cursor.take("I") != kinds.VERSION:
        raise ValueError(f"{path} is no GGUF file of version {kinds.VERSION}")
    tensors, pairs = cursor.take("Q"), cursor.take("Q")
    metadata = dict(_pair(cursor) for _ in range(pairs))
    described = [_description(cursor) for _ in range(tensors)]
    base = cursor.at + kinds.padding(cursor.at)
    found = {}
    for name, shape, kind, offset in described:
        size = kind.bytes_of(_product(shape))
        if offset % kinds.ALIGNMENT or base + offset + size > len(data):
            raise ValueError(f"{path}: tensor {name} lies outside the file or is not aligned")
        found[name] = Tensor(name, shape, kind, data[base + offset : base + offset + size])
    return File(metadata, found)


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        """The next value of a struct code."""
        code = "<" + code
        (value,) = struct.unpack_from(code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def string(self):
        return self.take(f"{self.take('Q')}s").decode("utf-8")

    def value(self, kind):
        if kind == kinds.STRING:
            return self.string()
        if kind == kinds.ARRAY:
            inner, count = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(count)]
        if kind not in kinds.CODES:
            raise ValueError(f"metadata kind {kind} is not read here")
        return self.take(kinds.CODES[kind])


def _pair(cursor):
    key = cursor.string()
    return key, cursor.value(cursor.take("I"))


def _description(cursor):
    name, rank = cursor.string(), cursor.take("I")
    shape = tuple(reversed([cursor.take("Q") for _ in range(rank)]))
    number, offset = cursor.take("I"), cursor.take("Q")
    if number not in kinds.TENSOR_KINDS:
        raise ValueError(f"tensor {name}: kind {number} is not read here")
    return name, shape, kinds.TENSOR_KINDS[number], offset


def _product(shape):
    size = 1
    for dimension in shape:
        size *= dimension
    return size
